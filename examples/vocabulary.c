/* SPDX-License-Identifier: Apache-2.0 */
#include "vocabulary.h"

#include "sparse_job.h"
#include "sparse_lines.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	WORD_MAX = 100, /* bytes of a word: more is no text */
	DRAWS = 1 << 20,
	MADE_TOPICS = 10,
	MADE_WORDS = 20, /* of a topic */
	MADE_SENTENCES = 4000,
	MADE_LENGTH = 12 /* words of a sentence */
};

/* Words while they are counted: a hash table of numbers in `words`. */
struct counter {
	struct word *words;
	size_t n, room;
	uint32_t *places; /* number + 1; 0: free */
	size_t n_places;
	uint32_t *text;
	size_t length, text_room;
};

static void *grown(void *old, size_t count, size_t size)
{
	void *memory = reallocarray(old, count, size);

	if (!memory) {
		fprintf(stderr, "no memory for %zu words\n", count);
		exit(EXIT_FAILURE);
	}
	return memory;
}

static uint32_t *place_find(const struct counter *c, const char *text)
{
	uint64_t hash = 0xcbf29ce484222325ull;
	size_t at;

	for (const char *p = text; *p; p++)
		hash = (hash ^ (unsigned char)*p) * 0x100000001b3ull;
	for (at = (hash ^ hash >> 32) & (c->n_places - 1);
	     c->places[at] && strcmp(c->words[c->places[at] - 1].text, text) != 0;)
		at = (at + 1) & (c->n_places - 1);
	return &c->places[at];
}

static void counter_grow(struct counter *c)
{
	c->room = c->room ? 2 * c->room : 4096;
	c->words = grown(c->words, c->room, sizeof(*c->words));
	free(c->places);
	c->n_places = 4 * c->room;
	c->places = job_alloc(c->n_places, sizeof(*c->places));
	for (size_t i = 0; i < c->n; i++)
		*place_find(c, c->words[i].text) = (uint32_t)i + 1;
}

static void word_add(struct counter *c, const char *text)
{
	uint32_t *place;

	if (c->n == c->room)
		counter_grow(c);
	place = place_find(c, text);
	if (!*place) {
		size_t bytes = strlen(text) + 1;

		c->words[c->n] = (struct word){ .text = memcpy(job_alloc(bytes, 1), text, bytes) };
		*place = (uint32_t)++c->n;
	}
	c->words[*place - 1].count++;
	if (c->length == c->text_room) {
		c->text_room = c->text_room ? 2 * c->text_room : 65536;
		c->text = grown(c->text, c->text_room, sizeof(*c->text));
	}
	c->text[c->length++] = *place - 1;
}

/* ---- from counts to the vocabulary ---- */

struct ranked {
	struct word word;
	uint32_t was; /* its number while it was counted */
};

static int rank_compare(const void *left, const void *right)
{
	const struct ranked *a = left, *b = right;

	if (a->word.count != b->word.count)
		return a->word.count > b->word.count ? -1 : 1;
	return strcmp(a->word.text, b->word.text);
}

static void text_number(const struct counter *c, const uint32_t *numbers, struct vocabulary *out)
{
	out->text = c->text;
	for (size_t i = 0; i < c->length; i++)
		if (numbers[c->text[i]] != UINT32_MAX)
			out->text[out->length++] = numbers[c->text[i]];
}

static void draws_make(struct vocabulary *v)
{
	double all = 0, sum = 0;
	size_t at = 0;

	v->draws = job_alloc(DRAWS, sizeof(*v->draws));
	v->n_draws = DRAWS;
	for (size_t i = 0; i < v->n; i++)
		all += pow((double)v->words[i].count, 0.75);
	for (size_t i = 0; i < v->n; i++) {
		sum += pow((double)v->words[i].count, 0.75);
		for (; at < DRAWS && (double)at < sum / all * DRAWS; at++)
			v->draws[at] = (uint32_t)i;
	}
	for (; at < DRAWS; at++)
		v->draws[at] = (uint32_t)v->n - 1;
}

/* Takes the counter's memory. */
static void counter_take(struct counter *c, size_t least, struct vocabulary *out)
{
	struct ranked *ranked = job_alloc(c->n, sizeof(*ranked));
	uint32_t *numbers = job_alloc(c->n, sizeof(*numbers));

	*out = (struct vocabulary){ .words = c->words };
	for (size_t i = 0; i < c->n; i++)
		ranked[i] = (struct ranked){ c->words[i], (uint32_t)i };
	qsort(ranked, c->n, sizeof(*ranked), rank_compare);
	for (size_t i = 0; i < c->n; i++) {
		bool stays = ranked[i].word.count >= least;

		numbers[ranked[i].was] = stays ? (uint32_t)i : UINT32_MAX;
		if (stays)
			out->words[out->n++] = ranked[i].word;
		else
			free(ranked[i].word.text);
	}
	text_number(c, numbers, out);
	free(ranked);
	free(numbers);
	free(c->places);
	if (out->n)
		draws_make(out);
}

/* ---- texts ---- */

void vocabulary_read(struct vocabulary *out, const char *path, size_t least, size_t most)
{
	struct counter c = { 0 };
	struct lines lines;
	char *word, *rest;

	lines_open(&lines, path);
	while ((!most || c.length < most) && lines_next(&lines)) {
		rest = lines.text;
		while ((word = strsep(&rest, " \t"))) {
			if (strlen(word) > WORD_MAX)
				lines_fail(&lines, "a word of more than %d bytes: \"%.20s...\"",
				           WORD_MAX, word);
			if (*word && (!most || c.length < most))
				word_add(&c, word);
		}
	}
	if (c.n == 0)
		lines_fail(&lines, "the file has no words");
	lines_close(&lines);
	counter_take(&c, least, out);
	if (out->n < 2) {
		fprintf(stderr, "%s: fewer than 2 words occur %zu times or more\n", path, least);
		exit(EXIT_FAILURE);
	}
}

void vocabulary_make(struct vocabulary *out, uint64_t seed)
{
	struct random random = random_of(seed, 0);
	struct counter c = { 0 };
	char text[32];

	for (int i = 0; i < MADE_SENTENCES; i++) {
		int topic = (int)(random_next(&random) % MADE_TOPICS);

		for (int k = 0; k < MADE_LENGTH; k++) {
			int word = (int)expf(random_between(&random, 0, logf(MADE_WORDS)));

			if (random_chance(&random, 0.25f))
				snprintf(text, sizeof(text), "any%d", word);
			else
				snprintf(text, sizeof(text), "%c%d", 'a' + topic, word);
			word_add(&c, text);
		}
	}
	counter_take(&c, 1, out);
}

void vocabulary_free(struct vocabulary *v)
{
	for (size_t i = 0; i < v->n; i++)
		free(v->words[i].text);
	free(v->words);
	free(v->text);
	free(v->draws);
	*v = (struct vocabulary){ 0 };
}

size_t vocabulary_find(const struct vocabulary *v, const char *text)
{
	for (size_t i = 0; i < v->n; i++)
		if (strcmp(v->words[i].text, text) == 0)
			return i;
	return SIZE_MAX;
}
