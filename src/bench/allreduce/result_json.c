/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/allreduce/result_rows.h"
#include "bench/bed/result_cells.h"

static void links_write(struct json_writer *json, const struct bench_place *place)
{
	const struct cluster *cluster = &place->cluster;

	json_open_list(json, "links_bps");
	for (unsigned i = 0; i < place->workers && cluster->n; i++)
		json_put_count(json, NULL, cluster->hosts[i].rate_bps);
	json_close(json);
}

static void faults_write(struct json_writer *json, const struct cluster_options *net)
{
	json_put_number(json, "loss", "%g", net->faults[FAULT_LOSS]);
	json_put_number(json, "dup", "%g", net->faults[FAULT_DUP]);
	json_put_number(json, "reorder", "%g", net->faults[FAULT_REORDER]);
	json_put_number(json, "corrupt", "%g", net->faults[FAULT_CORRUPT]);
	json_put_count(json, "seed", net->seed);
	json_put_bool(json, "offload", !net->no_offload);
}

/* Options beyond the links. An option that was not given is left out. */
static void wishes_write(struct json_writer *json, const struct bench_options *o)
{
	if (o->n_late)
		json_open_list(json, "late");
	for (unsigned i = 0; i < o->n_late; i++) {
		json_open_object(json, NULL);
		json_put_text(json, "host", o->late[i].host);
		json_put_number(json, "seconds", "%g", o->late[i].seconds);
		json_close(json);
	}
	if (o->n_late)
		json_close(json);
	if (o->n_cores)
		json_open_list(json, "own_cores");
	for (unsigned i = 0; i < o->n_cores; i++)
		json_put_text(json, NULL, o->cores[i].host);
	if (o->n_cores)
		json_close(json);
	if (o->busy > 0)
		json_put_number(json, "busy", "%g", o->busy);
	if (o->copied)
		json_put_bool(json, "copied", true);
	if (o->nic)
		json_put_bool(json, "nic", true);
	if (o->n_trees)
		json_open_list(json, "trees");
	for (unsigned i = 0; i < o->n_trees; i++) {
		json_open_object(json, NULL);
		json_put_text(json, "name", o->trees[i].label);
		json_put_text(json, "wanted", o->trees[i].wanted);
		json_close(json);
	}
	if (o->n_trees)
		json_close(json);
}

static void settings_write(struct json_writer *json, const void *context)
{
	const struct bench_report *report = context;
	const struct bench_options *o = report->options;
	const struct bench_place *place = report->place;

	place_put(json, place);
	json_put_count(json, "hosts", place->workers);
	links_write(json, place);
	json_put_bool(json, "switch", place->cluster.n && place->cluster.is_switch);
	json_put_count(json, "mtu", place->cluster.mtu);
	if (place->made)
		faults_write(json, &o->net);
	if (o->net_name)
		json_put_text(json, "net", o->net_name);
	json_put_text(json, "collective",
	              o->to_one ? "reduce" : bench_collective_name(o->collective));
	json_put_text(json, "type", o->type);
	wishes_write(json, o);
	runs_put(json, "iterations", o);
	json_put_count(json, "pool_bytes", o->pool_bytes);
	json_put_count(json, "lanes", o->lanes);
	json_put_text(json, "left_out", report->left_out);
}

const struct json_report bench_json = { .settings = settings_write, .rows = bench_rows_fill };
