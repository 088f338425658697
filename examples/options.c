/* SPDX-License-Identifier: Apache-2.0 */
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXIT_USAGE = 2 };

static const struct options defaults = {
	.epochs = 4,
	.batch = 256,
	.hidden = 512,
	.buckets = 4,
	.rate = 0.3,
	.seed = 1,
	.progress = PROGRESS_AUTO,
};

static void usage_print(void)
{
	printf("Usage: train [options]\n"
	       "\n"
	       "Trains a neural network to read digits on all workers of a job: each computes\n"
	       "the gradient of its share of a batch, and the network adds them up.\n"
	       "\n"
	       "  --data DIR       MNIST files, or the word 'drawn' for digits that the program\n"
	       "                   draws itself (default: $TRIB_MNIST, then ../shared/data/mnist,\n"
	       "                   then drawn)\n"
	       "  --epochs N       times to go through the samples (%zu)\n"
	       "  --batch N        samples a step, over all workers (%zu)\n"
	       "  --hidden N       width of the hidden layer (%zu); sets the gradient's size\n"
	       "  --lr X           learning rate at the start; falls to 0 in a line (%g)\n"
	       "  --buckets N      parts of the gradient, each sent as soon as it is computed;\n"
	       "                   1 sends all after the last is computed (%zu)\n"
	       "  --samples N      train on the first N samples only\n"
	       "  --seed N         of weights, order and drawing (%llu)\n"
	       "  --progress MODE  bar, lines, none or auto: a bar where there is a terminal\n"
	       "  --quiet          --progress none: print the results only\n"
	       "  --json FILE      rank 0 also writes the results there\n"
	       "  --help\n"
	       "\n"
	       "Example: four workers, and their aggregator, on this machine\n"
	       "  trib run -n 4 -- train --epochs 2 --hidden 256\n"
	       "\n"
	       "Exits with 0, with 1 when training failed or the workers' weights differ, or\n"
	       "with 2 on a wrong argument.\n",
	       defaults.epochs, defaults.batch, defaults.hidden, defaults.rate, defaults.buckets,
	       (unsigned long long)defaults.seed);
}

static uint64_t number_parse(const char *option, const char *text, uint64_t low, uint64_t high)
{
	char *end;
	unsigned long long value;

	errno = 0;
	value = strtoull(text, &end, 10);
	if (errno || end == text || *end || strchr(text, '-') || value < low || value > high) {
		fprintf(stderr, "train: --%s %s: a whole number from %llu to %llu belongs there\n",
		        option, text, (unsigned long long)low, (unsigned long long)high);
		exit(EXIT_USAGE);
	}
	return value;
}

static double rate_parse(const char *text)
{
	char *end;
	double value = strtod(text, &end);

	if (end == text || *end || !isfinite(value) || value <= 0) {
		fprintf(stderr, "train: --lr %s: a number above 0 belongs there\n", text);
		exit(EXIT_USAGE);
	}
	return value;
}

static enum progress_mode progress_parse(const char *text)
{
	static const char *const names[] = { "auto", "bar", "lines", "none" };

	for (int i = 0; i < 4; i++)
		if (strcmp(text, names[i]) == 0)
			return (enum progress_mode)i;
	fprintf(stderr, "train: --progress %s: auto, bar, lines or none belongs there\n", text);
	exit(EXIT_USAGE);
}

struct options options_parse(int argc, char **argv)
{
	static const struct option table[] = {
		{ "data", required_argument, NULL, 'd' },
		{ "epochs", required_argument, NULL, 'e' },
		{ "batch", required_argument, NULL, 'b' },
		{ "hidden", required_argument, NULL, 'n' },
		{ "lr", required_argument, NULL, 'l' },
		{ "buckets", required_argument, NULL, 'k' },
		{ "samples", required_argument, NULL, 's' },
		{ "seed", required_argument, NULL, 'r' },
		{ "progress", required_argument, NULL, 'p' },
		{ "quiet", no_argument, NULL, 'q' },
		{ "json", required_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	struct options o = defaults;
	int which, at = 0;

	while ((which = getopt_long(argc, argv, "qh", table, &at)) != -1) {
		const char *name = table[at].name;

		switch (which) {
		case 'd':
			o.data = optarg;
			break;
		case 'e':
			o.epochs = number_parse(name, optarg, 1, 100000);
			break;
		case 'b':
			o.batch = number_parse(name, optarg, 1, 1 << 20);
			break;
		case 'n':
			o.hidden = number_parse(name, optarg, 1, 1 << 16);
			break;
		case 'l':
			o.rate = rate_parse(optarg);
			break;
		case 'k':
			o.buckets = number_parse(name, optarg, 1, BUCKETS_MAX);
			break;
		case 's':
			o.samples = number_parse(name, optarg, 1, UINT32_MAX);
			break;
		case 'r':
			o.seed = number_parse(name, optarg, 0, UINT64_MAX);
			break;
		case 'p':
			o.progress = progress_parse(optarg);
			break;
		case 'q':
			o.progress = PROGRESS_NONE;
			break;
		case 'j':
			o.json = optarg;
			break;
		case 'h':
			usage_print();
			exit(EXIT_SUCCESS);
		default:
			fprintf(stderr, "Try 'train --help'.\n");
			exit(EXIT_USAGE);
		}
	}
	if (optind < argc) {
		fprintf(stderr, "train: unexpected argument '%s'; try 'train --help'\n",
		        argv[optind]);
		exit(EXIT_USAGE);
	}
	return o;
}
