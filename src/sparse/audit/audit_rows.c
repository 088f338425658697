/* SPDX-License-Identifier: Apache-2.0 */
#include "sparse/audit/audit_rows.h"

#include <math.h>
#include <stdlib.h>

void audit_rows_begin(struct audit_rows *rows, const struct sparse_table_options *options)
{
	static const uint32_t factors[] = { 1, 2, 2, 3 };

	*rows = (struct audit_rows){ .options = *options };
	rows->floats = factors[options->optimizer] * options->width;
	if (options->optimizer == SPARSE_ADAM)
		rows->floats += 2;
}

void audit_rows_end(struct audit_rows *rows)
{
	audit_set_free(&rows->index);
	free(rows->values);
}

/* splitmix64's last steps. */
static uint64_t scramble(uint64_t x)
{
	x ^= x >> 30;
	x *= 0xbf58476d1ce4e5b9ull;
	x ^= x >> 27;
	x *= 0x94d049bb133111ebull;
	x ^= x >> 31;
	return x;
}

static void row_begin(const struct audit_rows *rows, uint64_t key, float *row)
{
	const uint64_t step = 0x9e3779b97f4a7c15ull;
	uint64_t at = scramble(scramble(rows->options.seed + step) ^ key);

	for (uint32_t i = 0; i < rows->floats; i++)
		row[i] = 0;
	for (uint32_t i = 0; i < rows->options.width && rows->options.init != 0; i++, at += step)
		row[i] = (float)rows->options.init * ((float)(scramble(at) >> 40) / 8388608.0f - 1);
	if (rows->options.optimizer == SPARSE_ADAM)
		row[rows->floats - 2] = row[rows->floats - 1] = 1;
}

/* Column i of a row. */
static void value_step(const struct sparse_table_options *o, float *row, uint32_t i,
                       const float *powers, float g)
{
	float *w = &row[i], squared = g * g, part;
	float *first = o->optimizer == SPARSE_SGD ? w : &row[o->width + i];
	float *second = o->optimizer == SPARSE_ADAM ? &row[2 * o->width + i] : w;

	switch (o->optimizer) {
	case SPARSE_SGD:
		*w = *w - (float)o->rate * g;
		break;
	case SPARSE_MOMENTUM:
		part = (float)o->momentum * *first;
		*first = part + g;
		*w = *w - (float)o->rate * *first;
		break;
	case SPARSE_ADAGRAD:
		*first = *first + squared;
		part = (float)o->rate * g;
		*w = *w - part / (sqrtf(*first) + (float)o->epsilon);
		break;
	default:
		part = (float)o->beta1 * *first;
		*first = part + (1 - (float)o->beta1) * g;
		part = (float)o->beta2 * *second;
		*second = part + (1 - (float)o->beta2) * squared;
		part = (float)o->rate * (*first / (1 - powers[0]));
		*w = *w - part / (sqrtf(*second / (1 - powers[1])) + (float)o->epsilon);
	}
}

static float *row_get(struct audit_rows *rows, uint64_t key)
{
	bool was;
	uint64_t *number =
		audit_set_add(&rows->index, (struct audit_key){ key, 0 }, rows->index.n, &was);

	if (!number)
		return NULL;
	if (!was && *number == rows->room) {
		uint64_t room = rows->room ? 2 * rows->room : 64;
		float *values = realloc(rows->values, room * rows->floats * sizeof(*values));

		if (!values)
			return NULL;
		rows->values = values;
		rows->room = room;
	}
	if (!was)
		row_begin(rows, key, &rows->values[*number * rows->floats]);
	return &rows->values[*number * rows->floats];
}

bool audit_rows_apply(struct audit_rows *rows, uint64_t key, const float *gradient)
{
	float *row = row_get(rows, key), powers[2] = { 0 };

	if (!row)
		return false;
	if (rows->options.optimizer == SPARSE_ADAM) {
		powers[0] = row[rows->floats - 2] * (float)rows->options.beta1;
		powers[1] = row[rows->floats - 1] * (float)rows->options.beta2;
		row[rows->floats - 2] = powers[0];
		row[rows->floats - 1] = powers[1];
	}
	for (uint32_t i = 0; i < rows->options.width; i++)
		value_step(&rows->options, row, i, powers, gradient[i]);
	return true;
}

const float *audit_rows_find(const struct audit_rows *rows, uint64_t key)
{
	const uint64_t *number = audit_set_find(&rows->index, (struct audit_key){ key, 0 });

	return number ? &rows->values[*number * rows->floats] : NULL;
}
