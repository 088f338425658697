/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The losses of generalized linear models: the loss of a sample, its derivative by the activation,
 * and how an activation becomes a prediction.
 *
 * The functions use only +, -, *, / and comparisons of doubles, and exponential and logarithm are
 * written out. libm would give other last bits on other machines (glibc chooses its exp by the
 * processor), and a job may run on machines of several kinds. Pure.
 */
#ifndef TRIB_GLM_MODEL_LOSS_H
#define TRIB_GLM_MODEL_LOSS_H

#include <stdbool.h>
#include <stdint.h>

enum glm_loss {
	GLM_LOSS_LINEAR,
	GLM_LOSS_LOGISTIC,
	GLM_LOSS_HINGE,
	GLM_LOSS_SQUARED_HINGE,
	GLM_LOSSES_N
};

/* "linear", "logistic", "hinge", "squared-hinge"; NULL: no such loss. */
const char *loss_name(enum glm_loss loss);
/* False: no loss has this name. "squared" is another name of linear, "svm" of hinge. */
bool loss_find(const char *name, enum glm_loss *loss);

/* `z` is the activation. `y` is the target: +1 or -1, or the label of a regression. */
double loss_value(enum glm_loss loss, double z, double y);
double loss_slope(enum glm_loss loss, double z, double y);
/* The largest second derivative: how far a step may go. Hinge has none: 1. */
double loss_curvature(enum glm_loss loss);

/* 1 / (1 + exp(-z)). */
double loss_probability(double z);
/* exp(v) for v from -708 to 0; smaller values count as -708. The relative error is below 1e-13. */
double loss_exp(double v);

#endif
