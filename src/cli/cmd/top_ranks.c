/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cmd/top_ranks.h"

#include "query/remote.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static bool is_same_comm(const struct straggler *a, const struct straggler *b)
{
	return a->job == b->job && a->key == b->key;
}

static struct straggler *rank_find(struct look_ranks *look, const struct straggler *who)
{
	for (unsigned i = 0; i < look->n; i++)
		if (is_same_comm(&look->all[i], who) && look->all[i].rank == who->rank &&
		    look->all[i].covers == who->covers)
			return &look->all[i];
	return NULL;
}

static uint64_t take_covers(const json_t *list)
{
	uint64_t covers = 0;

	for (size_t i = 0; i < json_array_size(list); i++) {
		json_int_t rank = json_integer_value(json_array_get(list, i));

		if (rank >= 0 && rank < 64)
			covers |= 1ull << rank;
	}
	return covers;
}

static void take_child(struct look_ranks *look, struct straggler who, const json_t *child)
{
	struct straggler *it;

	who.rank = (unsigned)remote_number(child, "rank");
	remote_plain(child, "host", who.host, sizeof(who.host));
	remote_ranks(json_object_get(child, "covers"), who.ranks, sizeof(who.ranks));
	who.covers = take_covers(json_object_get(child, "covers"));
	it = rank_find(look, &who);
	if (!it && look->n < RANKS_MAX) {
		it = &look->all[look->n++];
		*it = who;
	}
	if (!it) {
		look->beyond++;
		return;
	}
	it->done += remote_number(child, "done");
	it->last += remote_number(child, "last");
	it->judged += remote_number(child, "judged");
	it->missed += remote_number(child, "missed");
	it->repeated += remote_number(child, "repeated");
	if (json_object_get(child, "waits"))
		it->waits = remote_number(child, "waits");
}

void ranks_take(struct look_ranks *look, const json_t *comms)
{
	for (size_t i = 0; i < json_array_size(comms); i++) {
		const json_t *comm = json_array_get(comms, i);
		const json_t *children = json_object_get(comm, "children");
		const struct straggler who = {
			.job = (unsigned)remote_number(comm, "job"),
			.size = (unsigned)remote_number(comm, "size"),
			.key = strtoull(remote_text(comm, "key"), NULL, 16),
			.waits = -1,
		};

		if (!strcmp(remote_text(comm, "state"), "failed"))
			continue;
		look->untold += !children;
		for (size_t k = 0; k < json_array_size(children); k++)
			take_child(look, who, json_array_get(children, k));
	}
}

/* The difference since the last look, or all of it if the entry is new. */
static struct straggler since(const struct straggler *now, struct look_ranks *before)
{
	const struct straggler *then = rank_find(before, now);
	struct straggler it = *now;

	if (!then || then->done > now->done)
		return it;
	it.done -= then->done;
	it.last -= then->last;
	it.judged -= then->judged;
	it.missed -= then->missed;
	it.repeated -= then->repeated;
	return it;
}

static double came_last(const struct straggler *it)
{
	return it->done > 0 ? it->last / it->done : 0;
}

/*
 * In a tree a rank is late only among its siblings. All ranks wait for it as often
 * as its aggregators are late too, so the shares along its path are multiplied. The
 * products of all ranks add up to 1.
 */
static void find_late(struct straggler *list, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct straggler *it = &list[i];
		uint64_t below = it->covers ? it->covers : it->rank < 64 ? 1ull << it->rank : 0;

		it->late = came_last(it);
		for (unsigned k = 0; k < n; k++)
			if (is_same_comm(&list[k], it) && list[k].covers != it->covers && below &&
			    (list[k].covers & below) == below)
				it->late *= came_last(&list[k]);
	}
}

static int later_first(const void *a, const void *b)
{
	const struct straggler *one = a, *two = b;

	if (one->job != two->job)
		return one->job < two->job ? -1 : 1;
	if (one->size != two->size) /* the communicator of all ranks first */
		return one->size < two->size ? 1 : -1;
	if (one->key != two->key)
		return one->key < two->key ? -1 : 1;
	if (!one->covers != !two->covers) /* aggregators last: readers look for ranks */
		return one->covers ? 1 : -1;
	if (one->late != two->late)
		return one->late < two->late ? 1 : -1;
	return (int)one->rank - (int)two->rank;
}

static void show_rank(FILE *out, const struct straggler *it)
{
	double share = it->done > 0 ? 100 / it->done : 0;
	char waits[16] = "?", rank[16];

	if (it->waits >= 0)
		snprintf(waits, sizeof(waits), "%.1f %%", it->waits * 100);
	snprintf(rank, sizeof(rank), "%u", it->rank);
	fprintf(out, "  %4s  %-20s %12.0f %6.1f %% %8.2f %% %8.2f %% %8s\n",
	        it->covers ? it->ranks : rank, it->host, it->done, it->late * 100,
	        it->judged > 0 ? it->missed / it->judged * 100 : 0.0, it->repeated * share,
	        it->covers ? "(sums)" : waits);
}

/* If the job has several communicators, each line names its own. */
static void show_heading(FILE *out, const struct straggler *list, unsigned i, unsigned n)
{
	const struct straggler *it = &list[i];
	unsigned next = i;

	while (next < n && is_same_comm(&list[next], it))
		next++;
	fprintf(out, "\njob %u", it->job);
	if ((i && list[i - 1].job == it->job) || (next < n && list[next].job == it->job))
		fprintf(out, ", communicator %" PRIx64 " of %u ranks", it->key, it->size);
	fprintf(out, "\n  %4s  %-20s %12s %8s %10s %10s %8s\n", "RANK", "HOST", "FRAGMENTS", "LATE",
	        "LOST UP", "LOST DOWN", "WAITS");
}

void ranks_print(FILE *out, const struct look_ranks *look, struct look_ranks *before)
{
	struct straggler *list = calloc(look->n + 1, sizeof(*list));

	for (unsigned i = 0; list && i < look->n; i++)
		list[i] = since(&look->all[i], before);
	if (list) {
		find_late(list, look->n);
		qsort(list, look->n, sizeof(*list), later_first);
	}
	for (unsigned i = 0; list && i < look->n; i++) {
		if (!i || !is_same_comm(&list[i], &list[i - 1]))
			show_heading(out, list, i, look->n);
		show_rank(out, &list[i]);
	}
	free(list);
	if (look->untold)
		fprintf(out,
		        "\nranks of %u communicators are not shown: their aggregators have too "
		        "many\n",
		        look->untold);
	if (look->beyond)
		fprintf(out, "\n%u more ranks are not shown\n", look->beyond);
}
