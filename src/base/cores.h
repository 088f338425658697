/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRIB_BASE_CORES_H
#define TRIB_BASE_CORES_H

#include <pthread.h>

/* Pins a thread to the index-th core of a list like "0,1,2"; a shorter list leaves it alone. */
void cores_pin(pthread_t thread, const char *list, unsigned index);

#endif
