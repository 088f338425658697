/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/path/bench_path.h"

#include "base/clock.h"
#include "base/settings.h"
#include "bench/bed/size_list.h"
#include "options/json_writer.h"
#include "bench/report/progress.h"
#include "bench/report/samples.h"
#include "options/net_options.h"
#include "options/options.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define TOKEN_BYTES 2u
#define START_S 10.0 /* until the first bytes have come */

struct path_options {
	struct cluster_options net;
	const char *name, *paths, *transports, *sizes, *chunks, *load, *unlike, *json, *plot;
	const char *events;
	double warm_s, seconds;
	uint64_t repeats, mice;
	bool token, found, check, timeline;
};

static volatile sig_atomic_t stopped;

static void stop(int signal)
{
	(void)signal;
	stopped = 1;
}

/* ---- one run ---- */

void path_job_fail(struct path_job *job)
{
	if (!atomic_exchange(&job->failed, true))
		snprintf(job->why, sizeof(job->why), "%s", trib_last_error());
	job->stop = true;
}

void path_job_count(struct path_job *job, uint64_t bytes)
{
	job->at = clock_now();
	job->bytes += bytes;
}

void path_job_cpu(struct path_job *job, unsigned side)
{
	struct timespec spent;

	if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent) == 0)
		job->cpu_ns[side] = (uint64_t)spent.tv_sec * NSEC_PER_SEC + (uint64_t)spent.tv_nsec;
}

/* Sleeps, but not longer than the job lasts. */
static void wait_for(const struct path_job *job, double seconds)
{
	uint64_t end = clock_now() + (uint64_t)(seconds * 1e9);

	while (!job->stop && !stopped && clock_now() < end)
		usleep(2000);
}

/* What a job has done up to a point in time. */
struct mark {
	uint64_t bytes, at, cpu, by_path[PATHS_MAX];
};

static struct mark mark_now(const struct path_job *job)
{
	struct mark mark = { .bytes = job->bytes,
		             .at = job->at,
		             .cpu = job->cpu_ns[0] + job->cpu_ns[1] };

	for (unsigned i = 0; i < PATHS_MAX; i++)
		mark.by_path[i] = job->by_path[i];
	return mark;
}

static void row_fill(struct path_row *row, struct path_job *job, const struct mark *from,
                     const struct mark *to)
{
	double seconds = (double)(to->at - from->at) * 1e-9;
	double sum = path_bed_sum(job->bed, row->what.paths);

	if (seconds <= 0) {
		snprintf(row->note, sizeof(row->note), "nothing has come");
		return;
	}
	row->gbps = (double)(to->bytes - from->bytes) * 8e-9 / seconds;
	row->share_of_sum = sum > 0 ? row->gbps * 1e9 / sum : 0;
	row->cpu = (double)(to->cpu - from->cpu) * 1e-9 / row->what.seconds;
	for (unsigned i = 0; i < PATHS_MAX; i++)
		row->paths[i] =
			(double)(to->by_path[i] - from->by_path[i]) * 8e-9 / row->what.seconds;
	row->repeated = job->packets ? (double)job->repeated / (double)job->packets : 0;
	row->messages = job->messages;
	if (job->n_latencies) {
		stats_sort(job->latencies, job->n_latencies);
		row->latency_s = job->latencies[job->n_latencies / 2];
	}
}

/* The time of the measurement. Paths change meanwhile, and the row gets its curve. */
static trib_status watch(struct path_job *job, struct path_bed *bed,
                         const struct path_events *events, struct path_row *row)
{
	uint64_t start = clock_now();
	trib_status status = TRIB_OK;
	double at = 0;

	if (!row->what.timeline && !events->n) {
		wait_for(job, row->what.seconds);
		return TRIB_OK;
	}
	path_curve_add(&row->curve, at, job->bytes);
	while (status == TRIB_OK && at < row->what.seconds && !job->stop && !stopped) {
		double before = at;

		wait_for(job, PATH_CURVE_S * (row->curve.n) - at);
		at = (double)(clock_now() - start) * 1e-9;
		path_curve_add(&row->curve, at, job->bytes);
		status = path_events_reach(events, &bed->cluster, before, at);
	}
	return status;
}

static trib_status start_receiver(struct path_job *job, bool ours, pthread_t *thread)
{
	if (pthread_create(thread, NULL, ours ? path_channel_receive : path_stream_receive, job))
		return status_fail(TRIB_ERR_SYSTEM, "cannot start a thread");
	return TRIB_OK;
}

static trib_status run_once(struct path_bed *bed, const struct path_events *events,
                            struct path_row *row)
{
	static struct path_job job;
	static struct path_fct fct;
	const bool ours = row->what.transport == TRANSPORT_OURS;
	struct path_load *load;
	struct path_mice *mice = NULL;
	pthread_t threads[2];
	struct mark from, to;
	trib_status status = path_load_start(bed, &load);

	memset(&job, 0, sizeof(job));
	job.bed = bed;
	job.what = &row->what;
	if (status == TRIB_OK)
		status = path_events_reach(events, &bed->cluster, -1e9, 0);
	if (status == TRIB_OK)
		status = path_mice_start(bed, row->what.mice, &fct, &mice);
	if (status == TRIB_OK)
		status = start_receiver(&job, ours, &threads[0]);
	if (status != TRIB_OK) {
		path_mice_stop(mice);
		path_load_stop(load);
		return status;
	}
	while (!job.ready)
		usleep(1000);
	if (pthread_create(&threads[1], NULL, ours ? path_channel_send : path_stream_send, &job))
		abort();
	for (uint64_t end = clock_now() + (uint64_t)(START_S * 1e9);
	     !job.bytes && !job.stop && !stopped && clock_now() < end;)
		usleep(1000);
	wait_for(&job, row->what.warm_s);
	from = mark_now(&job);
	status = watch(&job, bed, events, row);
	to = mark_now(&job);
	job.stop = true;
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	path_mice_stop(mice);
	path_load_stop(load);
	if (job.failed)
		snprintf(row->note, sizeof(row->note), "%s", job.why);
	else
		row_fill(row, &job, &from, &to);
	row->mice_s = path_fct_at(&fct, 0.5);
	row->mice_p99_s = path_fct_at(&fct, 0.99);
	if (status == TRIB_OK)
		status = path_events_undo(events, &bed->cluster);
	return stopped ? status_fail(TRIB_ERR_CLOSED, "stopped by a signal") : status;
}

/* ---- the list of runs ---- */

struct lists {
	uint64_t paths[PATH_LIST_MAX], sizes[PATH_LIST_MAX], chunks[PATH_LIST_MAX];
	unsigned n_paths, n_sizes, n_chunks;
	bool transports[TRANSPORTS];
};

static trib_status transports_parse(const char *text, bool wanted[TRANSPORTS])
{
	for (const char *at = text; *at; at += *at == ',') {
		size_t length = strcspn(at, ",");
		unsigned t = 0;

		while (t < TRANSPORTS &&
		       (strlen(path_transport_name((enum path_transport)t)) != length ||
		        strncmp(path_transport_name((enum path_transport)t), at, length) != 0))
			t++;
		if (t == TRANSPORTS)
			return status_fail(TRIB_ERR_ARGUMENT,
			                   "--transport \"%s\": expected ours, ecmp, mptcp, tcp",
			                   text);
		wanted[t] = true;
		at += length;
	}
	return TRIB_OK;
}

static trib_status lists_parse(const struct path_options *o, struct lists *lists)
{
	trib_status status = transports_parse(o->transports, lists->transports);

	if (status == TRIB_OK)
		status = count_list_parse(o->paths, PATHS_MAX, lists->paths, PATH_LIST_MAX,
		                          &lists->n_paths);
	if (status == TRIB_OK)
		status = size_list_parse(o->sizes, lists->sizes, PATH_LIST_MAX, &lists->n_sizes);
	lists->n_chunks = 1;
	if (status == TRIB_OK && o->chunks)
		status = size_list_parse(o->chunks, lists->chunks, PATH_LIST_MAX, &lists->n_chunks);
	return status;
}

/* The cases of one transport and number of paths. */
static void add_rows(const struct path_options *o, const struct lists *lists,
                     enum path_transport transport, unsigned paths, struct path_row *rows,
                     unsigned *n)
{
	/* A stream knows no messages and no chunks. */
	const bool ours = transport == TRANSPORT_OURS;
	const unsigned sizes = ours && !o->token ? lists->n_sizes : 1;

	for (unsigned s = 0; s < sizes; s++)
		for (unsigned c = 0; c < (ours ? lists->n_chunks : 1); c++) {
			if (*n == PATH_ROWS_MAX)
				return;
			rows[(*n)++].what = (struct path_case){
				.transport = transport,
				.paths = paths,
				.bytes = o->token ? TOKEN_BYTES : (uint32_t)lists->sizes[s],
				.chunk = ours ? (uint32_t)lists->chunks[c] : 0,
				.token = o->token,
				.found = o->found,
				.check = o->check,
				.timeline = o->timeline,
				.mice = (uint32_t)o->mice,
				.warm_s = o->warm_s,
				.seconds = o->seconds,
			};
		}
}

static unsigned list_rows(const struct path_options *o, const struct lists *lists,
                          const struct path_bed *bed, struct path_row *rows)
{
	const char *missing = path_mptcp_missing();
	unsigned n = 0;

	if (lists->transports[TRANSPORT_MPTCP] && missing)
		printf("mptcp is left out: %s\n", missing);
	for (uint64_t repeat = 0; repeat < o->repeats; repeat++)
		for (unsigned p = 0; p < lists->n_paths; p++)
			for (unsigned t = 0; t < TRANSPORTS; t++) {
				bool skip = (t == TRANSPORT_MPTCP && missing) ||
				            (t == TRANSPORT_TCP && lists->paths[p] > 1) ||
				            (t == TRANSPORT_MPTCP && o->token);

				if (lists->transports[t] && !skip && lists->paths[p] <= bed->paths)
					add_rows(o, lists, (enum path_transport)t,
					         (unsigned)lists->paths[p], rows, &n);
			}
	return n;
}

/* "0,25,50,75": percent of each path. */
static trib_status load_parse(const char *text, struct path_bed *bed)
{
	unsigned i = 0;

	for (char *end; text && *text && i < PATHS_MAX; text = *end == ',' ? end + 1 : end) {
		double percent = strtod(text, &end);

		if (end == text || percent < 0 || percent >= 100 || (*end && *end != ','))
			return status_fail(TRIB_ERR_ARGUMENT,
			                   "--load: expected a list of percents, like 0,25,50,75");
		bed->load[i++] = percent / 100;
	}
	return TRIB_OK;
}

/* "200mbit,100mbit": the rates of the first paths. */
static trib_status unlike_take(const char *text, struct path_bed *bed)
{
	trib_status status = TRIB_OK;

	for (unsigned i = 0; text && *text && status == TRIB_OK && i < bed->paths; i++) {
		char name[CLUSTER_LINK_NAME_BYTES], rate[32];
		size_t length = strcspn(text, ",");
		unsigned link;
		uint64_t bps;

		snprintf(rate, sizeof(rate), "%.*s", (int)length, text);
		status = parse_rate(rate, &bps);
		for (unsigned leaf = 1; leaf <= 2 && status == TRIB_OK; leaf++) {
			snprintf(name, sizeof(name), "leaf%u-spine%u", leaf, i + 1);
			status = cluster_link_find(&bed->cluster, name, &link);
			if (status == TRIB_OK)
				status = cluster_link_slow(&bed->cluster, link, bps);
		}
		bed->bps[i] = (double)bps;
		text += length;
		text += *text == ',';
	}
	return status;
}

static trib_status measure(const struct path_options *o, const struct lists *lists)
{
	static struct path_row rows[PATH_ROWS_MAX];
	static struct path_bed bed;
	struct path_events events;
	trib_status status = path_events_parse(o->events, &events);
	unsigned n = 0, done = 0, failed = 0;

	if (status == TRIB_OK)
		status = path_bed_open(&bed, &o->net, o->name);
	if (status == TRIB_OK)
		status = load_parse(o->load, &bed);
	if (status == TRIB_OK)
		status = unlike_take(o->unlike, &bed);
	if (status == TRIB_OK)
		n = list_rows(o, lists, &bed, rows);
	for (; done < n && status == TRIB_OK; done++) {
		progress_tell(done, n, "run %u", done + 1);
		status = run_once(&bed, &events, &rows[done]);
		failed += rows[done].note[0] != '\0';
	}
	progress_clear();
	path_bed_close(&bed);
	if (done && (!o->json || strcmp(o->json, "-") != 0))
		path_table_print(rows, done);
	if (done && o->json && status == TRIB_OK)
		status = path_json_write(&bed, rows, done, o->json);
	if (done && o->plot && status == TRIB_OK)
		status = path_plot_write(rows, done, o->plot);
	if (status == TRIB_OK && failed)
		status = status_fail(TRIB_ERR_PEER, "%u of %u runs have failed", failed, done);
	return status;
}

static struct path_options asked = {
	.net = { .workers = 4,
	         .no_offload = true,
	         .loses_all = true, /* other transports are over TCP */
	         .fabric = { .leafs = 2, .spines = 4, .is_static = true, .core_bps = 200000000 } },
	.paths = "1,2,3,4",
	.transports = "ours,ecmp,mptcp",
	.sizes = "1M",
	.warm_s = 1,
	.seconds = 2,
	.repeats = 1,
};

static struct net_fault loss = { &asked.net, FAULT_LOSS };

static struct option_hook take_loss = { net_fault_take, &loss };

static struct option_hook take_link = { net_link_take, &asked.net };

static const struct option_row rows[] = {
	{ "net", 0, OPTION_TEXT, &asked.name, "NET",
	  "an existing fabric with static routes (default: make one)", "fabric" },
	{ "core", 0, OPTION_RATE, &asked.net.fabric.core_bps, "RATE",
	  "rate of each path (default 200mbit)", "1gbit" },
	{ "link", 0, OPTION_HOOK, &take_link, "RATE",
	  "rate of the hosts' links (default: not shaped)", "1gbit" },
	{ "unlike", 0, OPTION_TEXT, &asked.unlike, "LIST", "rates of the first paths",
	  "200mbit,100mbit" },
	{ "loss", 0, OPTION_HOOK, &take_loss, "[LINK=]P",
	  "probability that a packet is lost, on every link or on one", "leaf1-spine2=0.01" },
	{ "load", 0, OPTION_TEXT, &asked.load, "LIST",
	  "background traffic of each path, in percent", "0,25,50,75" },
	{ "paths", 0, OPTION_TEXT, &asked.paths, "LIST", "numbers of paths (default 1,2,3,4)",
	  "4" },
	{ "transport", 0, OPTION_TEXT, &asked.transports, "LIST",
	  "ours, ecmp, mptcp, tcp (default: ours,ecmp,mptcp)", "ours" },
	{ "size", 's', OPTION_TEXT, &asked.sizes, "LIST", "bytes of a message (default 1M)",
	  "64K,1M,16M" },
	{ "chunk", 0, OPTION_TEXT, &asked.chunks, "LIST", "bytes of a chunk (default: TRIB_CHUNK)",
	  "4K,50K,200K" },
	{ "token", 0, OPTION_FLAG, &asked.token, NULL,
	  "a message of 2 bytes goes there and back, and is timed", NULL },
	{ "timeline", 0, OPTION_FLAG, &asked.timeline, NULL,
	  "the rate every 50 ms, as JSON and as the plot", NULL },
	{ "events", 0, OPTION_TEXT, &asked.events, "LIST",
	  "what happens to paths during a run, at these seconds; below 0: before it",
	  "-1:cut=4,2:restore=4,4:cut=1" },
	{ "mice", 0, OPTION_BYTES, &asked.mice, "BYTES",
	  "short TCP flows of this length between two other hosts, which are timed", "16K" },
	{ "find", 0, OPTION_FLAG, &asked.found, NULL, "our paths are found by probes, not given",
	  NULL },
	{ "check", 0, OPTION_FLAG, &asked.check, NULL, "compare every byte that has come", NULL },
	{ "warm", 0, OPTION_SECONDS, &asked.warm_s, "S",
	  "seconds before each measurement (default 1)", "0.5" },
	{ "seconds", 0, OPTION_SECONDS, &asked.seconds, "S",
	  "seconds of each measurement (default 2)", "10" },
	{ "repeats", 0, OPTION_COUNT, &asked.repeats, "N",
	  "runs of each case, in turns (default 1)", "5" },
	{ "json", 0, OPTION_JSON_FILE, &asked.json, "FILE",
	  "write the results to FILE as JSON (-: standard output)", NULL },
	{ "plot", 0, OPTION_TEXT, &asked.plot, "FILE", "draw the bandwidth to FILE as SVG", NULL },
	{ 0 },
};

static const struct options options = {
	"trib bench path [OPTION]...",
	"Sends messages between two hosts of a leaf-spine fabric (root) over several paths: by "
	"our\n"
	"channel, by TCP flows that the fabric spreads (ecmp), and by multipath TCP. \"of sum\" is "
	"the\n"
	"share of what the free bandwidth of the paths carries.",
	"trib bench path --core 200mbit --plot path.svg\n"
	"  trib bench path --paths 4 --timeline --events 1:cut=2,2:cut=3 --size 64K --plot "
	"cut.svg\n"
	"  trib bench path --paths 4 --load 0,25,50,75 --transport ours",
	rows,
};

int bench_path_run(int argc, char **argv)
{
	static struct lists lists;
	trib_status status;
	int code;

	if (!options_parse_all(&options, argc, argv, &code))
		return code;
	status = lists_parse(&asked, &lists);
	if (status == TRIB_OK)
		status = output_try(asked.json);
	if (status == TRIB_OK)
		status = output_try(asked.plot);
	if (status != TRIB_OK)
		return options_fail(&options, "%s", trib_last_error());
	signal(SIGINT, stop);
	signal(SIGTERM, stop);
	status = measure(&asked, &lists);
	if (status != TRIB_OK)
		fprintf(stderr, "trib bench path: %s\n", trib_last_error());
	return status == TRIB_OK ? 0 : 1;
}
