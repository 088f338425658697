/* SPDX-License-Identifier: Apache-2.0 */
/* Counters as JSON: for `trib top`, for tests, and for the last line of tribd. */
#ifndef TRIB_PLANE_STATS_DESCRIBE_H
#define TRIB_PLANE_STATS_DESCRIBE_H

#include <stddef.h>
#include <stdint.h>

struct aggregator;

#define DESCRIBE_PLANE 65536u /* the first of the pages that describe the plane */

/*
 * One page of the answer to a QUERY; gives its length. Page 0 is the aggregator.
 * The communicators follow. From DESCRIBE_PLANE on it is the plane and its
 * interfaces. An empty object means that there are no more pages.
 */
/* `job`: show the communicators of this job alone; 0: all. */
int describe_page(struct aggregator *aggregator, uint16_t job, unsigned page, char *out,
                  size_t size);
/* One line with all counters; gives its length. */
int describe_totals(struct aggregator *aggregator, char *out, size_t size);

#endif
