/* SPDX-License-Identifier: Apache-2.0 */
#include "path/verbs/splitter.h"
#include "base/clock.h"
#include "path/verbs/split_order.h"

#define ROUND 4096u       /* bytes: chunks end at multiples of the largest MTU */
#define SLOT_BITS 10      /* of a chunk's id; the rest is its generation */
#define NONE SPLIT_CHUNKS /* no chunk */

_Static_assert(SPLIT_CHUNKS <= 1u << SLOT_BITS, "a chunk's place must fit into its id");

void splitter_init(struct splitter *s, const struct split_config *config,
                   struct split_entry *entries, split_find_receive find, void *user)
{
	*s = (struct splitter){ .config = *config,
		                .find = find,
		                .user = user,
		                .entries = entries,
		                .limit = UINT64_MAX };
}

void splitter_agree(struct splitter *s, unsigned paths, unsigned own, uint32_t notes_ahead,
                    uint64_t now)
{
	s->n_paths = paths;
	s->own = own;
	s->notes_ahead = notes_ahead;
	monitor_init(&s->estimates, paths, now);
	s->estimates.kind = s->config.monitor;
	balancer_init(&s->balancer, s->config.balancer);
}

bool splitter_post(struct splitter *s, const struct split_request *request)
{
	struct split_entry *entry = split_entry_of(s, s->posted);

	if (s->posted - s->head == s->config.capacity)
		return false;
	*entry = (struct split_entry){ .request = *request,
		                       .remote = request->remote,
		                       .receive = s->receives };
	s->receives += request->consumes;
	s->posted++;
	return true;
}

bool splitter_take_back(struct splitter *s, uint64_t request)
{
	if (request + 1 != s->posted || split_entry_of(s, request)->split)
		return false;
	s->posted = request;
	s->receives -= split_entry_of(s, request)->request.consumes;
	s->cut = s->cut < request ? s->cut : request;
	s->whole = s->whole < request ? s->whole : request;
	return true;
}

/* ---- cutting ---- */

static unsigned paths_up(const struct splitter *s)
{
	unsigned n = 0;

	for (unsigned i = 0; i < s->n_paths; i++)
		n += s->up[i];
	return n;
}

/*
 * Chunks of equal length, two for each path: so short requests use all paths, and a path always has
 * the next chunk when one is done.
 */
static uint32_t part_of(const struct splitter *s, uint32_t length)
{
	uint32_t n = 2 * paths_up(s), part;

	part = (length + n - 1) / n;
	part = (part + ROUND - 1) / ROUND * ROUND;
	if (part < SPLIT_LEAST)
		part = SPLIT_LEAST;
	return part < s->config.chunk ? part : s->config.chunk;
}

static bool may_split(const struct splitter *s, const struct split_request *request)
{
	return !request->whole && request->op != SPLIT_OTHER &&
	       request->length >= (s->up[s->own] || s->hold ? s->config.least : 1);
}

/* Decides whether a request is split. The first chunk decides, so that the paths are those of now.
 */
static void decide(struct splitter *s, struct split_entry *entry)
{
	const struct split_request *request = &entry->request;

	entry->decided = true;
	entry->split = may_split(s, request) && paths_up(s) > 0 &&
	               (request->op != SPLIT_SEND ||
	                s->find(s->user, entry->receive, request->length, &entry->remote));
	entry->noted = !entry->split || !request->consumes;
	if (entry->split)
		entry->part = part_of(s, request->length);
}

static unsigned free_chunk(const struct splitter *s)
{
	for (unsigned i = 0; i < SPLIT_CHUNKS; i++)
		if (s->chunks[i].state == CHUNK_FREE)
			return i;
	return NONE;
}

/*
 * How long a chunk would take, in chunks of the fastest path. A path counts as slower if it takes
 * about twice as long, three times, and so on: smaller differences are mostly errors of the
 * measurement.
 */
static uint64_t wait_of(const struct splitter *s, unsigned path, uint64_t fastest)
{
	uint64_t bps = s->estimates.paths[path].bps;
	uint64_t slowness = bps ? (fastest + bps / 2) / bps : 1;

	return (s->flying[path] + 1) * (slowness ? slowness : 1);
}

/* Leaves room only where a chunk arrives first: so the last chunks of a request end together. */
static void keep_soonest(const struct splitter *s, uint32_t room[])
{
	uint64_t fastest = 0, soonest = UINT64_MAX;

	for (unsigned i = 0; i < s->n_paths; i++)
		if (s->up[i] && s->estimates.paths[i].bps > fastest)
			fastest = s->estimates.paths[i].bps;
	for (unsigned i = 0; i < s->n_paths; i++)
		if (room[i] && wait_of(s, i, fastest) < soonest)
			soonest = wait_of(s, i, fastest);
	for (unsigned i = 0; i < s->n_paths; i++)
		if (wait_of(s, i, fastest) > soonest)
			room[i] = 0;
}

/* A path for `bytes`, or -1. */
static int choose_path(struct splitter *s, uint32_t bytes, uint32_t message, uint64_t now)
{
	uint32_t room[PATHS_MAX];

	for (unsigned i = 0; i < s->n_paths; i++) {
		bool open = s->up[i] && s->flying[i] < s->config.depth;

		room[i] = open ? (s->config.depth - s->flying[i]) * s->config.chunk : 0;
	}
	if (s->config.balancer == BALANCE_BANDWIDTH)
		keep_soonest(s, room);
	return balancer_choose(&s->balancer, &s->estimates, room, bytes ? bytes : 1, message, now);
}

static struct split_action fly(struct splitter *s, unsigned slot, unsigned path, uint64_t now)
{
	struct split_chunk *chunk = &s->chunks[slot];

	chunk->state = CHUNK_FLYING;
	chunk->path = path;
	chunk->sent = now;
	s->flying[path]++;
	monitor_sent(&s->estimates, path, now, chunk->length);
	return (struct split_action){ .kind = chunk->note ? SPLIT_POST_NOTE : SPLIT_POST_CHUNK,
		                      .request = chunk->request,
		                      .path = path,
		                      .id = chunk->generation << SLOT_BITS | slot,
		                      .offset = chunk->offset,
		                      .length = chunk->length,
		                      .receive = split_entry_of(s, chunk->request)->receive };
}

/* The first chunk, in the order of posting, that has to go again. */
static unsigned first_again(const struct splitter *s)
{
	unsigned best = NONE;

	for (unsigned i = 0; s->n_again && i < s->top; i++) {
		const struct split_chunk *c = &s->chunks[i], *b = &s->chunks[best % SPLIT_CHUNKS];

		if (c->state == CHUNK_AGAIN &&
		    (best == NONE || c->request < b->request ||
		     (c->request == b->request && c->offset < b->offset)))
			best = i;
	}
	return best;
}

static struct split_action send_again(struct splitter *s, unsigned slot, uint64_t now)
{
	struct split_chunk *chunk = &s->chunks[slot];
	const struct split_entry *entry = split_entry_of(s, chunk->request);
	int path = -1;

	if (chunk->note || split_order_may_send(s, chunk->request, chunk->offset, chunk->length))
		path = choose_path(s, chunk->length, entry->request.length, now);
	if (path < 0)
		return (struct split_action){ .kind = SPLIT_NOTHING };
	s->n_again--;
	s->resent++;
	return fly(s, slot, (unsigned)path, now);
}

static struct split_action add_chunk(struct splitter *s, uint64_t request, uint32_t length,
                                     bool note, uint64_t now)
{
	struct split_entry *entry = split_entry_of(s, request);
	unsigned slot = free_chunk(s);
	int path;

	if (slot == NONE)
		return (struct split_action){ .kind = SPLIT_NOTHING };
	path = choose_path(s, length, entry->request.length, now);
	if (path < 0)
		return (struct split_action){ .kind = SPLIT_NOTHING };
	s->chunks[slot] = (struct split_chunk){ .note = note,
		                                .generation = s->chunks[slot].generation,
		                                .request = request,
		                                .offset = entry->next,
		                                .length = length };
	if (s->top <= slot)
		s->top = slot + 1;
	entry->open++;
	if (note)
		entry->noted = true;
	else
		entry->next += length;
	return fly(s, slot, (unsigned)path, now);
}

static struct split_action cut_chunk(struct splitter *s, uint64_t request, uint64_t now)
{
	struct split_entry *entry = split_entry_of(s, request);
	uint32_t left = entry->request.length - entry->next;
	uint32_t length = left < entry->part ? left : entry->part;

	if (left && split_order_may_send(s, request, entry->next, length))
		return add_chunk(s, request, length, false, now);
	if (left || entry->receive - s->consumed >= s->notes_ahead)
		return (struct split_action){ .kind = SPLIT_NOTHING };
	return add_chunk(s, request, 0, true, now);
}

static bool is_cut(const struct split_entry *entry)
{
	return !entry->split || (entry->next == entry->request.length && entry->noted);
}

static struct split_action next_chunk(struct splitter *s, uint64_t now)
{
	unsigned slot = first_again(s);

	if (slot != NONE)
		return send_again(s, slot, now);
	for (; s->cut < s->posted && s->cut < s->limit; s->cut++) {
		struct split_entry *entry = split_entry_of(s, s->cut);

		if (!entry->decided && s->hold && may_split(s, &entry->request))
			break;
		if (!entry->decided)
			decide(s, entry);
		if (is_cut(entry))
			continue;
		if (!entry->next && !split_order_may_begin(s, s->cut))
			break;
		return cut_chunk(s, s->cut, now);
	}
	return (struct split_action){ .kind = SPLIT_NOTHING };
}

/* ---- the own QP ---- */

static bool is_in_place(const struct split_entry *entry)
{
	return entry->split && is_cut(entry) && !entry->open;
}

static struct split_action next_whole(struct splitter *s)
{
	if (s->own_down && !s->broken)
		return (struct split_action){ .kind = SPLIT_NOTHING };
	for (; s->whole < s->posted; s->whole++) {
		struct split_entry *entry = split_entry_of(s, s->whole);
		enum split_action_kind kind = SPLIT_POST_WHOLE;

		if (entry->done || entry->posted)
			continue;
		if (!s->broken) {
			if (s->whole >= s->limit || !entry->decided)
				break;
			if (entry->split && !is_in_place(entry))
				break;
			if (entry->split)
				kind = SPLIT_POST_END;
		}
		entry->posted = true;
		return (struct split_action){ .kind = kind,
			                      .request = s->whole++,
			                      .length = entry->request.length,
			                      .receive = entry->receive };
	}
	return (struct split_action){ .kind = SPLIT_NOTHING };
}

struct split_action splitter_next(struct splitter *s, uint64_t now)
{
	struct split_action action = { .kind = SPLIT_NOTHING };

	if (!s->broken)
		action = next_chunk(s, now);
	return action.kind == SPLIT_NOTHING ? next_whole(s) : action;
}

/* ---- completions ---- */

static struct split_chunk *find_chunk(struct splitter *s, uint32_t id)
{
	struct split_chunk *chunk = &s->chunks[id & ((1u << SLOT_BITS) - 1)];

	if ((id & ((1u << SLOT_BITS) - 1)) >= SPLIT_CHUNKS || chunk->state != CHUNK_FLYING ||
	    id >> SLOT_BITS != (chunk->generation & (UINT32_MAX >> SLOT_BITS)))
		return NULL;
	return chunk;
}

static void release(struct split_chunk *chunk)
{
	chunk->state = CHUNK_FREE;
	chunk->generation++;
}

bool splitter_chunk_done(struct splitter *s, uint32_t id, uint64_t now)
{
	struct split_chunk *chunk = find_chunk(s, id);
	struct split_entry *entry;

	if (!chunk)
		return false;
	entry = split_entry_of(s, chunk->request);
	s->flying[chunk->path]--;
	monitor_acked(&s->estimates, chunk->path, now, chunk->length,
	              clock_since(now, chunk->sent));
	entry->open--;
	if (is_in_place(entry) && !entry->request.consumes)
		entry->done = true;
	release(chunk);
	return true;
}

bool splitter_chunk_lost(struct splitter *s, uint32_t id, uint64_t now)
{
	struct split_chunk *chunk = find_chunk(s, id);

	if (!chunk)
		return false;
	s->flying[chunk->path]--;
	monitor_lost(&s->estimates, chunk->path, now, chunk->length);
	chunk->state = CHUNK_PARKED;
	return true;
}

bool splitter_chunk_refused(struct splitter *s, uint32_t id, int status, uint64_t now)
{
	struct split_chunk *chunk = find_chunk(s, id);

	if (chunk && ++chunk->refused == SPLIT_REFUSALS)
		return splitter_chunk_wrong(s, id, status, now);
	return splitter_chunk_lost(s, id, now);
}

bool splitter_chunk_wrong(struct splitter *s, uint32_t id, int status, uint64_t now)
{
	struct split_chunk *chunk = find_chunk(s, id);

	if (!chunk)
		return false;
	if (chunk->request < s->limit) {
		s->limit = chunk->request;
		s->limit_status = status;
	}
	return splitter_chunk_lost(s, id, now);
}

void splitter_whole_done(struct splitter *s, uint64_t request, int status)
{
	struct split_entry *entry = split_entry_of(s, request);

	if (request < s->head || request >= s->posted || !entry->posted || entry->done)
		return;
	entry->done = true;
	if (entry->status == SPLIT_OK || status == SPLIT_OK)
		entry->status = status;
	if (status == SPLIT_OK && entry->request.consumes)
		s->consumed = entry->receive + 1;
}

bool splitter_take_done(struct splitter *s, struct split_done *done)
{
	struct split_entry *entry = split_entry_of(s, s->head);

	if (s->head == s->posted || !entry->done)
		return false;
	*done = (struct split_done){ .request = s->head++, .status = entry->status };
	if (s->cut < s->head)
		s->cut = s->head;
	if (s->whole < s->head)
		s->whole = s->head;
	return true;
}

bool splitter_is_busy(const struct splitter *s)
{
	return s->head < s->posted;
}

bool splitter_has_more(const struct splitter *s)
{
	bool more = s->cut < s->posted || s->whole < s->posted;

	for (unsigned i = 0; i < s->top && !more; i++)
		more = s->chunks[i].state != CHUNK_FREE;
	return more;
}

bool splitter_is_stuck(const struct splitter *s)
{
	for (unsigned i = 0; i < s->top; i++)
		if (s->chunks[i].state == CHUNK_PARKED)
			return true;
	return s->own_down || (s->cut < s->posted && s->n_paths && !paths_up(s));
}

/* ---- paths ---- */

void splitter_path_up(struct splitter *s, unsigned path, uint64_t now, uint64_t rtt_ns)
{
	monitor_acked(&s->estimates, path, now, 0, rtt_ns);
	s->up[path] = true;
}

void splitter_path_down(struct splitter *s, unsigned path, uint64_t now)
{
	s->failures += s->up[path];
	s->up[path] = false;
	for (unsigned i = 0; i < MONITOR_SILENCES; i++)
		monitor_silent(&s->estimates, path, now);
}

void splitter_fenced(struct splitter *s, unsigned path)
{
	for (unsigned i = 0; i < s->top; i++) {
		if (s->chunks[i].state == CHUNK_PARKED && s->chunks[i].path == path) {
			s->chunks[i].state = CHUNK_AGAIN;
			s->n_again++;
		}
	}
}

/* ---- failure ---- */

bool splitter_is_wrong(const struct splitter *s, int *status)
{
	*status = s->limit_status;
	return !s->broken && s->limit == s->head && s->head < s->posted;
}

/* The oldest request that is not done fails. Later ones flush, also those that are in place. */
static void flush_after(struct splitter *s, int status)
{
	bool failed = false;

	for (uint64_t i = s->head; i < s->posted; i++) {
		struct split_entry *entry = split_entry_of(s, i);

		if (failed && entry->done)
			entry->done = entry->posted = false;
		else if (s->own_down)
			entry->posted = false;
		if (!failed && !entry->done)
			entry->status = status;
		failed = failed || !entry->done;
	}
	s->whole = s->head;
}

void splitter_break(struct splitter *s, int status)
{
	if (s->broken)
		return;
	s->broken = status;
	for (unsigned i = 0; i < s->top; i++)
		if (s->chunks[i].state != CHUNK_FREE)
			release(&s->chunks[i]);
	s->n_again = 0;
	for (unsigned i = 0; i < s->n_paths; i++) {
		s->up[i] = false;
		s->flying[i] = 0;
	}
	flush_after(s, status);
}
