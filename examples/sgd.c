/* SPDX-License-Identifier: Apache-2.0 */
#include "sgd.h"

void sgd_step(float *restrict weights, float *restrict velocity, const float *restrict gradient,
              size_t count, float rate, float momentum)
{
	for (size_t i = 0; i < count; i++) {
		velocity[i] = momentum * velocity[i] + gradient[i];
		weights[i] -= rate * velocity[i];
	}
}
