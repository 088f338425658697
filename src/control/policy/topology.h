/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where machines are. A rack is a path from the widest part of the network to the narrowest:
 * "pod1/rack2". The longer the common beginning of two paths, the closer the machines. The model of
 * src/plan assumes equal racks; smaller racks are padded with hosts that are never available. Pure.
 */
#ifndef TRIB_CONTROL_POLICY_TOPOLOGY_H
#define TRIB_CONTROL_POLICY_TOPOLOGY_H

#include "plan/fabric/fabric.h"

#include <stdbool.h>
#include <stddef.h>

#define RACK_MAX 64
#define RACK_NAMES_MAX (FABRIC_LEVELS_MAX - 1)

/* Good: up to RACK_NAMES_MAX names of letters, digits and .-_ with slashes between; or empty. */
bool rack_is_good(const char *path);
unsigned rack_names(const char *path);
/* "pod1/rack2" is below "pod1", itself and the empty path. */
bool rack_is_below(const char *path, const char *above);
/* Cuts a path to its common beginning with another one, in whole names. */
void rack_meet(char *path, const char *other);

/*
 * Makes the fabric of hosts with these racks, and the number of each host in it. Hosts of one rack,
 * and of one pod, have consecutive numbers. If racks differ so much in size that the padded fabric
 * would be too large, the last names are ignored. *names: how many names count.
 */
trib_status topology_number(const char *const *racks, uint32_t n, struct fabric *fabric,
                            uint32_t *numbers, unsigned *names);

#endif
