/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/dense/round.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define PARTS_ABOVE 16384u /* elements: at 1 Gb/s, the bytes saved take as long as agreeing */
#define SMALL_BYTES 65536u /* bytes of a vector for slots */
#define SMALL_RESULT 8u    /* fragments: such a result goes to all ranks */
/* All blocks of an exponents fragment are read before their data can leave. */
#define EXPONENTS_FIRST (272u << 10)  /* bytes of blocks before the first data of a round */
#define EXPONENTS_LATER (1088u << 10) /* bytes of blocks of each later exponents fragment */

static uint32_t div_up(size_t n, size_t per)
{
	return n <= per ? n != 0 : (uint32_t)((n + per - 1) / per);
}

static uint32_t pad8(size_t bytes)
{
	return (uint32_t)((bytes + 7) & ~(size_t)7);
}

static uint8_t wire_op(trib_type type, trib_op op)
{
	/* rows: 1-, 4- and 8-byte elements on the wire; columns: signed, unsigned */
	static const uint8_t min[3][2] = { { WIRE_MIN_I8, WIRE_MIN_U8 },
		                           { WIRE_MIN_I32, WIRE_MIN_U32 },
		                           { WIRE_MIN_I64, WIRE_MIN_U64 } };
	static const uint8_t max[3][2] = { { WIRE_MAX_I8, WIRE_MAX_U8 },
		                           { WIRE_MAX_I32, WIRE_MAX_U32 },
		                           { WIRE_MAX_I64, WIRE_MAX_U64 } };
	static const uint8_t add[3] = { WIRE_ADD8, WIRE_ADD32, WIRE_ADD64 };
	size_t size = number_wire_size(type);
	unsigned row = size == 1 ? 0 : size == 4 ? 1 : 2;
	bool is_unsigned = type == TRIB_U8 || type == TRIB_U32 || type == TRIB_U64;

	if (op == TRIB_MIN)
		return min[row][is_unsigned];
	if (op == TRIB_MAX)
		return max[row][is_unsigned];
	return add[row];
}

/* The arrays of classes and special values, in memory that is zero. Gives the bytes; `at` NULL:
 * only these. */
static size_t place_classes(struct round *round, uint8_t *at)
{
	size_t blocks = round->coding == ROUND_SCALED ? round->data : 0;
	size_t classes =
		round->coding == ROUND_PARTS ? (size_t)round->data * round->classes_per : 0;
	size_t block_bits = bitmap_words(round->data) * 8;
	size_t special_bits = bitmap_words(round->specials) * 8;
	size_t sent_bits = classes ? block_bits : 0;

	if (at) {
		round->own_special = (uint64_t *)(void *)at;
		round->any_special = (uint64_t *)(void *)(at += block_bits);
		round->data_sent = (uint64_t *)(void *)(at += special_bits);
		round->own_class = (uint16_t *)(void *)(at += sent_bits);
		round->sent_class = round->own_class + blocks;
		round->top_class = round->sent_class + blocks;
		round->own_classes = (uint8_t *)(round->top_class + blocks);
		round->top_classes = round->own_classes + classes;
		memset(round->sent_class, 0xff, blocks * 2);
		memset(round->top_class, 0xff, blocks * 2);
	}
	return block_bits + special_bits + sent_bits + blocks * 6 + classes * 2;
}

/* All arrays of a round lie in one piece of memory: its own, if they are short. */
static bool round_allocate(struct round *round)
{
	uint32_t n = round_fragments(round);
	size_t words = bitmap_words(n), stamps = (n + 1) / 2;
	size_t bytes =
		(4 * words + stamps) * 8 + (round->exponents ? place_classes(round, NULL) : 0);
	uint64_t *at = round->few;

	if (bytes <= sizeof(round->few))
		memset(round->few, 0, bytes);
	else
		at = calloc(1, bytes);
	if (!at)
		return false;
	round->have = at;
	round->again = at + words;
	round->wanted = at + 2 * words;
	round->came = at + 3 * words;
	round->sent_at = (uint32_t *)(void *)(at + 4 * words);
	if (round->exponents)
		place_classes(round, (void *)(at + 4 * words + stamps));
	return true;
}

/*
 * Blocks of an exponents fragment: at most `bytes` of blocks, and it has to fit a packet. It covers
 * whole specials fragments; the flag of each stands behind the classes.
 */
static uint32_t exponents_per(const struct round *round, unsigned payload, uint32_t bytes)
{
	uint32_t fit =
		payload / ((round->per_specials * round->classes_per + 1) * round->exponent_size);
	uint32_t most = bytes / payload / round->per_specials;

	if (most > fit)
		most = fit;
	return (most ? most : 1) * round->per_specials;
}

static bool has_classes(const struct round *round)
{
	return (round->coding == ROUND_SCALED || round->coding == ROUND_PARTS) && round->count;
}

static void plan_exponents(struct round *round, unsigned payload)
{
	bool by_parts = round->coding == ROUND_PARTS;

	round->waits = by_parts;
	round->exponent_size = number_class_is_byte(round->type) ? 1 : 2;
	round->exponent_op = round->exponent_size == 1 ? WIRE_MAX_U8 : WIRE_MAX_U16;
	round->classes_per = by_parts ? (uint32_t)parts_classes(round->per_fragment) : 1;
	round->per_specials = payload * 4 / round->per_fragment;
	round->first_exponents = exponents_per(round, payload, EXPONENTS_FIRST);
	round->per_exponents = exponents_per(round, payload, EXPONENTS_LATER);
	round->specials = div_up(round->data, round->per_specials);
	round->exponents = 1;
	if (round->data > round->first_exponents)
		round->exponents +=
			div_up(round->data - round->first_exponents, round->per_exponents);
}

uint8_t round_per_word(trib_type type, size_t count, unsigned workers, unsigned bits)
{
	if (count <= PARTS_ABOVE)
		return 0;
	return (uint8_t)parts_choose(type, workers, bits);
}

static bool is_sum(const struct round_spec *spec)
{
	return !spec->copy && (spec->op == TRIB_SUM || spec->op == TRIB_AVG);
}

static enum round_coding coding_of(const struct round_spec *spec)
{
	if (spec->copy || !number_is_float(spec->type))
		return ROUND_RAW;
	if (!is_sum(spec))
		return ROUND_KEYS;
	return spec->per_word ? ROUND_PARTS : ROUND_SCALED;
}

/* As many elements as fit with the counts of their special values, in steps of four. */
static size_t small_block(const struct round_spec *spec, unsigned payload)
{
	unsigned per = round_counts_per(spec->small), size = (unsigned)number_wire_size(spec->type);
	size_t n = (size_t)payload * per / (size * per + 8) & ~(size_t)3;

	while (n * size + (n + per - 1) / per * 8 > payload)
		n -= 4;
	return n;
}

size_t round_spec_block(const struct round_spec *spec, unsigned payload)
{
	enum round_coding coding = coding_of(spec);

	if (coding == ROUND_PARTS)
		return (size_t)(payload / 8) * spec->per_word;
	if (spec->copy)
		return spec->piece ? spec->piece : payload;
	if (spec->small && coding == ROUND_SCALED)
		return small_block(spec, payload);
	return payload / number_wire_size(spec->type);
}

bool round_is_small(size_t bytes)
{
	return bytes <= SMALL_BYTES;
}

/* Bytes of n elements of the vector on the wire, without padding. */
static size_t data_bytes(const struct round *round, size_t n)
{
	return round->coding == ROUND_PARTS ? parts_bytes(round->per_word, n)
	                                    : n * number_wire_size(round->type);
}

/*
 * The flags of all packets of the round. They differ for rounds whose fragments have the same
 * lengths and operations: of other types, of vectors that differ in the last word alone, and of
 * another number of integers in a word.
 */
static uint8_t shape_of(const struct round *round)
{
	unsigned padding = (unsigned)(-data_bytes(round, round->count) & 7);
	unsigned kind = ((unsigned)round->type & 7) << (WIRE_TYPE_SHIFT - WIRE_PADDING_SHIFT);

	kind |= padding;
	if (round->coding == ROUND_PARTS)
		kind = ((unsigned)round->type + 11u * round->per_word +
		        8u * (unsigned)round->count) &
		       63;
	return (uint8_t)((round->average ? WIRE_AVERAGE : 0) | kind << WIRE_PADDING_SHIFT);
}

/* In slots, class and special values take `scale`: the signature is in the packet's `to` and flags.
 */
static void sign(struct round *round, const struct round_spec *spec)
{
	uint32_t word = spec->signature ? spec->signature : wire_call_sign(&round->call);

	round->sign = (uint16_t)word;
	if (spec->slot && word) {
		round->kind = (uint8_t)(word >> 16);
		round->shape = (uint8_t)(word >> 24) & (uint8_t)~WIRE_RESENT;
	} else {
		round->kind = spec->from != WIRE_ALL ? spec->from : spec->to;
		round->shape = shape_of(round);
	}
}

/* Bytes of a round from one of its fields to another. */
#define SPAN(from, to) (offsetof(struct round, to) - offsetof(struct round, from))

struct round *round_renew(struct round *old, const struct round_spec *spec, unsigned child,
                          unsigned payload)
{
	struct round *round = old ? old : malloc(sizeof(*round));
	trib_type type = spec->copy ? TRIB_U8 : spec->type;

	if (!round)
		return NULL;
	round->owner = spec->owner;
	round->source = spec->source;
	round->target = spec->target;
	round->residual = spec->residual;
	round->count = spec->count;
	round->type = type;
	round->coding = coding_of(spec);
	round->element = (uint8_t)number_size(type);
	round->wire_element = (uint8_t)number_wire_size(type);
	round->per_word = spec->per_word;
	round->average = spec->op == TRIB_AVG && !spec->copy;
	round->for_max = spec->op == TRIB_MAX;
	/* Scaled floats are added as words of one or more integers. */
	round->op = spec->copy                              ? WIRE_OR64
	            : number_is_float(type) && is_sum(spec) ? WIRE_ADD64
	                                                    : wire_op(type, spec->op);
	round->from = spec->from;
	round->to = spec->to;
	round->contributes = spec->from == WIRE_ALL || spec->from == child;
	round->dither = spec->dither;
	round->per_fragment = spec->block ? spec->block : (uint32_t)round_spec_block(spec, payload);
	round->first_block = spec->first ? (uint32_t)(spec->first / round->per_fragment) : 0;
	/* A round without elements, such as a barrier, still has one fragment in which ranks meet.
	 */
	round->data = round->count ? div_up(round->count, round->per_fragment) : 1;
	round->call = spec->call;
	memset(&round->exponents, 0, SPAN(exponents, workers));
	if (!spec->slot)
		memset(&round->per_exponents, 0, SPAN(per_exponents, few));
	if (has_classes(round) && !spec->slot)
		plan_exponents(round, payload);
	sign(round, spec);
	/* A small result of an aggregator goes to all ranks: cheaper than reports about it. */
	if (!round->count || (round->data <= SMALL_RESULT && !spec->ring) || spec->slot)
		round->to = WIRE_ALL;
	round->receives = round->to == WIRE_ALL || round->to == child;
	if (!round_allocate(round)) {
		free(round);
		return NULL;
	}
	return round;
}

/* The result of a data fragment that may not be taken yet. */
struct early_data {
	struct early_data *next;
	uint32_t index;
	uint16_t scale;
	_Alignas(8) uint8_t payload[];
};

void round_clear(struct round *round)
{
	while (round->kept) {
		struct early_data *next = round->kept->next;

		free(round->kept);
		round->kept = next;
	}
	if (round->masks)
		free(round->masks);
	if (round->have != round->few)
		free(round->have);
}

void round_free(struct round *round)
{
	if (round)
		round_clear(round);
	free(round);
}

/* The number of blocks that an exponents fragment covers; *first: the first one. */
static uint32_t exponents_cover(const struct round *round, uint32_t index, uint32_t *first)
{
	uint32_t per = index ? round->per_exponents : round->first_exponents;

	*first = index ? round->first_exponents + (index - 1) * per : 0;
	return round->data - *first < per ? round->data - *first : per;
}

/* The same for a specials fragment. */
static uint32_t specials_cover(const struct round *round, uint32_t index, uint32_t *first)
{
	*first = index * round->per_specials;
	return round->data - *first < round->per_specials ? round->data - *first
	                                                  : round->per_specials;
}

/* The values of an exponents fragment: the classes of its blocks, then the flags. */
static uint32_t exponent_values(const struct round *round, uint32_t blocks)
{
	return blocks * round->classes_per + div_up(blocks, round->per_specials);
}

/* The classes of a block's sub-blocks, in one of the round's two arrays of them. */
static uint8_t *classes_of(const struct round *round, uint8_t *classes, uint32_t block)
{
	return classes + (size_t)block * round->classes_per;
}

static const uint8_t *block_source(const struct round *round, size_t first)
{
	return round->source ? round->source + first * trib_type_size(round->type) : NULL;
}

static void exponent_put(const struct round *round, void *out, uint32_t i, uint16_t value)
{
	if (round->exponent_size == 1)
		((uint8_t *)out)[i] = (uint8_t)value;
	else
		((uint16_t *)out)[i] = value;
}

static uint16_t exponent_get(const struct round *round, const void *in, uint32_t i)
{
	return round->exponent_size == 1 ? ((const uint8_t *)in)[i] : ((const uint16_t *)in)[i];
}

static void scan_blocks(struct round *round, uint32_t first, uint32_t n)
{
	for (uint32_t block = first; block < first + n; block++) {
		size_t at, elements = round_block(round, block, &at);
		bool special = false;

		if (round->coding == ROUND_PARTS)
			special = parts_classify(round->type, block_source(round, at), elements,
			                         classes_of(round, round->own_classes, block));
		else
			round->own_class[block] = number_classify(
				round->type, block_source(round, at), elements, &special);
		if (special)
			bitmap_set(round->own_special, block);
	}
}

static bool has_specials(const struct round *round, uint32_t index)
{
	uint32_t first, n = specials_cover(round, index, &first);

	return bitmap_find(round->own_special, first + n, first, true) < first + n;
}

static uint32_t build_exponents(struct round *round, uint32_t index, void *out)
{
	uint32_t first, n = exponents_cover(round, index, &first);
	uint32_t values = exponent_values(round, n), classes = n * round->classes_per;

	/* Scanned once: in place, the source may be overwritten later. */
	if (index >= round->next_exponents)
		scan_blocks(round, first, n);
	if (round->coding == ROUND_PARTS)
		memcpy(out, classes_of(round, round->own_classes, first), classes);
	else
		for (uint32_t i = 0; i < n; i++)
			exponent_put(round, out, i, round->own_class[first + i]);
	for (uint32_t i = classes, k = first / round->per_specials; i < values; i++, k++)
		exponent_put(round, out, i, has_specials(round, k));
	return values * round->exponent_size;
}

static uint32_t build_specials(const struct round *round, uint32_t index, uint8_t *out)
{
	uint32_t first, n = specials_cover(round, index, &first);
	uint32_t bytes = pad8(((size_t)n * round->per_fragment + 3) / 4);

	memset(out, 0, bytes);
	for (uint32_t i = 0; i < n; i++) {
		size_t at, elements = round_block(round, first + i, &at);

		/* Only these blocks still have their input, see round_may_send(). */
		if (bitmap_get(round->own_special, first + i))
			number_mask(round->type, block_source(round, at), elements, out,
			            (size_t)i * round->per_fragment);
	}
	return bytes;
}

static struct parts parts_of(const struct round *round, uint32_t block, unsigned workers)
{
	uint32_t seed = round->dither + round->first_block + block;

	/* Seeds of neighbours have nothing in common. */
	seed = (seed ^ seed >> 16) * 0x7feb352du;
	seed = (seed ^ seed >> 15) * 0x846ca68bu;
	return (struct parts){ round->type, round->per_word, workers,
		               round->dither ? (seed ^ seed >> 16) | 1 : 0 };
}

static uint32_t build_data(struct round *round, uint32_t block, unsigned workers, uint16_t *scale,
                           void *out)
{
	size_t first, n = round_block(round, block, &first), bytes = data_bytes(round, n);
	struct parts parts = parts_of(round, block, workers);
	const uint8_t *source, *classes;

	if (n == 0)
		return 0; /* a round without elements has no buffers */
	source = block_source(round, first);
	switch (round->coding) {
	case ROUND_RAW:
		memcpy(out, source, bytes);
		break;
	case ROUND_KEYS:
		number_to_keys(round->type, source, n, round->for_max, out);
		break;
	case ROUND_SCALED:
		*scale = round->top_class[block] != ROUND_UNKNOWN ? round->top_class[block]
		                                                  : round->own_class[block];
		round->sent_class[block] = *scale;
		round->guessed |= round->top_class[block] == ROUND_UNKNOWN;
		number_encode(round->type, source, n, *scale, workers, out);
		if (bytes == n * 4)
			number_pair(out, n);
		if (round->residual) /* what 32 bits lack is not worth keeping */
			memset(round->residual + first, 0, n * sizeof(*round->residual));
		break;
	case ROUND_PARTS:
		bitmap_set(round->data_sent, block);
		classes = classes_of(round, round->top_classes, block);
		parts_encode(&parts, source, n, classes, out);
		if (round->residual)
			parts_residual(&parts, source, n, classes, out, round->residual + first);
		break;
	}
	return (uint32_t)bytes;
}

uint32_t round_build(struct round *round, uint32_t index, unsigned workers,
                     struct wire_header *header, void *payload)
{
	uint32_t bytes;

	header->flags = round->shape;
	header->from = round->from;
	header->to = round->to;
	header->scale = round->sign;
	if (index < round->exponents) {
		header->op = round->exponent_op;
		header->to = WIRE_ALL;
		bytes = build_exponents(round, index, payload);
	} else if (index < round->exponents + round->specials) {
		header->op = WIRE_OR64;
		bytes = build_specials(round, index - round->exponents, payload);
	} else {
		header->op = round->op;
		bytes = build_data(round, index - round->exponents - round->specials, workers,
		                   &header->scale, payload);
	}
	memset((uint8_t *)payload + bytes, 0, pad8(bytes) - bytes);
	return pad8(bytes);
}

uint32_t round_bytes(const struct round *round, uint32_t index)
{
	uint32_t first;
	size_t at;

	if (index < round->exponents)
		return pad8((size_t)exponent_values(round, exponents_cover(round, index, &first)) *
		            round->exponent_size);
	index -= round->exponents;
	if (index < round->specials)
		return pad8(
			((size_t)specials_cover(round, index, &first) * round->per_fragment + 3) /
			4);
	return pad8(data_bytes(round, round_block(round, index - round->specials, &at)));
}

/* Does the fragment carry its block's class? All others carry the signature in its place. */
static bool has_class(const struct round *round, uint32_t index)
{
	return round->coding == ROUND_SCALED && index >= round->exponents + round->specials;
}

bool round_fits(const struct round *round, uint32_t index, const struct wire_header *header,
                uint32_t bytes)
{
	uint8_t op = index < round->exponents                     ? round->exponent_op
	             : index < round->exponents + round->specials ? WIRE_OR64
	                                                          : round->op;
	uint8_t to = index < round->exponents ? WIRE_ALL : round->to;

	return header->op == op && header->from == round->from && header->to == to &&
	       (has_class(round, index) || header->scale == round->sign) &&
	       bytes == round_bytes(round, index);
}

static void overlay_specials(struct round *round, uint32_t block)
{
	uint32_t index = block / round->per_specials;
	uint32_t width = round->per_specials * round->per_fragment / 4 + 8;
	size_t at, elements = round_block(round, block, &at);

	number_unmask(round->type, round->masks + (size_t)index * width,
	              (size_t)(block % round->per_specials) * round->per_fragment, elements,
	              round->target + at * trib_type_size(round->type));
}

static bool specials_arrived(const struct round *round, uint32_t block)
{
	return round->masks &&
	       bitmap_get(round->have, round->exponents + block / round->per_specials);
}

bool round_may_send(const struct round *round, uint32_t index)
{
	uint32_t data = round->exponents + round->specials, block = index - data;

	if (index < data || !round->exponents)
		return true;
	if (block >= round_ready(round))
		return false;
	/*
	 * A block with NaN or infinities waits for the result of its specials fragment. In
	 * place, the block's result would overwrite input that a repeat of the specials
	 * fragment reads.
	 */
	return !bitmap_get(round->own_special, block) || !round->receives ||
	       bitmap_get(round->have, round->exponents + block / round->per_specials);
}

bool round_may_take(const struct round *round, uint32_t index)
{
	uint32_t data = round->exponents + round->specials, block = index - data;

	if (!round->whole || index < data || !round->exponents)
		return true;
	if (!round_is_settled(round, index))
		return false;
	return !bitmap_get(round->any_special, block / round->per_specials) ||
	       specials_arrived(round, block);
}

bool round_was_sent(const struct round *round, uint32_t index)
{
	if (!round->contributes)
		return false;
	if (index < round->exponents)
		return index < round->next_exponents;
	index -= round->exponents;
	if (index < round->specials)
		return bitmap_get(round->any_special, index);
	index -= round->specials;
	if (index >= round->next_data)
		return false;
	if (!round->exponents)
		return true;
	return round->coding == ROUND_PARTS ? bitmap_get(round->data_sent, index)
	                                    : round->sent_class[index] != ROUND_UNKNOWN;
}

bool round_is_settled(const struct round *round, uint32_t index)
{
	uint32_t data = round->exponents + round->specials;

	if (index < data || !round->exponents)
		return true;
	return round->coding == ROUND_PARTS ? index - data < round_ready(round)
	                                    : round->top_class[index - data] != ROUND_UNKNOWN;
}

bool round_is_final(const struct round *round, uint32_t index)
{
	uint32_t data = round->exponents + round->specials;

	return index < data || round->coding != ROUND_SCALED || !round->exponents ||
	       round->sent_class[index - data] == round->top_class[index - data];
}

/* All ranks skip special values that no rank has. */
static void settle_specials(struct round *round, uint32_t index, bool needed)
{
	if (needed) {
		bitmap_set(round->any_special, index);
		round_repeat(round, round->exponents + index);
	} else {
		round_finish(round, round->exponents + index);
	}
}

/* The class of all ranks for a block. Data that left with a lower one leaves again. */
static void take_class(struct round *round, uint32_t block, uint16_t klass)
{
	round->top_class[block] = klass;
	round->agreed_blocks++;
	round->missed += round->own_class[block] < klass;
	if (round->sent_class[block] != ROUND_UNKNOWN && round->sent_class[block] < klass)
		round_repeat(round, round->exponents + round->specials + block);
}

static void take_exponents(struct round *round, uint32_t index, const void *in)
{
	uint32_t first, n = exponents_cover(round, index, &first);
	uint32_t values = exponent_values(round, n), classes = n * round->classes_per;

	if (round->coding == ROUND_PARTS)
		memcpy(classes_of(round, round->top_classes, first), in, classes);
	else
		for (uint32_t i = 0; i < n; i++)
			take_class(round, first + i, exponent_get(round, in, i));
	for (uint32_t i = classes, k = first / round->per_specials; i < values; i++, k++)
		settle_specials(round, k, exponent_get(round, in, i));
}

static bool take_specials(struct round *round, uint32_t index, const uint8_t *in)
{
	uint32_t first, n = specials_cover(round, index, &first);
	uint32_t width = round->per_specials * round->per_fragment / 4 + 8;
	uint32_t data = round->exponents + round->specials;

	if (!round->masks) /* rare: only rounds with NaN or infinities */
		round->masks = calloc(round->specials, width);
	if (!round->masks)
		return false;
	memcpy(round->masks + (size_t)index * width, in,
	       round_bytes(round, round->exponents + index));
	for (uint32_t block = first; block < first + n; block++) {
		if (bitmap_get(round->have, data + block) && round->target)
			overlay_specials(round, block);
		else if (bitmap_get(round->own_special, block) && block < round->next_data)
			round_repeat(round, data + block);
	}
	return true;
}

static void take_data(struct round *round, uint32_t block, unsigned workers, uint16_t scale,
                      const void *in)
{
	size_t at, n = round_block(round, block, &at);
	struct parts parts = parts_of(round, block, workers);
	uint64_t sums[WIRE_PAYLOAD_MAX / 8];
	uint8_t *out;

	if (!round->target || n == 0)
		return;
	out = round->target + at * trib_type_size(round->type);
	switch (round->coding) {
	case ROUND_RAW:
		memcpy(out, in, n * trib_type_size(round->type));
		if (round->average)
			number_divide(round->type, out, n, workers);
		break;
	case ROUND_KEYS:
		number_from_keys(round->type, in, n, out);
		break;
	case ROUND_SCALED:
		if (number_wire_size(round->type) == 4) {
			number_unpair(in, n, sums);
			in = sums;
		}
		number_decode(round->type, in, n, scale, workers, round->average, out);
		break;
	case ROUND_PARTS:
		parts_decode(&parts, in, n, classes_of(round, round->top_classes, block),
		             round->average, out);
		break;
	}
	if (round->exponents && specials_arrived(round, block))
		overlay_specials(round, block);
}

bool round_keep(struct round *round, uint32_t index, uint16_t scale, const void *payload)
{
	uint32_t bytes = round_bytes(round, index);
	struct early_data *data = malloc(sizeof(*data) + bytes);

	if (!data)
		return false;
	*data = (struct early_data){ .next = round->kept, .index = index, .scale = scale };
	memcpy(data->payload, payload, bytes);
	round->kept = data;
	return true;
}

/* Takes the kept results that may be taken now. */
static void take_kept(struct round *round, unsigned workers)
{
	struct early_data **link = &round->kept, *data;

	while ((data = *link)) {
		if (!round_may_take(round, data->index)) {
			link = &data->next;
			continue;
		}
		if (!bitmap_get(round->have, data->index))
			take_data(round, data->index - round->exponents - round->specials, workers,
			          data->scale, data->payload);
		round_finish(round, data->index);
		*link = data->next;
		free(data);
	}
}

bool round_take(struct round *round, uint32_t index, unsigned workers, uint16_t scale,
                const void *payload)
{
	bool ok = true;

	if (index < round->exponents)
		take_exponents(round, index, payload);
	else if (index < round->exponents + round->specials)
		ok = take_specials(round, index - round->exponents, payload);
	else
		take_data(round, index - round->exponents - round->specials, workers, scale,
		          payload);
	if (ok)
		round_finish(round, index);
	while (round->agreed < round->exponents && bitmap_get(round->have, round->agreed))
		round->agreed++;
	if (round->kept)
		take_kept(round, workers);
	return ok;
}
