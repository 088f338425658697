/* SPDX-License-Identifier: Apache-2.0 */
/* A measured step. It is parsed, or refused with a sentence. A parsed step has a finite length. */
#include "fuzz.h"
#include "sim/read.h"

#include <math.h>
#include <string.h>

static void pattern_try(const struct sim_step *step)
{
	const struct wire_model wire = WIRE_MODEL_DEFAULT;
	struct pattern_op *ops = calloc(step->n + 1, sizeof(*ops));
	struct pattern pattern;

	demand(ops);
	/* The time to compute a step's demand grows with the square of its allreduces. */
	if (step->n < 64) {
		pattern_fill(&pattern, ops, step->n, step->start_s, step->bytes, step->compute_s, 2,
		             &wire);
		demand(isfinite(pattern.plain_s) && pattern.fast_s <= pattern.plain_s);
		demand(pattern.fast_s >= step->compute_s);
	}
	free(ops);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	struct sim_step step;

	demand(text);
	memcpy(text, data, size);
	text[size] = 0;
	if (read_step(&step, text) == TRIB_OK) {
		demand(step.compute_s > 0);
		pattern_try(&step);
		step_free(&step);
	} else {
		demand(*trib_last_error());
	}
	free(text);
	return 0;
}
