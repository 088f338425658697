/* SPDX-License-Identifier: Apache-2.0 */
/* What a thread of the aggregator does until it is stopped. */
#ifndef TRIB_PLANE_LOOP_THREAD_LOOP_H
#define TRIB_PLANE_LOOP_THREAD_LOOP_H

/* For pthread_create(); the argument is a struct thread. */
void *thread_loop(void *thread);

#endif
