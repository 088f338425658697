/* SPDX-License-Identifier: Apache-2.0 */
/* Cookies: what proves that a sender may join a job, or has joined a communicator. */
#ifndef TRIB_PLANE_CORE_COOKIES_H
#define TRIB_PLANE_CORE_COOKIES_H

#include <stdbool.h>
#include <stdint.h>

struct aggregator;

/* May a sender that shows this cookie join the job? */
bool cookie_is_good(struct aggregator *aggregator, uint16_t job, uint64_t cookie);
/* Has the job of this good cookie ended at its controller? */
bool cookie_has_ended(struct aggregator *aggregator, uint16_t job, uint64_t cookie);
/* Makes the cookie of a new communicator. False: no random numbers. */
bool cookie_make(struct aggregator *aggregator, uint16_t job, uint64_t *out);
/* Was it made with the controller's secret? Without a secret every cookie may have been. */
bool cookie_was_made(struct aggregator *aggregator, uint16_t job, uint64_t cookie);

#endif
