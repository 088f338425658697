/* SPDX-License-Identifier: Apache-2.0 */
#include "glm/train/train_synthetic.h"

#include "base/status.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char prefix[] = "synthetic:";

bool name_is_synthetic(const char *path)
{
	return strncmp(path, prefix, sizeof(prefix) - 1) == 0;
}

/* The field of a word, as one of its two types; false: there is none. */
static bool field_set(struct synthetic *s, const char *word, size_t n, double value)
{
	const struct {
		const char *name;
		uint32_t *count;
		double *number;
	} fields[] = {
		{ "rows", &s->rows, NULL },   { "columns", &s->columns, NULL },
		{ "skew", &s->skew, NULL },   { "classes", &s->classes, NULL },
		{ "noise", NULL, &s->noise }, { "density", NULL, &s->density },
	};
	bool whole = value >= 0 && value <= UINT32_MAX && value == floor(value);

	if (n == 4 && !strncmp(word, "seed", n) && whole) {
		s->seed = (uint64_t)value;
		return true;
	}
	for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++) {
		if (strlen(fields[i].name) != n || strncmp(fields[i].name, word, n) != 0)
			continue;
		if (fields[i].number)
			*fields[i].number = value;
		else if (whole)
			*fields[i].count = (uint32_t)value;
		else
			return false;
		return true;
	}
	return false;
}

trib_status synthetic_parse(const char *path, struct synthetic *synthetic)
{
	const char *at = path + sizeof(prefix) - 1;

	*synthetic = (struct synthetic){
		.rows = 10000, .columns = 1000, .density = 1, .classes = 2, .noise = 0.05, .seed = 1
	};
	while (*at) {
		const char *equals = strchr(at, '=');
		char *end = NULL;
		double value = equals ? strtod(equals + 1, &end) : 0;

		if (!equals || end == equals + 1 || (*end && *end != ',') ||
		    !field_set(synthetic, at, (size_t)(equals - at), value))
			return status_fail(TRIB_ERR_ARGUMENT,
			                   "%s: \"%.40s\" is not one of rows=N, columns=N, "
			                   "density=X, skew=N, classes=N, noise=X and seed=N",
			                   path, at);
		at = *end ? end + 1 : end;
	}
	return synthetic_check(synthetic);
}

static void labels_make(const struct synthetic *s, struct glm_labels *labels)
{
	for (uint32_t c = 0; c < s->classes; c++)
		labels->value[c] = s->classes == 2 ? (c ? 1 : -1) : (float)(c + 1);
	labels->n = s->classes;
}

trib_status synthetic_stats(const struct synthetic *s, struct glm_stats *stats)
{
	uint32_t entries = synthetic_entries(s);

	*stats = (struct glm_stats){ .rows = s->rows,
		                     .columns = s->columns,
		                     .nonzeros = (uint64_t)s->rows * entries,
		                     .format = GLM_LIBSVM,
		                     .base = GLM_BASE_ONE,
		                     .label_min = -1,
		                     .label_max = 1 };
	stats->min = calloc(s->columns, sizeof(*stats->min));
	stats->max = calloc(s->columns, sizeof(*stats->max));
	stats->count = calloc(s->columns, sizeof(*stats->count));
	if (!stats->min || !stats->max || !stats->count)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for %u columns", s->columns);
	for (uint32_t j = 0; j < s->columns; j++) {
		stats->min[j] = 0x1p-16f;
		stats->max[j] = 1;
		stats->count[j] = (uint32_t)((double)s->rows * entries / s->columns);
	}
	labels_make(s, &stats->labels);
	return TRIB_OK;
}
