/* SPDX-License-Identifier: Apache-2.0 */
#include "control/pace.h"

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* What has been counted is of no use for a rate any more. */
static void begin_anew(struct pace *pace)
{
	pace->marks[0] = pace->marks[1] = (struct pace_mark){ 0 };
	pace->bps = 0;
}

static void forget_silent(struct pace *pace, uint64_t now)
{
	for (unsigned i = 0; i < pace->n;)
		if (now > pace->trees[i].at && now - pace->trees[i].at > pace->silent_ns)
			pace->trees[i] = pace->trees[--pace->n];
		else
			i++;
}

static struct pace_tree *find(struct pace *pace, uint64_t id)
{
	for (unsigned i = 0; i < pace->n; i++)
		if (pace->trees[i].id == id)
			return &pace->trees[i];
	return NULL;
}

static uint64_t longest_pause(const struct pace *pace)
{
	return larger(pace->marks[0].pause, pace->marks[1].pause);
}

/* Something has moved, after a pause or none; a rate is over the time since the older mark. */
static void measure(struct pace *pace, uint64_t at, uint64_t pause)
{
	const struct pace_mark here = { .bytes = pace->bytes, .at = at };
	uint64_t span;

	pace->marks[1].pause = larger(pace->marks[1].pause, pause);
	if (longest_pause(pace) > PACE_PAUSE_MAX) {
		/* Not before it has gone on without another one for as long as four would be. */
		pace->marks[0] = pace->marks[1] = here;
		pace->marks[1].pause = PACE_PAUSE_MAX;
	}
	span = larger(PACE_SPAN, PACE_PAUSES * longest_pause(pace));
	pace->bps = at - pace->marks[0].at >= span ? (pace->bytes - pace->marks[0].bytes) * 8e9 /
	                                                     (double)(at - pace->marks[0].at)
	                                           : 0;
	if (at - pace->marks[1].at >= span) {
		pace->marks[0] = pace->marks[1];
		pace->marks[1] = here;
	}
}

/* All have spoken. Where trees are alike, the mean of the times is when the sum was so. */
static void look(struct pace *pace)
{
	uint64_t first = pace->trees[0].at, pause = pace->looked_at - pace->moved_at;
	double more = 0, later = 0;

	for (unsigned i = 0; i < pace->n; i++) {
		struct pace_tree *tree = &pace->trees[i];

		more += (double)(tree->bytes - tree->counted);
		later += (double)(int64_t)(tree->at - first) / pace->n;
		tree->counted = tree->bytes;
		tree->is_new = false;
	}
	pace->bytes += more;
	pace->looked_at = larger(first + (uint64_t)(int64_t)later, pace->looked_at);
	if (!pace->marks[0].at) {
		pace->marks[0] = (struct pace_mark){ .bytes = pace->bytes, .at = pace->looked_at };
		pace->marks[1] = pace->marks[0];
		pace->moved_at = pace->looked_at;
	} else if (more > 0) {
		pace->moved_at = pace->looked_at;
		measure(pace, pace->looked_at, pause);
	}
}

void pace_take(struct pace *pace, uint64_t id, uint64_t bytes, uint64_t said_at, uint64_t silent_ns)
{
	struct pace_tree *tree;

	pace->silent_ns = silent_ns;
	forget_silent(pace, said_at);
	tree = find(pace, id);
	if (!tree && pace->n == PACE_TREES_MAX)
		return;
	if (!tree || bytes < tree->bytes) {
		tree = tree ? tree : &pace->trees[pace->n++];
		*tree = (struct pace_tree){ .id = id, .counted = bytes };
		begin_anew(pace);
	} else if (said_at <= tree->at) {
		return;
	}
	tree->bytes = bytes;
	tree->at = said_at;
	tree->is_new = true;
	for (unsigned i = 0; i < pace->n; i++)
		if (!pace->trees[i].is_new)
			return;
	look(pace);
}

double pace_bps(const struct pace *pace, unsigned trees, uint64_t now)
{
	uint64_t pause = pace->looked_at - pace->moved_at;

	if (pace->n < trees || now > pace->looked_at + pace->silent_ns ||
	    pause > larger(PACE_SPAN, 2 * longest_pause(pace)))
		return 0;
	return pace->bps;
}
