/* SPDX-License-Identifier: Apache-2.0 */
/* vocabulary: the words of a text, numbered from the most frequent one, and the text as numbers. */
#ifndef EXAMPLES_VOCABULARY_H
#define EXAMPLES_VOCABULARY_H

#include "random.h"

#include <stddef.h>
#include <stdint.h>

struct word {
	char *text;
	size_t count;
};

struct vocabulary {
	struct word *words; /* the most frequent word first; equal ones by the alphabet */
	size_t n;
	uint32_t *text; /* numbers of the words of the text, without rare words */
	size_t length;
	uint32_t *draws; /* see vocabulary_draw */
	size_t n_draws;
};

/*
 * Reads a text of words between blanks, .xz and .gz too. Words with fewer than `least` occurrences
 * are left out. `most`: words of the text that are read, at most; 0: all. Exits with a sentence if
 * the file cannot be read.
 */
void vocabulary_read(struct vocabulary *out, const char *path, size_t least, size_t most);
/* A text whose words have topics: words of the same topic are near each other. */
void vocabulary_make(struct vocabulary *out, uint64_t seed);
void vocabulary_free(struct vocabulary *v);

/* SIZE_MAX: the word is not in the vocabulary. */
size_t vocabulary_find(const struct vocabulary *v, const char *text);

/* A word at random, with a chance that grows with count^0.75. */
static inline uint32_t vocabulary_draw(const struct vocabulary *v, struct random *random)
{
	return v->draws[random_next(random) % v->n_draws];
}

#endif
