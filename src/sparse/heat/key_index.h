/* SPDX-License-Identifier: Apache-2.0 */
/* key_index: gives each key a number, 0, 1, 2 ..., in the order in which keys first occur. */
#ifndef TRIB_SPARSE_KEY_INDEX_H
#define TRIB_SPARSE_KEY_INDEX_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

#define KEY_INDEX_NONE UINT32_MAX

struct key_index {
	uint64_t *keys; /* [number] */
	uint32_t *slots;
	uint32_t n, room, slots_mask;
};

/* Begin with a struct of zeros. */
void key_index_free(struct key_index *index);

/* The number of the key, which is added if it is new. */
trib_status key_index_add(struct key_index *index, uint64_t key, uint32_t *number);

/* KEY_INDEX_NONE: the key is not there. */
uint32_t key_index_find(const struct key_index *index, uint64_t key);

#endif
