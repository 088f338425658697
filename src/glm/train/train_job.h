/* SPDX-License-Identifier: Apache-2.0 */
/* train_job: one call of trib_glm_train, from options to a model. */
#ifndef TRIB_GLM_TRAIN_JOB_H
#define TRIB_GLM_TRAIN_JOB_H

#include "glm/train/checkpoint.h"
#include "glm/train/train_data.h"
#include "glm/train/trainer.h"

struct train_job {
	trib_glm_options options;
	struct trainer trainer;
	struct train_files files;
	float *pace;
	uint64_t fingerprint;
	struct checkpoint state; /* history, and memory to gather weights */
	double load_seconds, seconds;
	uint64_t shown_at; /* when progress was shown last */
};

/* Fills the state with the weights of all workers. */
trib_status job_gather(struct train_job *job);
/* Gathers, and worker 0 writes the checkpoint. */
trib_status job_save(struct train_job *job);
/* Worker 0 reads the checkpoint, if it is wanted and there, and all workers go on from it. */
trib_status job_resume(struct train_job *job);

#endif
