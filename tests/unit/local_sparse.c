/* SPDX-License-Identifier: Apache-2.0 */
/*
 * <tributary/sparse.h> in one process, in memory: the reference for one worker. There are no
 * servers and no network, so what a job learns here depends on nothing but its own code.
 */
#include <tributary/sparse.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROOM_FIRST = 4096 };

struct trib_sparse {
	trib_sparse_options o;
	char optimizer[16];
	uint64_t *keys;
	float *rows;
	double *state; /* two values for each of a row's */
	uint64_t *updates;
	size_t n, room;
	uint32_t *places;
	trib_sparse_stats stats;
};

static uint64_t mix(uint64_t z)
{
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

static void *grown(void *old, size_t count, size_t size)
{
	void *memory = reallocarray(old, count, size);

	if (!memory)
		abort();
	return memory;
}

static uint32_t *place_find(const struct trib_sparse *t, uint64_t key)
{
	size_t mask = 4 * t->room - 1, at = mix(key + 1) & mask;

	while (t->places[at] && t->keys[t->places[at] - 1] != key)
		at = (at + 1) & mask;
	return &t->places[at];
}

static void room_set(struct trib_sparse *t, size_t room)
{
	size_t width = t->o.width;

	t->room = room;
	t->keys = grown(t->keys, room, sizeof(*t->keys));
	t->rows = grown(t->rows, room * width, sizeof(*t->rows));
	t->state = grown(t->state, 2 * room * width, sizeof(*t->state));
	t->updates = grown(t->updates, room, sizeof(*t->updates));
	free(t->places);
	t->places = calloc(4 * room, sizeof(*t->places));
	if (!t->places)
		abort();
	for (size_t i = 0; i < t->n; i++)
		*place_find(t, t->keys[i]) = (uint32_t)i + 1;
}

static float *row_find(struct trib_sparse *t, uint64_t key, size_t *number)
{
	uint32_t *place = place_find(t, key);
	size_t width = t->o.width;

	if (!*place) {
		if (t->n == t->room) {
			room_set(t, 2 * t->room);
			place = place_find(t, key);
		}
		t->keys[t->n] = key;
		t->updates[t->n] = 0;
		memset(t->state + 2 * t->n * width, 0, 2 * width * sizeof(*t->state));
		for (size_t i = 0; i < width; i++)
			t->rows[t->n * width + i] =
				(float)(t->o.init *
			                ((double)(mix(mix(key ^ t->o.seed) + i) >> 11) * 0x1p-52 -
			                 1));
		*place = (uint32_t)++t->n;
	}
	*number = *place - 1;
	return t->rows + *number * width;
}

static double change(const struct trib_sparse *t, double g, double *state, double updates)
{
	double epsilon = t->o.epsilon > 0 ? t->o.epsilon : 1e-8;

	if (strcmp(t->optimizer, "momentum") == 0) {
		state[0] = (t->o.momentum > 0 ? t->o.momentum : 0.9) * state[0] + g;
		return state[0];
	}
	if (strcmp(t->optimizer, "adagrad") == 0) {
		state[0] += g * g;
		return g / (sqrt(state[0]) + epsilon);
	}
	if (strcmp(t->optimizer, "adam") == 0) {
		double b1 = t->o.beta1 > 0 ? t->o.beta1 : 0.9;
		double b2 = t->o.beta2 > 0 ? t->o.beta2 : 0.999;

		state[0] = b1 * state[0] + (1 - b1) * g;
		state[1] = b2 * state[1] + (1 - b2) * g * g;
		return state[0] / (1 - pow(b1, updates)) /
		       (sqrt(state[1] / (1 - pow(b2, updates))) + epsilon);
	}
	return g;
}

trib_status trib_sparse_open(trib_sparse **table, const trib_sparse_options *options)
{
	struct trib_sparse *t;

	if (options->workers > 1)
		return TRIB_ERR_ARGUMENT;
	t = calloc(1, sizeof(*t));
	if (!t)
		return TRIB_ERR_SYSTEM;
	t->o = *options;
	snprintf(t->optimizer, sizeof(t->optimizer), "%s",
	         options->optimizer ? options->optimizer : "sgd");
	room_set(t, ROOM_FIRST);
	*table = t;
	return TRIB_OK;
}

trib_status trib_sparse_close(trib_sparse *table)
{
	free(table->keys);
	free(table->rows);
	free(table->state);
	free(table->updates);
	free(table->places);
	free(table);
	return TRIB_OK;
}

trib_status trib_sparse_push(trib_sparse *table, const uint64_t *keys, const float *rows, size_t n,
                             trib_sparse_request **request)
{
	size_t width = table->o.width, number;

	for (size_t i = 0; i < n; i++) {
		float *row = row_find(table, keys[i], &number);
		double updates = (double)++table->updates[number];

		for (size_t k = 0; k < width; k++)
			row[k] -= (float)(table->o.rate *
			                  change(table, (double)rows[i * width + k],
			                         table->state + 2 * (number * width + k), updates));
	}
	table->stats.pushed_rows += n;
	if (request)
		*request = NULL;
	return TRIB_OK;
}

trib_status trib_sparse_pull(trib_sparse *table, const uint64_t *keys, float *rows, size_t n,
                             trib_sparse_request **request)
{
	size_t width = table->o.width, number;

	for (size_t i = 0; i < n; i++)
		memcpy(rows + i * width, row_find(table, keys[i], &number), width * sizeof(*rows));
	table->stats.pulled_rows += n;
	if (request)
		*request = NULL;
	return TRIB_OK;
}

trib_status trib_sparse_test(trib_sparse_request **request)
{
	(void)request;
	return TRIB_OK;
}

trib_status trib_sparse_wait(trib_sparse_request **request, double seconds)
{
	(void)request;
	(void)seconds;
	return TRIB_OK;
}

trib_status trib_sparse_flush(trib_sparse *table)
{
	(void)table;
	return TRIB_OK;
}

trib_status trib_sparse_step(trib_sparse *table)
{
	(void)table;
	return TRIB_OK;
}

trib_status trib_sparse_heat(trib_sparse *table, const uint64_t *keys, const uint64_t *counts,
                             size_t n)
{
	(void)table;
	(void)keys;
	(void)counts;
	(void)n;
	return TRIB_OK;
}

trib_status trib_sparse_get_stats(trib_sparse *table, trib_sparse_stats *stats)
{
	*stats = table->stats;
	return TRIB_OK;
}
