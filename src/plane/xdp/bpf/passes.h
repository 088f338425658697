/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-3-Clause) */
/*
 * Passes over a payload: adding, copying and verifying,
 * word by word, in a form that verifiers since Linux 6.1 accept.
 */
#ifndef TRIB_PLANE_XDP_PASSES_H
#define TRIB_PLANE_XDP_PASSES_H

#include "plane/xdp/bpf/shared.h"
#include "wire/checksum.h"

#define LINE 64 /* bytes of a cache line */

/*
 * DO(i, v) with each word v of the payload, which also enters the checksum's ring.
 * If packet or cell end early, it stops, and the checksum is wrong.
 */
#define WORD(DO, i, sum, next)                 \
	do {                                   \
		__u64 v = words[i];            \
		WIRE_CHECK_STEP(sum, next, v); \
		DO(i, v);                      \
	} while (0)
#define SIX(DO, i)                         \
	do {                               \
		WORD(DO, i, r0, r1);       \
		WORD(DO, (i) + 1, r1, r2); \
		WORD(DO, (i) + 2, r2, r3); \
		WORD(DO, (i) + 3, r3, r4); \
		WORD(DO, (i) + 4, r4, r5); \
		WORD(DO, (i) + 5, r5, r0); \
	} while (0)
#define TWENTY_FOUR(DO, i)         \
	do {                       \
		SIX(DO, i);        \
		SIX(DO, (i) + 6);  \
		SIX(DO, (i) + 12); \
		SIX(DO, (i) + 18); \
	} while (0)
/*
 * Do `left` and the frame have `many` words? Signed: the compiler would turn 1 <=
 * left into left != 0, from which old verifiers learn no bound.
 */
#define HAVE(many) ((int)left >= (many) && (void *)(words + (many)) <= end)
/* The compiler must compare `left` itself, not a value that it derives from it. */
#define NEXT(many)                                 \
	do {                                       \
		words += (many);                   \
		sums += (many);                    \
		left -= (many);                    \
		__asm__ volatile("" : "+r"(left)); \
	} while (0)
/*
 * A comparison tells the verifier about the register only. Old verifiers do not
 * see that an earlier copy on the stack is the same number.
 */
#define LEARNED(number) __asm__ volatile("" : "+r"(number))
/* Offsets must count forward from `words`: not all machines have negative offsets. */
#define FROM_HERE __asm__ volatile("" : "+r"(words))
#define DEFINE_PASS(name, TYPE, SUMS, DO, KEEP)                                                \
	static __noinline __attribute__((unused)) __u32 name(struct wire_header *header,       \
	                                                     void *end, TYPE to, __u32 bytes,  \
	                                                     const struct wire_unsent *unsent) \
	{                                                                                      \
		wire_word *words = (wire_word *)(header + 1), *sums = SUMS;                    \
		__u64 r0 = 0, r1 = 0, r2 = 0, r3 = 0, r4 = 0, r5 = 0;                          \
		__u32 left = opaque(bytes / 8);                                                \
                                                                                               \
		if (left > settings.payload / 8)                                               \
			return 0;                                                              \
		LEARNED(left);                                                                 \
		while (HAVE(48)) {                                                             \
			TWENTY_FOUR(DO, 0);                                                    \
			TWENTY_FOUR(DO, 24);                                                   \
			NEXT(48);                                                              \
			FROM_HERE;                                                             \
		}                                                                              \
		if (HAVE(24)) {                                                                \
			TWENTY_FOUR(DO, 0);                                                    \
			NEXT(24);                                                              \
		}                                                                              \
		while (HAVE(6)) {                                                              \
			SIX(DO, 0);                                                            \
			NEXT(6);                                                               \
		}                                                                              \
		if (HAVE(4)) {                                                                 \
			WORD(DO, 0, r0, r1);                                                   \
			WORD(DO, 1, r1, r2);                                                   \
			WORD(DO, 2, r2, r3);                                                   \
			WORD(DO, 3, r3, r4);                                                   \
			if (HAVE(5))                                                           \
				WORD(DO, 4, r4, r5);                                           \
		} else if (HAVE(2)) {                                                          \
			WORD(DO, 0, r0, r1);                                                   \
			WORD(DO, 1, r1, r2);                                                   \
			if (HAVE(3))                                                           \
				WORD(DO, 2, r2, r3);                                           \
		} else if (HAVE(1)) {                                                          \
			WORD(DO, 0, r0, r1);                                                   \
		}                                                                              \
		KEEP;                                                                          \
		return wire_check_end((struct wire_check){ r0, r1, r2, r3, r4, r5 },           \
		                      (wire_word *)header, (const wire_word *)unsent,          \
		                      WIRE_HEADER + (__u64)bytes);                             \
	}

#define DO_NOTHING(i, v)
#define DO_ADD64(i, v) sums[i] += v
/*
 * The packet that the sum will be written to. One word of each cache line is
 * written back, so that lines filled by another core are fetched before all of
 * them are written.
 */
#define DO_ADD64_LAST(i, v)                                   \
	do {                                                  \
		sums[i] += v;                                 \
		if ((i) % (LINE / 8) == 0)                    \
			((volatile wire_word *)words)[i] = v; \
	} while (0)
#define DO_COPY(i, v) sums[i] = v
#define KEEP_NOTHING ((void)to, (void)sums)
#define KEEP_RING                                                    \
	do {                                                         \
		*to = (struct wire_check){ r0, r1, r2, r3, r4, r5 }; \
		(void)sums;                                          \
	} while (0)
#define KEEP_SUM                   \
	do {                       \
		to->ring.r0 += r0; \
		to->ring.r1 += r1; \
		to->ring.r2 += r2; \
		to->ring.r3 += r3; \
		to->ring.r4 += r4; \
		to->ring.r5 += r5; \
	} while (0)
#define KEEP_COPY                      \
	to->ring = (struct wire_check) \
	{                              \
		r0, r1, r2, r3, r4, r5 \
	}
DEFINE_PASS(pass_check, const void *, words, DO_NOTHING, KEEP_NOTHING)
DEFINE_PASS(pass_weigh, struct wire_check *, words, DO_NOTHING, KEEP_RING)
DEFINE_PASS(pass_add64, struct xdp_cell *, to->sum, DO_ADD64, KEEP_SUM)
DEFINE_PASS(pass_add64_last, struct xdp_cell *, to->sum, DO_ADD64_LAST, KEEP_SUM)
DEFINE_PASS(pass_copy, struct xdp_cell *, to->sum, DO_COPY, KEEP_COPY)

#define COMBINE_CASE(op, type, expression)                                                         \
	case op:                                                                                   \
		while (HAVE(1)) {                                                                  \
			_Pragma("clang loop unroll(full)") for (__u32 k = 0; k < 8 / sizeof(type); \
			                                        k++)                               \
			{                                                                          \
				type s = ((type *)sums)[k];                                        \
				type x = ((const type *)words)[k];                                 \
				((type *)sums)[k] = (expression);                                  \
			}                                                                          \
			NEXT(1);                                                                   \
		}                                                                                  \
		break;

/* Subtracts what pass_add64 added before the checksum was known. */
static __noinline __attribute__((unused)) void undo_add64(struct wire_header *header, void *end,
                                                          struct xdp_cell *cell, __u32 bytes)
{
	const wire_word *words = (const wire_word *)(header + 1);
	wire_word *sums = cell->sum;
	__u32 left = opaque(bytes / 8);

	cell->ring_of = 0; /* the ring has lost its content */
	if (left > settings.payload / 8)
		return;
	while (HAVE(1)) {
		sums[0] -= words[0];
		NEXT(1);
	}
}

#endif
