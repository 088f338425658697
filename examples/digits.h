/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pictures of digits to learn from: MNIST files where they are found, else
 * digits that the program draws itself. Nothing here knows of workers or
 * networks.
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
	uint8_t *pixels; /* count * DIGITS_PIXELS, row by row, 0 is background */
	uint8_t *labels; /* count, each below DIGITS_CLASSES */
};

/*
 * These return 0, or -1 with a sentence in `why` (DIGITS_WHY bytes); then
 * `set` is empty. digits_free takes an empty set as well.
 *
 * digits_load reads the MNIST pair `name` ("train" or "t10k") in `folder`,
 * plain or gzipped. digits_draw draws; picture i depends on seed and i only.
 */
int digits_load(struct digits *set, const char *folder, const char *name, char *why);
int digits_draw(struct digits *set, size_t count, uint64_t seed, char *why);
void digits_free(struct digits *set);

/* Keeps the first `count`, where there are more. */
void digits_cut(struct digits *set, size_t count);

#endif
