/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint: the whole state of a training between two epochs, in one file that worker 0 writes.
 * It has the columns of all workers, so a training may go on with another number of workers.
 */
#ifndef TRIB_GLM_TRAIN_CHECKPOINT_H
#define TRIB_GLM_TRAIN_CHECKPOINT_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An epoch that is over. */
struct checkpoint_epoch {
	double train_loss, train_accuracy, test_loss, test_accuracy, seconds;
	uint64_t saturated;
};

struct checkpoint {
	uint64_t fingerprint; /* the hash of rule and data: rule_fingerprint */
	uint32_t classes, columns;
	uint32_t epochs; /* epochs that are over */
	struct checkpoint_epoch *history;
	float *x, *h; /* classes * columns; h is NULL for sgd */
	float *bias;  /* of each class: x, then h of all classes */
};

trib_status checkpoint_write(const struct checkpoint *state, const char *path);
/* The error of checkpoint_parse has no file name in it. The caller frees, also after an error. */
trib_status checkpoint_parse(const uint8_t *bytes, size_t n, struct checkpoint *state);
trib_status checkpoint_read(const char *path, struct checkpoint *state);
void checkpoint_free(struct checkpoint *state);

#endif
