/* SPDX-License-Identifier: Apache-2.0 */
/* A set of keys of 128 bits, each with a number. Plain: it only grows. */
#ifndef TRIB_SPARSE_AUDIT_SET_H
#define TRIB_SPARSE_AUDIT_SET_H

#include <stdbool.h>
#include <stdint.h>

struct audit_key {
	uint64_t a, b;
};

struct audit_set {
	struct audit_key *keys;
	uint64_t *values;
	uint64_t *slots; /* place in `keys` + 1; 0: free */
	uint64_t n, room, n_slots;
};

/* Adds a key with a value, if it is not there. *was: it was there. NULL: there is no memory. */
uint64_t *audit_set_add(struct audit_set *set, struct audit_key key, uint64_t value, bool *was);
/* NULL: it is not there. */
uint64_t *audit_set_find(const struct audit_set *set, struct audit_key key);
void audit_set_free(struct audit_set *set);

#endif
