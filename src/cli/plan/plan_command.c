/* SPDX-License-Identifier: Apache-2.0 */
/* trib plan: what a cluster can do, and by which trees. Nothing is sent anywhere. */
#include "cli/plan/plan_command.h"

#include "base/clock.h"
#include "base/status.h"
#include "cli/cmd/cmd.h"
#include "options/json_writer.h"
#include "options/options.h"
#include "plan/stripes/kary.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The plan of one cluster. */
struct found {
	struct plan_verdict verdict;
	struct forest *forest; /* NULL: the plan is too large for a forest */
	unsigned k;            /* of a k-ary tree; 0: the plan has stripes */
	double took_s;
};

static int fail(void)
{
	fprintf(stderr, "trib plan: %s\n", trib_last_error());
	return EXIT_FAILURE;
}

/* The host of that name; KARY_CHOOSE: no name was given. */
static trib_status root_find(const struct plan_cluster *cluster, const char *name, int *root)
{
	*root = KARY_CHOOSE;
	if (!name)
		return TRIB_OK;
	for (unsigned i = 0; i < cluster->n; i++)
		if (!strcmp(cluster->hosts[i].name, name))
			*root = (int)i;
	if (*root == KARY_CHOOSE)
		return status_fail(TRIB_ERR_ARGUMENT, "--root %s: there is no host of that name",
		                   name);
	return TRIB_OK;
}

/* Replaces the stripes by XAgg's one tree; the rest of the verdict stays. */
static trib_status kary_find(const struct plan_cluster *cluster, const struct plan_options *options,
                             struct found *found)
{
	size_t bytes = kary_work_bytes(cluster->n);
	void *work = malloc(bytes);
	struct kary kary = { .nodes = calloc(cluster->n + 1, sizeof(*kary.nodes)),
		             .leaf = calloc(cluster->n + 1, sizeof(*kary.leaf)) };
	trib_status status = TRIB_ERR_NO_MEMORY;
	int root;

	if (!work || !kary.nodes || !kary.leaf)
		status_fail(status, "no memory for %u hosts", cluster->n);
	else if ((status = root_find(cluster, options->root, &root)) == TRIB_OK)
		status = kary_plan(cluster->hosts, cluster->n, &options->limits,
		                   (unsigned)options->k, root, work, bytes, &kary);
	if (status == TRIB_OK && found->forest)
		status = kary_forest(cluster->hosts, &kary, found->forest);
	found->k = kary.k;
	found->verdict.rate_bps = kary.rate_bps;
	found->verdict.trees = 1;
	found->verdict.aggregators = kary.n_nodes;
	found->verdict.depth = kary.depth;
	*found->verdict.limit = 0;
	free(work);
	free(kary.nodes);
	free(kary.leaf);
	return status;
}

static trib_status plan_find(const struct plan_cluster *cluster, const struct plan_options *options,
                             struct found *found)
{
	size_t bytes = plan_work_bytes(cluster->n, &options->limits);
	void *work = malloc(bytes);
	uint64_t started = clock_now();
	trib_status status;

	if (!work)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for %u hosts", cluster->n);
	status = plan_stripes(cluster->hosts, cluster->n, &options->limits, work, bytes,
	                      found->forest, &found->verdict);
	free(work);
	if (status == TRIB_OK && options->k != PLAN_NO_K)
		status = kary_find(cluster, options, found);
	found->took_s = (double)(clock_now() - started) / 1e9;
	return status;
}

/* ---- for people ---- */

static void print_rate(const char *what, double bps, uint64_t bytes)
{
	double seconds = plan_seconds(bytes, bps);

	printf("%-9s %8.4g %s", what, bps >= 1e9 ? bps / 1e9 : bps / 1e6,
	       bps >= 1e9 ? "Gb/s" : "Mb/s");
	if (isfinite(seconds))
		printf("  %8.4g ms", seconds * 1e3);
	else
		printf("  %11s", "-");
}

static void print_text(const struct found *found, const struct plan_options *options,
                       const char *trees)
{
	const struct plan_verdict *verdict = &found->verdict;
	const char *more = verdict->aggregators == 1 ? "" : "s";

	printf("%u workers; a vector of %.4g MB\n", verdict->workers, (double)options->bytes / 1e6);
	print_rate("bound", verdict->bound_bps, options->bytes);
	printf("  %s\n", verdict->bounded);
	if (verdict->within_bps < verdict->bound_bps * (1 - 1e-9)) {
		print_rate("", verdict->within_bps, options->bytes);
		printf("  at best with %u tree%s\n", options->limits.trees,
		       options->limits.trees == 1 ? "" : "s");
	}
	print_rate("plan", verdict->rate_bps, options->bytes);
	printf("  %.1f %% of it; ", verdict->rate_bps / verdict->within_bps * 100);
	if (found->k)
		printf("one tree of %u aggregator%s, k = %u\n", verdict->aggregators, more,
		       found->k);
	else
		printf("%u tree%s on %u host%s, %u deep; limited by %s\n", verdict->trees,
		       verdict->trees == 1 ? "" : "s", verdict->aggregators, more, verdict->depth,
		       verdict->limit);
	print_rate("one star", verdict->star_bps, options->bytes);
	printf("\n");
	print_rate("ring", verdict->ring_bps, options->bytes);
	printf("%s\n", verdict->ring_bps > verdict->rate_bps * (1 + 1e-9)
	                       ? "  faster: too few hosts may aggregate, or they are too slow"
	                       : "");
	if (trees)
		printf("\n%s\n", trees);
	else
		printf("\nThe trees are not shown: more than %u ranks or %u trees.\n",
		       TREE_RANKS_MAX, FOREST_TREES_MAX);
}

/* ---- for programs ---- */

static void print_json(const struct plan_cluster *cluster, const struct found *found,
                       const struct plan_options *options, const char *trees)
{
	const struct plan_verdict *verdict = &found->verdict;
	struct json_writer writer = { .out = stdout }, *json = &writer;

	json_open_object(json, NULL);
	json_put_count(json, "hosts", cluster->n);
	json_put_count(json, "workers", verdict->workers);
	json_put_number(json, "bound_bps", "%.0f", verdict->bound_bps);
	json_put_number(json, "within_bps", "%.0f", verdict->within_bps);
	json_put_number(json, "rate_bps", "%.0f", verdict->rate_bps);
	json_put_number(json, "star_bps", "%.0f", verdict->star_bps);
	json_put_number(json, "ring_bps", "%.0f", verdict->ring_bps);
	json_put_count(json, "bytes", options->bytes);
	json_put_number(json, "plan_s", "%.9g", plan_seconds(options->bytes, verdict->rate_bps));
	json_put_number(json, "ring_s", "%.9g", plan_seconds(options->bytes, verdict->ring_bps));
	json_put_count(json, "n_trees", verdict->trees);
	json_put_count(json, "aggregators", verdict->aggregators);
	json_put_count(json, "depth", verdict->depth);
	json_put_count(json, "k", found->k);
	json_put_count(json, "steps", verdict->steps);
	json_put_number(json, "took_s", "%.6f", found->took_s);
	json_put_text(json, "bounded", verdict->bounded);
	json_put_text(json, "limit", verdict->limit);
	json_put_text(json, "trees", trees);
	json_close(json);
}

static int plan_show(const struct plan_cluster *cluster, const struct plan_options *options)
{
	static struct forest forest;
	static char trees[1 << 19]; /* room for 64 trees of 64 names each */
	struct found found = { .forest = &forest };
	unsigned workers = 0;

	for (unsigned i = 0; i < cluster->n; i++)
		workers += cluster->hosts[i].rank >= 0;
	if (workers > TREE_RANKS_MAX || options->limits.trees > FOREST_TREES_MAX)
		found.forest = NULL;
	if (plan_find(cluster, options, &found) != TRIB_OK)
		return fail();
	if (found.forest)
		forest_print(&forest, trees, sizeof(trees));
	if (options->json)
		print_json(cluster, &found, options, found.forest ? trees : NULL);
	else
		print_text(&found, options, found.forest ? trees : NULL);
	return EXIT_SUCCESS;
}

static int plan_run(const struct plan_options *options, const char *path)
{
	struct plan_cluster cluster;
	trib_status status =
		path ? cluster_read(path, &cluster)
		     : cluster_draw(options->seed, (unsigned)options->random, &cluster);
	int code = status == TRIB_OK ? plan_show(&cluster, options) : fail();

	cluster_free(&cluster);
	return code;
}

/* What is wrong with the options; NULL: nothing. */
static const char *options_fault(struct plan_options *options, int operands)
{
	unsigned given = (operands > 0) + (options->random > 0) + (options->check > 0);

	if (operands > 1)
		return "one file at a time";
	if (given != 1)
		return "give a FILE, --random, or --check";
	if (options->random && (options->random < 2 || options->random > PLAN_HOSTS_MAX))
		return "--random takes 2 to 65536 hosts";
	if (!options->trees || options->trees > PLAN_TREES_MAX)
		return "--trees is from 1 to 256";
	if (options->children < 2 || options->children > PLAN_HOSTS_MAX)
		return "--children is from 2 to 65536";
	if (!options->core)
		return "--core is a rate above 0";
	if (options->k && options->k != PLAN_NO_K &&
	    (options->k < KARY_MIN || options->k > options->children))
		return "--k is from 2 to --children, or 0";
	if (options->root && options->k == PLAN_NO_K)
		return "--root needs --k";
	if (options->check && options->k != PLAN_NO_K)
		return "--check compares stripes: leave --k out";
	options->limits = PLAN_LIMITS_DEFAULT;
	options->limits.trees = (unsigned)options->trees;
	options->limits.children = (unsigned)options->children;
	options->limits.core_bps = (double)options->core;
	options->limits.multicast = options->multicast;
	options->limits.model_bytes = options->bytes;
	return NULL;
}

int cli_plan(int argc, char **argv)
{
	struct plan_options options = { .seed = 1,
		                        .k = PLAN_NO_K,
		                        .trees = FOREST_TREES_MAX,
		                        .children = 64,
		                        .bytes = 100000000,
		                        .core = (uint64_t)PLAN_CORE_BPS };
	const struct option_row rows[] = {
		{ "random", 0, OPTION_COUNT, &options.random, "N",
		  "plan a random cluster of N hosts", NULL },
		{ "seed", 0, OPTION_COUNT, &options.seed, "S",
		  "seed of random clusters (default 1)", NULL },
		{ "trees", 0, OPTION_COUNT, &options.trees, "N", "most trees (default 64)", NULL },
		{ "children", 0, OPTION_COUNT, &options.children, "N",
		  "most children of one aggregator (default 64)", NULL },
		{ "multicast", 0, OPTION_FLAG, &options.multicast, NULL,
		  "the network copies results (multicast)", NULL },
		{ "core", 0, OPTION_RATE, &options.core, "RATE",
		  "rate at which an idle core adds (default 10gbit)", NULL },
		{ "bytes", 0, OPTION_BYTES, &options.bytes, "BYTES",
		  "size of the vector, for times and memory (default 100 MB)", "97M" },
		{ "k", 'k', OPTION_COUNT, &options.k, "K",
		  "one tree with up to K children a node, more only at the root, as XAgg builds it "
		  "(0: the best K)",
		  NULL },
		{ "root", 0, OPTION_TEXT, &options.root, "NAME",
		  "root of the tree of --k (default: the best server)", NULL },
		{ "json", 'j', OPTION_JSON, &options.json, "FILE",
		  "print JSON, or write it to FILE", NULL },
		{ "check", 0, OPTION_COUNT, &options.check, "N",
		  "compare plans of N random clusters with the optimum", NULL },
		{ 0 }
	};
	const struct options usage = {
		.usage = "trib plan [OPTION]... FILE",
		.about = "Plans how a cluster sums: trees and the share of each, what the links "
			 "allow at best,\nand what limits the plan. FILE has one line per host (- "
			 "is the standard input):\n\n"
			 "  # name  address        in[/out] cores  [used/]memory  rank|-  [switch] "
			 "[never] [round=S]\n"
			 "  h1      10.0.0.1:7700  10gbit   4      16G/64G        0\n"
			 "  s1      10.0.0.9:7700  40gbit   16     -              -",
		.example = "trib plan --multicast cluster.txt\n"
			   "  trib plan --random 64 --seed 7 --json\n"
			   "  trib plan --check 1000",
		.rows = rows,
	};
	const char *fault;
	int code, first = options_parse(&usage, argc, argv, &code);

	if (first < 0)
		return code;
	if ((fault = options_fault(&options, argc - first)))
		return options_fail(&usage, "%s", fault);
	if (options.check)
		return plan_check(&options);
	return plan_run(&options, first < argc ? argv[first] : NULL);
}
