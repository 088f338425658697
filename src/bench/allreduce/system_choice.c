/* SPDX-License-Identifier: Apache-2.0 */
/* Which systems the user asks for, and the trees that they run on. */
#include "bench/allreduce/bench_allreduce.h"

#include <stdio.h>
#include <string.h>

#define FIRST "tributary" /* the system that the others are compared with */

/* `trees` is an index into the trees of the options. */
static void system_add(struct bench_report *report, const struct bench_system *system,
                       unsigned trees)
{
	const struct bench_options *o = report->options;
	struct bench_system *chosen = &report->chosen[report->n_systems];
	char *name = report->names[report->n_systems];
	const char *why = bench_system_missing(system);

	if (why) {
		left_out_add(report->left_out, system->name, NULL, why);
		return;
	}
	snprintf(name, sizeof(report->names[0]),
	         bench_system_has_trees(system) && o->n_trees ? "%s@%s" : "%s", system->name,
	         o->trees[trees].label);
	for (unsigned i = 0; i < report->n_systems; i++)
		if (strcmp(report->names[i], name) == 0)
			return;
	*chosen = *system;
	chosen->name = name;
	chosen->variants = bench_system_variants(system, o);
	chosen->aggregates &= o->collective == BENCH_ALLREDUCE || system->aggregates_all;
	if (bench_system_has_trees(system))
		chosen->trees = &report->trees[trees];
	report->systems[report->n_systems++] = chosen;
}

/* Takes "NAME" or, for systems with trees, "NAME@TREES". */
static trib_status system_take(struct bench_report *report, const char *word, size_t length)
{
	const struct bench_options *o = report->options;
	const char *at = memchr(word, '@', length);
	size_t name = at ? (size_t)(at - word) : length, label = at ? length - name - 1 : 0;
	const struct bench_system *system = bench_system_find(word, name);
	unsigned trees = 0;

	if (!system || (strcmp(system->name, FIRST) == 0 && !at))
		return status_fail(TRIB_ERR_ARGUMENT,
		                   "--against: \"%.*s\" is not one of trib-xdp, trib-tcp, "
		                   "trib-star, trib-ring, mpi-trib, mpi-trib-ring, "
		                   "nccl-collnet, nccl-ring, openmpi, "
		                   "openmpi-default, mpich, gloo, ring, ps, tcp-agg",
		                   (int)length, word);
	while (at && trees < o->n_trees &&
	       (strlen(o->trees[trees].label) != label ||
	        memcmp(o->trees[trees].label, at + 1, label) != 0))
		trees++;
	if (at && (trees == o->n_trees || !bench_system_has_trees(system)))
		return status_fail(TRIB_ERR_ARGUMENT,
		                   "--against: \"%.*s\": behind the @ must be a name from --trees; "
		                   "only tributary, trib-xdp, trib-tcp, trib-star, "
		                   "nccl-collnet and tcp-agg take one",
		                   (int)length, word);
	if (o->to_one && !bench_system_is_ours(system))
		return status_fail(TRIB_ERR_ARGUMENT, "--to-one is for Tributary alone");
	if (!bench_system_variants(system, o))
		return status_fail(TRIB_ERR_ARGUMENT, "--against: %s has no %s of %s", system->name,
		                   bench_collective_name(o->collective), o->type);
	if (report->n_systems == BENCH_SYSTEMS_MAX)
		return status_fail(TRIB_ERR_ARGUMENT, "more than %d systems", BENCH_SYSTEMS_MAX);
	system_add(report, system, trees);
	return TRIB_OK;
}

/* Gives the system the plane of this name; NULL: leaves it as it is. */
static trib_status plane_choose(const char *name, struct bench_system *system)
{
	static const char *const ours[] = { FIRST, "trib-xdp", "trib-tcp" };

	for (unsigned i = 0; name && i < sizeof(ours) / sizeof(*ours); i++) {
		const struct bench_system *one = bench_system_find(ours[i], strlen(ours[i]));

		if (strcmp(one->plane, name) == 0) {
			system->plane = one->plane;
			return TRIB_OK;
		}
	}
	return name ? status_fail(TRIB_ERR_ARGUMENT, "--plane: \"%s\" is not one of udp, xdp, tcp",
	                          name)
	            : TRIB_OK;
}

trib_status bench_systems_choose(struct bench_report *report)
{
	const char *name = report->options->against ? report->options->against : "";
	struct bench_system first = *bench_system_find(FIRST, strlen(FIRST));
	trib_status status = plane_choose(report->options->plane, &first);

	if (status != TRIB_OK)
		return status;
	system_add(report, &first, 0);
	if (report->n_systems == 0)
		return status_fail(TRIB_ERR_CONFIG, "tributary cannot run: %s", report->left_out);
	while (*name && status == TRIB_OK) {
		size_t length = strcspn(name, ",");

		status = system_take(report, name, length);
		name += length + (name[length] == ',');
	}
	return status;
}

trib_status bench_trees_read(struct bench_report *report)
{
	const struct bench_options *o = report->options;
	const struct bench_place *place = report->place;
	trib_status status = TRIB_OK;

	if (o->n_trees == 0)
		return layout_read(&report->trees[0], "star", &place->cluster, place->workers);
	for (unsigned i = 0; i < o->n_trees && status == TRIB_OK; i++)
		status = layout_read(&report->trees[i], o->trees[i].wanted, &place->cluster,
		                     place->workers);
	return status;
}
