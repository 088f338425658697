/* SPDX-License-Identifier: Apache-2.0 */
#ifndef EXAMPLES_SGD_H
#define EXAMPLES_SGD_H

#include <stddef.h>

/*
 * One step of gradient descent with momentum. Built with -ffp-contract=off:
 * the ranks' weights stay bitwise equal only while all machines round alike,
 * and one that fused a product with a sum would not.
 */
void sgd_step(float *weights, float *velocity, const float *gradient, size_t count, float rate,
              float momentum);

#endif
