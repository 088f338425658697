/* SPDX-License-Identifier: Apache-2.0 */
#include "control/policy/topology.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

bool rack_is_good(const char *path)
{
	size_t length = 0;

	if (!*path)
		return true;
	if (strlen(path) >= RACK_MAX || rack_names(path) > RACK_NAMES_MAX)
		return false;
	for (const char *p = path; *p; p++) {
		if (*p == '/' && !length)
			return false;
		if (*p != '/' && !isalnum((unsigned char)*p) && !strchr(".-_", *p))
			return false;
		length = *p == '/' ? 0 : length + 1;
	}
	return length > 0;
}

unsigned rack_names(const char *path)
{
	unsigned n = *path != '\0';

	for (; *path; path++)
		n += *path == '/';
	return n;
}

bool rack_is_below(const char *path, const char *above)
{
	size_t length = strlen(above);

	return !length || (!strncmp(path, above, length) && strchr("/", path[length]));
}

void rack_meet(char *path, const char *other)
{
	while (*path && !rack_is_below(other, path)) {
		char *end = strrchr(path, '/');

		*(end ? end : path) = '\0';
	}
}

/* ---- numbers ---- */

struct place {
	const char *rack;
	uint32_t host;
};

/* A slash sorts before all letters of names, so racks of one pod are adjacent. */
static int place_order(const void *a, const void *b)
{
	const struct place *left = a, *right = b;
	const char *x = left->rack, *y = right->rack;

	for (; *x && *x == *y; x++)
		y++;
	if (*x != *y)
		return (*x == '/' ? 1 : (unsigned char)*x) - (*y == '/' ? 1 : (unsigned char)*y);
	return left->host < right->host ? -1 : left->host > right->host;
}

/* Names that two paths have in common, of the first `most`; a missing name counts as empty. */
static unsigned common_names(const char *a, const char *b, unsigned most)
{
	unsigned n = 0;

	for (; n < most; n++) {
		size_t la = strcspn(a, "/"), lb = strcspn(b, "/");

		if (la != lb || memcmp(a, b, la) != 0)
			break;
		a += la + (a[la] == '/');
		b += lb + (b[lb] == '/');
	}
	return n;
}

/* A host's number: the index of each name among its siblings, then of the host in its rack. */
struct digits {
	uint32_t at[RACK_NAMES_MAX + 1];
};

static void digits_next(struct digits *digits, const char *before, const char *rack, unsigned names)
{
	unsigned same = common_names(before, rack, names);

	digits->at[same]++;
	for (unsigned i = same + 1; i <= names; i++)
		digits->at[i] = 0;
}

static trib_status places_number(const struct place *places, uint32_t n, unsigned names,
                                 struct fabric *fabric, uint32_t *numbers)
{
	struct digits digits = { 0 }, most = { 0 };
	trib_status status;

	for (uint32_t i = 1; i < n; i++) {
		digits_next(&digits, places[i - 1].rack, places[i].rack, names);
		for (unsigned d = 0; d <= names; d++)
			if (digits.at[d] > most.at[d])
				most.at[d] = digits.at[d];
	}
	*fabric = (struct fabric){ .levels = names + 1 };
	for (unsigned d = 0; d <= names; d++) {
		fabric->down[names - d] = most.at[d] + 1;
		fabric->up[names - d] = 1;
	}
	if ((status = fabric_complete(fabric)) != TRIB_OK)
		return status;
	digits = (struct digits){ 0 };
	for (uint32_t i = 0; i < n; i++) {
		uint32_t number = 0;

		if (i)
			digits_next(&digits, places[i - 1].rack, places[i].rack, names);
		for (unsigned d = 0; d <= names; d++)
			number = number * fabric->down[names - d] + digits.at[d];
		numbers[places[i].host] = number;
	}
	return TRIB_OK;
}

trib_status topology_number(const char *const *racks, uint32_t n, struct fabric *fabric,
                            uint32_t *numbers, unsigned *names)
{
	struct place *places = calloc(n + 1, sizeof(*places));
	trib_status status;
	unsigned deepest = 0;

	if (!places)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for %u hosts", n);
	for (uint32_t i = 0; i < n; i++) {
		unsigned own = rack_names(racks[i]);

		places[i] = (struct place){ racks[i], i };
		deepest = own > deepest ? own : deepest;
	}
	if (deepest > RACK_NAMES_MAX)
		deepest = RACK_NAMES_MAX;
	qsort(places, n, sizeof(*places), place_order);
	do {
		*names = deepest;
		status = places_number(places, n, deepest, fabric, numbers);
	} while (status != TRIB_OK && deepest--);
	free(places);
	return status;
}
