/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The monitor and the balancers, on a network with its own clock: paths with a rate, a latency and
 * a queue, which can be cut. The sender has a window for each path, as the channel has.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "path/balance/balancer.h"
#include "short.h"

#include <math.h>
#include <string.h>

#define CHUNK 51200u
#define MS 1000000ull
#define FLIGHT 64u /* chunks in flight on a path at most */
#define TIMEOUT (20 * MS)

struct link {
	double bps;
	uint64_t latency; /* one way */
	bool cut;
	uint32_t window;
	uint64_t free_at; /* when the link has sent all that it holds */
	uint64_t oldest;  /* when the oldest unanswered packet was sent */
	struct {
		uint64_t sent, answer; /* UINT64_MAX: never */
	} flight[FLIGHT];
	unsigned head, n;
	uint64_t chunks; /* given to the path */
};

struct net {
	struct monitor monitor;
	struct balancer balancer;
	struct link links[PATHS_MAX];
	uint64_t now;
};

static void net_init(struct net *net, enum balancer_kind kind, unsigned n, const double mbps[],
                     const uint64_t latency_us[])
{
	memset(net, 0, sizeof(*net));
	net->now = 1;
	monitor_init(&net->monitor, n, net->now);
	balancer_init(&net->balancer, kind);
	for (unsigned i = 0; i < n; i++) {
		struct link *link = &net->links[i];

		link->bps = mbps[i] * 1e6;
		link->latency = latency_us[i] * 1000;
		/* what the path holds, a queue of 4 ms, and two chunks more */
		link->window = 2 * CHUNK +
		               (uint32_t)(link->bps * ((double)link->latency * 2e-9 + 4e-3) / 8);
	}
}

static void send_on(struct net *net, unsigned i, uint32_t bytes)
{
	struct link *link = &net->links[i];
	uint64_t begin = link->free_at > net->now ? link->free_at : net->now;
	unsigned slot = (link->head + link->n++) % FLIGHT;

	assert_true(link->n <= FLIGHT);
	link->free_at = begin + (uint64_t)(bytes * 8e9 / link->bps);
	link->flight[slot].sent = net->now;
	link->flight[slot].answer = link->cut ? UINT64_MAX : link->free_at + 2 * link->latency;
	if (link->n == 1)
		link->oldest = net->now;
}

/* Answers, or timeouts of a path that is cut: then all that it holds counts as lost. */
static void link_step(struct net *net, unsigned i)
{
	struct link *link = &net->links[i];

	while (link->n && link->flight[link->head].answer <= net->now) {
		uint64_t sent = link->flight[link->head].sent;

		link->head = (link->head + 1) % FLIGHT;
		link->n--;
		link->oldest = net->now;
		monitor_acked(&net->monitor, i, net->now, CHUNK, net->now - sent);
	}
	if (link->n && net->now - link->oldest > TIMEOUT) {
		link->oldest = net->now;
		monitor_silent(&net->monitor, i, net->now);
		if (net->monitor.paths[i].state == PATH_DEAD) {
			monitor_lost(&net->monitor, i, net->now, link->n * CHUNK);
			link->n = 0;
			link->free_at = net->now;
		}
	}
	if (!monitor_wants_probe(&net->monitor, i, net->now))
		return;
	monitor_probed(&net->monitor, i, net->now);
	if (link->cut)
		monitor_silent(&net->monitor, i, net->now);
	else
		monitor_acked(&net->monitor, i, net->now, 0, 2 * link->latency);
}

/* A sender that always has more to send. */
static void net_run(struct net *net, uint64_t span)
{
	uint64_t end = net->now + span;

	for (; net->now < end; net->now += MS / 20) {
		uint32_t room[PATHS_MAX];
		int chosen;

		for (unsigned i = 0; i < net->monitor.n; i++)
			link_step(net, i);
		do {
			for (unsigned i = 0; i < net->monitor.n; i++)
				room[i] = net->links[i].window - net->links[i].n * CHUNK;
			chosen = balancer_choose(&net->balancer, &net->monitor, room, CHUNK,
			                         CHUNK * 100, net->now);
			if (chosen >= 0) {
				assert_true(room[chosen] >= CHUNK);
				net->links[chosen].chunks++;
				send_on(net, (unsigned)chosen, CHUNK);
				monitor_sent(&net->monitor, (unsigned)chosen, net->now, CHUNK);
			}
		} while (chosen >= 0);
	}
}

static uint64_t delivered(const struct net *net)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < net->monitor.n; i++)
		sum += net->monitor.paths[i].delivered;
	return sum;
}

static uint64_t next_random(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
	return *seed >> 33;
}

static void assert_near(double a, double b, double tolerance)
{
	if (fabs(a - b) > tolerance * b)
		fail_msg("%g is not within %g of %g", a, tolerance, b);
}

static const double unlike[] = { 250, 187.5, 125, 62.5 };
static const uint64_t near_us[] = { 100, 100, 100, 100 };
static const uint64_t apart_us[] = { 4000, 100, 2000, 1000 };

/* Estimates follow the paths, and all of every path is used, whatever the kind. */
static void test_all_of_the_sum(void **state)
{
	(void)state;
	for (enum balancer_kind kind = 0; kind < BALANCE_KINDS; kind++) {
		for (enum monitor_kind estimate = 0; estimate <= MONITOR_PEAK; estimate++) {
			struct net net;
			uint64_t before;

			net_init(&net, kind, 4, unlike, apart_us);
			net.monitor.kind = estimate;
			net_run(&net, 500 * MS);
			before = delivered(&net);
			net_run(&net, 1000 * MS);
			assert_near((double)(delivered(&net) - before) * 8, 625e6, 0.04);
			for (unsigned i = 0; i < 4; i++) {
				assert_near((double)net.monitor.paths[i].bps, net.links[i].bps,
				            estimate == MONITOR_PEAK ? 0.25 : 0.1);
				assert_true(net.monitor.paths[i].least_rtt_ns >=
				            2 * net.links[i].latency);
			}
		}
	}
}

/* If all paths have room, then the shares of the chunks follow the bandwidths. */
static void test_shares(void **state)
{
	static const uint32_t room[] = { UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX };
	uint64_t bytes[4] = { 0 }, sum = 0;
	struct net net;
	uint64_t seed = 7;

	(void)state;
	net_init(&net, BALANCE_BANDWIDTH, 4, unlike, near_us);
	for (unsigned i = 0; i < 4; i++) {
		monitor_acked(&net.monitor, i, 1, 0, MS);
		net.monitor.paths[i].bps = (uint64_t)(unlike[i] * 1e6);
	}
	for (int i = 0; i < 10000; i++) {
		uint32_t chunk = 1 + (uint32_t)(next_random(&seed) % CHUNK);
		int chosen = balancer_choose(&net.balancer, &net.monitor, room, chunk, 1u << 30, 1);

		bytes[chosen] += chunk;
		sum += chunk;
	}
	for (unsigned i = 0; i < 4; i++)
		assert_near((double)bytes[i] / (double)sum, unlike[i] / 625, 0.01);
	/* A congested path is relieved; one of unknown bandwidth counts like the mean. */
	net.monitor.paths[0].state = PATH_CONGESTED;
	net.monitor.paths[1].bps = 0;
	memset(bytes, 0, sizeof(bytes));
	for (int i = 0; i < 10000; i++)
		bytes[balancer_choose(&net.balancer, &net.monitor, room, CHUNK, 1u << 30, 1)]++;
	assert_near((double)bytes[0], 10000 * 125 / (125 + 437.5 / 3 + 187.5), 0.02);
	assert_near((double)bytes[1], 10000 * 437.5 / 3 / (125 + 437.5 / 3 + 187.5), 0.02);
}

/* Other traffic takes a part of a path: the estimate follows down and up again. */
static void test_follows_free_bandwidth(void **state)
{
	static const double equal[] = { 250, 250, 250, 250 };
	struct net net;

	(void)state;
	net_init(&net, BALANCE_BANDWIDTH, 4, equal, near_us);
	net_run(&net, 500 * MS);
	for (unsigned i = 0; i < 3; i++)
		net.links[i].bps = 250e6 * (0.25 + 0.25 * i);
	net_run(&net, 1000 * MS);
	for (unsigned i = 0; i < 4; i++) {
		assert_near((double)net.monitor.paths[i].bps, net.links[i].bps, 0.1);
		net.links[i].bps = 250e6;
	}
	net_run(&net, 1000 * MS);
	for (unsigned i = 0; i < 4; i++)
		assert_near((double)net.monitor.paths[i].bps, 250e6, 0.1);
}

/* A path is cut: it gets nothing but probes, and the others go on. It comes back: it is used. */
static void test_cut_and_back(void **state)
{
	static const double equal[] = { 250, 250, 250, 250 };

	(void)state;
	for (enum balancer_kind kind = 0; kind < BALANCE_KINDS; kind++) {
		uint64_t before, chunks;
		struct net net;

		net_init(&net, kind, 4, equal, near_us);
		net_run(&net, 200 * MS);
		net.links[2].cut = true;
		net_run(&net, 100 * MS);
		assert_int_equal(net.monitor.paths[2].state, PATH_DEAD);
		before = delivered(&net);
		chunks = net.links[2].chunks;
		net_run(&net, 500 * MS);
		assert_int_equal(net.links[2].chunks, chunks);
		assert_near((double)(delivered(&net) - before) * 8, 750e6 / 2, 0.04);
		net.links[2].cut = false;
		net_run(&net, 110 * MS);
		assert_true(net.links[2].chunks > chunks);
		assert_int_equal(net.monitor.paths[2].state, PATH_GOOD);
	}
}

/* A path appears while data flows: it gets data after its first answer. */
static void test_new_path(void **state)
{
	static const double equal[] = { 250, 250 };
	struct net net;
	uint32_t room[] = { 0, CHUNK };

	(void)state;
	net_init(&net, BALANCE_BANDWIDTH, 2, equal, near_us);
	net.monitor.n = 1;
	net_run(&net, 100 * MS);
	assert_int_equal(monitor_add(&net.monitor, net.now), 1);
	assert_int_equal(balancer_choose(&net.balancer, &net.monitor, room, CHUNK, CHUNK, net.now),
	                 -1);
	assert_true(monitor_wants_probe(&net.monitor, 1, net.now));
	net_run(&net, 100 * MS);
	assert_near((double)net.links[1].chunks * CHUNK * 8, 25e6, 0.15);
	while (net.monitor.n < PATHS_MAX)
		monitor_add(&net.monitor, net.now);
	assert_int_equal(monitor_add(&net.monitor, net.now), PATHS_MAX);
}

/* Small messages take the path of the least latency, except in turn. */
static void test_small(void **state)
{
	uint32_t room[] = { CHUNK, CHUNK, CHUNK, CHUNK };

	(void)state;
	for (enum balancer_kind kind = 0; kind < BALANCE_KINDS; kind++) {
		unsigned first = 0;
		struct net net;

		net_init(&net, kind, 4, unlike, apart_us);
		for (unsigned i = 0; i < 4; i++)
			monitor_acked(&net.monitor, i, 1, 0, apart_us[i]);
		for (int i = 0; i < 40; i++)
			first += balancer_choose(&net.balancer, &net.monitor, room, 2, 2, 1) == 1;
		assert_int_equal(first, kind == BALANCE_ROUND_ROBIN ? 10 : 40);
		room[1] = 1;
		if (kind != BALANCE_ROUND_ROBIN)
			assert_int_equal(
				balancer_choose(&net.balancer, &net.monitor, room, 2, 2, 1), 3);
		room[1] = CHUNK;
	}
}

/* A flowlet stays on its path, until a gap that is longer than the difference of the latencies. */
static void test_flowlet(void **state)
{
	static const uint32_t room[] = { UINT32_MAX, UINT32_MAX };
	struct balancer balancer;
	struct monitor monitor;
	uint64_t now = 1;
	int first;

	(void)state;
	monitor_init(&monitor, 2, now);
	balancer_init(&balancer, BALANCE_FLOWLET);
	monitor_acked(&monitor, 0, now, 0, 5 * MS);
	monitor_acked(&monitor, 1, now, 0, 2 * MS);
	first = balancer_choose(&balancer, &monitor, room, CHUNK, 1u << 30, now);
	for (int i = 0; i < 100; i++) {
		now += 3 * MS;
		assert_int_equal(balancer_choose(&balancer, &monitor, room, CHUNK, 1u << 30, now),
		                 first);
	}
	now += 3 * MS + 1;
	assert_int_equal(balancer_choose(&balancer, &monitor, room, CHUNK, 1u << 30, now), !first);
}

/* Random states: a path without room or a dead one is never chosen, and -1 means that none may. */
static void test_never_without_room(void **state)
{
	uint64_t seed = 20261117;

	(void)state;
	for (uint64_t left = test_cases("random states", 300000); left; left--) {
		unsigned n = 1 + (unsigned)(next_random(&seed) % PATHS_MAX);
		uint32_t room[PATHS_MAX], bytes = (uint32_t)(next_random(&seed) % 3);
		struct balancer balancer;
		struct monitor monitor;
		bool known = false, may = false;
		int chosen;

		monitor_init(&monitor, n, 1);
		balancer_init(&balancer, (enum balancer_kind)(next_random(&seed) % BALANCE_KINDS));
		balancer.current = (unsigned)(next_random(&seed) % (PATHS_MAX + 1));
		for (unsigned i = 0; i < n; i++) {
			struct path_estimate *path = &monitor.paths[i];

			room[i] = (uint32_t)(next_random(&seed) % 3);
			path->state = (enum path_state)(next_random(&seed) % 4);
			path->bps = next_random(&seed) % 3;
			path->rtt_ns = next_random(&seed) % 3;
			known = known || path->state == PATH_GOOD || path->state == PATH_CONGESTED;
		}
		for (unsigned i = 0; i < n; i++)
			may = may || (room[i] >= bytes && monitor.paths[i].state != PATH_DEAD &&
			              (!known || monitor.paths[i].state != PATH_UNKNOWN));
		chosen = balancer_choose(&balancer, &monitor, room, bytes,
		                         next_random(&seed) % 8192, 2);
		assert_int_equal(chosen >= 0, may);
		if (chosen >= 0) {
			assert_true((unsigned)chosen < n && room[chosen] >= bytes);
			assert_int_not_equal(monitor.paths[chosen].state, PATH_DEAD);
		}
	}
}

/* Idle paths are probed twice a second, dead ones ten times. An only path is not. */
static void test_probes(void **state)
{
	unsigned probes[2] = { 0 };
	struct monitor monitor;

	(void)state;
	monitor_init(&monitor, 2, 1);
	monitor_acked(&monitor, 0, 1, 0, MS);
	monitor_acked(&monitor, 1, 1, 0, MS);
	for (int i = 0; i < 3; i++)
		monitor_silent(&monitor, 1, 1);
	assert_string_equal(path_state_name(monitor.paths[1].state), "dead");
	for (uint64_t now = 1; now < 10000 * MS; now += MS) {
		for (unsigned i = 0; i < 2; i++) {
			if (monitor_wants_probe(&monitor, i, now)) {
				monitor_probed(&monitor, i, now);
				probes[i]++;
			}
		}
	}
	assert_int_equal(probes[0], 19);
	assert_int_equal(probes[1], 100);
	monitor.paths[1].bps = 1000000; /* of another time */
	monitor_acked(&monitor, 1, 10000 * MS, 0, MS);
	assert_int_equal(monitor.paths[1].state, PATH_GOOD);
	assert_int_equal(monitor.paths[1].bps, 0);
	monitor_init(&monitor, 1, 1);
	monitor_acked(&monitor, 0, 1, 0, MS);
	assert_false(monitor_wants_probe(&monitor, 0, 10000 * MS));
}

/* A sender that pauses or sends little does not lower the estimate; loss and queues are seen. */
static void test_estimates(void **state)
{
	static const double rate[] = { 250 };
	struct net net;
	struct path_estimate *path = &net.monitor.paths[0];

	(void)state;
	net_init(&net, BALANCE_BANDWIDTH, 1, rate, near_us);
	net_run(&net, 500 * MS);
	for (int i = 0; i < 200; i++, net.now += MS / 20)
		link_step(&net, 0);
	assert_int_equal(path->in_flight, 0);
	for (int i = 0; i < 100; i++) { /* a chunk every 10 ms: 40 Mb/s */
		monitor_sent(&net.monitor, 0, net.now, 2 * CHUNK);
		net.now += 5 * MS;
		monitor_acked(&net.monitor, 0, net.now, CHUNK, path->least_rtt_ns);
		net.now += 5 * MS;
		monitor_sent(&net.monitor, 0, net.now, CHUNK);
		monitor_acked(&net.monitor, 0, net.now, CHUNK, path->least_rtt_ns);
	}
	assert_near((double)path->bps, 250e6, 0.1);
	for (int i = 0; i < 200; i++, net.now += MS) {
		monitor_acked(&net.monitor, 0, net.now, 800, MS);
		monitor_lost(&net.monitor, 0, net.now, 200);
	}
	assert_near(path->loss, 0.2, 0.1);
	assert_int_equal(path->state, PATH_CONGESTED);
	for (int i = 0; i < 200; i++, net.now += MS)
		monitor_acked(&net.monitor, 0, net.now, 1000, MS);
	assert_int_equal(path->state, PATH_GOOD);
	for (int i = 0; i < 40; i++, net.now += MS)
		monitor_acked(&net.monitor, 0, net.now, 1000, 15 * MS);
	assert_int_equal(path->state, PATH_CONGESTED);
	/* The route has become longer for good: after 10 s that is no queue. */
	for (int i = 0; i < 11000; i++, net.now += MS)
		monitor_acked(&net.monitor, 0, net.now, 1000, 15 * MS);
	assert_int_equal(path->state, PATH_GOOD);
	assert_int_equal(path->least_rtt_ns, 15 * MS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_of_the_sum),
		cmocka_unit_test(test_shares),
		cmocka_unit_test(test_follows_free_bandwidth),
		cmocka_unit_test(test_cut_and_back),
		cmocka_unit_test(test_new_path),
		cmocka_unit_test(test_small),
		cmocka_unit_test(test_flowlet),
		cmocka_unit_test(test_never_without_room),
		cmocka_unit_test(test_probes),
		cmocka_unit_test(test_estimates),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
