/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Training data that are made and not read: the file name
 * "synthetic:rows=N,columns=N,density=X,...". Each worker makes its own part. For measurements with
 * data that no disk should hold.
 */
#ifndef TRIB_GLM_TRAIN_SYNTHETIC_H
#define TRIB_GLM_TRAIN_SYNTHETIC_H

#include "glm/data/synthetic.h"

#include <stdbool.h>

bool name_is_synthetic(const char *path);
/* The error says which part of the name is wrong. */
trib_status synthetic_parse(const char *path, struct synthetic *synthetic);
/* What a scan of the same data in a file would find, about; the caller frees it. */
trib_status synthetic_stats(const struct synthetic *synthetic, struct glm_stats *stats);

#endif
