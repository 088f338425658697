/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gid_order: which addresses (GIDs) of an RDMA device are paths, and in which order. Both sides
 * must come to the same one: path N joins address N of both.
 */
#ifndef TRIB_PATH_VERBS_GID_ORDER_H
#define TRIB_PATH_VERBS_GID_ORDER_H

#include <arpa/inet.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define GIDS_MAX 256u /* entries of a device's table */

struct gid_address {
	uint8_t raw[16];
	int64_t order;
	uint8_t index; /* in the device's table */
};

static inline bool gid_is_ipv4(const uint8_t raw[16])
{
	static const uint8_t prefix[12] = { [10] = 0xff, [11] = 0xff };

	return memcmp(raw, prefix, sizeof(prefix)) == 0;
}

/* That of the list (TRIB_VERBS_ADDRESSES), or without one that of the numbers. Negative: not to be
 * used. */
static inline int64_t gid_order(const uint8_t raw[16], const char *list)
{
	char text[INET_ADDRSTRLEN];
	uint32_t number;
	size_t length;

	memcpy(&number, raw + 12, sizeof(number));
	if (!list || !*list)
		return ntohl(number);
	inet_ntop(AF_INET, &number, text, sizeof(text));
	length = strlen(text);
	for (const char *at = list; (at = strstr(at, text)); at += length)
		if ((at == list || at[-1] == ',') && (!at[length] || at[length] == ','))
			return at - list;
	return -1;
}

/* Appends an entry of the table to `out`, if it is a path. How many there are then. */
static inline unsigned gid_append(struct gid_address *out, unsigned n, const uint8_t raw[16],
                                  unsigned index, const char *list)
{
	if (!gid_is_ipv4(raw))
		return n;
	out[n] = (struct gid_address){ .order = gid_order(raw, list), .index = (uint8_t)index };
	memcpy(out[n].raw, raw, sizeof(out[n].raw));
	return n + (out[n].order >= 0);
}

static inline int gid_compare(const void *left, const void *right)
{
	const struct gid_address *a = left, *b = right;

	return (a->order > b->order) - (a->order < b->order);
}

#endif
