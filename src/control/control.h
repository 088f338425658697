/* SPDX-License-Identifier: Apache-2.0 */
/*
 * control: many machines as one system. Agents say what they have and beat;
 * the controller knows nodes and jobs, gathers the ranks of a job and gives
 * them their trees. It owns membership: every change of who is in has a number
 * (a generation), given by the one controller and stored before it is told.
 *
 * Decisions are pure: rendezvous.h (who is in, who is waited for), nodes.h
 * (who is alive) and planner.h take the time and the world as arguments. What
 * touches the world is thin around them: http, client, store, tls, desk
 * (packets), agent. It never sees a vector: data goes from workers to
 * aggregators and back, and goes on when the controller is gone.
 */
#ifndef TRIB_CONTROL_CONTROL_H
#define TRIB_CONTROL_CONTROL_H

#include "base/status.h"

#include <stdbool.h>

#define CONTROL_PORT 7600      /* TCP for HTTP, UDP for workers */
#define CONTROL_BEATS_MISSED 4 /* and an agent counts as dead */

/* Was it built in? Else all that starts a part of it says what is missing. */
bool control_is_built(void);

#endif
