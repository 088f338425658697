/* SPDX-License-Identifier: Apache-2.0 */
#include "path/virtual/hop_search.h"
#include "base/clock.h"

#include <string.h>

void hop_search_init(struct hop_search *search, unsigned most)
{
	memset(search, 0, sizeof(*search));
	search->most = most;
	search->patience = SEARCH_PATIENCE;
	search->n_pairs = search->n_apart = 1;
}

void hop_search_pairs(struct hop_search *search, unsigned own, unsigned peer)
{
	search->n_pairs = own * peer;
	search->n_apart = own > peer ? own : peer;
}

/* 0-0, 1-1, 2-2 ... come first, then 0-1, 1-2 ... */
void hop_search_pair(unsigned own, unsigned peer, unsigned p, unsigned *i, unsigned *j)
{
	unsigned more = own > peer ? own : peer, k = p % more, shift = p / more;

	*i = own < peer ? (k + shift) % own : k;
	*j = own < peer ? k : (k + shift) % peer;
}

/* ---- comparing ---- */

/* Is any router known, beyond the one in the routing table? */
static bool is_traced(const struct virtual_path *path)
{
	for (unsigned h = 1; h < VIRTUAL_HOPS; h++)
		if (path_hop_is_known(&path->hops[h]))
			return true;
	return false;
}

static bool hop_differs(const struct path_hop *a, const struct path_hop *b)
{
	return path_hop_is_known(a) && path_hop_is_known(b) && memcmp(a, b, sizeof(*a)) != 0;
}

static bool differ(const struct virtual_path *a, const struct virtual_path *b)
{
	for (unsigned h = 0; h < VIRTUAL_HOPS; h++)
		if (hop_differs(&a->hops[h], &b->hops[h]))
			return true;
	return a->interface != b->interface || is_traced(a) != is_traced(b);
}

static bool same_host(const struct udp_address *a, const struct udp_address *b)
{
	size_t size, other;
	const void *one = udp_raw(a, &size), *two = udp_raw(b, &other);

	return size == other && memcmp(one, two, size) == 0;
}

/* Does it differ from all paths that are kept? */
static bool is_new(const struct hop_search *search, const struct virtual_path *path,
                   bool by_address)
{
	for (unsigned i = 0; i < search->n; i++) {
		const struct virtual_path *other = &search->candidates[i].path;

		if (search->candidates[i].state != CANDIDATE_KEPT)
			continue;
		if (by_address ? same_host(&path->from, &other->from) &&
		                         same_host(&path->to, &other->to)
		               : !differ(path, other))
			return false;
	}
	return true;
}

static bool any_heard(const struct hop_search *search)
{
	for (unsigned h = 1; h < VIRTUAL_HOPS; h++)
		if (search->heard[h])
			return true;
	return false;
}

/* ---- tracing ---- */

static bool asks_for(const struct hop_search *search, unsigned h)
{
	if (!search->heard[h])
		return search->missed[h] < 2;
	return h == 1 || search->differs[h] || search->heard[h] < SEARCH_SAME;
}

static enum candidate_state judge(const struct hop_search *search, unsigned i)
{
	const struct virtual_path *path = &search->candidates[i].path;
	bool routed = path_hop_is_known(&path->hops[0]);

	if (!routed || is_traced(path))
		return is_new(search, path, false) ? CANDIDATE_KEPT : CANDIDATE_DOUBLE;
	if (any_heard(search)) /* a double that does not answer this time is not cut for that */
		return search->candidates[i].first ? CANDIDATE_SILENT
		                                   : search->candidates[i].before;
	return i < search->n_apart && is_new(search, path, true) ? CANDIDATE_KEPT
	                                                         : CANDIDATE_DOUBLE;
}

static void trace_ends(struct hop_search *search, unsigned i)
{
	struct candidate *candidate = &search->candidates[i];
	enum candidate_state state = judge(search, i);

	if (state == CANDIDATE_KEPT && search->n_kept == search->most)
		state = CANDIDATE_DOUBLE; /* no more are wanted */
	if (state == CANDIDATE_KEPT)
		return hop_search_keep(search, i);
	candidate->state = state;
	search->fruitless += candidate->first;
	candidate->first = false;
}

/* Goes on with hop h, or the next one that is worth a probe. */
static void trace_from(struct hop_search *search, unsigned i, unsigned h)
{
	struct candidate *candidate = &search->candidates[i];

	candidate->sent = 0;
	candidate->tries = 0;
	while (h < VIRTUAL_HOPS && !asks_for(search, h))
		h++;
	candidate->hop = h;
	if (h == VIRTUAL_HOPS || !path_hop_is_known(&candidate->path.hops[0]))
		trace_ends(search, i);
}

unsigned hop_search_add(struct hop_search *search, const struct virtual_path *path)
{
	unsigned i = search->n++;

	search->candidates[i] = (struct candidate){ .path = *path, .first = true };
	for (unsigned h = 1; h < VIRTUAL_HOPS; h++)
		search->heard[h] += path_hop_is_known(&path->hops[h]);
	trace_from(search, i, 1);
	return i;
}

void hop_search_skip(struct hop_search *search)
{
	search->candidates[search->n++] = (struct candidate){ .state = CANDIDATE_SKIPPED };
	search->fruitless++;
}

void hop_search_keep(struct hop_search *search, unsigned i)
{
	if (search->candidates[i].state != CANDIDATE_KEPT)
		search->n_kept++;
	search->candidates[i].state = CANDIDATE_KEPT;
	search->fruitless = 0;
}

void hop_search_heard(struct hop_search *search, unsigned i, const struct path_hop *hop)
{
	struct candidate *candidate = &search->candidates[i];
	unsigned h = candidate->hop;

	if (candidate->state != CANDIDATE_TRACED || !candidate->sent)
		return;
	candidate->path.hops[h] = *hop;
	search->heard[h]++;
	for (unsigned k = 0; k < search->n; k++)
		search->differs[h] |= hop_differs(hop, &search->candidates[k].path.hops[h]);
	trace_from(search, i, h + 1);
}

void hop_search_missed(struct hop_search *search, unsigned i)
{
	struct candidate *candidate = &search->candidates[i];
	unsigned h = candidate->hop;

	if (candidate->state != CANDIDATE_TRACED || !candidate->sent)
		return;
	search->missed[h]++;
	/* If this hop answers others, then the path is cut here. Otherwise the hop may be mute. */
	trace_from(search, i, search->heard[h] ? VIRTUAL_HOPS : h + 1);
}

/* ---- the course of the search ---- */

static unsigned count(const struct hop_search *search, enum candidate_state state)
{
	unsigned n = 0;

	for (unsigned i = 0; i < search->n; i++)
		n += search->candidates[i].state == state;
	return n;
}

bool hop_search_is_tracing(const struct hop_search *search)
{
	return count(search, CANDIDATE_TRACED) > 0;
}

bool hop_search_wants(const struct hop_search *search)
{
	unsigned patience = search->patience * search->n_kept,
		 traced = count(search, CANDIDATE_TRACED);

	if (patience < SEARCH_FRUITLESS)
		patience = SEARCH_FRUITLESS;
	return search->n < SEARCH_CANDIDATES && search->n_kept < search->most &&
	       search->fruitless + traced < patience && traced < SEARCH_TRACED;
}

/* Could tracing again find more? If there is one path and none is cut, there is no choice. */
static bool goes_on(const struct hop_search *search)
{
	return search->n_kept < search->most && any_heard(search) &&
	       (search->n_kept > 1 || count(search, CANDIDATE_SILENT));
}

static void retrace(struct hop_search *search, unsigned i)
{
	struct candidate *candidate = &search->candidates[i];

	memset(&candidate->path.hops[1], 0, (VIRTUAL_HOPS - 1) * sizeof(*candidate->path.hops));
	candidate->before = candidate->state;
	candidate->state = CANDIDATE_TRACED;
	trace_from(search, i, 1);
}

/* Traces up to `most` candidates of a state again, from candidate `first` on. Returns how many. */
static unsigned retrace_some(struct hop_search *search, enum candidate_state state, unsigned first,
                             unsigned most)
{
	unsigned n = 0;

	for (unsigned k = 0; k < search->n && n < most; k++) {
		unsigned i = (first + k) % search->n;

		if (search->candidates[i].state == state) {
			retrace(search, i);
			n++;
		}
	}
	return n;
}

/* Silent candidates and doubles by turns: a router's few answers are not enough for both. */
static void begin_again(struct hop_search *search, uint64_t now)
{
	unsigned round = search->round++;

	search->again = now + SEARCH_AGAIN_NS;
	if (round % 2 || !retrace_some(search, CANDIDATE_SILENT, 0, search->n))
		retrace_some(search, CANDIDATE_DOUBLE, round / 2 * SEARCH_DOUBLES, SEARCH_DOUBLES);
}

/* A second try at once, if this hop has answered others. */
static bool deserves_another(const struct hop_search *search, const struct candidate *candidate)
{
	return candidate->first && candidate->tries < 2 && search->heard[candidate->hop];
}

bool hop_search_probe(struct hop_search *search, uint64_t now, unsigned *which, unsigned *hop)
{
	if (!search->again || hop_search_is_tracing(search))
		search->again = now + SEARCH_AGAIN_NS;
	else if (now >= search->again && goes_on(search))
		begin_again(search, now);
	for (unsigned i = 0; i < search->n; i++) {
		struct candidate *candidate = &search->candidates[i];

		if (candidate->state == CANDIDATE_TRACED && candidate->sent &&
		    clock_since(now, candidate->sent) >= SEARCH_WAIT_NS) {
			if (deserves_another(search, candidate))
				candidate->sent = 0;
			else
				hop_search_missed(search, i);
		}
		if (candidate->state == CANDIDATE_TRACED && !candidate->sent) {
			candidate->sent = now;
			candidate->tries++;
			*which = i;
			*hop = candidate->hop;
			return true;
		}
	}
	return false;
}

uint64_t hop_search_wake(const struct hop_search *search)
{
	uint64_t wake = goes_on(search) ? search->again : UINT64_MAX;

	for (unsigned i = 0; i < search->n; i++) {
		const struct candidate *candidate = &search->candidates[i];
		uint64_t due = candidate->sent ? candidate->sent + SEARCH_WAIT_NS : 0;

		if (candidate->state == CANDIDATE_TRACED && due < wake)
			wake = due;
	}
	return wake;
}
