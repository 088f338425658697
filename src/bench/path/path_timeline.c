/* SPDX-License-Identifier: Apache-2.0 */
/* What a run carries as time goes by, and paths that are cut and restored meanwhile. */
#include "bench/path/bench_path.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

trib_status path_events_parse(const char *text, struct path_events *events)
{
	events->n = 0;
	while (text && *text) {
		struct path_event *event = &events->list[events->n];
		char what[16], *end;

		event->at_s = strtod(text, &end);
		if (events->n == PATH_EVENTS_MAX || end == text ||
		    sscanf(end, ":%7[a-z]=%u", what, &event->path) != 2 || !event->path ||
		    event->path > PATHS_MAX || (strcmp(what, "cut") && strcmp(what, "restore")))
			return status_fail(TRIB_ERR_ARGUMENT,
			                   "--events: expected up to %u like 1:cut=2,3.5:restore=2",
			                   PATH_EVENTS_MAX);
		event->cuts = *what == 'c';
		events->n++;
		text = end + strcspn(end, ",");
		text += *text == ',';
	}
	return TRIB_OK;
}

static trib_status change(struct cluster *cluster, unsigned path, bool cuts)
{
	char name[CLUSTER_LINK_NAME_BYTES];
	unsigned link;
	trib_status status;

	snprintf(name, sizeof(name), "leaf1-spine%u", path);
	status = cluster_link_find(cluster, name, &link);
	if (status != TRIB_OK)
		return status;
	return cuts ? cluster_link_cut(cluster, link, LINK_CUT)
	            : cluster_link_restore(cluster, link);
}

trib_status path_events_reach(const struct path_events *events, struct cluster *cluster,
                              double from_s, double to_s)
{
	trib_status status = TRIB_OK;

	for (unsigned i = 0; i < events->n && status == TRIB_OK; i++)
		if (events->list[i].at_s >= from_s && events->list[i].at_s < to_s)
			status = change(cluster, events->list[i].path, events->list[i].cuts);
	return status;
}

trib_status path_events_undo(const struct path_events *events, struct cluster *cluster)
{
	trib_status status = TRIB_OK;

	for (unsigned i = 0; i < events->n && status == TRIB_OK; i++)
		status = change(cluster, events->list[i].path, false);
	return status;
}

void path_curve_add(struct path_curve *curve, double at_s, uint64_t bytes)
{
	if (curve->n == PATH_CURVE_MAX)
		return;
	curve->points[curve->n++] = (struct path_point){ at_s, bytes };
}

double path_curve_gbps(const struct path_curve *curve, unsigned i)
{
	const struct path_point *to = &curve->points[i], *from = to - 1;

	return (double)(to->bytes - from->bytes) * 8e-9 / (to->at_s - from->at_s);
}
