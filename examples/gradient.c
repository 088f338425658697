/* SPDX-License-Identifier: Apache-2.0 */
#include "gradient.h"

#include <err.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Rounds to nearest, ties to even. A NaN stays one. */
static uint16_t bf16_from(float value)
{
	uint32_t bits;

	memcpy(&bits, &value, sizeof(bits));
	if ((bits & 0x7fffffff) > 0x7f800000)
		return 0x7fc0;
	return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static float bf16_value(uint16_t half)
{
	uint32_t bits = (uint32_t)half << 16;
	float value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

void gradient_init(struct gradient *gradient, trib_comm *comm, float *values, size_t count,
                   bool is_half, bool feedback, const char *path)
{
	*gradient = (struct gradient){ comm, values, count, NULL, feedback, -1, 0 };
	if (is_half && !(gradient->half = malloc(count * sizeof(*gradient->half))))
		err(EXIT_FAILURE, "train");
	if (path && (gradient->file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666)) < 0)
		err(EXIT_FAILURE, "train: %s", path);
}

void gradient_free(struct gradient *gradient)
{
	free(gradient->half);
	if (gradient->file >= 0)
		close(gradient->file);
}

/* All ranks write into one file: step by step, and in each step rank by rank. */
static void values_keep(struct gradient *gradient, size_t first, size_t count)
{
	size_t vector = (size_t)gradient->step * (size_t)trib_size(gradient->comm) +
	                (size_t)trib_rank(gradient->comm);
	size_t bytes = count * sizeof(float);

	if (gradient->file >= 0 && vector < GRADIENTS_KEPT &&
	    pwrite(gradient->file, gradient->values + first, bytes,
	           (off_t)((vector * gradient->count + first) * sizeof(float))) != (ssize_t)bytes)
		err(EXIT_FAILURE, "train: cannot write the gradients");
	if (first + count == gradient->count)
		gradient->step++;
}

trib_status gradient_send(struct gradient *gradient, size_t first, size_t count,
                          trib_request **request)
{
	trib_call call = TRIB_CALL_INIT;
	char name[32];

	values_keep(gradient, first, count);
	for (size_t i = first; gradient->half && i < first + count; i++)
		gradient->half[i] = bf16_from(gradient->values[i]);
	if (gradient->half)
		return trib_iallreduce(gradient->comm, TRIB_IN_PLACE, gradient->half + first, count,
		                       TRIB_BF16, TRIB_AVG, request);
	snprintf(name, sizeof(name), "from %zu", first);
	call.residual = gradient->feedback ? name : NULL;
	return trib_iallreduce_with(gradient->comm, TRIB_IN_PLACE, gradient->values + first, count,
	                            TRIB_F32, TRIB_AVG, &call, request);
}

void gradient_receive(struct gradient *gradient, size_t first, size_t count)
{
	for (size_t i = first; gradient->half && i < first + count; i++)
		gradient->values[i] = bf16_value(gradient->half[i]);
}
