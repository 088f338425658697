/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packets of a communicator that is not here: this process was restarted, or the
 * communicator has ended. The sender is told, so it need not wait for a timeout.
 * DATA is not answered: it carries no cookie that an answer could show. Its
 * sender reports soon, and the REPORT is answered.
 *
 * The answer shows the cookie of the packet, so only a member of that
 * communicator accepts it. With a controller's secret, only cookies made with
 * that secret are answered. Without a secret, a few packets per tick are, so this
 * aggregator cannot be used to flood a third party. An ABORT or an echo is never
 * answered: two aggregators cannot keep each other busy. Any thread calls these.
 */
#ifndef TRIB_PLANE_MEMBERSHIP_UNKNOWN_COMM_H
#define TRIB_PLANE_MEMBERSHIP_UNKNOWN_COMM_H

#include "plane/core/thread.h"

/* Answers with an ABORT. */
void unknown_comm_answer(struct thread *thread, const struct wire_control *header,
                         const struct udp_address *from);
/* A wrong cookie: counted, logged once a minute, and told to the sender of a JOIN. */
void unknown_comm_cookie(struct thread *thread, const struct wire_control *header, uint32_t bytes,
                         const struct udp_address *from);
/* Echoes a BYE: the sender may go. */
void unknown_comm_echo(struct thread *thread, const struct wire_control *header,
                       const struct udp_address *from);

#endif
