/* SPDX-License-Identifier: Apache-2.0 */
#include "glm/data/label_kinds.h"

#include <string.h>

/* The first place whose kind is not below the label. */
static uint32_t place_find(const struct glm_labels *labels, float label)
{
	uint32_t from = 0, to = labels->n;

	while (from < to) {
		uint32_t middle = from + (to - from) / 2;

		if (labels->value[middle] < label)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

uint32_t labels_find(const struct glm_labels *labels, float label)
{
	uint32_t at = place_find(labels, label);

	return at < labels->n && labels->value[at] == label ? at : labels->n;
}

bool labels_add(struct glm_labels *labels, float label)
{
	uint32_t at = place_find(labels, label);

	if (at < labels->n && labels->value[at] == label) {
		labels->rows[at]++;
		return true;
	}
	if (labels->n == GLM_LABELS_MAX) {
		labels->many = true;
		return false;
	}
	memmove(labels->value + at + 1, labels->value + at,
	        (labels->n - at) * sizeof(*labels->value));
	memmove(labels->rows + at + 1, labels->rows + at, (labels->n - at) * sizeof(*labels->rows));
	/* -0 and 0 are one kind. */
	labels->value[at] = label == 0 ? 0 : label;
	labels->rows[at] = 1;
	labels->n++;
	return true;
}

float labels_target(const struct glm_labels *labels, enum glm_task task, float label)
{
	if (task == GLM_TWO_CLASS)
		return label == labels->value[0] ? -1 : 1;
	if (task == GLM_MULTI_CLASS)
		return (float)labels_find(labels, label);
	return label;
}
