/* SPDX-License-Identifier: Apache-2.0 */
/*
 * digits: pictures of digits to learn from. Uses MNIST files if there are any, else draws digits.
 * Knows nothing of workers or networks.
 */
#ifndef EXAMPLES_DIGITS_H
#define EXAMPLES_DIGITS_H

#include <stddef.h>
#include <stdint.h>

enum {
	DIGITS_SIDE = 28,
	DIGITS_PIXELS = DIGITS_SIDE * DIGITS_SIDE,
	DIGITS_CLASSES = 10,
	DIGITS_WHY = 512,
};

struct digits {
	size_t count;
	uint8_t *pixels; /* count * DIGITS_PIXELS, row by row; 0: background */
	uint8_t *labels; /* count, each below DIGITS_CLASSES */
};

/*
 * Both functions return 0, or -1 with a sentence in `why` (DIGITS_WHY bytes) and an empty `set`.
 * digits_free accepts an empty set.
 *
 * digits_load reads the MNIST pair `name` ("train" or "t10k") in `folder`, plain or gzipped.
 * digits_draw draws digits; picture i depends on seed and i only.
 */
int digits_load(struct digits *set, const char *folder, const char *name, char *why);
int digits_draw(struct digits *set, size_t count, uint64_t seed, char *why);
void digits_free(struct digits *set);

/* Keeps at most the first `count` pictures. */
void digits_cut(struct digits *set, size_t count);

#endif
