/* SPDX-License-Identifier: Apache-2.0 */
#ifndef EXAMPLES_SGD_H
#define EXAMPLES_SGD_H

#include <stddef.h>

/*
 * One step of gradient descent with momentum. Built with -ffp-contract=off: weights stay bitwise
 * equal on all ranks only if all machines round in the same way. A fused multiply-add rounds
 * differently.
 */
void sgd_step(float *weights, float *velocity, const float *gradient, size_t count, float rate,
              float momentum);

#endif
