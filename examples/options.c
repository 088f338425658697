/* SPDX-License-Identifier: Apache-2.0 */
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXIT_USAGE = 2, CURVE_POINTS = 4 };

static const struct options defaults = {
	.model = &model_mlp,
	.epochs = 4,
	.batch = 256,
	.buckets = 4,
	.seed = 1,
	.progress = PROGRESS_AUTO,
};

static void usage_print(void)
{
	printf("Usage: train [options]\n"
	       "\n"
	       "Trains a neural network to read digits, on all workers of a job. Each worker\n"
	       "computes the gradient of its share of a batch; aggregators sum the gradients.\n"
	       "\n"
	       "  --data DIR       MNIST files, or the word 'drawn' for digits that the program\n"
	       "                   draws itself (default: $TRIB_MNIST, then ../shared/data/mnist,\n"
	       "                   then drawn)\n"
	       "  --model NAME     mlp: one hidden layer; conv: two convolutions before it (mlp)\n"
	       "  --epochs N       times to go through the samples (%zu)\n"
	       "  --batch N        samples a step, over all workers (%zu)\n"
	       "  --hidden N       width of the hidden layer (mlp: %zu, conv: %zu); sets the\n"
	       "                   gradient's size\n"
	       "  --lr X           learning rate at the start; falls linearly to 0 (mlp: %g,\n"
	       "                   conv: %g)\n"
	       "  --buckets N      parts of the gradient, each sent as soon as it is computed;\n"
	       "                   1: sent when the whole gradient is computed (%zu)\n"
	       "  --samples N      train on the first N samples only\n"
	       "  --type NAME      how gradients travel: f32 or bf16 (f32)\n"
	       "  --feedback       error feedback: what rounding takes from a gradient is added\n"
	       "                   to the next one; for f32 with TRIB_WIRE=16 or 8\n"
	       "  --gradients FILE write the first 64 gradients there, as f32, for trib bench\n"
	       "                   numbers; all ranks need the same file\n"
	       "  --points N       points of the learning curve in an epoch: the network is "
	       "tested\n"
	       "                   at each of them (%d with --curve, else only at the end)\n"
	       "  --curve FILE     rank 0 writes the learning curve there, as CSV\n"
	       "  --seed N         seed of weights, order and drawing (%llu)\n"
	       "  --progress MODE  bar, lines, none or auto: a bar on a terminal, else lines\n"
	       "  --quiet          --progress none: print the results only\n"
	       "  --json FILE      rank 0 also writes the results there\n"
	       "  --help\n"
	       "\n"
	       "Example: four workers, and their aggregator, on this machine\n"
	       "  trib run -n 4 -- train --epochs 2 --hidden 256\n"
	       "\n"
	       "Exit codes: 0: success; 1: training failed, or the workers' weights differ;\n"
	       "2: a wrong argument.\n",
	       defaults.epochs, defaults.batch, model_mlp.hidden, model_conv.hidden, model_mlp.rate,
	       model_conv.rate, defaults.buckets, CURVE_POINTS, (unsigned long long)defaults.seed);
}

static uint64_t number_parse(const char *option, const char *text, uint64_t low, uint64_t high)
{
	char *end;
	unsigned long long value;

	errno = 0;
	value = strtoull(text, &end, 10);
	if (errno || end == text || *end || strchr(text, '-') || value < low || value > high) {
		fprintf(stderr, "train: --%s %s: must be a whole number from %llu to %llu\n",
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
		fprintf(stderr, "train: --lr %s: must be a number above 0\n", text);
		exit(EXIT_USAGE);
	}
	return value;
}

static const struct model *model_parse(const char *text)
{
	const struct model *model = model_find(text);

	if (!model) {
		fprintf(stderr, "train: --model %s: must be mlp or conv\n", text);
		exit(EXIT_USAGE);
	}
	return model;
}

static bool type_parse(const char *text)
{
	if (strcmp(text, "f32") != 0 && strcmp(text, "bf16") != 0) {
		fprintf(stderr, "train: --type %s: must be f32 or bf16\n", text);
		exit(EXIT_USAGE);
	}
	return text[0] == 'b';
}

static enum progress_mode progress_parse(const char *text)
{
	static const char *const names[] = { "auto", "bar", "lines", "none" };

	for (int i = 0; i < 4; i++)
		if (strcmp(text, names[i]) == 0)
			return (enum progress_mode)i;
	fprintf(stderr, "train: --progress %s: must be auto, bar, lines or none\n", text);
	exit(EXIT_USAGE);
}

struct options options_parse(int argc, char **argv)
{
	static const struct option table[] = {
		{ "data", required_argument, NULL, 'd' },
		{ "model", required_argument, NULL, 'm' },
		{ "epochs", required_argument, NULL, 'e' },
		{ "batch", required_argument, NULL, 'b' },
		{ "hidden", required_argument, NULL, 'n' },
		{ "lr", required_argument, NULL, 'l' },
		{ "buckets", required_argument, NULL, 'k' },
		{ "samples", required_argument, NULL, 's' },
		{ "type", required_argument, NULL, 't' },
		{ "feedback", no_argument, NULL, 'f' },
		{ "gradients", required_argument, NULL, 'g' },
		{ "points", required_argument, NULL, 'o' },
		{ "curve", required_argument, NULL, 'c' },
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
		case 'm':
			o.model = model_parse(optarg);
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
		case 't':
			o.is_half = type_parse(optarg);
			break;
		case 'f':
			o.feedback = true;
			break;
		case 'g':
			o.gradients = optarg;
			break;
		case 'o':
			o.points = number_parse(name, optarg, 1, 1000);
			break;
		case 'c':
			o.curve = optarg;
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
	if (o.feedback && o.is_half) {
		fprintf(stderr, "train: --feedback is for f32; try 'train --help'\n");
		exit(EXIT_USAGE);
	}
	if (o.curve && !o.points)
		o.points = CURVE_POINTS;
	if (!o.hidden)
		o.hidden = o.model->hidden;
	if (!(o.rate > 0))
		o.rate = o.model->rate;
	return o;
}
