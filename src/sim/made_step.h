/* SPDX-License-Identifier: Apache-2.0 */
/* made_step: a step of a known model, computed from the model's size, where none was measured. */
#ifndef TRIB_SIM_MADE_STEP_H
#define TRIB_SIM_MADE_STEP_H

#include "sim/sim.h"

/* `name` is one of the default models of trib sim. step_free() frees it. */
trib_status made_step(struct sim_step *step, const char *name);

#endif
