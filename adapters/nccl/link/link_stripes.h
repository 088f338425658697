/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stripes: messages in order over several byte streams. Pure: the caller moves the bytes.
 *
 * The first stream carries the length of each message, 8 bytes. A short message follows there. A
 * long one is cut into slices of equal length, one for each stream. Both ends compute the slices
 * from the length alone. The n-th message that is sent goes to the n-th buffer that is posted; the
 * buffer may be larger.
 */
#ifndef TRIB_NCCL_STRIPES_H
#define TRIB_NCCL_STRIPES_H

#include "common/greeting.h"

#include <sys/uio.h>

#define STRIPE_LEAST (64u << 10) /* bytes: no slice of a message is shorter, but for the first */
#define STRIPE_HEADER 8u

struct stripe_message {
	uint8_t *data;
	uint64_t room; /* bytes of the buffer */
	uint64_t size; /* bytes of the message; a receiver knows it when the header has come */
	uint8_t header[STRIPE_HEADER];
	unsigned left; /* streams that have not moved their slice */
	bool used;
};

/* Where a stream is: `at` bytes of its share of a message have passed. */
struct stripe_cursor {
	uint64_t message, at;
};

struct stripes {
	unsigned n;
	bool sends;
	uint64_t posted;
	uint64_t known; /* messages whose length is known */
	struct stripe_cursor cursors[STRIPES_MAX];
	struct stripe_message messages[NCCL_REQUESTS_MAX];
};

void stripes_init(struct stripes *stripes, unsigned n, bool sends);

/* Posts a message or a buffer. Its index, or -1: NCCL_REQUESTS_MAX are in use. */
int stripes_post(struct stripes *stripes, void *data, uint64_t bytes);

/* What the stream moves next: up to two pieces of memory. 0: nothing. */
unsigned stripes_next(struct stripes *stripes, unsigned stream, struct iovec pieces[2]);

/* The stream has moved bytes of these pieces. An error: a header is malformed, or the message is
 * longer than its buffer. */
trib_status stripes_moved(struct stripes *stripes, unsigned stream, uint64_t bytes);

/* Has all of the message been moved? */
static inline bool stripes_done(const struct stripes *stripes, unsigned index)
{
	return stripes->messages[index].used && !stripes->messages[index].left;
}

/* Frees the index of a message that is done. Gives its bytes. */
uint64_t stripes_release(struct stripes *stripes, unsigned index);

#endif
