/* SPDX-License-Identifier: Apache-2.0 */
/*
 * glm/model owns a trained model: its losses (loss.h), its file (model_file.h on model_bytes.h),
 * and its predictions. It must not train, and it must not know workers.
 */
#ifndef TRIB_GLM_MODEL_GLM_MODEL_H
#define TRIB_GLM_MODEL_GLM_MODEL_H

#include "base/status.h"
#include "glm/model/loss.h"
#include "glm/text/source.h"

#include <tributary/glm.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct trib_glm_model {
	enum glm_loss loss;
	char update[16];
	uint32_t columns;
	uint32_t vectors; /* 1, or one a class */
	uint32_t classes; /* 0: regression */
	bool from_zero;   /* libsvm indices begin with 0 */
	bool is_csv;
	float *labels; /* ascending, one a class */
	float *bias;   /* one a vector */
	float *x;      /* vectors * columns */
	char **names;  /* one block that is freed at once; NULL: none */
	uint32_t bits, batch, epochs;
	uint64_t rows, seed;
	double rate, decay, l1, l2;
	trib_glm_score train;
};

/* A model with weights of 0. */
trib_status model_make(trib_glm_model **model, uint32_t vectors, uint32_t classes,
                       uint32_t columns);
/* Copies the names; NULL: none. */
trib_status model_set_names(trib_glm_model *model, char *const *names);
/* "auto", "libsvm" (also "svmlight") or "csv". False: no such format. */
bool model_format_find(const char *name, enum glm_format *format);

#endif
