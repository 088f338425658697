/* SPDX-License-Identifier: Apache-2.0 */
/*
 * control: many machines as one system. On each node an agent reports to the controller. The
 * controller knows nodes and jobs, and gives the ranks of a job their trees. It owns membership:
 * each plan has a number (its generation) that only the controller gives, and that is stored before
 * anybody is told.
 *
 * Folders, from the top; each one calls only those below it:
 *
 *   server      starts the controller; serves workers by UDP
 *   api         serves users and agents by HTTP
 *   jobs        makes and ends jobs, gives plans to ranks
 *   migration   decides whether a running job leaves a node
 *   sharing     aggregators that jobs use in turns
 *   placement   hosts for jobs
 *   telemetry   what ranks report, and when links are probed
 *   state       records, store, history
 *   agent       the node's side
 *   metrics     Prometheus
 *   transport   HTTP, TLS, tokens, JSON of reports
 *   policy      decisions: pure functions of time and state
 *
 * The control plane never sees a vector. Data goes from workers to aggregators and back, and goes
 * on if the controller is gone.
 */
#ifndef TRIB_CONTROL_CONTROL_H
#define TRIB_CONTROL_CONTROL_H

#include "base/status.h"

#include <stdbool.h>

#define CONTROL_PORT 7600           /* TCP for HTTP, UDP for workers */
#define CONTROL_HEARTBEATS_MISSED 4 /* missed heartbeats after which an agent counts as dead */

/* False: the build has no control plane, and starting a part of it fails with the reason. */
bool control_is_built(void);

#endif
