/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/call.h"

#include "base/random_bits.h"

#include <stdio.h>
#include <tributary.h>

static const char *const kinds[WIRE_CALLS_END] = {
	[WIRE_CALL_NONE] = "nothing",        [WIRE_CALL_ALLREDUCE] = "allreduce",
	[WIRE_CALL_REDUCE] = "reduce",       [WIRE_CALL_BROADCAST] = "broadcast",
	[WIRE_CALL_ALLGATHER] = "allgather", [WIRE_CALL_REDUCE_SCATTER] = "reduce-scatter",
	[WIRE_CALL_BARRIER] = "barrier",     [WIRE_CALL_SPLIT] = "split",
};

static const char *const types[] = {
	[TRIB_I8] = "i8",   [TRIB_I32] = "i32", [TRIB_I64] = "i64",       [TRIB_U8] = "u8",
	[TRIB_U32] = "u32", [TRIB_U64] = "u64", [TRIB_F16] = "f16",       [TRIB_BF16] = "bf16",
	[TRIB_F32] = "f32", [TRIB_F64] = "f64", [TRIB_F8E4M3] = "f8e4m3", [TRIB_F8E5M2] = "f8e5m2",
};

static const char *const ops[] = { "sum", "minimum", "maximum", "average" };

/* Everything but the count. */
static uint64_t word_of(const struct wire_call *call)
{
	return (uint64_t)call->kind | (uint64_t)call->type << 8 | (uint64_t)call->op << 16 |
	       (uint64_t)call->root << 24 | (uint64_t)call->per_word << 32;
}

uint32_t wire_call_sign(const struct wire_call *call)
{
	uint64_t word;

	if (call->kind == WIRE_CALL_NONE)
		return 0;
	word = bits_mix(word_of(call) + call->number * RANDOM_STEP) ^ call->count;
	return (uint32_t)(bits_mix(bits_mix(word) + call->before) >> 32);
}

bool wire_call_is_same(const struct wire_call *a, const struct wire_call *b)
{
	return word_of(a) == word_of(b) && a->count == b->count;
}

const char *wire_call_hint(const struct wire_call *a, const struct wire_call *b)
{
	if (!wire_call_is_same(a, b))
		return "";
	return a->before == b->before ? ", with other packets: set the same TRIB_MTU on all ranks"
	                              : ", after different calls";
}

static const char *name(const char *const *names, size_t n, unsigned i)
{
	return i < n ? names[i] : "?";
}

static bool has_op(const struct wire_call *call)
{
	return call->kind == WIRE_CALL_ALLREDUCE || call->kind == WIRE_CALL_REDUCE ||
	       call->kind == WIRE_CALL_REDUCE_SCATTER;
}

const char *wire_call_text(const struct wire_call *call, char text[WIRE_CALL_TEXT])
{
	const char *kind = name(kinds, WIRE_CALLS_END, call->kind);
	char op[16] = "", root[16] = "", width[40] = "";

	if (call->kind == WIRE_CALL_NONE || call->kind == WIRE_CALL_BARRIER ||
	    call->kind == WIRE_CALL_SPLIT) {
		snprintf(text, WIRE_CALL_TEXT, "%s", kind);
		return text;
	}
	if (has_op(call))
		snprintf(op, sizeof(op), ", %s", name(ops, sizeof(ops) / sizeof(*ops), call->op));
	if (call->root != WIRE_ALL)
		snprintf(root, sizeof(root), ", root %u", call->root);
	if (call->per_word)
		snprintf(width, sizeof(width), ", %u bits (TRIB_WIRE)", 64u / call->per_word);
	snprintf(text, WIRE_CALL_TEXT, "%s of %llu %s%s%s%s", kind, (unsigned long long)call->count,
	         name(types, sizeof(types) / sizeof(*types), call->type), op, root, width);
	return text;
}
