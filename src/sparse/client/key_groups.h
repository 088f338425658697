/* SPDX-License-Identifier: Apache-2.0 */
/* key_groups: finds equal keys of a call. Pure but for memory. */
#ifndef TRIB_SPARSE_CLIENT_KEY_GROUPS_H
#define TRIB_SPARSE_CLIENT_KEY_GROUPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct key_groups {
	size_t n;      /* different keys */
	size_t *first; /* of each: where it occurs first, ascending */
	size_t *of;    /* for each key of the call: the number of its group */
};

/* False: no memory. */
bool key_groups_find(struct key_groups *groups, const uint64_t *keys, size_t n);
void key_groups_free(struct key_groups *groups);

#endif
