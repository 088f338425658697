/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The checksum of a datagram, cheap enough to be computed where packets are
 * summed in the kernel: no tables, no multiplication per word, no instruction
 * that BPF lacks. Shared by user space and BPF.
 *
 * Two streams over the 64-bit words, in turns. A stream has `a`, the sum of its
 * words, and `b`, the sum of all values that `a` had, so that the order counts
 * (Fletcher's idea). The high bits of such sums are weak, as errors there
 * cancel by carrying out. So before every other word of a stream the bytes of
 * `a` change places, high to low.
 */
#ifndef TRIB_WIRE_CHECK_H
#define TRIB_WIRE_CHECK_H

#include "wire/packet.h"

/* Any packet, as words. */
typedef uint64_t __attribute__((may_alias)) wire_word;

struct wire_check {
	uint64_t a0, b0, a1, b1;
};

#define WIRE_CHECK_START                                                             \
	(struct wire_check)                                                          \
	{                                                                            \
		0x243f6a8885a308d3ull, 0x13198a2e03707344ull, 0xa4093822299f31d0ull, \
			0x082efa98ec4e6c89ull                                        \
	}
/* magic, type, flags are in the low half of word 0, the field itself in the high half */
#define WIRE_CHECK_WORD0 0xffffffffull

/*
 * BPF has few registers, and its compiler would use them up by adding in
 * another order.
 */
#ifdef __bpf__
#define WIRE_CHECK_PLUS(sum, x) __asm__("%0 += %1" : "+r"(sum) : "r"(x))
#else
#define WIRE_CHECK_PLUS(sum, x) ((sum) += (x))
#endif
/* Words 0 and 1 of four; words 2 and 3. */
#define WIRE_CHECK_FIRST(a, b, word)      \
	do {                              \
		WIRE_CHECK_PLUS(a, word); \
		WIRE_CHECK_PLUS(b, a);    \
	} while (0)
#define WIRE_CHECK_SECOND(a, b, word)         \
	do {                                  \
		(a) = __builtin_bswap64(a);   \
		WIRE_CHECK_FIRST(a, b, word); \
	} while (0)
/* The five words of a header; the payload begins anew with its word 0. */
static inline void wire_check_header(struct wire_check *check, const wire_word *words)
{
	WIRE_CHECK_FIRST(check->a0, check->b0, words[0] & WIRE_CHECK_WORD0);
	WIRE_CHECK_FIRST(check->a1, check->b1, words[1]);
	WIRE_CHECK_SECOND(check->a0, check->b0, words[2]);
	WIRE_CHECK_SECOND(check->a1, check->b1, words[3]);
	WIRE_CHECK_FIRST(check->a0, check->b0, words[4]);
}

/* What is left of each stream, and then of both. */
static inline uint32_t wire_check_end(const struct wire_check *check, uint64_t bytes)
{
	uint64_t u = (check->a0 ^ bytes) * 0x9e3779b97f4a7c15ull;
	uint64_t v = check->a1 * 0xbf58476d1ce4e5b9ull;

	u = (u ^ u >> 32) + check->b0;
	v = (v ^ v >> 32) + check->b1;
	u *= 0x94d049bb133111ebull;
	u = (u ^ u >> 29) + v;
	u *= 0xbf58476d1ce4e5b9ull;
	return (uint32_t)(u >> 32);
}

static inline void wire_check_four(struct wire_check *check, const wire_word *words)
{
	WIRE_CHECK_FIRST(check->a0, check->b0, words[0]);
	WIRE_CHECK_FIRST(check->a1, check->b1, words[1]);
	WIRE_CHECK_SECOND(check->a0, check->b0, words[2]);
	WIRE_CHECK_SECOND(check->a1, check->b1, words[3]);
}

/* Over `bytes`, a multiple of 8 and a header at least, with the header's check field taken as 0. */
static inline uint32_t wire_check(const void *data, uint64_t bytes)
{
	const wire_word *words = (const wire_word *)data;
	struct wire_check check = WIRE_CHECK_START;
	uint64_t n = bytes / 8, i = 5;

	wire_check_header(&check, words);
	for (; i + 4 <= n; i += 4)
		wire_check_four(&check, words + i);
	if (i < n)
		WIRE_CHECK_FIRST(check.a0, check.b0, words[i]);
	if (i + 1 < n)
		WIRE_CHECK_FIRST(check.a1, check.b1, words[i + 1]);
	if (i + 2 < n)
		WIRE_CHECK_SECOND(check.a0, check.b0, words[i + 2]);
	return wire_check_end(&check, bytes);
}

#endif
