/* SPDX-License-Identifier: Apache-2.0 */
/* trib top of a controller: its nodes, and of each job who comes late and whose link loses. */
#include "cli/remote.h"
#include "cli/top.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RANKS_MAX 4096u
#define NODES_MAX 16384u

/* A rank of a job, or an aggregator of some, summed over the aggregators that it sends to. */
struct straggler {
	unsigned job, rank;
	uint64_t covers; /* 0: it is a rank */
	char host[64], ranks[40];
	double done, last, judged, missed, repeated;
	double waits; /* share of its time; below 0: it has not said */
	double late;  /* share of fragments that all waited for it */
};

struct look {
	unsigned n_ranks, n_nodes;
	struct straggler ranks[RANKS_MAX];
	struct {
		char address[64];
		double payload;
	} nodes[NODES_MAX];
};

bool top_has_controller(void)
{
	struct client *client;

	if (client_find(NULL, &client) != TRIB_OK)
		return false;
	client_free(client);
	return true;
}

static struct straggler *rank_find(struct look *look, const struct straggler *who)
{
	for (unsigned i = 0; i < look->n_ranks; i++)
		if (look->ranks[i].job == who->job && look->ranks[i].rank == who->rank &&
		    look->ranks[i].covers == who->covers)
			return &look->ranks[i];
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

static void take_child(struct look *look, unsigned job, const json_t *child)
{
	struct straggler who = { .job = job,
		                 .rank = (unsigned)remote_number(child, "rank"),
		                 .waits = -1 };
	struct straggler *it;

	remote_plain(child, "host", who.host, sizeof(who.host));
	remote_ranks(json_object_get(child, "covers"), who.ranks, sizeof(who.ranks));
	who.covers = take_covers(json_object_get(child, "covers"));
	it = rank_find(look, &who);
	if (!it && look->n_ranks < RANKS_MAX) {
		it = &look->ranks[look->n_ranks++];
		*it = who;
	}
	if (!it)
		return;
	it->done += remote_number(child, "done");
	it->last += remote_number(child, "last");
	it->judged += remote_number(child, "judged");
	it->missed += remote_number(child, "missed");
	it->repeated += remote_number(child, "repeated");
	if (json_object_get(child, "waits"))
		it->waits = remote_number(child, "waits");
}

static void take_node(struct look *look, const json_t *node)
{
	const json_t *comms = json_object_get(node, "jobs");

	if (look->n_nodes < NODES_MAX) {
		remote_plain(node, "address", look->nodes[look->n_nodes].address,
		             sizeof(look->nodes->address));
		look->nodes[look->n_nodes++].payload = remote_number(node, "payload");
	}
	for (size_t i = 0; i < json_array_size(comms); i++) {
		const json_t *comm = json_array_get(comms, i);
		const json_t *children = json_object_get(comm, "children");

		for (size_t k = 0; k < json_array_size(children); k++)
			take_child(look, (unsigned)remote_number(comm, "job"),
			           json_array_get(children, k));
	}
}

/* What a node had added when it was last looked at; -1: that is not known. */
static double payload_before(const struct look *before, const char *address)
{
	for (unsigned i = 0; i < before->n_nodes; i++)
		if (!strcmp(before->nodes[i].address, address))
			return before->nodes[i].payload;
	return -1;
}

static void show_node(const json_t *node, const struct look *before, double seconds)
{
	double payload = remote_number(node, "payload");
	double then = payload_before(before, remote_text(node, "address"));
	char name[64], rate[24] = "-";

	remote_plain(node, "name", name, sizeof(name));
	if (then >= 0 && seconds > 0 && payload >= then)
		remote_rate((payload - then) * 8 / seconds, rate, sizeof(rate));
	printf("%-20s %-24s %-7s %5.0f %% %6.2f %12s\n", name, remote_text(node, "address"),
	       remote_text(node, "state"), remote_number(node, "load") * 100,
	       remote_number(node, "busy"), rate);
}

/* What has come since the last look, or all of it where it was not there then. */
static struct straggler since(const struct straggler *now, struct look *before)
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
 * In a tree a rank is late among its siblings only, and all wait for it as often as its
 * aggregators are late as well. By rank the products add up to one.
 */
static void find_late(struct straggler *list, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct straggler *it = &list[i];
		uint64_t below = it->covers ? it->covers : it->rank < 64 ? 1ull << it->rank : 0;

		it->late = came_last(it);
		for (unsigned k = 0; k < n; k++)
			if (list[k].job == it->job && list[k].covers != it->covers && below &&
			    (list[k].covers & below) == below)
				it->late *= came_last(&list[k]);
	}
}

static int later_first(const void *a, const void *b)
{
	const struct straggler *one = a, *two = b;

	if (one->job != two->job)
		return one->job < two->job ? -1 : 1;
	if (!one->covers != !two->covers) /* aggregators last: people look for ranks */
		return one->covers ? 1 : -1;
	if (one->late != two->late)
		return one->late < two->late ? 1 : -1;
	return (int)one->rank - (int)two->rank;
}

static void show_rank(const struct straggler *it)
{
	double share = it->done > 0 ? 100 / it->done : 0;
	char waits[16] = "?", rank[16];

	if (it->waits >= 0)
		snprintf(waits, sizeof(waits), "%.1f %%", it->waits * 100);
	snprintf(rank, sizeof(rank), "%u", it->rank);
	printf("  %4s  %-20s %12.0f %6.1f %% %8.2f %% %8.2f %% %8s\n",
	       it->covers ? it->ranks : rank, it->host, it->done, it->late * 100,
	       it->judged > 0 ? it->missed / it->judged * 100 : 0.0, it->repeated * share,
	       it->covers ? "(sums)" : waits);
}

static void show_ranks(const struct look *look, struct look *before)
{
	struct straggler *list = calloc(look->n_ranks + 1, sizeof(*list));

	for (unsigned i = 0; list && i < look->n_ranks; i++)
		list[i] = since(&look->ranks[i], before);
	if (list) {
		find_late(list, look->n_ranks);
		qsort(list, look->n_ranks, sizeof(*list), later_first);
	}
	for (unsigned i = 0; list && i < look->n_ranks; i++) {
		if (!i || list[i].job != list[i - 1].job)
			printf("\njob %u\n  %4s  %-20s %12s %8s %10s %10s %8s\n", list[i].job,
			       "RANK", "HOST", "FRAGMENTS", "LATE", "LOST UP", "LOST DOWN",
			       "WAITS");
		show_rank(&list[i]);
	}
	free(list);
}

static int show(struct client *client, struct look *look, struct look *before, double every,
                bool once)
{
	json_t *answer, *list;

	if (remote_get(client, "/v1/nodes", &answer) != TRIB_OK)
		return remote_fail("trib top");
	list = json_object_get(answer, "nodes");
	memset(look, 0, sizeof(*look));
	for (size_t i = 0; i < json_array_size(list); i++)
		take_node(look, json_array_get(list, i));
	if (isatty(STDOUT_FILENO) && !once)
		printf("\033[H\033[J");
	printf("%-20s %-24s %-7s %7s %6s %12s\n", "NAME", "ADDRESS", "STATE", "LOAD", "BUSY",
	       "ADDS");
	for (size_t i = 0; i < json_array_size(list); i++)
		show_node(json_array_get(list, i), before, every);
	show_ranks(look, before);
	fflush(stdout);
	json_decref(answer);
	return 0;
}

static int watch(struct client *client, double every, bool once)
{
	struct look *look = calloc(1, sizeof(*look)), *before = calloc(1, sizeof(*before)), *swap;
	int code = look && before ? 0 : EXIT_FAILURE;

	while (!code) {
		code = show(client, look, before, every, once);
		if (code || once)
			break;
		swap = before, before = look, look = swap;
		usleep((useconds_t)(every * 1e6));
	}
	free(look);
	free(before);
	return code;
}

int top_controller(const char *controller, double every, bool once, bool json)
{
	struct client *client;
	json_t *answer;
	int code = 0;

	if (client_find(controller, &client) != TRIB_OK)
		return remote_fail("trib top");
	if (!json)
		code = watch(client, every, once);
	else if (remote_get(client, "/v1/nodes", &answer) == TRIB_OK) {
		remote_dump(answer);
		json_decref(answer);
	} else {
		code = remote_fail("trib top");
	}
	client_free(client);
	return code;
}
