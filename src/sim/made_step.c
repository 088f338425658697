/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/made_step.h"

#include "sim/read.h"

#include <stdlib.h>
#include <string.h>

/* Computation takes as long as one measured step of opt-125m does, for each parameter. */
#define COMPUTE_S 0.72e-9 /* seconds a parameter */
#define FORWARD (1.0 / 3) /* share of the step before the first gradient */
#define GRADIENT_BYTES 4u /* bytes a parameter */

struct model {
	const char *name;
	double parameters;
	unsigned layers;
};

static const struct model models[] = {
	{ "opt-125m-4", 125e6, 12 },  { "opt-350m-4", 331e6, 24 },   { "opt-1.3b-4", 1.3e9, 24 },
	{ "bert-base-4", 110e6, 12 }, { "bert-large-4", 340e6, 24 }, { "vit-base-4", 86e6, 12 },
	{ "vit-large-4", 304e6, 24 },
};

/* Gradients of the layers are ready one after the other, at equal distances, during the backward
 * pass. */
static trib_status fill(struct sim_step *step, const struct model *model)
{
	*step = (struct sim_step){ .compute_s = model->parameters * COMPUTE_S };
	step->start_s = calloc(model->layers, sizeof(*step->start_s));
	step->bytes = calloc(model->layers, sizeof(*step->bytes));
	if (!step->start_s || !step->bytes) {
		step_free(step);
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for %u allreduces",
		                   model->layers);
	}
	for (; step->n < model->layers; step->n++) {
		double done = (step->n + 1.0) / model->layers;

		step->start_s[step->n] = step->compute_s * (FORWARD + (1 - FORWARD) * done);
		step->bytes[step->n] =
			(uint64_t)(model->parameters / model->layers) * GRADIENT_BYTES;
	}
	return TRIB_OK;
}

trib_status made_step(struct sim_step *step, const char *name)
{
	for (unsigned i = 0; i < sizeof(models) / sizeof(*models); i++)
		if (!strcmp(models[i].name, name))
			return fill(step, &models[i]);
	return status_fail(TRIB_ERR_CONFIG,
	                   "nothing is known of the model %.64s: give the folder with its measured "
	                   "step, %.64s.json (--traces)",
	                   name, name);
}
