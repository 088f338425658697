/* SPDX-License-Identifier: Apache-2.0 */
#include "sparse_options.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STALENESS_MAX = 1000000, FIRST_VALUE = 256 };

static const char *program;

static void wrong(const struct job_option *option, const char *text)
{
	if (option->kind == JOB_CHOICE)
		fprintf(stderr, "%s: --%s %s: must be one of %s\n", program, option->name, text,
		        option->argument);
	else
		fprintf(stderr, "%s: --%s %s: must be a %snumber from %.12g to %.12g\n", program,
		        option->name, text, option->kind == JOB_COUNT ? "whole " : "", option->low,
		        option->high);
	exit(EXIT_USAGE);
}

static void number_take(const struct job_option *option, const char *text)
{
	char *end;
	double value;

	errno = 0;
	value = strtod(text, &end);
	if (errno || end == text || *end || !(value >= option->low && value <= option->high))
		wrong(option, text);
	if (option->kind == JOB_NUMBER)
		*(double *)option->value = value;
	else if (value != floor(value))
		wrong(option, text);
	else
		*(size_t *)option->value = (size_t)value;
}

/* Is `text` a word of "one|two|three"? */
static bool is_word(const char *words, const char *text)
{
	size_t length = strlen(text);

	while (*words) {
		size_t n = strcspn(words, "|");

		if (n == length && memcmp(words, text, n) == 0)
			return true;
		words += n + (words[n] == '|');
	}
	return false;
}

static void option_take(const struct job_option *option, const char *text)
{
	if (option->kind == JOB_COUNT || option->kind == JOB_NUMBER) {
		number_take(option, text);
		return;
	}
	if (option->kind == JOB_CHOICE && !is_word(option->argument, text))
		wrong(option, text);
	*(const char **)option->value = text;
}

static void option_print(const struct job_option *option)
{
	char left[64], value[128] = "";

	snprintf(left, sizeof(left), "--%s %s", option->name, option->argument);
	if (option->kind == JOB_COUNT)
		snprintf(value, sizeof(value), "%zu", *(const size_t *)option->value);
	else if (option->kind == JOB_NUMBER)
		snprintf(value, sizeof(value), "%g", *(const double *)option->value);
	else if (*(const char **)option->value)
		snprintf(value, sizeof(value), "%s", *(const char **)option->value);
	if (strlen(left) > 22)
		printf("  %s\n%25s%s", left, "", option->help);
	else
		printf("  %-22s %s", left, option->help);
	printf(value[0] ? " (default %s)\n" : "%s\n", value);
}

static void usage_print(const struct job_usage *usage, const struct job_option *options, size_t n)
{
	printf("Usage: %s [OPTION]...\n\n%s\n\nOptions:\n", usage->name, usage->what);
	for (size_t i = 0; i < n; i++)
		option_print(&options[i]);
	printf("  --help\n\nExample:\n  %s\n\nExit codes: 0: success; 1: training failed; "
	       "2: a wrong argument.\n",
	       usage->example);
}

static size_t table_make(const struct job_usage *usage, struct job_options *o,
                         struct job_option *table)
{
	const struct job_option common[] = {
		{ "data", JOB_TEXT, &o->data, 0, 0, "PATH", "what to train on" },
		{ "epochs", JOB_COUNT, &o->epochs, 1, 1e6, "N", "times over the data" },
		{ "batch", JOB_COUNT, &o->batch, 1, 1 << 20, "N", "samples of a worker's step" },
		{ "width", JOB_COUNT, &o->width, 1, 4096, "N", "floats of a row" },
		{ "rate", JOB_NUMBER, &o->rate, 1e-9, 1e6, "R", "learning rate" },
		{ "optimizer", JOB_CHOICE, &o->optimizer, 0, 0, "sgd|momentum|adagrad|adam",
		  "of the servers" },
		{ "init", JOB_NUMBER, &o->init, 0, 100, "R",
		  "rows begin with values from -R to R" },
		{ "samples", JOB_COUNT, &o->samples, 0, 1e12, "N",
		  "train on so many samples only; 0: on all" },
		{ "steps", JOB_COUNT, &o->steps, 0, 1e12, "N",
		  "end an epoch after so many steps; 0: after all" },
		{ "staleness", JOB_TEXT, &o->staleness, 0, 0, "N|none",
		  "steps that a worker may be ahead of the slowest; 0: one worker learns the same "
		  "each time" },
		{ "path", JOB_CHOICE, &o->path, 0, 0, "auto|servers",
		  "auto: hot rows by an aggregator" },
		{ "sums", JOB_CHOICE, &o->sums, 0, 0, "fixed|table", "of hot rows" },
		{ "wire", JOB_CHOICE, &o->wire, 0, 0, "f32|f16", "rows to and from servers" },
		{ "largest", JOB_NUMBER, &o->largest, 1e-9, 1e9, "R",
		  "gradients up to this may be hot" },
		{ "sample", JOB_NUMBER, &o->sample, 0, 100, "PERCENT",
		  "of the steps, counted ahead to find hot rows" },
		{ "servers", JOB_TEXT, &o->servers, 0, 0, "LIST",
		  "HOST:PORT of each server, if TRIB_SPARSE_SERVERS does not say it" },
		{ "timeout", JOB_NUMBER, &o->timeout_s, 0.1, 1e6, "SECONDS", "of every wait" },
		{ "seed", JOB_COUNT, &o->seed, 0, 1e15, "N", "of all random numbers" },
		{ "json", JOB_TEXT, &o->json, 0, 0, "FILE", "rank 0 writes the results there" },
		{ "plot", JOB_TEXT, &o->plot, 0, 0, "FILE", "rank 0 draws the loss there, as SVG" },
		{ "tensors", JOB_TEXT, &o->tensors, 0, 0, "FILE",
		  "each worker writes what it pushes to FILE.RANK, for trib bench sparse" },
		{ "progress", JOB_CHOICE, &o->progress, 0, 0, "auto|bar|lines|none",
		  "auto: a bar on a terminal, else lines" },
	};
	size_t n = 0;

	memcpy(table, common, sizeof(common));
	n = sizeof(common) / sizeof(*common);
	for (const struct job_option *own = usage->own; own->name && n < JOB_OPTIONS_MAX; own++)
		table[n++] = *own;
	return n;
}

struct job_options job_options_default(void)
{
	return (struct job_options){ .epochs = 5,
		                     .rate = 0.05,
		                     .largest = 4,
		                     .sample = 5,
		                     .seed = 1,
		                     .timeout_s = 60,
		                     .optimizer = "adagrad",
		                     .path = "auto",
		                     .sums = "fixed",
		                     .wire = "f32",
		                     .staleness = "4",
		                     .progress = "auto" };
}

void job_options_parse(const struct job_usage *usage, struct job_options *options, int argc,
                       char **argv)
{
	struct job_option table[JOB_OPTIONS_MAX];
	struct option names[JOB_OPTIONS_MAX + 2] = { 0 };
	size_t n = table_make(usage, options, table);
	int which;

	program = usage->name;
	for (size_t i = 0; i < n; i++)
		names[i] = (struct option){ table[i].name, required_argument, NULL,
			                    FIRST_VALUE + (int)i };
	names[n] = (struct option){ "help", no_argument, NULL, 'h' };
	while ((which = getopt_long(argc, argv, "h", names, NULL)) != -1) {
		if (which == 'h') {
			usage_print(usage, table, n);
			exit(EXIT_SUCCESS);
		}
		if (which < FIRST_VALUE) {
			fprintf(stderr, "Try '%s --help'.\n", program);
			exit(EXIT_USAGE);
		}
		option_take(&table[which - FIRST_VALUE], optarg);
	}
	if (optind < argc) {
		fprintf(stderr, "%s: unexpected argument '%s'; try '%s --help'\n", program,
		        argv[optind], program);
		exit(EXIT_USAGE);
	}
	job_staleness(options);
}

int job_staleness(const struct job_options *options)
{
	size_t value = 0;
	struct job_option option = { "staleness",   JOB_COUNT,   &value, 0,
		                     STALENESS_MAX, "N or none", NULL };

	if (strcmp(options->staleness, "none") == 0)
		return -1;
	number_take(&option, options->staleness);
	return (int)value;
}

enum progress_mode job_progress(const struct job_options *options)
{
	static const char *const names[] = { "auto", "bar", "lines", "none" };
	int mode = 0;

	while (mode < 3 && strcmp(names[mode], options->progress) != 0)
		mode++;
	return (enum progress_mode)mode;
}
