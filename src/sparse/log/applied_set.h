/* SPDX-License-Identifier: Apache-2.0 */
/* Which packets of a child are in the sums that a server has applied. It has a fixed size. */
#ifndef TRIB_SPARSE_LOG_APPLIED_SET_H
#define TRIB_SPARSE_LOG_APPLIED_SET_H

#include <stdbool.h>
#include <stdint.h>

#define APPLIED_WINDOW 256u

/* The layout is that in logs, and the beginning of a struct sparse_record in packets. */
struct applied_set {
	uint64_t low;     /* every packet below is in */
	uint64_t seen[4]; /* bit i: packet low + i is in; bit 0 is never set */
};

bool applied_has(const struct applied_set *set, uint64_t packet);
/* True: all packets of `old` are in `set`. */
bool applied_covers(const struct applied_set *set, const struct applied_set *old);

#endif
