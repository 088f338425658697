/* SPDX-License-Identifier: Apache-2.0 */
#include "interactions.h"

#include "random.h"
#include "sparse_job.h"
#include "sparse_lines.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
	NUMBER_MAX = 1 << 30,
	PROBE_LINES = 1000, /* lines that decide which form the file has */
	MADE_USERS = 2000,
	MADE_ITEMS = 1000,
	MADE_GROUPS = 20,
	MADE_PAIRS = 30 /* of a user */
};

struct pair {
	uint32_t user, item;
};

struct pairs {
	struct pair *list;
	size_t n, room;
};

static void pair_add(struct pairs *pairs, uint32_t user, uint32_t item)
{
	if (pairs->n == pairs->room) {
		struct pair *list;

		pairs->room = pairs->room ? 2 * pairs->room : 4096;
		list = reallocarray(pairs->list, pairs->room, sizeof(*list));
		if (!list) {
			fprintf(stderr, "no memory for %zu interactions\n", pairs->room);
			exit(EXIT_FAILURE);
		}
		pairs->list = list;
	}
	pairs->list[pairs->n++] = (struct pair){ user, item };
}

static int pair_compare(const void *left, const void *right)
{
	const struct pair *a = left, *b = right;

	if (a->user != b->user)
		return a->user < b->user ? -1 : 1;
	return a->item < b->item ? -1 : a->item > b->item;
}

static void starts_fill(struct interactions *out)
{
	size_t at = 0;

	free(out->start);
	out->start = job_alloc((size_t)out->users + 1, sizeof(*out->start));
	for (uint32_t user = 0; user < out->users; user++) {
		out->start[user] = at;
		while (at < out->n && out->user[at] == user)
			at++;
	}
	out->start[out->users] = at;
}

/* Orders pairs, drops repeats, and frees the list. */
static void pairs_take(struct pairs *pairs, struct interactions *out)
{
	*out = (struct interactions){ 0 };
	out->user = job_alloc(pairs->n, sizeof(*out->user));
	out->item = job_alloc(pairs->n, sizeof(*out->item));
	if (pairs->n)
		qsort(pairs->list, pairs->n, sizeof(*pairs->list), pair_compare);
	for (size_t i = 0; i < pairs->n; i++) {
		const struct pair *pair = &pairs->list[i];

		if (i && pair_compare(pair, pair - 1) == 0)
			continue;
		out->user[out->n] = pair->user;
		out->item[out->n++] = pair->item;
		if (pair->user >= out->users)
			out->users = pair->user + 1;
		if (pair->item >= out->items)
			out->items = pair->item + 1;
	}
	free(pairs->list);
	starts_fill(out);
}

/* ---- reading ---- */

/* The next number of the line; false: the line is at its end. */
static bool number_next(const struct lines *lines, char **at, uint32_t *number)
{
	unsigned long long value;
	char *end;

	*at += strspn(*at, " \t");
	if (!**at)
		return false;
	errno = 0;
	value = strtoull(*at, &end, 10);
	if (**at < '0' || **at > '9' || errno || value >= NUMBER_MAX ||
	    (*end && *end != ' ' && *end != '\t'))
		lines_fail(lines, "\"%.*s\" is not a whole number below %d",
		           (int)strcspn(*at, " \t"), *at, NUMBER_MAX);
	*at = end;
	*number = (uint32_t)value;
	return true;
}

/* Has the line three numbers, the last of which is 1? */
static bool is_triple(const struct lines *lines)
{
	uint32_t number = 0;
	char *at = lines->text;
	int n = 0;

	while (number_next(lines, &at, &number))
		n++;
	return n == 3 && number == 1;
}

static bool has_triples(const char *path)
{
	bool all = true;
	struct lines lines;

	lines_open(&lines, path);
	while (all && lines.number < PROBE_LINES && lines_next(&lines))
		all = !*lines.text || is_triple(&lines);
	lines_close(&lines);
	return all;
}

void interactions_read(struct interactions *out, const char *path)
{
	bool triples = has_triples(path);
	struct pairs pairs = { 0 };
	struct lines lines;

	lines_open(&lines, path);
	while (lines_next(&lines)) {
		uint32_t user, item;
		char *at = lines.text;

		if (!number_next(&lines, &at, &user))
			continue;
		if (triples && !is_triple(&lines))
			lines_fail(&lines, "not \"USER ITEM 1\" as the lines above");
		while (number_next(&lines, &at, &item)) {
			pair_add(&pairs, user, item);
			if (triples)
				break;
		}
	}
	if (pairs.n == 0)
		lines_fail(&lines, "the file has no interactions");
	lines_close(&lines);
	pairs_take(&pairs, out);
}

/* ---- making ---- */

/* 0 to n - 1; small numbers are frequent, as with Zipf's law. */
static uint32_t popular(struct random *r, uint32_t n)
{
	return (uint32_t)expf(random_between(r, 0, logf((float)n))) - (n > 1 ? 1 : 0);
}

void interactions_make(struct interactions *train, struct interactions *test, uint64_t seed)
{
	struct pairs parts[2] = { 0 };

	for (uint32_t user = 0; user < MADE_USERS; user++) {
		struct random r = random_of(seed, user);
		uint32_t group = user % MADE_GROUPS;

		for (int i = 0; i < MADE_PAIRS; i++) {
			uint32_t item = popular(&r, MADE_ITEMS);

			if (random_chance(&r, 0.8f))
				item = popular(&r, MADE_ITEMS / MADE_GROUPS) * MADE_GROUPS + group;
			pair_add(&parts[i % 5 == 4], user, item);
		}
	}
	pairs_take(&parts[0], train);
	pairs_take(&parts[1], test);
}

void interactions_free(struct interactions *interactions)
{
	free(interactions->user);
	free(interactions->item);
	free(interactions->start);
	*interactions = (struct interactions){ 0 };
}

/* ---- questions ---- */

void interactions_match(struct interactions *a, struct interactions *b)
{
	a->users = b->users = a->users > b->users ? a->users : b->users;
	a->items = b->items = a->items > b->items ? a->items : b->items;
	starts_fill(a);
	starts_fill(b);
}

bool interactions_has(const struct interactions *of, uint32_t user, uint32_t item)
{
	size_t low = of->start[user], high = of->start[user + 1];

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (of->item[middle] == item)
			return true;
		if (of->item[middle] < item)
			low = middle + 1;
		else
			high = middle;
	}
	return false;
}
