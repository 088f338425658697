/* SPDX-License-Identifier: Apache-2.0 */
/* hot_report: what `trib sparse hot` found out, and how it is shown. */
#ifndef TRIB_CLI_SPARSE_HOT_REPORT_H
#define TRIB_CLI_SPARSE_HOT_REPORT_H

#include "sparse/data/hot_study.h"

#define HOT_MEMORY_LEAST (64ull << 10)
#define HOT_MEMORIES 9u /* 64 KiB to 16 MiB, each twice the one before */
#define HOT_SAMPLES_MAX 8u

struct hot_report {
	const char *source; /* the first file */
	struct hot_study study;
	uint32_t width, payload;
	bool has_caches;
	struct heat_limits limits;
	struct heat_pick pick; /* by these limits */
	struct hot_link link;  /* its cases are the memories */
	unsigned samples_n;
	/* By single records, and by whole lines or users. */
	struct hot_sample samples[HOT_SAMPLES_MAX], group_samples[HOT_SAMPLES_MAX];
	struct hot_layout layout;
};

static inline double hot_per_packet(const struct hot_packing *packing)
{
	return packing->packets ? (double)packing->recirculations / (double)packing->packets : 0;
}

/* Of the rows that reach the server without an aggregator, the share that still reaches it. */
static inline double hot_link_share(const struct hot_link *link, unsigned i)
{
	return link->all ? (double)link->with[i] / (double)link->all : 1;
}

void hot_report_print(const struct hot_report *report);
trib_status hot_report_json(const struct hot_report *report, const char *path);
/* Also FILE-sample and FILE-layout. */
trib_status hot_report_plot(const struct hot_report *report, const char *path);

#endif
