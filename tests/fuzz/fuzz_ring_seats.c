/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text of a ring. Any text is parsed, or refused with a sentence. Printing what was parsed and
 * parsing it again gives the same seats.
 */
#include "plan/tree/ring_seats.h"
#include "fuzz.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ring_seat seats[TREE_RANKS_MAX], again[TREE_RANKS_MAX];
	char *input = malloc(size + 1), text[8192];
	unsigned n, m;

	demand(input);
	memcpy(input, data, size);
	input[size] = 0;
	if (ring_seats_parse(input, seats, &n) == TRIB_OK) {
		demand(n >= 1 && n <= TREE_RANKS_MAX);
		demand(ring_seats_print(seats, n, text, sizeof(text)) < sizeof(text));
		demand(ring_seats_parse(text, again, &m) == TRIB_OK && m == n);
		demand(!memcmp(seats, again, n * sizeof(*seats)));
	} else {
		demand(*trib_last_error());
	}
	free(input);
	return 0;
}
