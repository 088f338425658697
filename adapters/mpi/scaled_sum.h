/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sums of doubles with a scale for each element. Pure.
 *
 * A class of 8 bits names the scale of an element: four powers of two. All ranks take the highest
 * class of an element (a maximum over ranks), and round their numbers to integers of 64 bits. With
 * up to 64 ranks an integer has at least 57 bits, so a number whose class is the highest one keeps
 * all its bits. The sum of integers is exact. The result differs from the exact sum by at most
 *
 *     N * 2^(t - B) / 2 + half a unit in the last place, with B = 63 - ceil(log2 N)
 *
 * where 2^t is at most 16 times the largest addend of the element. That is less than the bound of
 * N - 1 additions of doubles. A number to which all other ranks add 0 stays as it is.
 *
 * Numbers below 2^-507, from 2^509 on, infinities and NaN have no class: the highest value says
 * so, and the whole vector has to be summed by other means. Zero has class 0.
 */
#ifndef TRIB_ADAPTERS_MPI_SCALED_SUM_H
#define TRIB_ADAPTERS_MPI_SCALED_SUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SCALED_NONE 255u /* no class */
#define SCALED_RANKS_MAX 64u

void scaled_classes(const double *values, size_t n, uint8_t *classes);
/* Has each element a class? */
bool scaled_is_possible(const uint8_t *classes, size_t n);
void scaled_encode(const double *values, const uint8_t *classes, size_t n, unsigned ranks,
                   int64_t *integers);
void scaled_decode(const int64_t *sums, const uint8_t *classes, size_t n, unsigned ranks,
                   double *values);

#endif
