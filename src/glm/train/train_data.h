/* SPDX-License-Identifier: Apache-2.0 */
/* train_data: from files to the rows and columns of this worker. */
#ifndef TRIB_GLM_TRAIN_DATA_H
#define TRIB_GLM_TRAIN_DATA_H

#include "glm/data/glm_load.h"
#include "glm/train/train_state.h"
#include "glm/train/train_synthetic.h"

#include <tributary/glm.h>

/* What a job reads. */
struct train_files {
	struct glm_source source, test_source;
	struct glm_rules rules, test_rules;
	struct glm_stats stats, test_stats;
	struct glm_problem problem;
	struct synthetic synthetic; /* its `rows` is 0: there is a file */
	uint64_t skipped;
	float *low, *step; /* low precision: of all columns */
	float *inverse;    /* of all columns; see inverses_fill */
	enum glm_layout layout;
	struct train_data test;
	bool has_test;
};

/* The first pass over the training file. */
trib_status files_scan(struct train_files *files, const char *path, const trib_glm_options *options,
                       const struct train_rule *rule);
/* The second pass: fills data and first_column of the trainer, whose exchange is open. */
trib_status files_load(struct train_files *files, struct trainer *t);
/* Both passes over the test file; its columns are those of the training file. */
trib_status files_load_test(struct train_files *files, const char *path, struct trainer *t);
void files_free(struct train_files *files, struct trainer *t);

#endif
