/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A channel over a simulated network: every message arrives once, whole and in order, whatever the
 * paths do. Rates follow the paths, dead paths are left and found again, and errors name the peer.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "channel_net.h"
#include "channel_paths.h"
#include "message_words.h"
#include "path/channel/messages.h"
#include "short.h"
#include "wire/checksum.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One direction: what end `from` sends, and what the other one has got. */
struct traffic {
	unsigned from;
	uint32_t messages, next; /* to send in all; sent so far */
	uint32_t least, most;    /* bytes of a message */
	uint32_t came;
	uint64_t bytes; /* delivered */
	uint64_t came_at;
	bool slow_grants;
	uint8_t *memory[CHANNEL_MESSAGES]; /* of messages on their way */
	uint8_t *placed[CHANNEL_MESSAGES];
	uint32_t freed;
};

struct talk {
	struct net net;
	struct traffic ways[2];
	bool wanted; /* place gives memory */
};

static uint32_t message_bytes(const struct traffic *way, uint32_t message)
{
	uint32_t span = way->most - way->least + 1;

	return way->least + (uint32_t)((message * 2654435761ull >> 7) % span);
}

static void *place(void *user, uint32_t message, uint32_t bytes)
{
	struct traffic *way = user;

	assert_true(message >= way->came && message < way->came + CHANNEL_MESSAGES);
	assert_int_equal(bytes, message_bytes(way, message));
	assert_null(way->placed[message % CHANNEL_MESSAGES]);
	return way->placed[message % CHANNEL_MESSAGES] = malloc(bytes + 1);
}

static void deliver(void *user, uint32_t message, void *memory, uint32_t bytes)
{
	struct traffic *way = user;
	uint8_t *expected = malloc(bytes + 1);

	assert_int_equal(message, way->came);
	assert_ptr_equal(memory, way->placed[message % CHANNEL_MESSAGES]);
	message_fill(expected, bytes, message, way->from);
	assert_true(!memcmp(memory, expected, bytes));
	free(expected);
	free(memory);
	way->placed[message % CHANNEL_MESSAGES] = NULL;
	way->came++;
	way->bytes += bytes;
}

static void work(struct net *net, void *user)
{
	struct talk *talk = user;

	for (unsigned i = 0; i < 2; i++) {
		struct traffic *way = &talk->ways[i];
		struct channel *channel = net->ends[i], *other = net->ends[!i];

		for (; way->freed < channel_sent(channel); way->freed++) {
			free(way->memory[way->freed % CHANNEL_MESSAGES]);
			way->memory[way->freed % CHANNEL_MESSAGES] = NULL;
		}
		while (way->next < way->messages && channel_state(channel) <= CHANNEL_OPEN &&
		       channel_room(channel)) {
			uint32_t bytes = message_bytes(way, way->next);
			uint8_t **data = &way->memory[way->next % CHANNEL_MESSAGES];

			*data = realloc(*data, bytes + 1);
			message_fill(*data, bytes, way->next, i);
			assert_int_equal(channel_send(channel, *data, bytes), TRIB_OK);
			way->next++;
		}
		if (way->came && way->came == way->messages && !way->came_at)
			way->came_at = net->now;
		if (!way->slow_grants)
			channel_grant(other, CHANNEL_MESSAGES);
		else if (net_random(net) < 0.01)
			channel_grant(other, 1);
	}
}

static void talk_start(struct talk *talk, unsigned paths, uint64_t seed)
{
	memset(talk, 0, sizeof(*talk));
	net_init(&talk->net, paths, seed);
	talk->ways[1].from = 1;
	talk->net.work = work;
	talk->net.user = talk;
}

static void talk_open(struct talk *talk)
{
	struct channel_config config[2] = { net_config(0), net_config(1) };

	for (unsigned i = 0; i < 2; i++) {
		config[i].events = (struct channel_events){ .user = &talk->ways[!i],
			                                    .place = place,
			                                    .deliver = deliver };
		if (talk->ways[!i].slow_grants)
			config[i].credit = 2;
	}
	net_open(&talk->net, config);
}

static void talk_end(struct talk *talk)
{
	for (unsigned i = 0; i < 2; i++) {
		struct traffic *way = &talk->ways[i];

		for (; way->freed < way->next; way->freed++)
			free(way->memory[way->freed % CHANNEL_MESSAGES]);
		for (unsigned k = 0; k < CHANNEL_MESSAGES; k++)
			free(way->placed[k]);
	}
	net_free(&talk->net);
}

static bool talk_is_over(const struct talk *talk)
{
	for (unsigned i = 0; i < 2; i++)
		if (talk->ways[i].came < talk->ways[i].messages ||
		    channel_sent(talk->net.ends[i]) < talk->ways[i].messages)
			return false;
	return true;
}

/* Runs until everything has come; the seconds that it took. */
static double talk_finish(struct talk *talk, uint64_t most)
{
	uint64_t start = talk->net.now;

	while (!talk_is_over(talk) && talk->net.now < start + most) {
		net_run(&talk->net, talk->net.now + NET_MS);
		for (unsigned i = 0; i < 2; i++) {
			assert_int_equal(channel_status(talk->net.ends[i]), TRIB_OK);
			assert_true(channel_state(talk->net.ends[i]) <= CHANNEL_OPEN);
		}
	}
	for (unsigned i = 0; i < 2; i++)
		if (!talk_is_over(talk))
			printf("way %u: %u of %u came, %u arrived\n", i, talk->ways[i].came,
			       talk->ways[i].messages, channel_sent(talk->net.ends[i]));
	assert_true(talk_is_over(talk));
	return (double)(talk->net.now - start) * 1e-9;
}

/* Bytes of messages a second that this end gets, over a second, after a second of start. */
static double talk_rate(struct talk *talk, uint64_t warm)
{
	uint64_t bytes;

	talk->ways[0].messages = UINT32_MAX;
	talk->ways[0].least = talk->ways[0].most = 1 << 16;
	net_run(&talk->net, talk->net.now + warm);
	for (unsigned i = 0; i < talk->net.n_paths; i++)
		talk->net.paths[i].carried[0] = 0;
	bytes = talk->ways[0].bytes;
	net_run(&talk->net, talk->net.now + NET_S);
	return (double)(talk->ways[0].bytes - bytes) * 8;
}

/* ---- exactly once ---- */

static void test_sizes(void **state)
{
	static const uint32_t sizes[] = {
		0, 1, 7, 8, 1447, 1448, 1449, 50679, 50680, 50681, 300000
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct talk talk;

		talk_start(&talk, 2, i + 1);
		for (unsigned k = 0; k < 2; k++) {
			talk.ways[k].messages = 5;
			talk.ways[k].least = talk.ways[k].most = sizes[i];
		}
		talk_open(&talk);
		talk_finish(&talk, NET_S);
		talk_end(&talk);
	}
}

/* A link on the way takes no full packets, and nobody says so. */
static void test_short_link(void **state)
{
	static const struct {
		uint32_t most, unit;
	} links[] = { { 1472, 1448 }, { 1471, 1416 }, { 1300, 1248 }, { 600, 528 } };

	(void)state;
	for (unsigned i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
		struct talk talk;

		talk_start(&talk, 1, 17 + i);
		talk.net.paths[0].most = links[i].most;
		for (unsigned k = 0; k < 2; k++) {
			talk.ways[k].messages = 5;
			talk.ways[k].least = talk.ways[k].most = 50000;
		}
		talk_open(&talk);
		talk_finish(&talk, 2 * NET_S);
		assert_int_equal(channel_unit(talk.net.ends[0]), links[i].unit);
		assert_int_equal(channel_unit(talk.net.ends[1]), links[i].unit);
		talk_end(&talk);
	}
}

static void spoil(struct talk *talk)
{
	struct net *net = &talk->net;

	for (unsigned i = 0; i < net->n_paths; i++) {
		struct net_path *path = &net->paths[i];

		path->bps = 2e7 + net_random(net) * 5e8;
		path->delay = (uint64_t)(net_random(net) * 5 * NET_MS);
		path->queue_ns = (uint64_t)(5 * NET_MS + net_random(net) * 30 * NET_MS);
		path->loss = net_random(net) * 0.1;
		path->duplicate = net_random(net) * 0.1;
		path->corrupt = net_random(net) * 0.05;
		path->late = net_random(net) * 0.1;
		path->load = net_random(net) * 0.8;
	}
}

/* The first seed of random networks: TRIB_SEED, or 1. */
static uint64_t first_seed(void)
{
	const char *given = getenv("TRIB_SEED");
	uint64_t seed = given ? strtoull(given, NULL, 10) : 1;

	printf("TRIB_SEED=%llu\n", (unsigned long long)seed);
	return seed;
}

static void test_faults(void **state)
{
	uint64_t cases = test_cases("lossy networks", 60), first = first_seed();

	(void)state;
	for (uint64_t seed = first; seed < first + cases; seed++) {
		struct talk talk;
		struct channel_counters counters;

		talk_start(&talk, 1 + seed % 5, seed);
		spoil(&talk);
		for (unsigned k = 0; k < 2; k++) {
			talk.ways[k].messages = 40;
			talk.ways[k].most = seed % 2 ? 100000 : 5000;
			talk.ways[k].slow_grants = seed % 3 == k;
		}
		talk_open(&talk);
		talk_finish(&talk, 60 * NET_S);
		counters = channel_counters(talk.net.ends[1]);
		assert_true(counters.received >= 40);
		talk_end(&talk);
	}
}

/* A random path is cut or restored every 200 ms; one is always whole. */
static void test_cuts(void **state)
{
	uint64_t cases = test_cases("networks with cuts", 15), first = first_seed();

	(void)state;
	for (uint64_t seed = first; seed < first + cases; seed++) {
		struct talk talk;

		talk_start(&talk, 4, seed);
		for (unsigned i = 0; i < 4; i++)
			talk.net.paths[i].bps = 5e7;
		talk.ways[0].messages = 150;
		talk.ways[0].most = 1 << 20;
		talk_open(&talk);
		while (!talk_is_over(&talk)) {
			unsigned path = (unsigned)(net_random(&talk.net) * 4);

			talk.net.paths[path].cut = !talk.net.paths[path].cut && path;
			net_run(&talk.net, talk.net.now + 200 * NET_MS);
			assert_int_equal(channel_status(talk.net.ends[0]), TRIB_OK);
			assert_true(talk.net.now < 60 * NET_S);
		}
		talk_end(&talk);
	}
}

/* ---- rates ---- */

static void test_sum_of_paths(void **state)
{
	(void)state;
	for (unsigned paths = 1; paths <= 4; paths += 3) {
		struct talk talk;
		double rate;

		talk_start(&talk, paths, paths);
		talk_open(&talk);
		rate = talk_rate(&talk, NET_S / 2);
		printf("%u paths: %.3f of the sum\n", paths, rate / NET_BPS / paths * 1538 / 1448);
		assert_true(rate > 0.95 * NET_BPS * paths * 1448 / 1538);
		talk_end(&talk);
	}
}

static void test_unlike_paths(void **state)
{
	struct talk talk;
	double rate;

	(void)state;
	talk_start(&talk, 4, 5);
	talk.net.paths[1].bps = NET_BPS / 2;
	talk.net.paths[2].bps = NET_BPS / 10;
	talk.net.paths[3].bps = 0.3 * NET_BPS;
	talk.net.paths[3].delay = 5 * NET_MS;
	talk_open(&talk);
	rate = talk_rate(&talk, NET_S);
	printf("unlike paths: %.3f of the sum\n", rate / (1.9 * NET_BPS) * 1538 / 1448);
	assert_true(rate > 0.95 * (1.9 * NET_BPS) * 1448 / 1538);
	talk_end(&talk);
}

/* The other path stays full, and the lossy one carries what the loss leaves. */
static void test_random_loss(void **state)
{
	static const double losses[] = { 0.03, 0.1 };

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct talk talk;
		double rate;

		talk_start(&talk, 2, 6);
		talk.net.paths[1].loss = losses[i];
		talk_open(&talk);
		rate = talk_rate(&talk, NET_S) / ((2 - losses[i]) * NET_BPS) * 1538 / 1448;
		printf("%.0f %% loss on one of two paths: %.3f of what is left\n", 100 * losses[i],
		       rate);
		assert_true(rate > 0.97);
		talk_end(&talk);
	}
}

/* Background traffic of 0, 25, 50 and 75 %: our shares are 100, 75, 50 and 25 %. */
static void test_background(void **state)
{
	struct talk talk;

	(void)state;
	talk_start(&talk, 4, 7);
	for (unsigned i = 0; i < 4; i++)
		talk.net.paths[i].load = 0.25 * i;
	talk_open(&talk);
	talk_rate(&talk, NET_S);
	for (unsigned i = 0; i < 4; i++) {
		double carried = (double)talk.net.paths[i].carried[0] * 8 * 1538 / 1472;
		double share = carried / (NET_BPS * (1 - 0.25 * i));

		printf("path %u: %.3f of the free bandwidth\n", i, share);
		assert_true(share > 0.93 && share < 1.02);
	}
	talk_end(&talk);
}

/* Two paths by the same link: the one that came later does not drive the other one out. */
static void test_shared_link(void **state)
{
	struct talk talk;
	double rate, first;

	(void)state;
	talk_start(&talk, 2, 17);
	talk.net.paths[1].link = 0;

	talk.net.paths[1].cut = true;
	talk_open(&talk);
	talk_rate(&talk, NET_S / 10);
	talk.net.paths[1].cut = false;
	rate = talk_rate(&talk, 8 * NET_S);
	first = (double)talk.net.paths[0].carried[0] * 8 / rate;
	printf("two paths on a link: %.3f of it, %.3f by the first\n", rate / NET_BPS * 1538 / 1448,
	       first);
	assert_true(rate > 0.95 * NET_BPS * 1448 / 1538);
	assert_true(first > 0.2 && first < 0.8);
	talk_end(&talk);
}

/* The mean wait in the queues of all paths over a second, which a packet of another flow would
 * have. */
static double mean_queue_ms(struct talk *talk)
{
	const unsigned steps = 1000;
	double sum = 0;

	for (unsigned i = 0; i < steps; i++) {
		net_run(&talk->net, talk->net.now + NET_S / steps);
		for (unsigned k = 0; k < talk->net.n_paths; k++)
			if (talk->net.paths[k].busy[0] > talk->net.now)
				sum += (double)(talk->net.paths[k].busy[0] - talk->net.now);
	}
	return sum / steps / talk->net.n_paths / NET_MS;
}

/* Queues stay short, not as long as the buffer, and links stay busy. */
static void test_queue(void **state)
{
	(void)state;
	for (unsigned paths = 1; paths <= 4; paths += 3) {
		struct talk talk;
		double rate, queue;

		talk_start(&talk, paths, 8);
		talk_open(&talk);
		rate = talk_rate(&talk, NET_S) / NET_BPS / paths * 1538 / 1448;
		queue = mean_queue_ms(&talk);
		printf("%u paths: queues of %.1f ms, %.3f of the sum\n", paths, queue, rate);
		assert_true(queue < 3);
		assert_true(rate > 0.98);
		talk_end(&talk);
	}
}

/* A cut path is left within 0.3 s, and used again within 0.5 s when it is back. */
static void test_recovery(void **state)
{
	struct talk talk;
	uint64_t before;

	(void)state;
	talk_start(&talk, 2, 9);
	talk_open(&talk);
	talk_rate(&talk, NET_S / 2);
	talk.net.paths[1].cut = true;
	net_run(&talk.net, talk.net.now + 300 * NET_MS);
	before = talk.ways[0].bytes;
	net_run(&talk.net, talk.net.now + 100 * NET_MS);
	printf("after the cut: %.3f of one path\n",
	       (double)(talk.ways[0].bytes - before) * 80 / NET_BPS * 1538 / 1448);
	assert_true(talk.ways[0].bytes - before > 0.9 * NET_BPS / 80 * 1448 / 1538);
	assert_false(channel_path_works(talk.net.ends[0], 1));
	talk.net.paths[1].cut = false;
	net_run(&talk.net, talk.net.now + 500 * NET_MS);
	before = talk.ways[0].bytes;
	net_run(&talk.net, talk.net.now + 100 * NET_MS);
	assert_true(talk.ways[0].bytes - before > 0.9 * (2 * NET_BPS) / 80 * 1448 / 1538);
	talk_end(&talk);
}

/* A small message takes the path of the least latency. */
static void test_token(void **state)
{
	struct talk talk;
	double before;

	(void)state;
	talk_start(&talk, 4, 10);
	for (unsigned i = 0; i < 4; i++)
		talk.net.paths[i].delay = (40 - 10 * i) * NET_MS;
	talk.ways[0].least = talk.ways[0].most = 2;
	talk_open(&talk);
	net_run(&talk.net, talk.net.now + NET_S);
	for (unsigned i = 0; i < 20; i++) {
		before = (double)talk.net.now;
		talk.ways[0].messages++;
		talk.ways[0].came_at = 0;
		talk_finish(&talk, NET_S);
		assert_true((double)talk.ways[0].came_at - before < 11.0 * NET_MS);
	}
	talk_end(&talk);
}

/*
 * A token is on a path that is cut, and the peer sends only now and then, on other paths. These
 * pauses say nothing about the peer.
 */
static void test_token_on_cut_path(void **state)
{
	struct talk talk;

	(void)state;
	talk_start(&talk, 3, 14);
	for (unsigned i = 0; i < 3; i++)
		talk.net.paths[i].delay = (i + 1) * NET_MS / 4;
	talk.ways[0].least = talk.ways[0].most = 2;
	talk.ways[1].least = talk.ways[1].most = 10000;
	talk_open(&talk);
	net_run(&talk.net, talk.net.now + NET_S);
	talk.net.paths[0].cut = true;
	talk.ways[0].messages++;
	for (unsigned i = 0; i < 10; i++) {
		talk.ways[1].messages++;
		net_run(&talk.net, talk.net.now + 50 * NET_MS);
	}
	assert_int_equal(talk.ways[0].came, 1);
	talk_end(&talk);
}

/*
 * The first packets of a path may all be lost, and so may the first questions. Meanwhile the peer
 * is heard now and then. Its packets do not put off the next question.
 */
static void test_first_packets_lost(void **state)
{
	(void)state;
	for (unsigned seed = 1; seed <= 100; seed++) {
		struct talk talk;

		talk_start(&talk, 1, seed);
		talk.ways[0].least = talk.ways[0].most = 14000;
		talk.ways[1].least = talk.ways[1].most = 2;
		talk_open(&talk);
		talk.net.paths[0].loss = 1;
		talk.ways[0].messages++;
		net_run(&talk.net, talk.net.now + 60 * NET_MS);
		talk.net.paths[0].loss = 0.3;
		for (unsigned i = 0; i < 150 && !talk.ways[0].came; i++) {
			talk.ways[1].messages++;
			net_run(&talk.net, talk.net.now + 55 * NET_MS);
		}
		assert_int_equal(talk.ways[0].came, 1);
		talk_end(&talk);
	}
}

/* ---- errors ---- */

/* Two messages may come, and no more until others are granted. */
static void test_credit(void **state)
{
	struct talk talk;

	(void)state;
	talk_start(&talk, 2, 11);
	talk.ways[0].slow_grants = true;
	talk.ways[0].messages = 5;
	talk.ways[0].most = 100000;
	talk_open(&talk);
	talk.net.work = NULL;
	work(&talk.net, &talk); /* sends; grants hardly ever */
	net_run(&talk.net, talk.net.now + NET_S);
	assert_in_range(talk.ways[0].came, 2, 4);
	assert_int_equal(channel_sent(talk.net.ends[0]), talk.ways[0].came);
	channel_grant(talk.net.ends[1], 3);
	net_run(&talk.net, talk.net.now + NET_S);
	assert_int_equal(talk.ways[0].came, 5);
	talk_end(&talk);
}

static void test_death(void **state)
{
	struct talk talk;

	(void)state;
	talk_start(&talk, 2, 12);
	talk.ways[0].messages = 10;
	talk.ways[0].most = 100000;
	talk_open(&talk);
	talk_finish(&talk, NET_S);
	for (unsigned i = 0; i < 2; i++)
		assert_false(channel_is_silent(talk.net.ends[i], talk.net.now));
	talk.net.paths[0].cut = talk.net.paths[1].cut = true;
	net_run(&talk.net, talk.net.now + 3 * NET_S);
	for (unsigned i = 0; i < 2; i++) {
		assert_true(channel_is_silent(talk.net.ends[i], talk.net.now));
		assert_int_equal(channel_status(talk.net.ends[i]), TRIB_ERR_PEER);
		assert_non_null(strstr(trib_last_error(),
		                       i ? "rank 0 has not answered" : "rank 1 has not answered"));
	}
	talk_end(&talk);
}

static void test_idle(void **state)
{
	struct talk talk;

	(void)state;
	talk_start(&talk, 1, 13);
	talk_open(&talk);
	net_run(&talk.net, talk.net.now + 10 * NET_S);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(channel_state(talk.net.ends[i]), CHANNEL_OPEN);
	talk_end(&talk);
}

static void test_wrong_key(void **state)
{
	struct talk talk;
	struct channel_config config[2] = { net_config(0), net_config(1) };

	(void)state;
	talk_start(&talk, 1, 14);
	config[1].key++;
	net_open(&talk.net, config);
	talk.net.work = NULL;
	net_run(&talk.net, talk.net.now + 3 * NET_S);
	assert_int_equal(channel_status(talk.net.ends[0]), TRIB_ERR_PEER);
	assert_true(channel_counters(talk.net.ends[1]).dropped > 10);
	talk_end(&talk);
}

static void test_version(void **state)
{
	struct channel_config config = net_config(0);
	struct channel *channel = channel_new(&config, 1);
	struct path_address at = { .size = 4 };
	struct path_control other = { .magic = 0x3250, .kind = PATH_WELCOME | PATH_ANSWERS };

	(void)state;
	assert_true(channel_open_path(channel, 0, &at, 1));
	other.id = 7; /* a packet of this version that a link has damaged */
	channel_receive(channel, 0, 2, &other, sizeof(other));
	assert_int_equal(channel_status(channel), TRIB_OK);
	other.id = 0;
	channel_receive(channel, 0, 2, &other, sizeof(other));
	assert_int_equal(channel_status(channel), TRIB_ERR_REFUSED);
	assert_non_null(strstr(trib_last_error(), "rank 1 speaks version 2"));
	channel_free(channel);
}

static void test_bye(void **state)
{
	struct talk talk;

	(void)state;
	talk_start(&talk, 2, 15);
	talk.net.paths[0].loss = talk.net.paths[1].loss = 0.3;
	talk.ways[0].messages = 20;
	talk.ways[0].most = 100000;
	talk_open(&talk);
	while (talk.ways[0].next < 20)
		net_run(&talk.net, talk.net.now + NET_MS);
	channel_close(talk.net.ends[0], talk.net.now);
	net_run(&talk.net, talk.net.now + 5 * NET_S);
	assert_int_equal(talk.ways[0].came, 20);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(channel_state(talk.net.ends[i]), CHANNEL_CLOSED);
		assert_int_equal(channel_send(talk.net.ends[i], "", 0), TRIB_ERR_PEER);
	}
	talk_end(&talk);
}

/* Whoever closes does not want what has not arrived: the other side sees how much that is. */
static void test_bye_too_early(void **state)
{
	struct talk talk;

	(void)state;
	talk_start(&talk, 2, 16);
	talk.ways[0].messages = 100;
	talk.ways[0].least = talk.ways[0].most = 1000000;
	talk_open(&talk);
	net_run(&talk.net, talk.net.now + 20 * NET_MS);
	channel_close(talk.net.ends[1], talk.net.now);
	net_run(&talk.net, talk.net.now + 100 * NET_MS);
	assert_int_equal(channel_state(talk.net.ends[0]), CHANNEL_CLOSED);
	assert_in_range(channel_sent(talk.net.ends[0]), 0, 99);
	assert_int_equal(channel_send(talk.net.ends[0], "", 0), TRIB_ERR_PEER);
	talk_end(&talk);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_faults),
		cmocka_unit_test(test_cuts),
		cmocka_unit_test(test_sum_of_paths),
		cmocka_unit_test(test_unlike_paths),
		cmocka_unit_test(test_random_loss),
		cmocka_unit_test(test_background),
		cmocka_unit_test(test_shared_link),
		cmocka_unit_test(test_queue),
		cmocka_unit_test(test_recovery),
		cmocka_unit_test(test_token),
		cmocka_unit_test(test_token_on_cut_path),
		cmocka_unit_test(test_credit),
		cmocka_unit_test(test_death),
		cmocka_unit_test(test_idle),
		cmocka_unit_test(test_wrong_key),
		cmocka_unit_test(test_version),
		cmocka_unit_test(test_bye),
		cmocka_unit_test(test_bye_too_early),
		cmocka_unit_test(test_short_link),
		cmocka_unit_test(test_first_packets_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
