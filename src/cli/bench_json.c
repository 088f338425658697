/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/bench.h"
#include "cli/json.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void settings_print(FILE *out, const struct bench_report *report)
{
	const struct bench_options *o = report->options;
	const struct bench_place *place = report->place;
	const struct cluster *cluster = &place->cluster;

	fprintf(out, "  \"settings\": {\n    \"version\": \"" TRIB_VERSION "\",\n    \"place\": ");
	json_print_text(out, report->where);
	fprintf(out, ",\n    \"hosts\": %u,\n    \"links_bps\": [", place->workers);
	for (unsigned i = 0; i < place->workers && cluster->n; i++)
		fprintf(out, "%s%" PRIu64, i ? ", " : "", cluster->hosts[i].rate_bps);
	fprintf(out, "],\n    \"switch\": %s,\n    \"mtu\": %u,\n",
	        cluster->n && cluster->is_switch ? "true" : "false", cluster->mtu);
	if (place->made)
		fprintf(out,
		        "    \"loss\": %g,\n    \"dup\": %g,\n    \"reorder\": %g,\n"
		        "    \"corrupt\": %g,\n    \"seed\": %" PRIu64 ",\n    \"offload\": %s,\n",
		        o->net.loss, o->net.dup, o->net.reorder, o->net.corrupt, o->net.seed,
		        o->net.no_offload ? "false" : "true");
	if (o->net_name) {
		fprintf(out, "    \"net\": ");
		json_print_text(out, o->net_name);
		fprintf(out, ",\n");
	}
	fprintf(out, "    \"collective\": \"%s\",\n", o->to_one ? "reduce" : "allreduce");
	for (unsigned i = 0; i < o->n_late; i++)
		fprintf(out, "%s{ \"host\": \"%s\", \"seconds\": %g }%s",
		        i ? ", " : "    \"late\": [ ", o->late[i].host, o->late[i].seconds,
		        i + 1 < o->n_late ? "" : " ],\n");
	for (unsigned i = 0; i < o->n_cores; i++)
		fprintf(out, "%s\"%s\"%s", i ? ", " : "    \"own_cores\": [ ", o->cores[i].host,
		        i + 1 < o->n_cores ? "" : " ],\n");
	if (o->busy > 0)
		fprintf(out, "    \"busy\": %g,\n", o->busy);
	if (o->copied)
		fprintf(out, "    \"copied\": true,\n");
	if (o->nic)
		fprintf(out, "    \"nic\": true,\n");
	for (unsigned i = 0; i < o->n_trees; i++) {
		fprintf(out, "%s{ \"name\": ", i ? ", " : "    \"trees\": [ ");
		json_print_text(out, o->trees[i].label);
		fprintf(out, ", \"wanted\": ");
		json_print_text(out, o->trees[i].wanted);
		fprintf(out, " }%s", i + 1 < o->n_trees ? "" : " ],\n");
	}
	fprintf(out,
	        "    \"iterations\": %" PRIu64 ",\n    \"warmup\": %" PRIu64
	        ",\n    \"repeats\": %" PRIu64 ",\n    \"pool_bytes\": %" PRIu64
	        ",\n    \"lanes\": %" PRIu64 ",\n    \"left_out\": ",
	        o->iterations, o->warmup, o->repeats, o->pool_bytes, o->lanes);
	json_print_text(out, report->left_out);
	fprintf(out, "\n  },\n");
}

/* A figure that is not there is null: 0 would be one. */
static void figure_print(FILE *out, const char *name, double value, bool there)
{
	fprintf(out, there ? ", \"%s\": %.9g" : ", \"%s\": null", name, value);
}

static void range_print(FILE *out, const char *name, const struct bench_range *range)
{
	const double values[] = { range->median, range->least, range->most };
	static const char *const ends[] = { "", "_min", "_max" };
	char full[64];

	for (unsigned i = 0; i < 3; i++) {
		snprintf(full, sizeof(full), "%s%s", name, ends[i]);
		figure_print(out, full, values[i], range->n > 0);
	}
}

static void result_print(FILE *out, const struct bench_report *report, const struct bench_result *r)
{
	bool there = r->stats.repeats > 0;
	double gain = bench_gain(report, r), fragments, results;

	fprintf(out, "    { \"system\": \"%s\", \"algorithm\": ", r->system->name);
	json_print_text(out, r->variant->name[0] ? r->variant->name : NULL);
	fprintf(out, ", \"plane\": \"%s\", \"hosts\": %u, \"bytes\": %" PRIu64, r->system->plane,
	        report->place->workers, r->bytes);
	figure_print(out, "median_s", r->stats.median, there);
	figure_print(out, "min_s", r->stats.min, there);
	figure_print(out, "p99_s", r->stats.p99, there);
	figure_print(out, "algbw_gbps", bench_gbps(r), there);
	figure_print(out, "share_of_limit", bench_share(r), there && r->limit_s > 0);
	figure_print(out, "limit_s", r->limit_s, r->limit_s > 0);
	figure_print(out, "spread", r->stats.spread, there);
	if (r->system != report->systems[0])
		figure_print(out, "tributary_gain", gain, gain > 0);
	if (r->cpu_s > 0) {
		figure_print(out, "aggregator_cpu_s", r->cpu_s, true);
		range_print(out, "aggregated_gb_per_cpu_s", &r->added_gb);
		if (r->system != report->systems[0])
			range_print(out, "aggregator_cpu_times", &r->cpu_times);
	}
	if (bench_again(report, r, &fragments, &results)) {
		figure_print(out, "fragments_again", fragments, true);
		figure_print(out, "results_again", results, true);
	}
	fprintf(out, ", \"repeats\": %u, \"failed\": %u", r->stats.repeats, r->failed);
	if (r->failed) {
		fprintf(out, ", \"note\": ");
		json_print_text(out, r->note);
	}
	fprintf(out, " }");
}

trib_status bench_json_write(const struct bench_report *report, const char *path)
{
	FILE *out = strcmp(path, "-") == 0 ? stdout : fopen(path, "w");

	if (!out)
		return status_fail_errno("cannot write %s", path);
	fprintf(out, "{\n");
	settings_print(out, report);
	fprintf(out, "  \"results\": [\n");
	for (unsigned i = 0; i < report->n; i++) {
		result_print(out, report, &report->results[i]);
		fprintf(out, i + 1 < report->n ? ",\n" : "\n");
	}
	fprintf(out, "  ]\n}\n");
	if (fclose(out) != 0)
		return status_fail_errno("cannot write %s", path);
	return TRIB_OK;
}
