/* SPDX-License-Identifier: Apache-2.0 */
/*
 * words: embeddings of words with Tributary's sparse tables. Each word has two rows: one as the
 * middle of a window of text, one as its neighbour. Rows of words that stand together are moved
 * towards each other, those of words drawn at random away from each other (skip-gram with negative
 * sampling).
 *
 *     trib run -n 4 --servers 1 -- build/examples/words --data TEXT --near king,france
 *
 * Each worker has a part of the text.
 */
#include "random.h"
#include "sparse_job.h"
#include "vocabulary.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NEARBY "../shared/data/text8-head/text8.split.head.xz"

enum { NEAREST = 8, QUERY_MAX = 100 };

static const char made[] = "made"; /* value of --data, and the data's name */

/* Keys of the two rows of a word differ in their upper half. */
static uint64_t middle_key(uint32_t word)
{
	return (uint64_t)1 << 32 | word;
}

static uint64_t neighbour_key(uint32_t word)
{
	return (uint64_t)2 << 32 | word;
}

/* Slots of a batch. The first of `1 + negatives` pairs is of the text, the others are drawn. */
struct pair {
	uint32_t middle, neighbour;
};

struct embedder {
	struct job job;
	struct job_options o;
	size_t least, window, negatives;
	double subsample;
	const char *near, *save;
	struct vocabulary vocabulary;
	float *keep;         /* chance of each word to stay in the text of an epoch */
	size_t first, count; /* this worker's part of the text */
	size_t epoch;
	uint32_t *kept; /* the words of a step that stay */
	struct pair *pairs;
	size_t n_pairs;
};

/* ---- data ---- */

static void data_load(struct embedder *e)
{
	const char *from = e->o.data;
	const struct vocabulary *v = &e->vocabulary;
	int rank = e->job.rank;

	if (!from)
		from = access(NEARBY, R_OK) == 0 ? NEARBY : made;
	e->job.result.data = from;
	if (strcmp(from, made) == 0)
		vocabulary_make(&e->vocabulary, e->o.seed);
	else
		vocabulary_read(&e->vocabulary, from, e->least, e->o.samples);
	e->first = job_part(&e->job, v->length, rank);
	e->count = job_part(&e->job, v->length, rank + 1) - e->first;
	if (v->length / (size_t)e->job.workers < e->o.batch) {
		fprintf(stderr,
		        "words: %zu words of text are too few for %d workers with --batch "
		        "%zu\n",
		        v->length, e->job.workers, e->o.batch);
		exit(EXIT_FAILURE);
	}
	if (rank == 0)
		progress_say(&e->job.progress, "data          %s: %zu words of text, %zu different",
		             from, v->length, v->n);
}

static void memory_make(struct embedder *e)
{
	const struct vocabulary *v = &e->vocabulary;

	e->keep = job_alloc(v->n, sizeof(*e->keep));
	for (size_t i = 0; i < v->n; i++) {
		double share = (double)v->words[i].count / (double)v->length;

		e->keep[i] = e->subsample > 0 ? (float)fmin(1, sqrt(e->subsample / share)) : 1;
	}
	e->kept = job_alloc(e->o.batch, sizeof(*e->kept));
	e->pairs = job_alloc(e->o.batch * 2 * e->window * (1 + e->negatives), sizeof(*e->pairs));
}

/* ---- training ---- */

static void epoch_begin(void *context, size_t epoch)
{
	struct embedder *e = context;

	e->epoch = epoch;
}

static void pair_add(struct embedder *e, struct batch *batch, size_t middle, uint32_t word,
                     struct random *random)
{
	for (size_t i = 0; i <= e->negatives; i++) {
		uint32_t other = i ? vocabulary_draw(&e->vocabulary, random) : word;

		e->pairs[e->n_pairs++] =
			(struct pair){ (uint32_t)middle,
			               (uint32_t)batch_slot(batch, neighbour_key(other)) };
	}
}

/* The words of a step that stay: the more frequent a word, the more of its occurrences go. */
static size_t text_thin(struct embedder *e, size_t step, struct random *random)
{
	size_t n = 0;

	for (size_t i = 0; i < e->o.batch; i++) {
		uint32_t word = e->vocabulary.text[e->first + (step * e->o.batch + i) % e->count];

		if (random_chance(random, e->keep[word]))
			e->kept[n++] = word;
	}
	return n;
}

static void pairs_choose(void *context, size_t step, struct batch *batch)
{
	struct embedder *e = context;
	uint64_t stream =
		(e->epoch * 1000003 + step) * (size_t)e->job.workers + (size_t)e->job.rank;
	struct random random = random_of(e->o.seed ^ 0x5eed, stream);
	size_t n = text_thin(e, step, &random);

	e->n_pairs = 0;
	for (size_t i = 0; i < n; i++) {
		size_t reach = 1 + random_next(&random) % e->window;
		size_t from = i > reach ? i - reach : 0, to = i + reach < n ? i + reach : n - 1;
		size_t middle = batch_slot(batch, middle_key(e->kept[i]));

		for (size_t k = from; k <= to; k++)
			if (k != i)
				pair_add(e, batch, middle, e->kept[k], &random);
	}
}

static double pair_learn(const struct batch *batch, const struct pair *pair, bool is_real)
{
	const float *middle = batch_row(batch, pair->middle),
		    *neighbour = batch_row(batch, pair->neighbour);
	float *to_middle = batch_gradient(batch, pair->middle),
	      *to_neighbour = batch_gradient(batch, pair->neighbour);
	float x = job_dot(middle, neighbour, batch->width);
	float push = batch->scale * (job_sigmoid(x) - (is_real ? 1.0f : 0.0f));

	for (size_t i = 0; i < batch->width; i++) {
		to_middle[i] += push * neighbour[i];
		to_neighbour[i] += push * middle[i];
	}
	return job_softplus(is_real ? (double)x : -(double)x);
}

static struct job_loss pairs_learn(void *context, struct batch *batch)
{
	struct embedder *e = context;
	struct job_loss loss = { .samples = e->n_pairs / (1 + e->negatives) };

	for (size_t i = 0; i < e->n_pairs; i++)
		loss.sum += pair_learn(batch, &e->pairs[i], i % (1 + e->negatives) == 0);
	return loss;
}

/* ---- results ---- */

static float *rows_pull(struct embedder *e)
{
	size_t n = e->vocabulary.n;
	uint64_t *keys = job_alloc(n, sizeof(*keys));
	float *rows = job_alloc(n * e->o.width, sizeof(*rows));

	for (size_t i = 0; i < n; i++)
		keys[i] = middle_key((uint32_t)i);
	job_pull(&e->job, keys, rows, n);
	free(keys);
	return rows;
}

/* The format of word2vec's text files. */
static void rows_save(const struct embedder *e, const float *rows)
{
	FILE *file = fopen(e->save, "w");
	bool failed = !file;

	if (file) {
		fprintf(file, "%zu %zu\n", e->vocabulary.n, e->o.width);
		for (size_t i = 0; i < e->vocabulary.n; i++) {
			fprintf(file, "%s", e->vocabulary.words[i].text);
			for (size_t k = 0; k < e->o.width; k++)
				fprintf(file, " %.6g", (double)rows[i * e->o.width + k]);
			fputc('\n', file);
		}
		failed = ferror(file) != 0;
		failed |= fclose(file) != 0;
	}
	if (failed) {
		fprintf(stderr, "words: %s: %s\n", e->save, strerror(errno));
		exit(EXIT_FAILURE);
	}
}

static void rows_normalize(const struct embedder *e, float *rows)
{
	for (size_t i = 0; i < e->vocabulary.n; i++) {
		float *row = rows + i * e->o.width;
		float length = sqrtf(job_dot(row, row, e->o.width)) + 1e-20f;

		for (size_t k = 0; k < e->o.width; k++)
			row[k] /= length;
	}
}

struct near {
	size_t word;
	float cosine;
};

/* The nearest words, best first. Returns how many there are. */
static int nearest_find(const struct embedder *e, const float *rows, size_t word, struct near *out)
{
	size_t width = e->o.width;
	int n = 0;

	for (size_t i = 0; i < e->vocabulary.n; i++) {
		struct near next = { i, job_dot(rows + i * width, rows + word * width, width) };
		int at;

		if (i == word || (n == NEAREST && next.cosine <= out[n - 1].cosine))
			continue;
		for (at = n < NEAREST ? n++ : n - 1; at > 0 && out[at - 1].cosine < next.cosine;
		     at--)
			out[at] = out[at - 1];
		out[at] = next;
	}
	return n;
}

static void nearest_print(struct embedder *e, const float *rows, const char *query)
{
	size_t word = vocabulary_find(&e->vocabulary, query), used = 0;
	struct near near[NEAREST];
	char line[1200];
	int n;

	if (word == SIZE_MAX) {
		progress_say(&e->job.progress, "near %-8s is not in the vocabulary", query);
		return;
	}
	n = nearest_find(e, rows, word, near);
	line[0] = 0;
	for (int i = 0; i < n; i++)
		used += (size_t)snprintf(line + used, sizeof(line) - used, "%s%s %.2f",
		                         i ? ", " : "", e->vocabulary.words[near[i].word].text,
		                         (double)near[i].cosine);
	progress_say(&e->job.progress, "near %-8s %s", query, line);
}

static void queries_print(struct embedder *e, float *rows)
{
	const char *list = e->near;
	char query[QUERY_MAX];

	rows_normalize(e, rows);
	while (*list) {
		size_t n = strcspn(list, ",");

		snprintf(query, sizeof(query), "%.*s", (int)n, list);
		if (*query)
			nearest_print(e, rows, query);
		list += n + (list[n] == ',');
	}
}

/* All workers have taken their last step: the loop ends with a barrier. */
static void model_show(struct embedder *e)
{
	float *rows;

	if (e->job.rank != 0 || (!e->save && !e->near))
		return;
	rows = rows_pull(e);
	if (e->save)
		rows_save(e, rows);
	if (e->near)
		queries_print(e, rows);
	free(rows);
}

/* ---- the program ---- */

static void options_read(struct embedder *e, int argc, char **argv)
{
	const struct job_option own[] = {
		{ "least", JOB_COUNT, &e->least, 1, 1e9, "N",
		  "occurrences of a word that is learned" },
		{ "window", JOB_COUNT, &e->window, 1, 100, "N",
		  "words on each side that are neighbours" },
		{ "negatives", JOB_COUNT, &e->negatives, 1, 100, "N",
		  "words drawn for each neighbour" },
		{ "subsample", JOB_NUMBER, &e->subsample, 0, 1, "SHARE",
		  "words with a larger share of the text are thinned out; 0: none" },
		{ "near", JOB_TEXT, &e->near, 0, 0, "WORDS",
		  "show the nearest words of each: king,france" },
		{ "save", JOB_TEXT, &e->save, 0, 0, "FILE",
		  "write the rows in the text format of word2vec" },
		{ 0 },
	};
	const struct job_usage usage = {
		.name = "words",
		.what = "Learns embeddings of the words of a text (--data FILE, also .xz or .gz).\n"
			"Without --data: " NEARBY
			" if it is there,\nelse a made text (--data made).",
		.example = "trib run -n 4 --servers 1 -- words --data text8 --near king,france "
			   "--save words.txt",
		.own = own,
	};

	e->o = job_options_default();
	e->o.batch = 128;
	e->o.width = 48;
	e->o.init = 0.01;
	e->least = 5;
	e->window = 5;
	e->negatives = 5;
	e->subsample = 1e-3;
	job_options_parse(&usage, &e->o, argc, argv);
}

int main(int argc, char **argv)
{
	static struct embedder e;
	struct job_model model = {
		.context = &e, .begin = epoch_begin, .choose = pairs_choose, .compute = pairs_learn
	};
	int code;

	options_read(&e, argc, argv);
	job_start(&e.job, "words", &e.o);
	data_load(&e);
	memory_make(&e);
	model.steps = e.vocabulary.length / ((size_t)e.job.workers * e.o.batch);
	model.decays = strcmp(e.o.optimizer, "sgd") == 0 || strcmp(e.o.optimizer, "momentum") == 0;
	job_open(&e.job, 2 * e.vocabulary.n);
	job_train(&e.job, &model);
	model_show(&e);
	code = job_end(&e.job);
	vocabulary_free(&e.vocabulary);
	free(e.keep);
	free(e.kept);
	free(e.pairs);
	return code;
}
