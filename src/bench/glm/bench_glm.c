/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/glm/bench_glm.h"
#include "bench/bed/bench_driver.h"
#include "bench/bed/size_list.h"
#include "bench/glm/glm_bench.h"

#define RUNS_MAX 1000
#define FEATURES_MAX (1u << 26)
#define BATCH_MAX (1u << 20)
#define ROWS_MAX 100000000u

static struct glm_bench_options asked = {
	.bench = { .type = "i64",
	           .iterations = 5,
	           .warmup = 1,
	           .repeats = 3,
	           .many = 1,
	           .timeout_s = 120,
	           .no_cpu_time = true },
	.hosts = { 4 },
	.n_hosts = 1,
	.features = { 47236, 332710, 1000000 },
	.n_features = 3,
	.batches = { 16, 64, 256 },
	.n_batches = 3,
	.n_bits = 1,
	.rows = 4096,
	.nonzeros = 64,
	.threads = 1,
	.systems = "model,vanilla,data,mpi",
	.planes = "xdp,udp",
};
static bool dense;

/* ---- arguments ---- */

static trib_status bits_take(void *target, const char *text)
{
	struct glm_bench_options *o = target;

	return glm_bits_parse(text, o->bits, GLM_LIST_MAX, &o->n_bits);
}

static const char *options_settle(void)
{
	const struct glm_bench_options *o = &asked;
	const struct bench_options *bench = &o->bench;

	if (dense)
		asked.nonzeros = 0;
	asked.bench.spread = o->threads == 1;
	if (!o->n_hosts || !o->n_features || !o->n_batches)
		return "--hosts, --features and --batch need at least one number";
	if (bench->iterations < 1 || bench->repeats < 1 || o->threads < 1)
		return "--epochs, --repeats and --threads are at least 1";
	if (bench->iterations + bench->warmup > GLM_EPOCHS_MAX)
		return "--epochs and --warmup are 200 together at most";
	if (bench->repeats > RUNS_MAX)
		return "--repeats is 1000 at most";
	if (o->threads > 256)
		return "--threads is 256 at most";
	if (o->rows < 1 || o->rows > ROWS_MAX)
		return "--rows is from 1 to 100000000";
	for (unsigned f = 0; f < o->n_features; f++)
		for (unsigned h = 0; h < o->n_hosts; h++)
			if (o->features[f] < o->hosts[h])
				return "--features: each worker needs a column";
	for (unsigned b = 0; b < o->n_batches; b++)
		if (o->batches[b] > o->rows)
			return "--batch is larger than --rows";
	return NULL;
}

/* ---- the measurement ---- */

static trib_status case_add(struct glm_report *report, unsigned host, unsigned system,
                            const struct glm_shape *shape)
{
	const struct glm_bench_options *o = report->options;
	struct glm_case *row;

	if (report->n == GLM_CASES_MAX)
		return status_fail(TRIB_ERR_ARGUMENT, "more than %u trainings", GLM_CASES_MAX);
	row = &report->cases[report->n];
	*row = (struct glm_case){ .of = &report->systems[system],
		                  .place = &report->places[host],
		                  .shape = *shape,
		                  .threads = o->threads,
		                  .curve = &report->curves[report->n] };
	row->shape.rows = glm_rows_fit(&row->shape);
	glm_case_place(row, &report->trees[host]);
	report->results[report->n++] = bench_result_of(&o->bench, &row->system, row->place,
	                                               shape->features * sizeof(int64_t));
	return TRIB_OK;
}

static trib_status cases_lay_out(struct glm_report *report)
{
	const struct glm_bench_options *o = report->options;
	struct glm_shape shape = { .rows = o->rows, .nonzeros = o->nonzeros };
	trib_status status = TRIB_OK;

	for (unsigned h = 0; h < o->n_hosts; h++)
		for (unsigned f = 0; f < o->n_features; f++)
			for (unsigned k = 0; k < o->n_bits; k++)
				for (unsigned b = 0; b < o->n_batches; b++)
					for (unsigned s = 0; s < report->n_systems; s++) {
						shape.features = o->features[f];
						shape.bits = o->bits[k];
						shape.batch = o->batches[b];
						if (status == TRIB_OK)
							status = case_add(report, h, s, &shape);
					}
	return status;
}

static trib_status measurement_prepare(void *context)
{
	struct glm_report *report = context;
	trib_status status;

	report->options = &asked;
	status = glm_systems_choose(report);
	if (status == TRIB_OK)
		status = bench_places_open(&report->options->bench, report->options->hosts,
		                           report->options->n_hosts, &report->bed, report->places,
		                           report->trees);
	return status == TRIB_OK ? cases_lay_out(report) : status;
}

/* If losses differ, the benchmark has failed, as it has if Tributary fails. */
static trib_status report_judge(const void *context)
{
	const struct glm_report *report = context;
	trib_status status = bench_ours_check(report->results, report->n);
	unsigned odd;

	if (status == TRIB_OK && !glm_losses_agree(report, &odd))
		return status_fail(TRIB_ERR_PEER,
		                   "%s on %s has other losses than another system on the same data",
		                   report->cases[odd].of->name, report->cases[odd].system.plane);
	return status;
}

/* ---- options ---- */

static struct count_list hosts = { CLUSTER_HOSTS_MAX / 2, asked.hosts, GLM_LIST_MAX,
	                           &asked.n_hosts },
			 features = { FEATURES_MAX, asked.features, GLM_LIST_MAX,
	                              &asked.n_features },
			 batches = { BATCH_MAX, asked.batches, GLM_LIST_MAX, &asked.n_batches };
static struct option_hook hosts_hook = { count_list_take, &hosts },
			  features_hook = { count_list_take, &features },
			  batches_hook = { count_list_take, &batches },
			  bits_hook = { bits_take, &asked };

static const struct option_row rows[] = {
	{ "hosts", 'n', OPTION_HOOK, &hosts_hook, "LIST", "numbers of workers (default 4)",
	  "1,2,4,8" },
	{ "features", 0, OPTION_HOOK, &features_hook, "LIST",
	  "numbers of features (default 47236,332710,1000000)", "5000" },
	{ "batch", 'b', OPTION_HOOK, &batches_hook, "LIST",
	  "rows of a mini-batch (default 16,64,256)", "16" },
	{ "rows", 0, OPTION_COUNT, &asked.rows, "N",
	  "rows of the data (default 4096); fewer if dense data would have more than 512 MB",
	  "20000" },
	{ "nonzeros", 0, OPTION_COUNT, &asked.nonzeros, "N",
	  "values of a sparse row that are not 0 (default 64)", "15" },
	{ "dense", 0, OPTION_FLAG, &dense, NULL, "every row has all values", NULL },
	{ "bits", 0, OPTION_HOOK, &bits_hook, "LIST",
	  "precisions of features: 1 to 8, or float (default float)", "float,4" },
	{ "systems", 0, OPTION_TEXT, &asked.systems, "LIST",
	  "model (columns are split, pipelined), vanilla (without pipeline), data (rows are "
	  "split), mpi (CPUSync: vanilla over MPI_Allreduce) (default all)",
	  "model,mpi" },
	{ "plane", 0, OPTION_TEXT, &asked.planes, "LIST",
	  "planes of model (default xdp,udp); vanilla and data run on the first", "udp" },
	{ "threads", 0, OPTION_COUNT, &asked.threads, "N", "threads of a worker (default 1)", "2" },
	{ "link", 0, OPTION_RATE, &asked.bench.net.rate_bps, "RATE",
	  "rate of every link (default 0: not shaped)", "1gbit" },
	{ "epochs", 'e', OPTION_COUNT, &asked.bench.iterations, "N",
	  "timed epochs of a training (default 5)", "10" },
	{ "warmup", 0, OPTION_COUNT, &asked.bench.warmup, "N",
	  "epochs before them, not timed (default 1)", NULL },
	{ "repeats", 0, OPTION_COUNT, &asked.bench.repeats, "N",
	  "trainings of every system, in turns (default 3)", NULL },
	{ "timeout", 0, OPTION_SECONDS, &asked.bench.timeout_s, "S",
	  "longest time of a training (default 120)", NULL },
	BENCH_OUTPUT_ROWS(&asked.bench, "training",
	                  "draw the time of an epoch over hosts, batch or features; with one of "
	                  "each, the loss against time"),
	{ 0 },
};

static const struct options options = {
	"trib bench glm [OPTION]...",
	"Trains linear models over a virtual cluster that it makes and removes (as root), or over\n"
	"loopback, and shows the time of an epoch. Systems train the same data in turns: model\n"
	"parallelism over an aggregator, data parallelism, and CPUSync, which is the same program\n"
	"over Open MPI. All must have the same loss after each epoch. If there are at least as "
	"many\n"
	"workers as cores, each worker of every system is bound to a core, the cores in turn.",
	"trib bench glm --features 47236 --batch 16,64,256 --plot glm.svg\n"
	"  trib bench glm --features 1000000 --dense --bits 4 --hosts 1,2,4,8 --systems model",
	rows,
};

static struct glm_report report;

static const struct bench_driver driver = { .options = &options,
	                                    .asked = &asked.bench,
	                                    .report = &report,
	                                    .results = report.results,
	                                    .n = &report.n,
	                                    .beds = &report.bed,
	                                    .n_beds = 1,
	                                    .settle = options_settle,
	                                    .prepare = measurement_prepare,
	                                    .table_print = glm_table_print,
	                                    .json = &glm_json,
	                                    .plot_write = glm_plot_write,
	                                    .judge = report_judge };

int bench_glm_run(int argc, char **argv)
{
	return bench_drive(&driver, argc, argv);
}
