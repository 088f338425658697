/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The search for paths, on fabrics with their own clock: leafs, aggregation and spines, with a hash
 * of ports or addresses or routes by source address. Routers limit their answers as Linux does.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "path/virtual/ecmp.h"
#include "path/virtual/hop_search.h"
#include "short.h"

#include <arpa/inet.h>
#include <string.h>

#define MS 1000000ull
#define RTT (MS / 5)
#define ADDRESSES 5u
#define BURST 6u /* answers of a router at once; then one a second */

enum hash { HASH_PORTS, HASH_ADDRESSES, HASH_SOURCE, HASH_NONE };

struct fabric {
	enum hash hash;
	unsigned stages[2]; /* choices after the first router; 0: no such stage */
	bool mute;          /* no router answers */
	unsigned cut;       /* the first choice that loses all; UINT_MAX: none */
	uint64_t seed, now;
	struct hop_search search;
	unsigned own, peer;
	unsigned probes;
	double tokens[64][ADDRESSES]; /* of each router for each source */
	uint64_t spent[64][ADDRESSES];
	struct {
		bool waits;
		struct path_hop hop;
	} answers[SEARCH_CANDIDATES];
};

static uint64_t mix(uint64_t value)
{
	value = (value ^ (value >> 33)) * 0xff51afd7ed558ccdull;
	value = (value ^ (value >> 33)) * 0xc4ceb9fe1a85ec53ull;
	return value ^ (value >> 33);
}

static struct udp_address address(unsigned host, unsigned alias, uint16_t port)
{
	uint8_t raw[4] = { 10, (uint8_t)(84 + alias), 0, (uint8_t)(host + 1) };
	struct udp_address out;

	udp_from_raw(raw, sizeof(raw), port, &out);
	return out;
}

static unsigned alias_of(const struct udp_address *address)
{
	size_t size;
	const uint8_t *raw = udp_raw(address, &size);

	return raw[1] - 84u;
}

/* What a router chooses for this flow at this stage. */
static unsigned choice(const struct fabric *fabric, const struct virtual_path *path, unsigned stage)
{
	unsigned from = alias_of(&path->from), to = alias_of(&path->to);
	uint64_t key = fabric->seed * 31 + stage;

	if (fabric->hash == HASH_NONE)
		return 0;
	if (fabric->hash == HASH_SOURCE)
		return from % fabric->stages[stage];
	key = mix(key ^ mix((uint64_t)from << 8 | to));
	if (fabric->hash == HASH_PORTS)
		key = mix(key ^ mix(udp_port(&path->from)));
	return (unsigned)(key % fabric->stages[stage]);
}

static bool may_answer(struct fabric *fabric, unsigned router, unsigned alias)
{
	double *tokens = &fabric->tokens[router][alias];

	*tokens += (double)(fabric->now - fabric->spent[router][alias]) / 1e9;
	*tokens = *tokens < BURST ? *tokens : BURST;
	fabric->spent[router][alias] = fabric->now;
	if (*tokens < 1)
		return false;
	*tokens -= 1;
	return true;
}

/* A probe for hop `h` of this path: the router that answers, or 0. */
static unsigned router_at(const struct fabric *fabric, const struct virtual_path *path, unsigned h)
{
	unsigned a = choice(fabric, path, 0), b = 0;
	unsigned n = fabric->stages[1] ? 2 : 1;

	if (a == fabric->cut)
		return 0;
	if (n == 2)
		b = choice(fabric, path, 1);
	if (h == 1)
		return 2 + a;
	if (h == 2 && n == 2)
		return 20 + a * 4 + b;
	return h == n + 1 ? 1 : 0; /* the peer's router, or the peer itself */
}

static void probe(struct fabric *fabric, unsigned i, unsigned h)
{
	const struct virtual_path *path = &fabric->search.candidates[i].path;
	unsigned router = router_at(fabric, path, h);

	fabric->probes++;
	if (fabric->mute || !router || !may_answer(fabric, router, alias_of(&path->from)))
		return;
	fabric->answers[i].waits = true;
	fabric->answers[i].hop = (struct path_hop){ { 10, 83, 0, (uint8_t)router } };
}

static void add(struct fabric *fabric, bool routed)
{
	struct hop_search *search = &fabric->search;
	struct virtual_path path = { .interface = 2 };
	unsigned i, j;

	hop_search_pair(fabric->own, fabric->peer, search->n % search->n_pairs, &i, &j);
	path.from = address(0, i, (uint16_t)(32768 + mix(fabric->seed ^ search->n) % 28000));
	path.to = address(1, j, 7700);
	if (routed)
		path.hops[0] = (struct path_hop){ { 10, 83, 0, 99 } };
	hop_search_add(search, &path);
}

static void step(struct fabric *fabric, bool routed)
{
	unsigned i, h;

	for (i = 0; i < fabric->search.n; i++) {
		if (fabric->answers[i].waits) {
			fabric->answers[i].waits = false;
			hop_search_heard(&fabric->search, i, &fabric->answers[i].hop);
		}
	}
	while (hop_search_wants(&fabric->search))
		add(fabric, routed);
	while (hop_search_probe(&fabric->search, fabric->now, &i, &h))
		probe(fabric, i, h);
}

static void run(struct fabric *fabric, uint64_t span)
{
	for (uint64_t end = fabric->now + span; fabric->now < end; fabric->now += RTT)
		step(fabric, true);
}

static void fabric_init(struct fabric *fabric, enum hash hash, unsigned first, unsigned second,
                        unsigned addresses, unsigned most)
{
	memset(fabric, 0, sizeof(*fabric));
	fabric->hash = hash;
	fabric->stages[0] = first;
	fabric->stages[1] = second;
	fabric->cut = UINT32_MAX;
	fabric->own = fabric->peer = addresses;
	fabric->now = 10000 * MS;
	hop_search_init(&fabric->search, most);
	hop_search_pairs(&fabric->search, addresses, addresses);
}

/* Physical paths that the kept candidates take. All must be different. */
static unsigned kept(const struct fabric *fabric)
{
	uint64_t seen = 0;
	unsigned n = 0;

	for (unsigned i = 0; i < fabric->search.n; i++) {
		const struct virtual_path *path = &fabric->search.candidates[i].path;
		unsigned way;

		if (fabric->search.candidates[i].state != CANDIDATE_KEPT)
			continue;
		way = choice(fabric, path, 0) * 4 +
		      (fabric->stages[1] ? choice(fabric, path, 1) : 0);
		assert_false(seen & 1ull << way);
		seen |= 1ull << way;
		n++;
	}
	assert_int_equal(n, fabric->search.n_kept);
	return n;
}

static void test_hash_of_ports(void **state)
{
	uint64_t seeds = test_cases("seeds", 300);
	unsigned soon = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= seeds; seed++) {
		struct fabric fabric;

		fabric_init(&fabric, HASH_PORTS, 4, 0, 1, 8);
		fabric.seed = seed;
		run(&fabric, 500 * MS);
		soon += kept(&fabric) == 4;
		assert_true(fabric.search.n_kept >= 3);
		assert_true(fabric.probes < 150);
		/* the peer's own router is not asked each time */
		assert_true(fabric.search.heard[2] + fabric.search.missed[2] <= SEARCH_TRACED);
	}
	assert_true(soon >= seeds * 9 / 10);
}

static void test_two_stages(void **state)
{
	uint64_t seeds = test_cases("seeds", 300);
	unsigned all = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= seeds; seed++) {
		struct fabric fabric;

		fabric_init(&fabric, HASH_PORTS, 4, 2, 1, 6);
		fabric.seed = seed;
		run(&fabric, 5000 * MS);
		if (kept(&fabric) == 6) {
			all++;
			assert_int_equal(hop_search_wake(&fabric.search), UINT64_MAX);
		}
	}
	print_message("%u of %llu seeds\n", all, (unsigned long long)seeds);
	assert_true(all >= seeds * 8 / 10);
}

/* With static routes the aliases are the paths: the first pairs find them all. */
static void test_routes_by_source(void **state)
{
	struct fabric fabric;

	(void)state;
	fabric_init(&fabric, HASH_SOURCE, 4, 0, 4, 8);
	run(&fabric, 200 * MS);
	assert_int_equal(kept(&fabric), 4);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(fabric.search.candidates[i].state, CANDIDATE_KEPT);
	fabric_init(&fabric, HASH_ADDRESSES, 4, 0, 4, 4);
	run(&fabric, 1000 * MS);
	assert_true(kept(&fabric) >= 3);
}

/* One path: the search ends, and sends nothing any more. Without a router it sends nothing at all.
 */
static void test_no_choice(void **state)
{
	struct fabric fabric;
	unsigned probes;

	(void)state;
	fabric_init(&fabric, HASH_NONE, 1, 0, 1, 8);
	run(&fabric, 20000 * MS);
	assert_int_equal(kept(&fabric), 1);
	assert_int_equal(hop_search_wake(&fabric.search), UINT64_MAX);
	probes = fabric.probes;
	run(&fabric, 5000 * MS);
	assert_int_equal(fabric.probes, probes);

	fabric_init(&fabric, HASH_NONE, 1, 0, 2, 8);
	step(&fabric, false);
	assert_int_equal(fabric.search.n_kept, 1);
	assert_int_equal(fabric.probes, 0);
	assert_int_equal(hop_search_wake(&fabric.search), UINT64_MAX);
}

/* No router answers: each pair of addresses that has none in common with others is a path. */
static void test_mute(void **state)
{
	struct fabric fabric;

	(void)state;
	fabric_init(&fabric, HASH_SOURCE, 4, 0, 4, 8);
	fabric.mute = true;
	run(&fabric, 1000 * MS);
	assert_int_equal(kept(&fabric), 4);
	assert_int_equal(hop_search_wake(&fabric.search), UINT64_MAX);
	fabric_init(&fabric, HASH_PORTS, 4, 0, 1, 8);
	fabric.mute = true;
	run(&fabric, 1000 * MS);
	assert_int_equal(kept(&fabric), 1);
}

/* A path is cut when the search begins. It is found within a second after it is back. */
static void test_restored(void **state)
{
	static const enum hash hashes[] = { HASH_SOURCE, HASH_PORTS };

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct fabric fabric;

		fabric_init(&fabric, hashes[i], 4, 0, i ? 1 : 4, 8);
		fabric.seed = 1;
		fabric.cut = 2;
		run(&fabric, 3000 * MS);
		assert_int_equal(kept(&fabric), 3);
		fabric.cut = UINT32_MAX;
		run(&fabric, 1200 * MS);
		assert_int_equal(kept(&fabric), 4);
	}
}

/* A path that is used although its routers have not answered. Those that have are others. */
static void test_kept_unknown(void **state)
{
	struct fabric fabric;

	(void)state;
	fabric_init(&fabric, HASH_SOURCE, 4, 0, 5, 8);
	add(&fabric, true);
	hop_search_keep(&fabric.search, 0);
	run(&fabric, 200 * MS);
	assert_int_equal(fabric.search.n_kept, 5);
}

/* Pairs without a route do not end the search, and are not asked for again. */
static void test_no_route(void **state)
{
	struct fabric fabric;

	(void)state;
	fabric_init(&fabric, HASH_SOURCE, 4, 0, 4, 8);
	add(&fabric, true);
	hop_search_skip(&fabric.search);
	hop_search_skip(&fabric.search);
	run(&fabric, 3000 * MS);
	assert_int_equal(kept(&fabric), 4); /* later pairs have the same sources */
	assert_int_equal(fabric.search.candidates[1].state, CANDIDATE_SKIPPED);
}

/* Each pair occurs once, and the first ones have no address in common. */
static void test_pairs(void **state)
{
	(void)state;
	for (unsigned own = 1; own <= 5; own++) {
		for (unsigned peer = 1; peer <= 5; peer++) {
			bool seen[5][5] = { { false } };

			for (unsigned p = 0; p < own * peer; p++) {
				unsigned i, j;

				hop_search_pair(own, peer, p, &i, &j);
				assert_true(i < own && j < peer && !seen[i][j]);
				seen[i][j] = true;
				if (p < own && p < peer)
					assert_true(i == p && j == p);
			}
		}
	}
}

static void test_known_hash(void **state)
{
	struct udp_address from = address(0, 1, 50000), to = address(1, 2, 7700);

	(void)state;
	/* 10.85.0.1:50000 to 10.86.0.2:7700, protocol 17 */
	assert_int_equal(ecmp_xor(&from, &to),
	                 0x0a55 ^ 0x0001 ^ 0x0a56 ^ 0x0002 ^ 50000 ^ 7700 ^ 17);
	for (unsigned paths = 1; paths <= 16; paths++) {
		for (unsigned k = 0; k < paths; k++) {
			uint16_t port = ecmp_port(&from, &to, paths, k, ECMP_PORT_MIN);

			assert_true(port >= ECMP_PORT_MIN);
			udp_set_port(&from, port);
			assert_int_equal(ecmp_xor(&from, &to) % paths, k);
			assert_true(ecmp_port(&from, &to, paths, k, (uint16_t)(port + 1)) > port);
		}
	}
	udp_set_port(&from, UINT16_MAX);
	assert_int_equal(ecmp_port(&from, &to, 2, !(ecmp_xor(&from, &to) % 2), UINT16_MAX), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hash_of_ports),
		cmocka_unit_test(test_two_stages),
		cmocka_unit_test(test_routes_by_source),
		cmocka_unit_test(test_no_choice),
		cmocka_unit_test(test_mute),
		cmocka_unit_test(test_restored),
		cmocka_unit_test(test_kept_unknown),
		cmocka_unit_test(test_pairs),
		cmocka_unit_test(test_no_route),
		cmocka_unit_test(test_known_hash),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
