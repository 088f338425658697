/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The messages of a channel by a carrier, simulated: queue pairs on each path, which take messages
 * in order, fail at random times, and open again as both sides agree (pact.h). Every message
 * arrives once, whole and in order. Errors name the peer. A carrier may also take messages beside
 * packets, on the only path.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "channel_net.h"
#include "path/channel/carried.h"
#include "path/verbs/pact.h"
#include "short.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH 4u
#define PATHS 4u
#define BYTES 1000u
#define FLIGHT_NS (NET_MS)

struct flight {
	uint32_t number;
	uint64_t sent_at;
	uint8_t *came; /* what the peer gets; NULL: it has got it */
};

/* The queue pair of one path at one end. */
struct pair {
	struct pact_path own;
	unsigned first, n;
	struct flight flights[DEPTH];
};

struct end {
	struct pair pairs[PATHS];
	uint32_t next, came;
	uint8_t *sent[CHANNEL_MESSAGES];
	uint32_t freed, granted;
};

struct talk {
	struct net net;
	struct end ends[2];
	unsigned paths;
	uint32_t messages;
	double fails; /* probability in each step, of each pair */
	unsigned failures;
	bool dead; /* no pair ever opens */
};

static void deliver(void *user, uint32_t number, void *memory, uint32_t bytes)
{
	struct end *end = user;

	assert_int_equal(number, end->came);
	assert_int_equal(bytes, BYTES);
	assert_int_equal(*(uint32_t *)memory, number);
	end->came++;
	free(memory);
}

static void *place(void *user, uint32_t number, uint32_t bytes)
{
	(void)user;
	(void)number;
	return malloc(bytes);
}

static void unplace(void *user, void *memory)
{
	(void)user;
	free(memory);
}

static void tell(struct talk *talk, unsigned e, unsigned path)
{
	const struct pact_path *own = &talk->ends[e].pairs[path].own;
	struct path_carrier word = { .qpn = own->qpn,
		                     .epoch = own->epoch,
		                     .phase = (uint16_t)own->phase };

	carried_tell(talk->net.ends[e], path, &word);
}

static void lose_all(struct talk *talk, unsigned e, unsigned path)
{
	struct pair *pair = &talk->ends[e].pairs[path];

	for (; pair->n; pair->n--, pair->first = (pair->first + 1) % DEPTH) {
		free(pair->flights[pair->first].came);
		carried_lost(talk->net.ends[e], path, pair->flights[pair->first].number,
		             talk->net.now);
	}
	carried_set_up(talk->net.ends[e], path, false, talk->net.now);
}

static void agree(struct talk *talk, unsigned e, unsigned path)
{
	struct pair *pair = &talk->ends[e].pairs[path];
	const struct path_carrier *word = carried_heard(talk->net.ends[e], path);
	struct pact_path peer;
	enum pact_step step;

	if (!pair->own.epoch) {
		pair->own.epoch = 1;
		tell(talk, e, path);
	}
	if (!word || talk->dead)
		return;
	peer = (struct pact_path){ .epoch = word->epoch, .phase = (enum pact_phase)word->phase };
	if (pair->own.phase == PACT_OPEN && net_random(&talk->net) < talk->fails) {
		talk->failures++;
		pair->own.phase = PACT_FAILED;
		lose_all(talk, e, path);
		tell(talk, e, path);
	}
	step = pact_next(&pair->own, &peer, true);
	if (step == PACT_FAIL)
		lose_all(talk, e, path);
	if (step != PACT_STAY)
		tell(talk, e, path);
	carried_set_up(talk->net.ends[e], path, pact_is_usable(&pair->own, &peer), talk->net.now);
}

/* A message is in the peer's memory half a flight before the sender knows. */
static void fly(struct talk *talk, unsigned e, unsigned path)
{
	struct pair *pair = &talk->ends[e].pairs[path];
	uint64_t now = talk->net.now;

	for (unsigned i = 0; i < pair->n; i++) {
		struct flight *flight = &pair->flights[(pair->first + i) % DEPTH];

		if (!flight->came || now < flight->sent_at + FLIGHT_NS / 2)
			continue;
		if (!carried_came(talk->net.ends[!e], path, flight->number, flight->came, BYTES,
		                  now))
			free(flight->came);
		flight->came = NULL;
	}
	while (pair->n && now >= pair->flights[pair->first].sent_at + FLIGHT_NS) {
		carried_arrived(talk->net.ends[e], path, pair->flights[pair->first].number, BYTES,
		                pair->flights[pair->first].sent_at, now);
		pair->first = (pair->first + 1) % DEPTH;
		pair->n--;
	}
}

static void send_messages(struct talk *talk, unsigned e)
{
	struct end *end = &talk->ends[e];
	struct channel *channel = talk->net.ends[e];
	struct carried_message message;

	for (; end->freed < channel_sent(channel); end->freed++)
		free(end->sent[end->freed % CHANNEL_MESSAGES]);
	while (end->next < talk->messages && channel_state(channel) <= CHANNEL_OPEN &&
	       channel_room(channel)) {
		uint8_t *data = calloc(1, BYTES);

		memcpy(data, &end->next, sizeof(end->next));
		end->sent[end->next++ % CHANNEL_MESSAGES] = data;
		assert_int_equal(channel_send(channel, data, BYTES), TRIB_OK);
	}
	while (carried_next(channel, talk->net.now, &message)) {
		struct pair *pair = &end->pairs[message.path];
		struct flight *flight = &pair->flights[(pair->first + pair->n) % DEPTH];

		assert_int_equal(pair->own.phase, PACT_OPEN);
		assert_true(pair->n++ < DEPTH);
		*flight = (struct flight){ message.number, talk->net.now, malloc(BYTES) };
		memcpy(flight->came, message.data, BYTES);
	}
	channel_grant(channel, net_random(&talk->net) < 0.5);
}

static void work(struct net *net, void *user)
{
	struct talk *talk = user;

	(void)net;
	for (unsigned e = 0; e < 2; e++) {
		for (unsigned path = 0; path < talk->paths; path++) {
			agree(talk, e, path);
			fly(talk, e, path);
		}
		send_messages(talk, e);
	}
}

static void talk_start_on(struct talk *talk, unsigned paths, uint32_t from, uint64_t seed,
                          uint32_t messages, double fails)
{
	struct channel_config config[2] = { net_config(0), net_config(1) };

	*talk = (struct talk){ .paths = paths, .messages = messages, .fails = fails };
	net_init(&talk->net, paths, seed);
	talk->net.work = work;
	talk->net.user = talk;
	for (unsigned e = 0; e < 2; e++) {
		config[e].carried = DEPTH;
		config[e].carried_from = from;
		config[e].credit = 8;
		config[e].events = (struct channel_events){ .user = &talk->ends[e],
			                                    .place = place,
			                                    .deliver = deliver,
			                                    .unplace = unplace };
	}
	net_open(&talk->net, config);
}

static void talk_start(struct talk *talk, uint64_t seed, uint32_t messages, double fails)
{
	talk_start_on(talk, PATHS, 0, seed, messages, fails);
}

static void talk_end(struct talk *talk)
{
	for (unsigned e = 0; e < 2; e++) {
		struct end *end = &talk->ends[e];

		for (unsigned path = 0; path < talk->paths; path++)
			for (unsigned i = 0; i < end->pairs[path].n; i++)
				free(end->pairs[path]
				             .flights[(end->pairs[path].first + i) % DEPTH]
				             .came);
		for (; end->freed < end->next; end->freed++)
			free(end->sent[end->freed % CHANNEL_MESSAGES]);
	}
	net_free(&talk->net);
}

static bool is_complete(const struct talk *talk)
{
	return talk->ends[0].came == talk->messages && talk->ends[1].came == talk->messages;
}

static void run_until_complete(struct talk *talk)
{
	while (talk->net.now < 120 * NET_S && !is_complete(talk))
		net_run(&talk->net, talk->net.now + NET_S);
}

static void test_all_arrive(void **state)
{
	struct talk talk;

	(void)state;
	talk_start(&talk, 1, 2000, 0);
	run_until_complete(&talk);
	assert_true(is_complete(&talk));
	for (unsigned e = 0; e < 2; e++) {
		assert_int_equal(channel_counters(talk.net.ends[e]).repeated, 0);
		assert_int_equal(channel_counters(talk.net.ends[e]).duplicates, 0);
		for (unsigned i = 0; i < PATHS; i++)
			assert_true(channel_monitor(talk.net.ends[e])->paths[i].delivered >
			            2000 * BYTES / 20);
		channel_close(talk.net.ends[e], talk.net.now);
	}
	net_run(&talk.net, talk.net.now + NET_S);
	assert_int_equal(channel_state(talk.net.ends[0]), CHANNEL_CLOSED);
	assert_int_equal(channel_state(talk.net.ends[1]), CHANNEL_CLOSED);
	talk_end(&talk);
}

/* Packets are lost, too, so that words of the two sides come late. */
static void test_pairs_fail(void **state)
{
	uint64_t cases = test_cases("cases", 60);
	unsigned failures = 0, repeated = 0, duplicates = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= cases; seed++) {
		struct talk talk;

		talk_start(&talk, seed, 2000, 0.002);
		for (unsigned i = 0; i < PATHS; i++)
			talk.net.paths[i].loss = talk.net.paths[i].duplicate = 0.1;
		run_until_complete(&talk);
		if (!is_complete(&talk))
			fail_msg("seed %llu: %u and %u of %u messages have come",
			         (unsigned long long)seed, talk.ends[0].came, talk.ends[1].came,
			         talk.messages);
		failures += talk.failures;
		for (unsigned e = 0; e < 2; e++) {
			repeated += (unsigned)channel_counters(talk.net.ends[e]).repeated;
			duplicates += (unsigned)channel_counters(talk.net.ends[e]).duplicates;
		}
		talk_end(&talk);
	}
	printf("%u failures, %u messages went again, %u came twice\n", failures, repeated,
	       duplicates);
	assert_true(failures > cases && repeated > cases && duplicates > 0);
}

/* While the carrier of the only path is down, messages travel as packets. */
static void test_beside_packets(void **state)
{
	uint64_t cases = test_cases("cases", 60);
	unsigned failures = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= cases; seed++) {
		struct talk talk;

		talk_start_on(&talk, 1, BYTES, seed, 2000, 0.002);
		talk.net.paths[0].loss = talk.net.paths[0].duplicate = seed % 2 ? 0.1 : 0;
		run_until_complete(&talk);
		if (!is_complete(&talk))
			fail_msg("seed %llu: %u and %u of %u messages have come",
			         (unsigned long long)seed, talk.ends[0].came, talk.ends[1].came,
			         talk.messages);
		failures += talk.failures;
		talk_end(&talk);
	}
	assert_true(failures > cases);
}

/* Messages that are too short for the carrier, and all messages without one. */
static void test_packets_alone(void **state)
{
	for (unsigned dead = 0; dead < 2; dead++) {
		struct talk talk;

		(void)state;
		talk_start_on(&talk, 1, dead ? BYTES : BYTES + 1, 5, 500, 0);
		talk.dead = dead;
		run_until_complete(&talk);
		assert_true(is_complete(&talk));
		for (unsigned e = 0; e < 2; e++)
			assert_int_equal(talk.ends[e].pairs[0].n + talk.ends[e].pairs[0].first, 0);
		talk_end(&talk);
	}
}

/* Several paths carry more than one connection. */
static void test_several_paths(void **state)
{
	struct talk talk;

	(void)state;
	talk_start_on(&talk, 2, BYTES, 6, 500, 0);
	run_until_complete(&talk);
	assert_true(is_complete(&talk));
	for (unsigned i = 0; i < 2; i++)
		assert_true(talk.net.paths[i].carried[0] > 100 * BYTES);
	talk_end(&talk);
}

static void test_no_pair_opens(void **state)
{
	struct talk talk;

	(void)state;
	talk_start(&talk, 3, 10, 0);
	talk.dead = true;
	net_run(&talk.net, 10 * NET_S);
	assert_int_equal(channel_status(talk.net.ends[0]), TRIB_ERR_PEER);
	assert_non_null(strstr(trib_last_error(), "no RDMA connection to rank 1"));
	talk_end(&talk);
}

/* What has come before, and what no credit allows, is not taken. */
static void test_not_allowed(void **state)
{
	struct talk talk;
	void *memory = malloc(BYTES);

	(void)state;
	talk_start(&talk, 4, 0, 0);
	net_run(&talk.net, 2 * NET_S);
	assert_false(carried_came(talk.net.ends[0], 0, 1000, memory, BYTES, talk.net.now));
	assert_false(carried_came(talk.net.ends[0], 0, UINT32_MAX, memory, BYTES, talk.net.now));
	assert_int_equal(talk.ends[0].came, 0);
	free(memory);
	talk_end(&talk);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_arrive),     cmocka_unit_test(test_pairs_fail),
		cmocka_unit_test(test_beside_packets), cmocka_unit_test(test_packets_alone),
		cmocka_unit_test(test_several_paths),  cmocka_unit_test(test_no_pair_opens),
		cmocka_unit_test(test_not_allowed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
