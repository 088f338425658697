/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A gradient on its way: as f32, or as bf16 with half the bytes. Copies of it can go to a file, for
 * `trib bench numbers --gradients`.
 */
#ifndef EXAMPLES_GRADIENT_H
#define EXAMPLES_GRADIENT_H

#include <tributary.h>

#include <stdbool.h>

enum { GRADIENTS_KEPT = 64 }; /* vectors that are written to a file, of all ranks together */

struct gradient {
	trib_comm *comm;
	float *values;
	size_t count;
	uint16_t *half; /* the values in bf16; NULL: they travel as f32 */
	bool feedback;  /* what rounding takes from a value is added to the next one */
	int file;       /* -1: none */
	unsigned step;
};

/* `path` may be NULL. Exits with a message if there is no memory or no such file. */
void gradient_init(struct gradient *gradient, trib_comm *comm, float *values, size_t count,
                   bool is_half, bool feedback, const char *path);
void gradient_free(struct gradient *gradient);

/* Starts the mean of `count` values over all ranks, in place. */
trib_status gradient_send(struct gradient *gradient, size_t first, size_t count,
                          trib_request **request);
/* The request is done: the values are the mean. */
void gradient_receive(struct gradient *gradient, size_t first, size_t count);

#endif
