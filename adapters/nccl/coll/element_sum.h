/* SPDX-License-Identifier: Apache-2.0 */
/*
 * element_sum: sums of floats with a scale for each element, so that no element takes precision
 * from another one. Pure.
 *
 * NCCL's vectors are whole chunks. Behind the end of the message they hold any values, and NCCL
 * does not say where that is. Short vectors are therefore summed in two steps: the ranks take the
 * maximum of each element's class, and then add integers at the scale of that class
 * (number/number.h, with blocks of one element). NaN and infinities have the class
 * `element_special`. Then the integer counts them.
 */
#ifndef TRIB_NCCL_ELEMENT_SUM_H
#define TRIB_NCCL_ELEMENT_SUM_H

#include "number/number.h"

/* The types of both steps: a maximum of classes, a sum of integers. */
trib_type element_class_type(trib_type type);
trib_type element_integer_type(trib_type type);

void element_classify(trib_type type, const void *elements, size_t n, void *classes);
/* `classes`: the maximum over all ranks. */
void element_encode(trib_type type, const void *elements, size_t n, const void *classes,
                    unsigned workers, void *integers);
void element_decode(trib_type type, const void *integers, size_t n, const void *classes,
                    unsigned workers, bool average, void *elements);

#endif
