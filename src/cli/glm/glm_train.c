/* SPDX-License-Identifier: Apache-2.0 */
/* trib glm train: options; has workers started, or is one. */
#include "base/settings.h"
#include "options/json_writer.h"
#include "cli/glm/glm_command.h"
#include "glm/model/model_bytes.h"
#include "launch/run_job.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What the command line says; numbers are as the parser stores them. */
static struct {
	struct run_options run;
	trib_glm_options train;
	struct glm_view view;
	const char *model, *bits, *classes, *bad_rows, *missing, *pipeline, *bias, *base;
	uint64_t epochs, batch, micro, threads, seed;
	double rate, decay, l1, l2;
	bool resume;
} given = {
	.run.request = { .command = "trib glm train", .policy = "fail", .per_host = 1, .min = 1 },
	.train = TRIB_GLM_OPTIONS_INIT,
	.epochs = 10,
	.batch = 64,
	.threads = 1,
	.seed = 1,
	.decay = -1,
	.l2 = -1,
};

static struct option_hook rate_hook = { glm_number_take, &given.rate };
static struct option_hook decay_hook = { glm_number_take, &given.decay };
static struct option_hook l1_hook = { glm_number_take, &given.l1 };
static struct option_hook l2_hook = { glm_number_take, &given.l2 };

static const struct option_row rows[] = {
	{ "loss", 0, OPTION_TEXT, &given.train.loss, "LOSS",
	  "logistic (default), linear, hinge or squared-hinge", "hinge" },
	{ "model", 'm', OPTION_TEXT, &given.model, "FILE", "write the model to this file",
	  "m.bin" },
	{ "test", 't', OPTION_TEXT, &given.train.test, "FILE", "score this file after each epoch",
	  "a9a.t" },
	{ "workers", 'n', OPTION_COUNT, &given.run.workers, "N",
	  "start N workers, and an aggregator (default: train in this process)", "4" },
	{ "threads", 0, OPTION_COUNT, &given.threads, "N", "threads of each worker (default 1)",
	  "2" },
	{ "epochs", 'e', OPTION_COUNT, &given.epochs, "N", "passes over the data (default 10)",
	  "20" },
	{ "batch", 'b', OPTION_COUNT, &given.batch, "N", "rows of a mini-batch (default 64)",
	  "16" },
	{ "micro", 0, OPTION_COUNT, &given.micro, "N",
	  "rows of a micro-batch (default: half a mini-batch if that computes longer than a cut "
	  "costs, else all)",
	  "8" },
	{ "l1", 0, OPTION_HOOK, &l1_hook, "X", "strength of L1 (default 0)", "1e-5" },
	{ "l2", 0, OPTION_HOOK, &l2_hook, "X",
	  "strength of L2 (default: 1 / rows, as liblinear with -c 1)", "1e-4" },
	{ "rate", 0, OPTION_HOOK, &rate_hook, "X",
	  "learning rate (default: chosen from how many values rows have, and how many of them in "
	  "common; the first lines say it)",
	  "0.1" },
	{ "decay", 0, OPTION_HOOK, &decay_hook, "X",
	  "the rate is divided by 1 + X * epochs (default: 0; for sgd 0.1)", "0.5" },
	{ "update", 0, OPTION_TEXT, &given.train.update, "RULE", "adagrad (default) or sgd",
	  "sgd" },
	{ "bits", 0, OPTION_TEXT, &given.bits, "N",
	  "precision of features: 1 to 8, or float (default)", "4" },
	{ "classes", 0, OPTION_TEXT, &given.classes, "N",
	  "kinds of labels (default 2); above 2, or auto: one model against the rest for each",
	  "7" },
	{ "bias", 0, OPTION_TEXT, &given.bias, "on|off", "a constant term (default on)", "off" },
	{ "parallel", 0, OPTION_TEXT, &given.train.parallel, "WAY",
	  "split columns (model, the default) or rows (data)", "data" },
	{ "pipeline", 0, OPTION_TEXT, &given.pipeline, "on|off",
	  "off: exchange each mini-batch as a whole (default on)", "off" },
	{ "exchange", 0, OPTION_TEXT, &given.train.exchange, "NAME",
	  "how workers sum: local, tributary or mpi (default: tributary with several workers)",
	  "mpi" },
	{ "seed", 0, OPTION_COUNT, &given.seed, "N", "of the order of the rows (default 1)", "7" },
	{ "bad-rows", 0, OPTION_TEXT, &given.bad_rows, "fail|skip",
	  "end at the first bad row (default), or leave bad rows out", "skip" },
	{ "format", 0, OPTION_TEXT, &given.train.format, "FORMAT",
	  "libsvm or csv (default: by content)", "csv" },
	{ "label", 0, OPTION_TEXT, &given.train.label, "COLUMN",
	  "CSV: name or number of the label's column, -1 is the last (default: the first)", "-1" },
	{ "missing", 0, OPTION_TEXT, &given.missing, "fail|zero",
	  "CSV: a row with an empty field, NA, NaN, null or ? is bad (default), or the field is 0",
	  "zero" },
	{ "base", 0, OPTION_TEXT, &given.base, "0|1",
	  "libsvm: index of the first column (default: 0 if it occurs, else 1)", "0" },
	{ "checkpoint", 0, OPTION_TEXT, &given.train.checkpoint, "FILE",
	  "write the state to this file after each epoch", "m.ckp" },
	{ "resume", 0, OPTION_FLAG, &given.resume, NULL,
	  "go on from the checkpoint, if it is there", NULL },
	{ "json", 0, OPTION_JSON_FILE, &given.view.json, "FILE",
	  "write the table as JSON; - is stdout", "m.json" },
	{ "plot", 0, OPTION_TEXT, &given.view.plot, "FILE",
	  "draw the loss against epochs, and against time in FILE-time", "loss.svg" },
	{ "net", 0, OPTION_TEXT, &given.run.net, "NAME",
	  "as for trib run: hosts of a virtual cluster", "trib" },
	{ "aggregator", 0, OPTION_TEXT, &given.run.aggregator, "HOST:PORT",
	  "as for trib run: use this aggregator", "10.0.0.9:7700" },
	{ "plane", 0, OPTION_TEXT, &given.run.plane_name, "PLANE",
	  "as for trib run: auto, udp, tc, xdp, tcp or pisa", "udp" },
	{ "timeout", 0, OPTION_SECONDS, &given.run.timeout_s, "S", "as for trib run", "30" },
	{ 0 },
};

static const struct options options = {
	"trib glm train [OPTION]... FILE",
	"Trains a linear model on FILE: libsvm, svmlight or CSV, also .gz and .xz. With -n, each\n"
	"worker has a part of the columns, and workers sum activations through an aggregator. The\n"
	"model has the same bits for every -n, --threads, --micro, --pipeline and --parallel.\n"
	"If trib run, mpirun or srun starts the command, it joins their job.",
	"trib glm train a9a --test a9a.t --model m.bin\n"
	"  trib glm train a9a --loss logistic --l2 1e-4 --epochs 10 --batch 64 --model m.bin -n 4\n"
	"  trib glm train wide.svm --bits 4 --batch 16 -n 4 --net trib --plane xdp\n"
	"  trib glm train prices.csv --loss linear --label price --model prices.bin\n"
	"  trib run --hosts 4 --net trib -- trib glm train a9a\n"
	"  trib glm train synthetic:rows=2000,columns=100000,density=0.01 -n 2\n"
	"  mpirun -n 4 trib glm train a9a --exchange mpi",
	rows,
};

/* ---- words ---- */

/* Returns which of the two words it is; -1: neither. NULL is the first. */
static int word_of(const char *text, const char *first, const char *second)
{
	if (!text || !strcmp(text, first))
		return 0;
	return strcmp(text, second) ? -1 : 1;
}

static int count_of(const char *text, const char *zero, int most)
{
	char *end;
	long value;

	if (!text || !strcmp(text, zero))
		return 0;
	value = strtol(text, &end, 10);
	return end == text || *end || value < 1 || value > most ? -1 : (int)value;
}

static const char *words_take(void)
{
	trib_glm_options *train = &given.train;
	int pipeline = word_of(given.pipeline, "on", "off"),
	    bias = word_of(given.bias, "on", "off");
	int bad = word_of(given.bad_rows, "fail", "skip");
	int missing = word_of(given.missing, "fail", "zero");

	train->bits = count_of(given.bits, "float", 8);
	if (train->bits < 0)
		return "--bits is from 1 to 8, or float";
	train->classes = count_of(given.classes, "2", 1024);
	if (given.classes && !strcmp(given.classes, "auto"))
		train->classes = -1;
	else if (train->classes < 0 || train->classes == 1)
		return "--classes is from 2 to 1024, or auto";
	if (pipeline < 0)
		return "--pipeline is on or off";
	if (bias < 0)
		return "--bias is on or off";
	if (bad < 0)
		return "--bad-rows is fail or skip";
	if (missing < 0)
		return "--missing is fail or zero";
	if (given.base && strcmp(given.base, "0") != 0 && strcmp(given.base, "1") != 0)
		return "--base is 0 or 1";
	train->no_pipeline = pipeline;
	train->no_bias = bias;
	train->skip_bad_rows = bad;
	train->missing_zero = missing;
	train->base = !given.base ? -2 : *given.base == '0' ? -1 : 1;
	return NULL;
}

static const char *numbers_take(void)
{
	trib_glm_options *train = &given.train;

	if (!given.epochs || given.epochs > 1000000)
		return "--epochs is from 1 to 1000000";
	if (!given.batch || given.batch > 1u << 20)
		return "--batch is from 1 to 1048576";
	if (given.micro > 1u << 20)
		return "--micro is from 1 to 1048576";
	if (!given.threads || given.threads > 256)
		return "--threads is from 1 to 256";
	if (given.run.workers > RUN_WORKERS_MAX)
		return "-n is 64 at most: an aggregator takes no more";
	if (given.resume && !train->checkpoint)
		return "--resume goes with --checkpoint FILE";
	train->epochs = (int)given.epochs;
	train->batch = (int)given.batch;
	train->micro = (int)given.micro;
	train->threads = (int)given.threads;
	train->seed = given.seed;
	train->rate = given.rate;
	train->l1 = given.l1;
	train->resume = given.resume;
	/* In the library 0 is the default, and a negative number is none. */
	train->l2 = given.l2 > 0 ? given.l2 : given.l2 < 0 ? 0 : -1;
	train->decay = given.decay > 0 ? given.decay : given.decay < 0 ? 0 : -1;
	return NULL;
}

static int start_run(int argc, char **argv)
{
	given.run.plane = run_plane_find(given.run.plane_name ? given.run.plane_name
	                                                      : setting_text(SETTING_PLANE, NULL));
	if (!given.run.plane)
		return options_fail(&options, "--plane is auto, udp, tc, xdp, tcp or pisa");
	return glm_workers_start(&given.run, argc, argv);
}

/* ---- being a worker ---- */

/* A launcher has given this process a rank, or the way to one. */
static bool is_worker(void)
{
	const char *origin;

	if (setting_text(SETTING_RANK, NULL))
		return true;
	return (setting_text(SETTING_AGGREGATOR, &origin) && strcmp(origin, "default") != 0) ||
	       setting_text(SETTING_TREES, NULL);
}

static bool uses_comm(void)
{
	const char *exchange = given.train.exchange;

	return is_worker() && (!exchange || !strcmp(exchange, "tributary"));
}

static trib_status model_finish(const trib_glm_model *model)
{
	trib_status status = TRIB_OK;

	if (given.model && given.view.is_first)
		status = trib_glm_model_write(model, given.model);
	return status == TRIB_OK ? view_finish(&given.view, model, given.model) : status;
}

static int train_here(const char *path)
{
	trib_glm_model *model = NULL;
	trib_comm *comm = NULL;
	trib_status status = TRIB_OK;

	given.view.source = path;
	given.view.has_test = given.train.test != NULL;
	given.view.bar_lines = getenv(VIEW_BAR_SETTING) != NULL;
	given.view.bar = !given.view.bar_lines && isatty(STDERR_FILENO);
	given.train.on_setup = view_setup;
	given.train.on_epoch = view_epoch;
	given.train.on_progress = view_progress;
	given.train.context = &given.view;
	status = output_try(given.view.json);
	if (status == TRIB_OK)
		status = output_try(given.view.plot);
	if (status == TRIB_OK && uses_comm())
		status = trib_init(&comm, NULL);
	if (status == TRIB_OK)
		status = trib_glm_train(comm, path, &given.train, &model);
	given.view.stats.struct_size = sizeof(given.view.stats);
	if (status == TRIB_OK && comm)
		status = trib_get_stats(comm, &given.view.stats);
	if (status == TRIB_OK)
		status = model_finish(model);
	if (status != TRIB_OK) {
		if (given.view.bar_shown)
			view_bar(-1, "");
		fprintf(stderr, "trib glm train: %s\n", trib_last_error());
	}
	trib_glm_model_free(model);
	view_free(&given.view);
	if (comm)
		trib_finalize(comm);
	return status == TRIB_OK ? 0 : 1;
}

int glm_train_command(int argc, char **argv)
{
	const char *path, *wrong;
	int code;

	if (!glm_options_parse(&options, argc, argv, &path, 1, &code))
		return code;
	wrong = words_take();
	if (!wrong)
		wrong = numbers_take();
	if (wrong)
		return options_fail(&options, "%s", wrong);
	/* Now, and not after hours. Workers may be on machines without that folder. */
	if (!is_worker() &&
	    ((given.model && bytes_try(given.model) != TRIB_OK) ||
	     (given.train.checkpoint && bytes_try(given.train.checkpoint) != TRIB_OK))) {
		fprintf(stderr, "trib glm train: %s\n", trib_last_error());
		return 1;
	}
	/* With a rank, a launcher has started this process already. */
	if (given.run.workers > 1 && !setting_text(SETTING_RANK, NULL))
		return start_run(argc, argv);
	return train_here(path);
}
