/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hot_study: what the updates of a data set say about hot rows. Random choices follow from a seed
 * alone.
 */
#ifndef TRIB_SPARSE_HOT_STUDY_H
#define TRIB_SPARSE_HOT_STUDY_H

#include "sparse/data/update_data.h"
#include "sparse/layout/layout.h"

/* A data set with its ranking. */
struct hot_study {
	const struct update_data *data;
	struct heat_key *ranked; /* by all updates */
	size_t n;
	uint32_t *rank_of;    /* [number of the key] */
	uint64_t *cumulative; /* [rank]: the counts up to there */
	uint64_t seed;
};

trib_status hot_study_open(struct hot_study *study, const struct update_data *data, uint64_t seed);
void hot_study_close(struct hot_study *study);

/* The share of all updates that the first n keys have. */
double hot_study_share(const struct hot_study *study, size_t n);

/* ---- how well a sample finds the hot keys ---- */

#define HOT_DRAWS 10u

/* Lists of keys that samples call hot: the means of HOT_DRAWS samples. */
struct hot_found {
	double n;     /* keys in the list */
	double right; /* hot by all updates, too */
	double share; /* of all updates that they have */
	double best;  /* of all updates that the n hottest keys have */
};

struct hot_sample {
	/* What is given. */
	double share;  /* of the records, 0 to 1 */
	bool by_group; /* whole lines of text or whole users, not single words or pairs */
	struct heat_limits limits; /* which keys are hot */
	/* What comes out. */
	size_t hot;             /* keys that are hot by all updates */
	struct hot_found found; /* hot by the same limits in the sample */
	struct hot_found sure;  /* the first of them, see heat_sure */
};

/* Libra's precision: of the hot keys, the share that was found. */
static inline double hot_precision(const struct hot_sample *sample)
{
	return sample->hot ? sample->found.right / (double)sample->hot : 1;
}

/* Of the keys in the list, the share that is hot. */
static inline double hot_right(const struct hot_found *found)
{
	return found->n > 0 ? found->right / found->n : 1;
}

/* Of the updates that a list of this length can have, the share that it has. */
static inline double hot_updates(const struct hot_found *found)
{
	return found->best > 0 ? found->share / found->best : 1;
}

/*
 * Single records are drawn evenly: one of each run of 1 / share records. If a file is in the order
 * of users, the counts of users have hardly any chance in them then.
 */
trib_status hot_study_sample(const struct hot_study *study, struct hot_sample *sample);

/* ---- what a server's link saves ---- */

#define HOT_SIZES_MAX 16u

struct hot_link {
	unsigned workers;             /* all push once in a step */
	uint32_t batch;               /* random records whose distinct rows a worker pushes */
	uint32_t rows[HOT_SIZES_MAX]; /* hot rows of each case, growing */
	unsigned n;
	/* Rows that reach the server in all steps: without an aggregator, and in each case. */
	uint64_t all, with[HOT_SIZES_MAX];
};

trib_status hot_study_link(const struct hot_study *study, struct hot_link *link);

/* ---- recirculations at a switch ---- */

struct hot_packing {
	uint64_t packets, recirculations;
};

struct hot_layout {
	struct layout layout;
	uint32_t rows;  /* that are hot */
	uint32_t batch; /* records of a push */
	struct hot_packing heat, heat_in_order, random, random_in_order;
};

/* Distinct hot rows of random batches: packed by Algorithm 1 and in order, by both placements. */
trib_status hot_study_layout(const struct hot_study *study, struct hot_layout *layout);

#endif
