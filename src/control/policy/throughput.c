/* SPDX-License-Identifier: Apache-2.0 */
#include "control/policy/throughput.h"

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* Discards the marks: no rate can span this moment. */
static void begin_anew(struct throughput *throughput)
{
	throughput->marks[0] = throughput->marks[1] = (struct throughput_mark){ 0 };
	throughput->bps = 0;
}

static void forget_silent(struct throughput *throughput, uint64_t now)
{
	for (unsigned i = 0; i < throughput->n;)
		if (now > throughput->trees[i].at &&
		    now - throughput->trees[i].at > throughput->silent_ns)
			throughput->trees[i] = throughput->trees[--throughput->n];
		else
			i++;
}

static struct throughput_tree *find(struct throughput *throughput, uint64_t id)
{
	for (unsigned i = 0; i < throughput->n; i++)
		if (throughput->trees[i].id == id)
			return &throughput->trees[i];
	return NULL;
}

static uint64_t longest_pause(const struct throughput *throughput)
{
	return larger(throughput->marks[0].pause, throughput->marks[1].pause);
}

/* The sum has grown, perhaps after a pause. The rate is taken since the older mark. */
static void measure(struct throughput *throughput, uint64_t at, uint64_t pause)
{
	const struct throughput_mark here = { .bytes = throughput->bytes, .at = at };
	uint64_t span;

	throughput->marks[1].pause = larger(throughput->marks[1].pause, pause);
	if (longest_pause(throughput) > THROUGHPUT_PAUSE_MAX_NS) {
		/* No rate until sums have gone on for four such pauses. */
		throughput->marks[0] = throughput->marks[1] = here;
		throughput->marks[1].pause = THROUGHPUT_PAUSE_MAX_NS;
	}
	span = larger(THROUGHPUT_SPAN_NS, THROUGHPUT_PAUSES * longest_pause(throughput));
	throughput->bps = at - throughput->marks[0].at >= span
	                          ? (throughput->bytes - throughput->marks[0].bytes) * 8e9 /
	                                    (double)(at - throughput->marks[0].at)
	                          : 0;
	if (at - throughput->marks[1].at >= span) {
		throughput->marks[0] = throughput->marks[1];
		throughput->marks[1] = here;
	}
}

/* All roots have reported. The mean of their times is taken as the time of the sum. */
static void look(struct throughput *throughput)
{
	uint64_t first = throughput->trees[0].at,
		 pause = throughput->looked_at - throughput->moved_at;
	double more = 0, later = 0;

	for (unsigned i = 0; i < throughput->n; i++) {
		struct throughput_tree *tree = &throughput->trees[i];

		more += (double)(tree->bytes - tree->counted);
		later += (double)(int64_t)(tree->at - first) / throughput->n;
		tree->counted = tree->bytes;
		tree->is_new = false;
	}
	throughput->bytes += more;
	throughput->looked_at = larger(first + (uint64_t)(int64_t)later, throughput->looked_at);
	if (!throughput->marks[0].at) {
		throughput->marks[0] = (struct throughput_mark){ .bytes = throughput->bytes,
			                                         .at = throughput->looked_at };
		throughput->marks[1] = throughput->marks[0];
		throughput->moved_at = throughput->looked_at;
	} else if (more > 0) {
		throughput->moved_at = throughput->looked_at;
		measure(throughput, throughput->looked_at, pause);
	}
}

void throughput_take(struct throughput *throughput, uint64_t id, uint64_t bytes, uint64_t said_at,
                     uint64_t silent_ns)
{
	struct throughput_tree *tree;

	throughput->silent_ns = silent_ns;
	forget_silent(throughput, said_at);
	tree = find(throughput, id);
	if (!tree && throughput->n == THROUGHPUT_TREES_MAX)
		return;
	if (!tree || bytes < tree->bytes) {
		tree = tree ? tree : &throughput->trees[throughput->n++];
		*tree = (struct throughput_tree){ .id = id, .counted = bytes };
		begin_anew(throughput);
	} else if (said_at <= tree->at) {
		return;
	}
	tree->bytes = bytes;
	tree->at = said_at;
	tree->is_new = true;
	for (unsigned i = 0; i < throughput->n; i++)
		if (!throughput->trees[i].is_new)
			return;
	look(throughput);
}

double throughput_bps(const struct throughput *throughput, unsigned trees, uint64_t now)
{
	uint64_t pause = throughput->looked_at - throughput->moved_at;

	if (throughput->n < trees || now > throughput->looked_at + throughput->silent_ns ||
	    pause > larger(THROUGHPUT_SPAN_NS, 2 * longest_pause(throughput)))
		return 0;
	return throughput->bps;
}
