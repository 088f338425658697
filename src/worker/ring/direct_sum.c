/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/ring/direct_sum.h"

#include "engine/combine.h"

#include <string.h>

/* The parts of all ranks of a vector, cut into blocks. */
struct inputs {
	const uint8_t *at[WIRE_CHILDREN_MAX];
	unsigned ranks;
	size_t per;     /* elements of a block */
	size_t element; /* bytes */
};

static struct inputs inputs_of(const struct direct *direct, const struct direct_call *call,
                               const struct round_spec *vector)
{
	struct inputs inputs = { .ranks = direct->size,
		                 .per = round_spec_block(vector, direct->payload),
		                 .element = trib_type_size(vector->type) };

	for (unsigned r = 0; r < direct->size; r++)
		inputs.at[r] = r == direct->rank ? vector->source
		                                 : call->came[r]->data + sizeof(struct direct_head);
	return inputs;
}

/* Leaves `n` elements behind, which are whole blocks. */
static void advance(struct inputs *inputs, struct round_spec *vector, size_t n)
{
	for (unsigned r = 0; r < inputs->ranks; r++)
		inputs->at[r] += n * inputs->element;
	vector->source = (const uint8_t *)vector->source + n * inputs->element;
	vector->target = (uint8_t *)vector->target + n * inputs->element;
	if (vector->residual)
		vector->residual += n;
	vector->first += n;
	vector->count -= n;
}

/* ---- floats without special values: integers are added where they are made ---- */

static bool is_plain(const struct round_spec *vector)
{
	return number_is_float(vector->type) && number_wire_size(vector->type) == sizeof(int32_t) &&
	       (vector->op == TRIB_SUM || vector->op == TRIB_AVG) && vector->target;
}

/* The first block. False: it has special values, and nothing was done. */
static bool sum_block(const struct inputs *inputs, const struct round_spec *vector, size_t n)
{
	int32_t sums[WIRE_PAYLOAD_MAX / sizeof(int32_t)];
	uint16_t class = 0;

	for (unsigned r = 0; r < inputs->ranks; r++) {
		bool special;
		uint16_t own = number_classify(vector->type, inputs->at[r], n, &special);

		if (special)
			return false;
		class = own > class ? own : class;
	}
	number_encode(vector->type, inputs->at[0], n, class, inputs->ranks, sums);
	for (unsigned r = 1; r < inputs->ranks; r++)
		number_encode_more(vector->type, inputs->at[r], n, class, inputs->ranks, sums);
	number_decode(vector->type, sums, n, class, inputs->ranks, vector->op == TRIB_AVG,
	              vector->target);
	if (vector->residual) /* as in round.c */
		memset(vector->residual, 0, n * sizeof(*vector->residual));
	return true;
}

/* Block by block: each one stays in the cache until its sum is known. What has special values, and
 * what follows, needs rounds: that is left. */
static void sum_plain(struct inputs *inputs, struct round_spec *vector)
{
	while (vector->count) {
		size_t n = vector->count < inputs->per ? vector->count : inputs->per;

		if (!sum_block(inputs, vector, n))
			return;
		advance(inputs, vector, n);
	}
}

/* ---- all others ---- */

/* The rounds of all ranks for a vector, as if the ranks were here. False: no memory. */
static bool make_rounds(const struct direct *direct, const struct inputs *inputs,
                        const struct round_spec *vector, struct round *rounds[])
{
	bool made = true;

	for (unsigned r = 0; r < direct->size; r++) {
		struct round_spec spec = *vector;

		spec.ring = true;
		if (r != direct->rank) {
			spec.source = inputs->at[r];
			spec.target = NULL;
			spec.residual = NULL;
		}
		rounds[r] = round_new(&spec, r, direct->payload);
		made &= rounds[r] != NULL;
	}
	return made;
}

/* One fragment of all ranks. Data and special values of the sum go to this rank, classes to all.
 * False: no memory. */
static bool sum_fragment(const struct direct *direct, struct round *rounds[], uint32_t index)
{
	_Alignas(8) uint8_t sum[WIRE_PAYLOAD_MAX], part[WIRE_PAYLOAD_MAX];
	const struct round *own = rounds[direct->rank];
	uint32_t bytes = round_bytes(own, index);
	struct wire_header header;
	bool taken = true;

	round_build(rounds[0], index, direct->size, &header, sum);
	for (unsigned r = 1; r < direct->size; r++) {
		round_build(rounds[r], index, direct->size, &header, part);
		combine(header.op, sum, part, bytes);
	}
	for (unsigned r = 0; r < direct->size; r++)
		if (r == direct->rank || index < own->exponents)
			taken &= round_take(rounds[r], index, direct->size, header.scale, sum);
	return taken;
}

static bool sum_rounds(const struct direct *direct, struct round *rounds[])
{
	const struct round *own = rounds[direct->rank];
	uint32_t data = own->exponents + own->specials;

	for (uint32_t index = 0; index < round_fragments(own); index++) {
		bool skipped = index >= own->exponents && index < data &&
		               !bitmap_get(own->any_special, index - own->exponents);

		if (!skipped && !sum_fragment(direct, rounds, index))
			return false;
	}
	return true;
}

trib_status direct_sum(const struct direct *direct, const struct direct_call *call,
                       const struct round_spec *vector)
{
	struct round *rounds[WIRE_CHILDREN_MAX] = { 0 };
	struct inputs inputs = inputs_of(direct, call, vector);
	struct round_spec left = *vector;
	bool done;

	if (is_plain(vector))
		sum_plain(&inputs, &left);
	done = !left.count ||
	       (make_rounds(direct, &inputs, &left, rounds) && sum_rounds(direct, rounds));
	for (unsigned r = 0; r < direct->size; r++)
		round_free(rounds[r]);
	return done ? TRIB_OK : status_fail(TRIB_ERR_NO_MEMORY, "no memory for a sum");
}
