/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz: shared by all fuzz targets: the entry point, a check that is active in every build, and a
 * reader that returns an input piece by piece.
 */
#ifndef TRIB_TESTS_FUZZ_H
#define TRIB_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define demand(condition)                                                                       \
	do {                                                                                    \
		if (!(condition)) {                                                             \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
			abort();                                                                \
		}                                                                               \
	} while (0)

struct fuzz_input {
	const uint8_t *at, *end;
};

/* The next byte; 0: no more input. */
static inline uint8_t fuzz_byte(struct fuzz_input *input)
{
	return input->at < input->end ? *input->at++ : 0;
}

#endif
