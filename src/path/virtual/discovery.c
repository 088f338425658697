/* SPDX-License-Identifier: Apache-2.0 */
#include "path/virtual/discovery.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/settings.h"
#include "path/balance/monitor.h"
#include "path/egress.h"
#include "path/virtual/hop_probe.h"
#include "path/virtual/hop_search.h"
#include "path/virtual/path_source.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define DISCOVERY_FIRST_NS 50000000ull /* 50 ms: the longest wait for the hops of path 0 */
#define DISCOVERY_NEXT_NS 5000000ull   /* 5 ms: for those after the first answer */
#define DISCOVERY_STEP_NS 1000000ull   /* 1 ms: the shortest time between two steps */
#define DISCOVERY_TRIED 4u             /* candidates for path 0 */
#define DISCOVERY_PATIENCE 8u          /* of a search that is not repeated later */
#define DISCOVERY_CLOSED 9u            /* "discard": a port that no host opens */
#define NEAR UINT32_MAX                /* number of near_fd in epoll */

struct discovery {
	enum path_search kind;
	unsigned most;
	unsigned n_own, n_to, n_paths;
	struct udp_address own[PATHS_MAX], to[PATHS_MAX];
	struct virtual_path paths[PATHS_MAX];
	uint64_t next; /* the earliest time of the next step */
	uint64_t wake; /* when a step has something to do, if no answer comes */
	bool told;     /* the peer's addresses are known */
	bool is_near;  /* the peer is behind the first router: all paths are one */
	int near_fd;   /* the socket that asks whether it is; -1: none */
	int epoll;     /* -1: nothing is searched */
	struct hop_search search;
	int fds[SEARCH_CANDIDATES]; /* of the candidates; -1: none */
};

/* ---- paths ---- */

static void tell_path(const struct virtual_path *path, unsigned i)
{
	char from[64], to[64], hops[VIRTUAL_HOPS_TEXT];

	virtual_path_hops(path, hops);
	log_info("path %u to %s: from %s%s%s", i, udp_text(&path->to, to, sizeof(to)),
	         udp_text(&path->from, from, sizeof(from)), *hops ? ", by " : "", hops);
}

static void add_path(struct discovery *discovery, const struct virtual_path *path)
{
	if (discovery->n_paths == PATHS_MAX)
		return;
	tell_path(path, discovery->n_paths);
	discovery->paths[discovery->n_paths++] = *path;
}

/* The addresses of pair p, without a port. */
static struct virtual_path pair_path(const struct discovery *discovery, unsigned p)
{
	unsigned i, j;

	hop_search_pair(discovery->n_own, discovery->n_to, p, &i, &j);
	return (struct virtual_path){ .from = discovery->own[i], .to = discovery->to[j] };
}

/* ---- paths that are not searched ---- */

static void add_pairs(struct discovery *discovery, unsigned first, unsigned end)
{
	for (unsigned p = first; p < end; p++) {
		struct virtual_path path = pair_path(discovery, p);

		add_path(discovery, &path);
	}
}

/* The paths of a fabric whose hash is known. */
static void add_computed(struct discovery *discovery, unsigned first, unsigned end)
{
	unsigned pairs = discovery->n_own * discovery->n_to;

	for (unsigned k = first; k < end; k++) {
		struct virtual_path path = pair_path(discovery, k % pairs);

		if (path_source_compute(&path, discovery->most, k))
			add_path(discovery, &path);
	}
}

/* ---- the search ---- */

static void reset_search(struct discovery *discovery)
{
	hop_search_init(&discovery->search, discovery->most);
	hop_search_pairs(&discovery->search, discovery->n_own, discovery->n_to);
}

static void close_candidate(struct discovery *discovery, unsigned i)
{
	if (discovery->fds[i] >= 0)
		close(discovery->fds[i]); /* leaves epoll by that */
	discovery->fds[i] = -1;
}

/* Hands out the path of a candidate that is kept. From now on its port is its user's. */
static void harvest(struct discovery *discovery, unsigned i)
{
	if (discovery->search.candidates[i].state != CANDIDATE_KEPT || discovery->fds[i] < 0)
		return;
	close_candidate(discovery, i);
	add_path(discovery, &discovery->search.candidates[i].path);
}

static bool watch(struct discovery *discovery, int fd, unsigned number)
{
	struct epoll_event event = { .data.u32 = number }; /* errors are always told */

	return epoll_ctl(discovery->epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

/* The next candidate: a pair of addresses with a new port. */
static trib_status add_candidate(struct discovery *discovery)
{
	struct hop_search *search = &discovery->search;
	struct virtual_path path = pair_path(discovery, search->n % search->n_pairs);
	unsigned i = search->n;
	struct rtnl_route route;
	trib_status status;

	if ((status = hop_probe_open(&path, &discovery->fds[i])))
		return status;
	status = egress_route(&path.from, &path.to, &route);
	if (status == TRIB_OK && !watch(discovery, discovery->fds[i], i))
		status = status_fail_errno("cannot wait for answers of routers");
	if (status != TRIB_OK) {
		close_candidate(discovery, i);
		return status;
	}
	path.interface = route.interface;
	memcpy(path.hops[0].raw, route.gateway, route.gateway_size);
	hop_search_add(search, &path);
	return TRIB_OK;
}

static void take_answers(struct discovery *discovery, unsigned i)
{
	struct hop_search *search = &discovery->search;
	enum hop_answer answer;
	struct path_hop told;

	do {
		answer = hop_probe_take(discovery->fds[i], search->candidates[i].hop, &told);
		if (answer == HOP_TOLD)
			hop_search_heard(search, i, &told);
		else if (answer == HOP_REACHED || answer == HOP_REFUSED)
			hop_search_missed(search, i);
	} while (answer != HOP_NONE);
}

static void close_near(struct discovery *discovery)
{
	if (discovery->near_fd >= 0)
		close(discovery->near_fd);
	discovery->near_fd = -1;
}

static void take_distance(struct discovery *discovery)
{
	struct path_hop told;

	discovery->is_near = hop_probe_take(discovery->near_fd, 1, &told) == HOP_REACHED;
	close_near(discovery);
}

static void take_all_answers(struct discovery *discovery)
{
	struct epoll_event events[SEARCH_CANDIDATES];
	int n = epoll_wait(discovery->epoll, events, SEARCH_CANDIDATES, 0);

	for (int i = 0; i < n; i++) {
		if (events[i].data.u32 == NEAR)
			take_distance(discovery);
		else
			take_answers(discovery, events[i].data.u32);
	}
}

static void send_probes(struct discovery *discovery, uint64_t now)
{
	unsigned i, hop;

	while (hop_search_probe(&discovery->search, now, &i, &hop))
		if (!hop_probe_send(discovery->fds[i], hop))
			hop_search_missed(&discovery->search, i);
}

static void end_search(struct discovery *discovery)
{
	for (unsigned i = 0; i < discovery->search.n; i++)
		close_candidate(discovery, i);
	close_near(discovery);
	if (discovery->epoll >= 0)
		close(discovery->epoll);
	discovery->epoll = -1;
}

/* Waits for answers until `end`, or until the next probe is due. */
static void wait_for_answers(struct discovery *discovery, uint64_t end)
{
	struct pollfd answers = { .fd = discovery->epoll, .events = POLLIN };
	uint64_t wake = hop_search_wake(&discovery->search);
	struct timespec left = clock_span(clock_since(wake < end ? wake : end, clock_now()));

	ppoll(&answers, 1, &left, NULL);
	take_all_answers(discovery);
}

/* If the second hop is the peer itself, it says so at a closed port. Routers may be mute. */
static void ask_distance(struct discovery *discovery)
{
	struct virtual_path path = pair_path(discovery, 0);

	udp_set_port(&path.to, DISCOVERY_CLOSED);
	if (hop_probe_open(&path, &discovery->near_fd) == TRIB_OK &&
	    watch(discovery, discovery->near_fd, NEAR))
		hop_probe_send(discovery->near_fd, 1);
}

/* Waits for the hops of the first candidates. One whose first hop answers is not cut. */
static void wait_for_hops(struct discovery *discovery)
{
	uint64_t end = clock_now() + DISCOVERY_FIRST_NS;
	bool heard = false;

	ask_distance(discovery);
	while (!discovery->is_near && clock_now() < end &&
	       hop_search_is_tracing(&discovery->search)) {
		send_probes(discovery, clock_now());
		wait_for_answers(discovery, end);
		if (!heard && discovery->search.heard[1]) {
			heard = true;
			end = clock_now() + DISCOVERY_NEXT_NS;
		}
	}
}

/*
 * One of the first candidates becomes path 0: one that is answered, with an alias if there are any.
 * If the fabric routes by alias, then also what comes back takes this path. The other candidates
 * are forgotten.
 */
static trib_status first_path(struct discovery *discovery)
{
	struct hop_search *search = &discovery->search;
	trib_status status = TRIB_OK;
	struct virtual_path path;

	while (status == TRIB_OK && search->n < DISCOVERY_TRIED && hop_search_wants(search))
		status = add_candidate(discovery);
	if (!search->n)
		return status;
	if (path_hop_is_known(&search->candidates[0].path.hops[0]))
		wait_for_hops(discovery);
	path = search->candidates[0].path;
	for (unsigned i = 0; i < search->n; i++) {
		if (path_hop_is_known(&search->candidates[i].path.hops[1]))
			path = search->candidates[i].path;
		close_candidate(discovery, i);
	}
	reset_search(discovery);
	hop_search_keep(search, hop_search_add(search, &path));
	add_path(discovery, &path);
	if (discovery->is_near)
		end_search(discovery);
	return TRIB_OK;
}

/*
 * Searches until one more path is kept, if there is one. No second search follows. So it misses the
 * last of four paths that are equally likely once in a thousand times: 24 candidates, 3/4 each.
 */
static void find_one(struct discovery *discovery, uint64_t wait)
{
	struct hop_search *search = &discovery->search;
	uint64_t end = clock_now() + wait;

	search->most = search->n_kept + 1;
	search->fruitless = 0;
	search->patience = DISCOVERY_PATIENCE;
	while (search->n_kept < search->most && !discovery->is_near && clock_now() < end) {
		while (hop_search_wants(search))
			if (add_candidate(discovery) != TRIB_OK)
				hop_search_skip(search);
		send_probes(discovery, clock_now());
		if (!hop_search_is_tracing(search))
			return;
		wait_for_answers(discovery, end);
	}
}

unsigned discovery_step(struct discovery *discovery, uint64_t now)
{
	struct hop_search *search = &discovery->search;

	if (discovery->epoll < 0 || !discovery->told || now < discovery->next)
		return discovery->n_paths;
	discovery->next = now + DISCOVERY_STEP_NS;
	take_all_answers(discovery);
	while (hop_search_wants(search))
		if (add_candidate(discovery) != TRIB_OK)
			hop_search_skip(search);
	send_probes(discovery, now);
	for (unsigned i = 0; i < search->n; i++)
		harvest(discovery, i);
	discovery->wake = hop_search_wants(search) ? 0 : hop_search_wake(search);
	if (discovery->wake == UINT64_MAX || discovery->is_near)
		end_search(discovery);
	return discovery->n_paths;
}

/* ---- for users ---- */

/* Without a router on the way, this host's own addresses are all there is to choose from. */
static trib_status start_search(struct discovery *discovery)
{
	reset_search(discovery);
	discovery->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (discovery->epoll < 0)
		return status_fail_errno("cannot look for paths");
	return first_path(discovery);
}

static trib_status start(struct discovery *discovery)
{
	struct virtual_path path = pair_path(discovery, 0);
	struct rtnl_route route;
	trib_status status = TRIB_OK;

	if (discovery->kind == PATHS_XOR)
		add_computed(discovery, 0, 1);
	else if (discovery->kind == PATHS_PROBED &&
	         (status = egress_route(&path.from, &path.to, &route)) == TRIB_OK &&
	         (route.gateway_size || discovery->n_own > 1))
		status = start_search(discovery);
	else
		add_path(discovery, &path);
	return status;
}

trib_status discovery_start(const struct udp_address *to, struct discovery **out)
{
	struct discovery *discovery = calloc(1, sizeof(*discovery));
	struct udp_address local;
	trib_status status;

	if (!discovery)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory to look for paths");
	discovery->epoll = discovery->near_fd = -1;
	memset(discovery->fds, 0xff, sizeof(discovery->fds));
	discovery->to[discovery->n_to++] = *to;
	status = setting_paths(&discovery->kind, &discovery->most);
	if (status == TRIB_OK)
		status = udp_local(to, &local);
	if (status == TRIB_OK) {
		discovery->n_own = discovery_own(to, discovery->own, PATHS_MAX);
		status = start(discovery);
	}
	if (status != TRIB_OK) {
		discovery_stop(discovery);
		return status;
	}
	*out = discovery;
	return TRIB_OK;
}

void discovery_stop(struct discovery *discovery)
{
	if (!discovery)
		return;
	end_search(discovery);
	free(discovery);
}

void discovery_tell(struct discovery *discovery, const struct udp_address to[], unsigned n,
                    uint64_t now)
{
	unsigned more;

	discovery->told = true;
	for (unsigned i = 0; i < n && discovery->n_to < PATHS_MAX; i++)
		if (!udp_same(&to[i], &discovery->to[0]) &&
		    to[i].storage.ss_family == discovery->to[0].storage.ss_family)
			discovery->to[discovery->n_to++] = to[i];
	more = discovery->n_own > discovery->n_to ? discovery->n_own : discovery->n_to;
	if (discovery->kind == PATHS_ADDRESSES)
		add_pairs(discovery, 1, more);
	else if (discovery->kind == PATHS_XOR)
		add_computed(discovery, 1, discovery->most);
	hop_search_pairs(&discovery->search, discovery->n_own, discovery->n_to);
	discovery_step(discovery, now);
}

unsigned discovery_count(const struct discovery *discovery)
{
	return discovery->n_paths;
}

const struct virtual_path *discovery_path(const struct discovery *discovery, unsigned i)
{
	return &discovery->paths[i];
}

/* Has a router answered, beside the first one, which the routing table names? */
static bool has_answer(const struct hop_search *search)
{
	for (unsigned h = 1; h < VIRTUAL_HOPS; h++)
		if (search->heard[h])
			return true;
	return false;
}

enum path_found discovery_found(const struct discovery *discovery)
{
	switch (discovery->kind) {
	case PATHS_OFF:
		return FOUND_OFF;
	case PATHS_ADDRESSES:
		return FOUND_ADDRESSES;
	case PATHS_XOR:
		return FOUND_COMPUTED;
	case PATHS_PROBED:
		break;
	}
	if (!path_hop_is_known(&discovery->paths[0].hops[0]))
		return FOUND_NO_ROUTER;
	if (discovery->is_near)
		return FOUND_NEAR;
	if (!has_answer(&discovery->search))
		return FOUND_MUTE;
	return discovery->epoll >= 0 && discovery->n_paths < discovery->most ? FOUND_SO_FAR
	                                                                     : FOUND_ALL;
}

const char *path_found_name(enum path_found found)
{
	static const char *const names[FOUND_END] = { "off",   "addresses", "computed", "no router",
		                                      "near",  "mute",      "so far",   "all",
		                                      "given", "by peer" };

	return names[found];
}

int discovery_fd(const struct discovery *discovery)
{
	return discovery->epoll;
}

uint64_t discovery_wake(const struct discovery *discovery)
{
	if (discovery->epoll < 0 || !discovery->told)
		return UINT64_MAX;
	return discovery->wake > discovery->next ? discovery->wake : discovery->next;
}

/* What other candidates of this flow would find is of no use for the next one. */
static void forget_candidates(struct discovery *discovery)
{
	for (unsigned i = 0; i < discovery->search.n; i++) {
		harvest(discovery, i);
		close_candidate(discovery, i);
		if (discovery->search.candidates[i].state != CANDIDATE_KEPT)
			discovery->search.candidates[i].state = CANDIDATE_DOUBLE;
	}
}

bool discovery_find(struct discovery *discovery, const struct udp_address *to, uint64_t wait)
{
	unsigned k = discovery->n_paths;

	discovery->to[0] = *to;
	if (discovery->kind == PATHS_XOR && k < discovery->most)
		add_computed(discovery, k, k + 1);
	else if (discovery->kind == PATHS_ADDRESSES && k < discovery->n_own)
		add_pairs(discovery, k, k + 1);
	else if (discovery->epoll >= 0 && k < discovery->most &&
	         path_hop_is_known(&discovery->paths[0].hops[0])) {
		find_one(discovery, wait);
		forget_candidates(discovery);
	}
	return discovery->n_paths > k;
}
