/* SPDX-License-Identifier: Apache-2.0 */
/* Racks, one on each line: well-formed ones get a fabric in which each host has its own number. */
#include "control/policy/topology.h"
#include "fuzz.h"

#include <string.h>

#define RACKS_MAX 64u

static void pair_try(const char *a, const char *b)
{
	char path[RACK_MAX];

	strcpy(path, a);
	rack_meet(path, b);
	demand(rack_is_good(path));
	demand(rack_is_below(a, path) && rack_is_below(b, path));
	demand(rack_is_below(a, b) == !strcmp(path, b));
}

static void racks_try(const char *const *racks, uint32_t n)
{
	uint32_t numbers[RACKS_MAX];
	struct fabric fabric;
	unsigned names;

	demand(topology_number(racks, n, &fabric, numbers, &names) == TRIB_OK);
	demand(fabric.levels == names + 1);
	for (uint32_t i = 0; i < n; i++) {
		demand(numbers[i] < fabric.hosts);
		for (uint32_t k = 0; k < i; k++) {
			bool together = numbers[i] / fabric.size[1] == numbers[k] / fabric.size[1];

			demand(numbers[i] != numbers[k]);
			demand(names < 4 || together == !strcmp(racks[i], racks[k]));
			pair_try(racks[i], racks[k]);
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *racks[RACKS_MAX];
	char *text = malloc(size + 1), *line = text;
	uint32_t n = 0;

	demand(text);
	memcpy(text, data, size);
	text[size] = 0;
	while (line && n < RACKS_MAX) {
		char *end = strchr(line, '\n');

		if (end)
			*end++ = 0;
		if (rack_is_good(line))
			racks[n++] = line;
		line = end;
	}
	if (n)
		racks_try(racks, n);
	free(text);
	return 0;
}
