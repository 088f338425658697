/* SPDX-License-Identifier: Apache-2.0 */
/* Floats of many kinds, drawn at random, for tests of the number module. */
#ifndef TEST_NUMBER_INPUTS_H
#define TEST_NUMBER_INPUTS_H

#include "base/random_bits.h"
#include "number_reference.h"

static uint64_t seed;

/* Call it at most once in an expression: C does not define the order of calls. */
static inline uint64_t draw(void)
{
	return random_next(&seed);
}

enum mode {
	ANY_BITS,
	ORDINARY,
	DENORMAL,
	HUGE_RANGE,  /* one huge worker, the others tiny */
	WIDE_INSIDE, /* huge and tiny elements side by side */
	LARGEST,
	EDGE, /* just below a power of two */
	ZERO,
	MINUS_ZERO,
	MODES,
};

static inline uint64_t invent(trib_type type, enum mode mode, unsigned worker)
{
	uint64_t sign = draw() & sign_of(type);
	uint64_t one = 1ull << mantissa_of(type);
	uint64_t fraction = draw() & (one - 1);
	unsigned bias = (unsigned)bias_of(type);

	switch (mode) {
	case ANY_BITS:
		for (;;) {
			uint64_t bits = draw() & (sign_of(type) * 2 - 1);

			if (!is_special(type, bits))
				return bits;
		}
	case ORDINARY:
		return sign | ((bias - 6 + draw() % 6) * one + fraction);
	case DENORMAL:
		return sign | fraction >> draw() % (unsigned)mantissa_of(type);
	case HUGE_RANGE:
		return sign | ((worker == 0 ? 2 * bias - draw() % 4 : draw() % 8) * one + fraction);
	case WIDE_INSIDE:
		return sign | ((draw() % 8 ? draw() % 4 : 2 * bias - 1) * one + fraction);
	case LARGEST:
		return infinity_of(type) - 1;
	case EDGE:
		return sign | ((bias + (fraction & 4)) * one - 1 - draw() % 3);
	case MINUS_ZERO:
		return sign_of(type);
	default:
		return 0;
	}
}

/* From here on denormals are flushed to zero, as deep-learning frameworks may request. */
static inline void flush_denormals(bool flush)
{
#if defined(__aarch64__)
	uint64_t control;

	__asm__ volatile("mrs %0, fpcr" : "=r"(control));
	control = flush ? control | 1u << 24 : control & ~(1ull << 24);
	__asm__ volatile("msr fpcr, %0" : : "r"(control) : "memory");
#elif defined(__x86_64__)
	unsigned control = __builtin_ia32_stmxcsr();

	__builtin_ia32_ldmxcsr(flush ? control | 0x8040 : control & ~0x8040u);
#else
	(void)flush;
#endif
}

#endif
