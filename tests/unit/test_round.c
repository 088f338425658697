/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rounds of two ranks, with an aggregator that only combines. Tests the cost of exponents, the
 * blocks that a fragment of exponents and a flag cover, and that special values are sent only if a
 * rank has any.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "engine/combine.h"
#include "short.h"
#include "worker/dense/round.h"

#include <stdlib.h>
#include <string.h>

#define RANKS 2u
#define HEADERS 66u /* bytes of Ethernet, IPv4, UDP and ours before a payload */

static const struct kind {
	trib_type type;
	unsigned per_word;
	uint64_t one, sixteen, two, seventeen, inf, minus_inf, nan;
} kinds[] = {
	{ TRIB_F16, 0, 0x3c00, 0x4c00, 0x4000, 0x4c40, 0x7c00, 0xfc00, 0x7e00 },
	{ TRIB_BF16, 0, 0x3f80, 0x4180, 0x4000, 0x4188, 0x7f80, 0xff80, 0x7fc0 },
	{ TRIB_F32, 0, 0x3f800000, 0x41800000, 0x40000000, 0x41880000, 0x7f800000, 0xff800000,
	  0x7fc00000 },
	{ TRIB_F16, 4, 0x3c00, 0x4c00, 0x4000, 0x4c40, 0x7c00, 0xfc00, 0x7e00 },
	{ TRIB_BF16, 3, 0x3f80, 0x4180, 0x4000, 0x4188, 0x7f80, 0xff80, 0x7fc0 },
	{ TRIB_F32, 8, 0x3f800000, 0x41800000, 0x40000000, 0x41880000, 0x7f800000, 0xff800000,
	  0x7fc00000 },
	{ TRIB_F64, 0, 0x3ff0000000000000, 0x4030000000000000, 0x4000000000000000,
	  0x4031000000000000, 0x7ff0000000000000, 0xfff0000000000000, 0x7ff8000000000000 },
};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

static const unsigned payloads[] = { 256, 264, 1424, 1448, 4000, 8944 };
#define PAYLOADS (sizeof(payloads) / sizeof(payloads[0]))

struct pair {
	const struct kind *kind;
	size_t count;
	uint8_t *in[RANKS], *out[RANKS];
	struct round *rounds[RANKS];
};

static void element_put(const struct pair *pair, uint8_t *vector, size_t i, uint64_t bits)
{
	size_t size = trib_type_size(pair->kind->type);

	memcpy(vector + i * size, &bits, size); /* little-endian, like the wire */
}

static uint64_t element_get(const struct pair *pair, const uint8_t *vector, size_t i)
{
	size_t size = trib_type_size(pair->kind->type);
	uint64_t bits = 0;

	memcpy(&bits, vector + i * size, size);
	return bits;
}

static struct round *any_round(trib_type type, unsigned per_word, size_t count, unsigned payload)
{
	struct round_spec spec = {
		.count = count, .type = type, .op = TRIB_SUM, .from = WIRE_ALL, .to = WIRE_ALL
	};
	struct round *round;

	spec.per_word = (uint8_t)per_word;
	round = round_new(&spec, 0, payload);
	assert_non_null(round);
	return round;
}

/* A third of rank 1's blocks have another class than rank 0's. */
static bool is_larger(const struct pair *pair, size_t i)
{
	return i / pair->rounds[0]->per_fragment % 3 == 1;
}

static void pair_make(struct pair *pair, const struct kind *kind, size_t count, unsigned payload)
{
	*pair = (struct pair){ .kind = kind, .count = count };
	for (unsigned r = 0; r < RANKS; r++) {
		pair->in[r] = malloc(count * trib_type_size(kind->type));
		pair->out[r] = malloc(count * trib_type_size(kind->type));
		assert_true(pair->in[r] && pair->out[r]);
		pair->rounds[r] = any_round(kind->type, kind->per_word, count, payload);
		pair->rounds[r]->source = pair->in[r];
		pair->rounds[r]->target = pair->out[r];
		for (size_t i = 0; i < count; i++)
			element_put(pair, pair->in[r], i,
			            r && is_larger(pair, i) ? kind->sixteen : kind->one);
	}
}

static void pair_free(struct pair *pair)
{
	for (unsigned r = 0; r < RANKS; r++) {
		round_free(pair->rounds[r]);
		free(pair->in[r]);
		free(pair->out[r]);
	}
}

struct fragment {
	struct wire_header header;
	_Alignas(8) uint8_t payload[WIRE_PAYLOAD_MAX];
};

/* Fragment `index` of all ranks, combined. */
static void combined(struct pair *pair, uint32_t index, struct fragment *result)
{
	static struct fragment part;

	for (unsigned r = 0; r < RANKS; r++) {
		struct fragment *to = r ? &part : result;
		uint32_t bytes =
			round_build(pair->rounds[r], index, RANKS, &to->header, to->payload);

		assert_int_equal(bytes, round_bytes(pair->rounds[r], index));
		if (r) {
			assert_int_equal(part.header.scale, result->header.scale);
			combine(part.header.op, result->payload, part.payload, bytes);
		}
		assert_true(round_fits(pair->rounds[r], index, &to->header, bytes));
	}
}

static void give(struct pair *pair, uint32_t index, const struct fragment *result)
{
	for (unsigned r = 0; r < RANKS; r++)
		assert_true(round_take(pair->rounds[r], index, RANKS, result->header.scale,
		                       result->payload));
}

/* Exchanges all exponents. Returns the number of flags set. */
static unsigned exchange_exponents(struct pair *pair)
{
	const struct round *round = pair->rounds[0];
	static struct fragment result;
	unsigned flags = 0;
	uint32_t classes = 0;

	for (uint32_t k = 0; k < round->exponents; k++) {
		uint32_t n, size = round->exponent_size;

		combined(pair, k, &result);
		for (unsigned r = 0; r < RANKS; r++)
			pair->rounds[r]->next_exponents = k + 1;
		n = (round_scanned(round) < round->data ? (uint32_t)round_scanned(round)
		                                        : round->data) -
		    classes;
		classes += n;
		for (uint32_t i = n * round->classes_per * size; i < round_bytes(round, k);
		     i += size)
			flags += result.payload[i];
		give(pair, k, &result);
	}
	assert_int_equal(classes, round->data);
	return flags;
}

/* Exchanges the special values that ranks want to send. Returns the number of fragments. */
static unsigned exchange_specials(struct pair *pair)
{
	const struct round *round = pair->rounds[0];
	static struct fragment result;
	unsigned sent = 0;

	for (uint32_t k = round->exponents; k < round->exponents + round->specials; k++) {
		for (unsigned r = 0; r < RANKS; r++) {
			assert_int_equal(bitmap_get(pair->rounds[r]->again, k),
			                 round_was_sent(pair->rounds[r], k));
			assert_int_equal(bitmap_get(pair->rounds[r]->again, k),
			                 bitmap_get(round->again, k));
			assert_int_equal(bitmap_get(pair->rounds[r]->have, k),
			                 !bitmap_get(round->again, k));
		}
	}
	for (uint32_t k = round->exponents; k < round->exponents + round->specials; k++) {
		if (bitmap_get(round->have, k))
			continue;
		combined(pair, k, &result);
		give(pair, k, &result);
		sent++;
	}
	return sent;
}

static void exchange_data(struct pair *pair)
{
	const struct round *round = pair->rounds[0];
	static struct fragment result;

	for (uint32_t k = round->exponents + round->specials; k < round_fragments(round); k++) {
		for (unsigned r = 0; r < RANKS; r++)
			assert_true(round_may_send(pair->rounds[r], k));
		combined(pair, k, &result);
		give(pair, k, &result);
	}
	for (unsigned r = 0; r < RANKS; r++)
		assert_int_equal(pair->rounds[r]->finished, round_fragments(round));
}

/* All sums but one are the same as without special values. */
static void check_sums(const struct pair *pair, size_t special, uint64_t bits)
{
	for (unsigned r = 0; r < RANKS; r++)
		for (size_t i = 0; i < pair->count; i++) {
			uint64_t sum = is_larger(pair, i) ? pair->kind->seventeen : pair->kind->two;

			if (i == special)
				sum = bits;
			if (element_get(pair, pair->out[r], i) != sum)
				assert_int_equal(element_get(pair, pair->out[r], i), sum);
		}
}

/* The last block of each fragment or flag, and the last block of all. */
static unsigned borders(const struct round *round, uint32_t *out)
{
	uint32_t s = round->per_specials, first = round->first_exponents;
	uint32_t second = first + round->per_exponents;
	const uint32_t all[] = { 0,          s - 1,  s,
		                 first - 1,  first,  first + s - 1,
		                 second - 1, second, round->data - 1 };

	memcpy(out, all, sizeof(all));
	return sizeof(all) / sizeof(all[0]);
}

/* One rank has a special value, in the first or last element of a block at a border. */
static void one_special(const struct kind *kind, unsigned payload, unsigned which)
{
	struct pair pair;
	struct round *plan = any_round(kind->type, kind->per_word, 1, payload);
	size_t blocks = plan->first_exponents + plan->per_exponents + plan->per_specials + 3;
	size_t element, first, n;
	uint32_t at[16];
	unsigned rank = which % RANKS;

	pair_make(&pair, kind, (blocks - 1) * plan->per_fragment + 5, payload);
	round_free(plan);
	assert_true(which < borders(pair.rounds[0], at));
	n = round_block(pair.rounds[0], at[which], &first);
	element = which % 3 ? first + n - 1 : first;
	element_put(&pair, pair.in[rank], element, which % 2 ? kind->nan : kind->minus_inf);
	assert_int_equal(exchange_exponents(&pair), 1);
	assert_true(bitmap_get(pair.rounds[rank]->own_special, at[which]));
	assert_false(bitmap_get(pair.rounds[!rank]->own_special, at[which]));
	assert_true(bitmap_get(pair.rounds[!rank]->any_special,
	                       at[which] / pair.rounds[!rank]->per_specials));
	assert_int_equal(exchange_specials(&pair), 1);
	exchange_data(&pair);
	check_sums(&pair, element, which % 2 ? kind->nan : kind->minus_inf);
	pair_free(&pair);
}

static void test_flags_at_borders(void **state)
{
	static const unsigned some[] = { 256, 1448, 8944 };
	unsigned most = (unsigned)test_count("payloads", sizeof(some) / sizeof(some[0]), 1);

	(void)state;
	for (unsigned k = 0; k < KINDS; k++)
		for (unsigned p = 0; p < most; p++)
			for (unsigned which = 0; which < 9; which++)
				one_special(&kinds[k], some[p], which);
}

/* Infinities of both signs from two ranks, in two blocks of one flag, and alone in another. */
static void test_specials_of_both(void **state)
{
	(void)state;
	for (unsigned k = 0; k < KINDS; k++) {
		struct pair pair;
		size_t other, count = 100 * 256 / number_wire_size(kinds[k].type);

		pair_make(&pair, &kinds[k], count, 256);
		assert_true(pair.rounds[0]->specials > 2);
		element_put(&pair, pair.in[0], 7, kinds[k].inf);
		element_put(&pair, pair.in[1], 7, kinds[k].minus_inf);
		other = 2 * pair.rounds[0]->per_fragment;
		element_put(&pair, pair.in[1], other, kinds[k].inf);
		assert_int_equal(exchange_exponents(&pair), 1);
		assert_int_equal(exchange_specials(&pair), 1);
		exchange_data(&pair);
		for (unsigned r = 0; r < RANKS; r++) {
			assert_int_equal(element_get(&pair, pair.out[r], other), kinds[k].inf);
			element_put(&pair, pair.out[r], other, kinds[k].two);
		}
		check_sums(&pair, 7, kinds[k].nan);
		pair_free(&pair);
	}
}

/* Without special values no flag is set, and their fragments end with the exponents. */
static void test_no_specials(void **state)
{
	(void)state;
	for (unsigned k = 0; k < KINDS; k++)
		for (unsigned p = 0; p < PAYLOADS; p++) {
			struct pair pair;

			pair_make(&pair, &kinds[k], 40007, payloads[p]);
			assert_int_equal(exchange_exponents(&pair), 0);
			assert_int_equal(exchange_specials(&pair), 0);
			exchange_data(&pair);
			check_sums(&pair, SIZE_MAX, 0);
			pair_free(&pair);
		}
}

/*
 * If blocks are delivered whole, those of a set flag wait for their special values, others do not.
 */
static void test_whole_waits_by_flag(void **state)
{
	struct pair pair;
	struct round *round;
	uint32_t data;

	(void)state;
	pair_make(&pair, &kinds[2], 64 * 100, 256);
	round = pair.rounds[1];
	round->whole = true;
	data = round->exponents + round->specials;
	element_put(&pair, pair.in[0], round->per_fragment * (size_t)round->per_specials - 1,
	            kinds[2].nan);
	assert_false(round_may_take(round, data));
	exchange_exponents(&pair);
	assert_false(round_may_take(round, data));
	assert_false(round_may_take(round, data + round->per_specials - 1));
	assert_true(round_may_take(round, data + round->per_specials));
	exchange_specials(&pair);
	assert_true(round_may_take(round, data));
	exchange_data(&pair);
	pair_free(&pair);
}

/* Exponents fit packets, whatever remains for the last one, and cover whole flags. */
static void test_layout(void **state)
{
	size_t step = test_count("blocks more each time", 1, 7);

	(void)state;
	for (unsigned k = 0; k < KINDS; k++)
		for (unsigned p = 0; p < PAYLOADS; p++)
			for (size_t blocks = 1; blocks < 1200; blocks += step) {
				unsigned words = kinds[k].per_word;
				size_t per = words ? payloads[p] / 8 * words
				                   : payloads[p] / number_wire_size(kinds[k].type);
				struct round *round =
					any_round(kinds[k].type, words, blocks * per, payloads[p]);

				assert_int_equal(round->data, blocks);
				assert_int_equal(round->first_exponents % round->per_specials, 0);
				assert_int_equal(round->per_exponents % round->per_specials, 0);
				assert_true(round->first_exponents <= round->per_exponents);
				for (uint32_t i = 0; i < round->exponents; i++) {
					assert_true(round_scanned(round) < blocks);
					assert_true(round_bytes(round, i) <= payloads[p]);
					round->next_exponents++;
				}
				assert_true(round_scanned(round) >= blocks);
				round_free(round);
			}
}

static uint8_t shape(trib_type type, uint8_t per_word, size_t count)
{
	struct round *round = round_new(&(struct round_spec){ .count = count,
	                                                      .type = type,
	                                                      .op = TRIB_SUM,
	                                                      .per_word = per_word,
	                                                      .from = WIRE_ALL,
	                                                      .to = WIRE_ALL },
	                                0, 1432);
	uint8_t it;

	assert_non_null(round);
	it = round->shape;
	round_free(round);
	return it;
}

/* Ranks that differ in the type, in the width of an element or in the last word are told apart. */
static void test_shapes(void **state)
{
	static const trib_type types[] = { TRIB_F32, TRIB_F16, TRIB_BF16, TRIB_F8E4M3,
		                           TRIB_F8E5M2 };
	static const uint8_t words[] = { 8, 6, 4, 3 };
	enum { TYPES = 5, WORDS = 4, ALL = TYPES * WORDS };
	const size_t first = 34368;

	(void)state;
	for (unsigned i = 0; i < ALL; i++)
		for (size_t count = first; count < first + 8; count++) {
			uint8_t per_word = words[i % WORDS], own;

			own = shape(types[i / WORDS], per_word, count);
			for (unsigned k = 0; k < i; k++)
				assert_int_not_equal(
					own, shape(types[k / WORDS], words[k % WORDS], count));
			for (unsigned more = 1; more < per_word; more++)
				assert_int_not_equal(
					own, shape(types[i / WORDS], per_word, count + more));
		}
}

/* The cost of a vector's exponents: fragments, their payloads, and bytes on the wire. */
static void test_cost(void **state)
{
	static const struct {
		trib_type type;
		unsigned per_word;
		size_t count;
		unsigned payload;
		uint32_t fragments, bytes;
	} cases[] = {
		{ TRIB_F32, 0, 1, 1448, 1, 8 },
		{ TRIB_F32, 0, 7 * 362, 1448, 1, 8 },
		{ TRIB_F32, 0, 8 * 362, 1448, 1, 16 },
		{ TRIB_F32, 0, 192 * 362, 1448, 1, 208 },
		{ TRIB_F32, 0, 193 * 362, 1448, 2, 216 },
		{ TRIB_F32, 0, 1 << 22, 1448, 16, 12320 }, /* 16 MiB */
		{ TRIB_BF16, 0, 1 << 22, 1448, 16, 12320 },
		{ TRIB_F64, 0, 1 << 21, 1448, 18, 24000 },
		{ TRIB_F32, 0, 1 << 22, 8944, 18, 2024 },
		{ TRIB_F32, 0, 1 << 22, 256, 274, 69912 },
		{ TRIB_F64, 0, 1 << 21, 256, 683, 136536 },
		{ TRIB_BF16, 4, 1 << 23, 1448, 132, 187496 }, /* 16 MiB, 1.1 % of it */
	};

	(void)state;
	for (unsigned c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
		struct round *round = any_round(cases[c].type, cases[c].per_word, cases[c].count,
		                                cases[c].payload);
		uint32_t bytes = 0;

		for (uint32_t i = 0; i < round->exponents; i++)
			bytes += round_bytes(round, i);
		print_message("%zu elements of type %d: %u blocks of %u bytes, %u exponents "
		              "fragments of %u bytes, %u on the wire\n",
		              cases[c].count, cases[c].type, round->data, cases[c].payload,
		              round->exponents, bytes, bytes + round->exponents * HEADERS);
		assert_int_equal(round->exponents, cases[c].fragments);
		assert_int_equal(bytes, cases[c].bytes);
		round_free(round);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_layout),
		cmocka_unit_test(test_shapes),
		cmocka_unit_test(test_cost),
		cmocka_unit_test(test_no_specials),
		cmocka_unit_test(test_flags_at_borders),
		cmocka_unit_test(test_specials_of_both),
		cmocka_unit_test(test_whole_waits_by_flag),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
