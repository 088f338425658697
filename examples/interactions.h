/* SPDX-License-Identifier: Apache-2.0 */
/*
 * interactions: which users have used which items. Two forms of text are read: "USER ITEM ITEM..."
 * and "USER ITEM 1", a line for each pair.
 */
#ifndef EXAMPLES_INTERACTIONS_H
#define EXAMPLES_INTERACTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct interactions {
	uint32_t users, items; /* one more than the largest number */
	size_t n;
	uint32_t *user, *item; /* n pairs, ordered by user, then by item; no pair twice */
	size_t *start;         /* the pairs of user u are start[u] to start[u + 1] - 1 */
};

/* Both exit with a sentence that names file and line. */
void interactions_read(struct interactions *out, const char *path);
/*
 * Users of several groups who like the items of their group best, and popular items more than
 * others. Every fifth pair goes to `test`.
 */
void interactions_make(struct interactions *train, struct interactions *test, uint64_t seed);
void interactions_free(struct interactions *interactions);

/* Lets both have as many users and items as the larger of them. */
void interactions_match(struct interactions *a, struct interactions *b);
bool interactions_has(const struct interactions *of, uint32_t user, uint32_t item);

#endif
