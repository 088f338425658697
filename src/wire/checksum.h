/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checksum: the checksum of a datagram. It must be cheap enough for the XDP program:
 * no tables, no multiplication per word, no instruction that BPF lacks. User space and
 * BPF share it.
 *
 * It keeps six sums in a ring. Each word of the payload is added to one sum after the
 * other, together with the next sum of the ring: r[n] += r[n + 1] + word. This is a
 * linear recurrence modulo 2^64 with a period of 63 * 2^63 words, so the position of an
 * error matters, and every error within six consecutive words is detected. The header
 * and the length follow in the same way, and the ring is then mixed into 32 bits. A
 * header counts as five words. DATA and RESULT do not send two of these, because both
 * ends know them. So a packet of another communicator, epoch, lane or position looks
 * corrupted.
 *
 * The ring is linear: the ring of a sum of payloads (64-bit words, added) is the sum of
 * their rings. An aggregator that verified its inputs therefore knows the checksum of
 * the sum without reading the sum.
 */
#ifndef TRIB_WIRE_CHECKSUM_H
#define TRIB_WIRE_CHECKSUM_H

#include "wire/packet.h"

#define WIRE_CHECK_RING 6

/* Any packet, as words. */
typedef uint64_t __attribute__((may_alias)) wire_word;

struct wire_check {
	uint64_t r0, r1, r2, r3, r4, r5;
};

/* magic, type, flags are in the low half of word 0, the field itself in the high half */
#define WIRE_CHECK_WORD0 0xffffffffull

/*
 * BPF has few registers. Left alone, the compiler reorders the additions and runs out
 * of them.
 */
#ifdef __bpf__
#define WIRE_CHECK_PLUS(sum, x) __asm__("%0 += %1" : "+r"(sum) : "r"(x))
#else
#define WIRE_CHECK_PLUS(sum, x) ((sum) += (x))
#endif
#define WIRE_CHECK_STEP(sum, next, word)    \
	do {                                \
		WIRE_CHECK_PLUS(sum, next); \
		WIRE_CHECK_PLUS(sum, word); \
	} while (0)

/*
 * Completes the checksum of a payload's ring: adds the header's first three words, its
 * last two words (`rest`, which may lie elsewhere) and the length.
 */
static inline uint32_t wire_check_end(struct wire_check check, const wire_word *header,
                                      const wire_word *rest, uint64_t bytes)
{
	uint64_t u, v, w;

	WIRE_CHECK_STEP(check.r0, check.r1, header[0] & WIRE_CHECK_WORD0);
	WIRE_CHECK_STEP(check.r1, check.r2, header[1]);
	WIRE_CHECK_STEP(check.r2, check.r3, header[2]);
	WIRE_CHECK_STEP(check.r3, check.r4, rest[0]);
	WIRE_CHECK_STEP(check.r4, check.r5, rest[1]);
	WIRE_CHECK_STEP(check.r5, check.r0, bytes);
	/* Shift before adding another sum: two errors in the highest bit would cancel. */
	u = check.r0 * 0x9e3779b97f4a7c15ull;
	v = check.r2 * 0xbf58476d1ce4e5b9ull;
	w = check.r4 * 0x94d049bb133111ebull;
	u = ((u ^ u >> 32) + check.r1) * 0xbf58476d1ce4e5b9ull;
	v = ((v ^ v >> 32) + check.r3) * 0x94d049bb133111ebull;
	w = ((w ^ w >> 32) + check.r5) * 0x9e3779b97f4a7c15ull;
	u = ((u ^ u >> 32) + (v ^ v >> 29) + (w ^ w >> 35)) * 0x94d049bb133111ebull;
	return (uint32_t)(u >> 32);
}

static inline void wire_check_six(struct wire_check *check, const wire_word *words)
{
	WIRE_CHECK_STEP(check->r0, check->r1, words[0]);
	WIRE_CHECK_STEP(check->r1, check->r2, words[1]);
	WIRE_CHECK_STEP(check->r2, check->r3, words[2]);
	WIRE_CHECK_STEP(check->r3, check->r4, words[3]);
	WIRE_CHECK_STEP(check->r4, check->r5, words[4]);
	WIRE_CHECK_STEP(check->r5, check->r0, words[5]);
}

/* A payload of `n` words. */
static inline struct wire_check wire_check_words(const wire_word *words, uint64_t n)
{
	struct wire_check check = { 0 };
	uint64_t i = 0;

	for (; i + WIRE_CHECK_RING <= n; i += WIRE_CHECK_RING)
		wire_check_six(&check, words + i);
	if (i < n)
		WIRE_CHECK_STEP(check.r0, check.r1, words[i]);
	if (i + 1 < n)
		WIRE_CHECK_STEP(check.r1, check.r2, words[i + 1]);
	if (i + 2 < n)
		WIRE_CHECK_STEP(check.r2, check.r3, words[i + 2]);
	if (i + 3 < n)
		WIRE_CHECK_STEP(check.r3, check.r4, words[i + 3]);
	if (i + 4 < n)
		WIRE_CHECK_STEP(check.r4, check.r5, words[i + 4]);
	return check;
}

/* Over `bytes`, a multiple of 8 and a header at least, with the header's check field taken as 0. */
static inline uint32_t wire_check(const void *data, uint64_t bytes)
{
	const wire_word *words = (const wire_word *)data;

	return wire_check_end(
		wire_check_words(words + WIRE_CONTROL / 8, (bytes - WIRE_CONTROL) / 8), words,
		words + WIRE_HEADER / 8, bytes);
}

/* The ring of a fragment's payload. The caller can then verify it for several senders. */
static inline struct wire_check wire_check_payload(const void *data, uint64_t bytes)
{
	return wire_check_words((const wire_word *)data + WIRE_HEADER / 8,
	                        (bytes - WIRE_HEADER) / 8);
}

/* The checksum of a fragment whose payload lies elsewhere. */
static inline uint32_t wire_check_split(const void *header, const void *payload, uint64_t bytes,
                                        const struct wire_unsent *unsent)
{
	return wire_check_end(
		wire_check_words((const wire_word *)payload, (bytes - WIRE_HEADER) / 8),
		(const wire_word *)header, (const wire_word *)unsent, bytes);
}

/* The checksum of a DATA or RESULT. */
static inline uint32_t wire_check_fragment(const void *data, uint64_t bytes,
                                           const struct wire_unsent *unsent)
{
	return wire_check_end(wire_check_payload(data, bytes), (const wire_word *)data,
	                      (const wire_word *)unsent, bytes);
}

#endif
