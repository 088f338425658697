/* SPDX-License-Identifier: Apache-2.0 */
/* label_kinds: the different labels of a file, and what a task makes of them. Pure. */
#ifndef TRIB_GLM_LABEL_KINDS_H
#define TRIB_GLM_LABEL_KINDS_H

#include "glm/text/source.h"

#define GLM_LABELS_MAX 1024u

struct glm_labels {
	uint32_t n;
	bool many; /* there were more than GLM_LABELS_MAX: only the first of them are here */
	float value[GLM_LABELS_MAX]; /* ascending */
	uint64_t rows[GLM_LABELS_MAX];
};

/* The place of a label among the kinds; `n`: it is not among them. */
uint32_t labels_find(const struct glm_labels *labels, float label);

/* Counts a row with this label. False: it is a new kind, and there is no more room. */
bool labels_add(struct glm_labels *labels, float label);

/*
 * What training uses for a label that is among the kinds. Two classes: -1 for the smaller and +1
 * for the larger one, so {-1, 1}, {0, 1} and {1, 2} all have the negative class first. Multi-class:
 * the place among the sorted kinds, from 0. Regression: the label itself.
 */
float labels_target(const struct glm_labels *labels, enum glm_task task, float label);

#endif
