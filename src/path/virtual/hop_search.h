/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hop_search: decides which virtual paths are different physical paths, by the addresses of their
 * routers. Pure: the caller opens sockets, sends the probes and reports the answers.
 *
 * A candidate is a virtual path that is traced: hop by hop, one probe at a time. If a hop differs
 * from that of each path so far, the candidate is kept. First come pairs of addresses, then further
 * source ports, until no more new paths come up.
 *
 * Routers limit their answers (Linux: 6 at once, then 1 a second to each address). So a hop is not
 * asked for if it was the same for the first candidates: the peer's own router is on every path.
 *
 * If other candidates are answered and one is not, its path may be cut. Silent candidates are
 * traced again every second. So are some doubles, since routers may change their choice. If no
 * router ever answers, each pair of addresses counts as a path.
 */
#ifndef TRIB_PATH_VIRTUAL_HOP_SEARCH_H
#define TRIB_PATH_VIRTUAL_HOP_SEARCH_H

#include "path/virtual/virtual_path.h"

#define SEARCH_CANDIDATES 48u
#define SEARCH_TRACED 8u             /* candidates traced at once */
#define SEARCH_FRUITLESS 12u         /* candidates in a row without a new path, at least */
#define SEARCH_PATIENCE 4u           /* candidates in a row for each known path */
#define SEARCH_SAME 4u               /* answers after which a hop counts as common to all paths */
#define SEARCH_DOUBLES 4u            /* doubles that are traced again in a round */
#define SEARCH_WAIT_NS 50000000ull   /* 50 ms: the wait for the answer to a probe */
#define SEARCH_AGAIN_NS 500000000ull /* 0.5 s: the time between two rounds of tracing again */

enum candidate_state {
	CANDIDATE_TRACED,
	CANDIDATE_KEPT,
	CANDIDATE_DOUBLE,
	CANDIDATE_SILENT,
	CANDIDATE_SKIPPED,
};

struct candidate {
	struct virtual_path path;
	enum candidate_state state, before; /* `before`: when it was traced the last time */
	bool first;                         /* it is traced for the first time */
	unsigned hop;                       /* the hop that is asked for */
	unsigned tries;                     /* probes sent for it */
	uint64_t sent;                      /* when the last one was; 0: none is on its way */
};

struct hop_search {
	unsigned most;      /* paths to look for */
	unsigned n, n_kept; /* candidates, and those kept */
	unsigned patience;  /* fruitless candidates for each path that is kept */
	unsigned n_pairs;   /* of addresses; the candidates begin with these, in their order */
	unsigned n_apart;   /* of them: pairs that share no address, as far as possible */
	unsigned fruitless; /* candidates in a row that gave no new path */
	unsigned round;     /* of tracing again */
	uint64_t again;     /* when tracing begins again */
	unsigned heard[VIRTUAL_HOPS], missed[VIRTUAL_HOPS]; /* answers and silences of each hop */
	bool differs[VIRTUAL_HOPS];                         /* the hop has told paths apart */
	struct candidate candidates[SEARCH_CANDIDATES];
};

void hop_search_init(struct hop_search *search, unsigned most);
/* The pairs of `own` and `peer` addresses. Pair p consists of addresses *i and *j. */
void hop_search_pairs(struct hop_search *search, unsigned own, unsigned peer);
void hop_search_pair(unsigned own, unsigned peer, unsigned p, unsigned *i, unsigned *j);

/* Is another candidate wanted? It is one of pair search->n % search->n_pairs, with a new port. */
bool hop_search_wants(const struct hop_search *search);
/*
 * hops[0] is known from the routing table; unknown: no router is on the way. Hops that are known
 * from elsewhere count as answers. Returns the candidate's index.
 */
unsigned hop_search_add(struct hop_search *search, const struct virtual_path *path);
/* There is no route for the pair whose turn it is. */
void hop_search_skip(struct hop_search *search);
/* The path of a candidate is used whatever its hops are. */
void hop_search_keep(struct hop_search *search, unsigned candidate);

/* The next probe to send now; false: none. Hop h answers a probe with time to live h + 1. */
bool hop_search_probe(struct hop_search *search, uint64_t now, unsigned *candidate, unsigned *hop);
void hop_search_heard(struct hop_search *search, unsigned candidate, const struct path_hop *hop);
/* No router will answer this probe: the peer was reached, or there is no route. */
void hop_search_missed(struct hop_search *search, unsigned candidate);

bool hop_search_is_tracing(const struct hop_search *search);
/* When hop_search_probe has something to do; UINT64_MAX: never, the search is over. */
uint64_t hop_search_wake(const struct hop_search *search);

#endif
