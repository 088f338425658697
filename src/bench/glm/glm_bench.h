/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of `trib bench glm` share. */
#ifndef TRIB_BENCH_GLM_GLM_BENCH_H
#define TRIB_BENCH_GLM_GLM_BENCH_H

#include "bench/bed/bench_bed.h"
#include "bench/bed/plane_ways.h"
#include "bench/report/json_report.h"
#include "bench/glm/glm_case.h"

#define GLM_LIST_MAX 8u
#define GLM_SYSTEMS_MAX 12u
#define GLM_CASES_MAX 256u
#define GLM_EPOCHS_MAX 200u

struct glm_bench_options {
	struct bench_options bench; /* iterations are epochs */
	uint64_t hosts[GLM_LIST_MAX], features[GLM_LIST_MAX], batches[GLM_LIST_MAX];
	unsigned bits[GLM_LIST_MAX];
	unsigned n_hosts, n_features, n_batches, n_bits;
	uint64_t rows, nonzeros, threads;
	const char *systems, *planes;
};

enum glm_way { GLM_MODEL, GLM_VANILLA, GLM_DATA, GLM_MPI };

/* A system on a plane. */
struct glm_system {
	enum glm_way way;
	char name[32]; /* "model", or "model udp" on planes behind the first */
	struct bench_system bed;
};

/* The epochs of a training. */
struct glm_curve {
	struct glm_epoch epochs[GLM_EPOCHS_MAX];
	unsigned n;
};

/* A row: a system, hosts and a shape. */
struct glm_case {
	struct bench_system system; /* the first member: hooks find the case by it */
	const struct glm_system *of;
	const struct bench_place *place;
	struct glm_shape shape;
	uint64_t threads;
	struct glm_curve *curve; /* of the last run */
};

struct glm_report {
	const struct glm_bench_options *options;
	struct bench_place bed; /* with the most hosts */
	struct bench_place places[GLM_LIST_MAX];
	struct tree_layout trees[GLM_LIST_MAX];
	struct glm_system systems[GLM_SYSTEMS_MAX];
	unsigned n_systems;
	struct glm_case cases[GLM_CASES_MAX];
	struct glm_curve curves[GLM_CASES_MAX];
	struct bench_result results[GLM_CASES_MAX]; /* one a case */
	unsigned n;
	char left_out[LEFT_OUT_MAX];
};

/* Fills report->systems. Systems that cannot run here go to report->left_out. */
trib_status glm_systems_choose(struct glm_report *report);
/* The system of a row. `trees` are those of its hosts. */
void glm_case_place(struct glm_case *row, const struct tree_layout *trees);

/* Median seconds of an epoch; NaN: no run has succeeded. */
double glm_epoch_s(const struct glm_report *report, unsigned row);
/* CPUSync's epoch over this one's, with the same hosts and shape; NaN: unknown. */
double glm_mpi_ratio(const struct glm_report *report, unsigned row);
/* All trainings of a shape end with the same loss, whatever the system. False: row `*odd` differs.
 */
bool glm_losses_agree(const struct glm_report *report, unsigned *odd);

/* For the driver; `context` is a struct glm_report. */
void glm_table_print(const void *context);
extern const struct json_report glm_json;
/* The time of an epoch over hosts or batch; with one shape alone, the loss against time. */
trib_status glm_plot_write(const void *context, const char *path);

#endif
