/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order of measurements. Planes take turns, so that a change of the machine's load affects
 * all alike.
 */
#include "bench/plane/bench_plane.h"

#include "base/clock.h"
#include "bench/report/progress.h"
#include "bench/report/samples.h"
#include "bench/report/cpu_time.h"

#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define TRIES 4        /* attempts at a run that other processes disturb */
#define OTHERS_MAX .04 /* share of a core that other processes may use */
#define FORKS_MAX 20   /* processes that others may start */
#define QUIET_WAIT_S 15
#define LOAD_STEPS 10

static volatile sig_atomic_t stopped;

static void stop_take(int signal)
{
	(void)signal;
	stopped = 1;
}

static void tell_row(unsigned done, unsigned all, const struct plane_row *row)
{
	char share[32] = "";

	if (row->share >= 0)
		snprintf(share, sizeof(share), " at %.0f %%", row->share * 100);
	progress_tell(done, all, "%s, %u core%s%s", row->plane, row->cores,
	              row->cores > 1 ? "s" : "", share);
}

/* ---- where things run ---- */

/*
 * Pair g takes core 2 g for the load and the next core for the aggregator. If two
 * cores are threads of one physical core, every pair has a physical core of its
 * own.
 */
static bool cores_choose(struct bed_options *o)
{
	unsigned n = cpu_count();

	o->shared_cores = 2 * o->lanes > n;
	for (unsigned g = 0; g < o->lanes; g++) {
		o->load_cores[g] = 2 * g % n;
		o->aggregator_cores[g] = (2 * g + 1) % n;
		if (o->shared_cores) {
			o->load_cores[g] = g % n;
			o->aggregator_cores[g] = (g + 1) % n;
		}
		/* A core of its own, if there is one. */
		o->relay_cores[g] = 3 * o->lanes <= n ? 2 * o->lanes + g : o->load_cores[g];
	}
	return o->lanes <= n;
}

bool bench_plane_is_framed(const char *plane)
{
	return strcmp(plane, PLANE_RELAYED) == 0 ||
	       (strstr(plane, PLANE_FRAMED) && strcmp(plane, PLANE_NIC) != 0);
}

static struct bed_options bed_options_of(const struct plane_options *o, const char *plane,
                                         unsigned lanes)
{
	bool frames = strcmp(plane, PLANE_NIC) == 0;
	struct bed_options bed = { .children = (unsigned)o->children,
		                   .lanes = lanes,
		                   .elements = (unsigned)o->elements,
		                   .window = (unsigned)o->window,
		                   .pool_bytes = o->pool_bytes,
		                   .one_port = o->one_port || frames,
		                   .to_all = o->to_all && !frames,
		                   .frames = frames,
		                   .framed = bench_plane_is_framed(plane),
		                   .copied = strcmp(plane, PLANE_COPIED) == 0,
		                   .check = o->check,
		                   .urgent = o->urgent,
		                   .gso = !o->singly,
		                   .offload = o->offload ? PLANE_WHOLE
		                              : o->gro   ? PLANE_GRO
		                                         : PLANE_SINGLY };

	cores_choose(&bed);
	return bed;
}

/* ---- one run ---- */

/* The rate in fragments a second. */
static double rate_of(const struct plane_options *o, const struct plane_row *row)
{
	if (o->rate != PLANE_NO_RATE)
		return o->rate ? (double)o->rate / (double)o->children : LOAD_SILENT;
	if (row->share < 0)
		return LOAD_UNLIMITED;
	return row->offered > 0 ? row->offered : LOAD_SILENT;
}

static trib_status row_measure(const struct plane_options *o, struct bed *bed,
                               struct plane_row *row)
{
	double rate = rate_of(o, row);
	bool quiet = !o->hurry && !o->urgent;
	struct bed_figures figures;
	trib_status status = TRIB_OK;
	bool disturbed = false;

	for (unsigned try = 0; try < (quiet ? TRIES : 1) && !stopped; try++) {
		if (quiet)
			cpu_wait_quiet(QUIET_WAIT_S);
		status = bed_measure(bed, rate, o->seconds, &figures);
		if (status != TRIB_OK)
			return status;
		disturbed =
			!o->urgent && (figures.others > OTHERS_MAX || figures.forks > FORKS_MAX);
		if (!disturbed)
			break;
	}
	row->disturbed += disturbed;
	row->runs[row->n++] = figures;
	if (figures.wrong)
		return status_fail(TRIB_ERR_PEER, "%llu sums were wrong",
		                   (unsigned long long)figures.wrong);
	return status;
}

/* The plane behind a variant's name: "xdp-nic" is xdp. */
static const char *plane_of(const struct plane_row *row)
{
	static const char *const planes[] = { "xdp", "udp", "tcp" };
	unsigned i = 0;

	while (i < 2 && strncmp(row->plane, planes[i], 3) != 0)
		i++;
	return planes[i];
}

/* Rows with the same plane and number of cores share an aggregator. */
static void rows_measure(const struct plane_options *o, struct bed *bed, struct plane_row *rows,
                         unsigned n, unsigned *done, unsigned all)
{
	trib_status status = rows->failed[0] ? TRIB_ERR_CLOSED : bed_start(bed, plane_of(rows));
	const char *why = rows->failed[0] ? rows->failed : trib_last_error();
	char kept[200];

	snprintf(kept, sizeof(kept), "%s", status == TRIB_OK ? "" : why);
	for (unsigned i = 0; i < n; i++) {
		struct plane_row *row = &rows[i];

		tell_row((*done)++, all, row);
		if (status == TRIB_OK && !stopped) {
			/* Shares refer to the most that it takes. */
			if (row->share > 0)
				row->offered = row->share * rows[0].offered;
			status = row_measure(o, bed, row);
			if (status != TRIB_OK)
				snprintf(kept, sizeof(kept), "%s", trib_last_error());
			if (row->share < 0 && n > 1 && row->n)
				row->offered = (double)row->runs[row->n - 1].counts.results /
				               row->runs[row->n - 1].seconds / row->cores;
		}
		if (status != TRIB_OK)
			snprintf(row->failed, sizeof(row->failed), "%s", kept);
	}
	bed_stop(bed);
}

/* ---- condensing ---- */

static double cpu_of(const struct plane_options *o, const struct bed_figures *run)
{
	if (o->urgent) /* other processes may be on the core */
		return run->in_threads ? run->threads_s : 0;
	return run->busy_s >= 0 ? run->busy_s : run->in_threads ? run->threads_s : 0;
}

static double packets_of(const struct plane_options *o, const struct bed_figures *run)
{
	return (double)run->counts.results * (double)o->children;
}

enum value {
	GBPS,
	PACKETS,
	COST,
	NS,
	BUSY,
	THREADS,
	PROGRAM,
	LATENCY_50,
	LATENCY_99,
	LOST,
	RESENT
};

static double value_of(const struct plane_options *o, const struct plane_row *row,
                       const struct bed_figures *run, enum value what)
{
	double cpu = cpu_of(o, run), packets = packets_of(o, run);

	switch (what) {
	case GBPS:
		return run->payload_bytes * 8e-9 / run->seconds;
	case PACKETS:
		return packets / run->seconds;
	case COST:
		return cpu > 0 ? run->payload_bytes * 8e-9 / cpu : 0;
	case NS:
		return packets > 0 ? cpu * 1e9 / packets : 0;
	case BUSY:
		return cpu / run->seconds / row->cores;
	case THREADS:
		return run->in_threads && packets > 0 ? run->threads_s * 1e9 / packets : 0;
	case PROGRAM:
		return run->program_ns;
	case LATENCY_50:
		return run->latency_50;
	case LATENCY_99:
		return run->latency_99;
	case LOST:
		return run->lost;
	case RESENT:
		return run->retransmitted;
	}
	return 0;
}

static void row_condense(const struct plane_options *o, struct plane_row *row)
{
	struct plane_value *const values[] = {
		[GBPS] = &row->gbps,
		[PACKETS] = &row->packets,
		[COST] = &row->cost,
		[NS] = &row->ns,
		[BUSY] = &row->busy,
		[THREADS] = &row->threads,
		[PROGRAM] = &row->program,
		[LATENCY_50] = &row->latency_50,
		[LATENCY_99] = &row->latency_99,
		[LOST] = &row->lost,
		[RESENT] = &row->retransmitted,
	};
	double of[PLANE_REPEATS_MAX];

	for (unsigned v = 0; row->n && v <= RESENT; v++) {
		for (unsigned r = 0; r < row->n; r++)
			of[r] = value_of(o, row, &row->runs[r], v);
		values[v]->median = stats_median(of, row->n); /* which sorts them */
		values[v]->low = of[0];
		values[v]->high = of[row->n - 1];
	}
}

/* ---- all of it ---- */

static void rows_lay_out(struct plane_report *report)
{
	const struct plane_options *o = report->options;

	for (unsigned c = 0; c < o->n_cores; c++)
		for (unsigned p = 0; p < o->n_planes; p++) {
			unsigned steps = o->mode == PLANE_LOAD ? LOAD_STEPS + 2 : 1;

			for (unsigned s = 0; s < steps && report->n < PLANE_ROWS_MAX; s++)
				report->rows[report->n++] = (struct plane_row){
					.plane = o->planes[p],
					.cores = o->cores[c],
					.share = s ? (double)(s - 1) / LOAD_STEPS : -1,
					.shared = 2 * o->cores[c] > cpu_count(),
				};
		}
}

static trib_status cores_measure(struct plane_report *report, unsigned first, unsigned *done,
                                 unsigned all)
{
	const struct plane_options *o = report->options;
	unsigned steps = o->mode == PLANE_LOAD ? LOAD_STEPS + 2 : 1;

	for (unsigned p = 0; p < o->n_planes && !stopped; p++) {
		struct plane_row *rows = &report->rows[first + p * steps];
		struct bed_options options = bed_options_of(o, rows->plane, rows->cores);
		struct bed *bed;
		trib_status status = bed_open(&options, &bed);

		if (status != TRIB_OK)
			return status;
		if (o->steady)
			cpu_spin(2 * rows->cores);
		rows_measure(o, bed, rows, steps, done, all);
		cpu_spin_end();
		bed_close(bed);
	}
	return TRIB_OK;
}

trib_status bench_plane_measure(struct plane_report *report)
{
	const struct plane_options *o = report->options;
	struct sigaction take = { .sa_handler = stop_take }, was[2];
	struct sched_param real_time = { .sched_priority = 1 };
	trib_status status = TRIB_OK;
	unsigned done = 0, step;

	/* Threads that are created from now on inherit it. */
	if (o->urgent && sched_setscheduler(0, SCHED_FIFO, &real_time))
		return status_fail_errno("--urgent: cannot get real-time priority");
	sigaction(SIGINT, &take, &was[0]);
	sigaction(SIGTERM, &take, &was[1]);
	rows_lay_out(report);
	step = report->n / o->n_cores;
	for (unsigned r = 0; r < o->repeats; r++)
		for (unsigned first = 0; first < report->n && status == TRIB_OK && !stopped;
		     first += step)
			status = cores_measure(report, first, &done,
			                       report->n * (unsigned)o->repeats);
	progress_clear();
	for (unsigned i = 0; i < report->n; i++)
		row_condense(o, &report->rows[i]);
	sigaction(SIGINT, &was[0], NULL);
	sigaction(SIGTERM, &was[1], NULL);
	if (status == TRIB_OK && stopped)
		return status_fail(TRIB_ERR_CLOSED, "stopped before everything was measured");
	return status;
}

const struct plane_row *bench_plane_find(const struct plane_report *report, const char *plane,
                                         unsigned cores, double share)
{
	for (unsigned i = 0; i < report->n; i++) {
		const struct plane_row *row = &report->rows[i];

		if (strcmp(row->plane, plane) == 0 && row->cores == cores && row->n &&
		    fabs(row->share - share) < 1e-9)
			return row;
	}
	return NULL;
}
