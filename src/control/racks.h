/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where machines are. A rack is a path from the widest part of the network to
 * the narrowest, "pod1/rack2"; what paths have in common is how close machines
 * are. Real racks are not alike, the fabric of src/plan is: so it is as large as
 * the largest of each level, and hosts that are not there are said to lack. Pure.
 */
#ifndef TRIB_CONTROL_RACKS_H
#define TRIB_CONTROL_RACKS_H

#include "plan/fabric.h"

#include <stdbool.h>
#include <stddef.h>

#define RACK_MAX 64
#define RACK_NAMES_MAX (FABRIC_LEVELS_MAX - 1)

/* Up to RACK_NAMES_MAX names of letters, digits and .-_ with slashes between them; empty is good
 * too. */
bool rack_is_good(const char *path);
unsigned rack_names(const char *path);
/* "pod1/rack2" is below "pod1", itself and the empty path. */
bool rack_is_below(const char *path, const char *above);
/* Cuts a path to the names that another one begins with as well. */
void rack_meet(char *path, const char *other);

/*
 * The fabric of hosts with these racks, and the number that each has in it: those of one rack, and
 * of one pod, follow each other. Where racks are so unlike that it would be too large, the last
 * names do not count; *names says how many do.
 */
trib_status racks_number(const char *const *racks, uint32_t n, struct fabric *fabric,
                         uint32_t *numbers, unsigned *names);

#endif
