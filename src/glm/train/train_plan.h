/* SPDX-License-Identifier: Apache-2.0 */
/* train_plan: from a user's options and the statistics of the data to the rule of a training. Pure.
 */
#ifndef TRIB_GLM_TRAIN_PLAN_H
#define TRIB_GLM_TRAIN_PLAN_H

#include "glm/data/glm_load.h"
#include "glm/train/train_state.h"

#include <tributary/glm.h>

/* Takes the options that need no data; an error says which one is wrong. */
trib_status rule_read(const trib_glm_options *options, struct train_rule *rule);

/* What labels mean. */
enum glm_task rule_task(const trib_glm_options *options, const struct train_rule *rule);

/* Chooses what was left open, from the data. `workers`: of the job. */
trib_status rule_complete(const trib_glm_options *options, const struct glm_stats *stats,
                          uint32_t workers, struct train_rule *rule);

/*
 * 1 / unit of each of the columns [first, first + count). Float: the values of a column are divided
 * by its unit, a power of two, so that they lie between -1 and 1. Low precision: 1.
 */
void inverses_fill(const struct train_rule *rule, const struct glm_stats *stats, uint32_t first,
                   uint32_t count, float *inverse);

/* The factor of the rate for each of the columns [first, first + count). */
void pace_fill(const struct train_rule *rule, const struct glm_stats *stats, uint32_t first,
               uint32_t count, float *pace);

/* A number for everything that the model depends on: rule and data. */
uint64_t rule_fingerprint(const struct train_rule *rule, const struct glm_stats *stats);

#endif
