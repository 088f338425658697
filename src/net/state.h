/* SPDX-License-Identifier: Apache-2.0 */
/*
 * state: the record of a cluster between two commands, one small text file each. A file that
 * only says "building" is written before the first namespace. It stays behind if `up` is
 * killed halfway.
 */
#ifndef TRIB_NET_STATE_H
#define TRIB_NET_STATE_H

#include "net/cluster.h"

/* The lock for creating and removing clusters; it ends with the process. -1: see *status. */
int state_lock(trib_status *status);
void state_unlock(int lock);

/* Does anything have the name: a file or, after a crash, only a namespace? */
bool state_exists(const char *name);
trib_status state_begin(const char *name, unsigned subnet);
trib_status state_write(const struct cluster *cluster);
trib_status state_remove(const char *name);

/* A third byte of 10.84.x.0/24 that no other cluster has. */
unsigned state_free_subnet(const char *name);

/* Calls `visit` for every cluster, complete or not, until one returns an error. */
trib_status state_each(trib_status (*visit)(void *context, const char *name), void *context);

#endif
