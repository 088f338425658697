/* SPDX-License-Identifier: Apache-2.0 */
/* Two that try the way between them; and what else may come by the port where they listen. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/clock.h"
#include "control/gauge.h"
#include "path/tcp.h"

#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define ASK_BYTES 96

static const struct secret secret = { { 1, 2, 3 } }, other = { { 1, 2, 4 } };

struct end {
	struct gauge *gauge;
	struct udp_address at;
	sem_t news;
};

static void news(void *context)
{
	sem_post(&((struct end *)context)->news);
}

static void end_open(struct end *end)
{
	assert_int_equal(udp_resolve("127.0.0.1:0", 0, &end->at), TRIB_OK);
	sem_init(&end->news, 0, 0);
	assert_int_equal(gauge_open(&end->at, news, end, &end->gauge), TRIB_OK);
	udp_set_port(&end->at, gauge_port(end->gauge));
}

/* Two that know each other. */
static void pair_open(struct end *a, struct end *b)
{
	end_open(a);
	end_open(b);
	gauge_set_secret(a->gauge, &secret);
	gauge_set_secret(b->gauge, &secret);
}

static void end_close(struct end *end)
{
	gauge_close(end->gauge);
	sem_destroy(&end->news);
}

static void wait_news(struct end *end)
{
	while (sem_wait(&end->news))
		;
}

static void ask(struct end *a, const struct end *b, uint64_t enough)
{
	struct gauge_wish wish = {
		.self = "a:1", .with = "b:1", .at = b->at, .enough_bps = enough, .may_stay = true
	};

	gauge_ask(a->gauge, &wish);
	wait_news(a);
}

/* Does it know one way, to that one, and what it carries out and in? */
static bool has_seen(const struct end *end, const char *with)
{
	struct node_way ways[NODE_WAYS];

	return gauge_ways(end->gauge, ways) == 1 && !strcmp(ways[0].with, with) &&
	       ways[0].out_bps > 1e6 && ways[0].in_bps > 1e6;
}

/* Both ends know what they have seen, by the other one's name. */
static void test_both(void **state)
{
	struct node_way ways[NODE_WAYS];
	struct end a, b;

	(void)state;
	pair_open(&a, &b);
	/* Where cores are short nothing is said of a direction. */
	for (unsigned tries = 5; tries && !(has_seen(&a, "b:1") && has_seen(&b, "a:1")); tries--) {
		ask(&a, &b, 1000000);
		wait_news(&b);
	}
	assert_true(has_seen(&a, "b:1") && has_seen(&b, "a:1"));
	/* More than any machine carries: it ends nevertheless, and the newest word counts. */
	ask(&a, &b, (uint64_t)1e15);
	wait_news(&b);
	assert_int_equal(gauge_ways(a.gauge, ways), 1);
	assert_true(ways[0].out_bps < 1e15);
	end_close(&a);
	end_close(&b);
}

/* Who does not know the secret is not served; that nothing was seen is said. */
static void test_secret(void **state)
{
	struct node_way ways[NODE_WAYS];
	struct end a, b;

	(void)state;
	end_open(&a);
	end_open(&b);
	gauge_set_secret(a.gauge, &other);
	ask(&a, &b, 1000000); /* it has none yet */
	gauge_set_secret(b.gauge, &secret);
	ask(&a, &b, 1000000);
	assert_int_equal(gauge_ways(b.gauge, ways), 0);
	assert_int_equal(gauge_ways(a.gauge, ways), 1);
	assert_true(ways[0].out_bps == 0 && ways[0].in_bps == 0);
	/* Nobody listens. */
	end_close(&b);
	ask(&a, &b, 1000000);
	assert_int_equal(gauge_ways(a.gauge, ways), 1);
	end_close(&a);
}

/* As many as it keeps: the newest, and the one that shows most. */
static void test_keeps(void **state)
{
	struct node_way ways[NODE_WAYS];
	struct gauge_wish wish = { .self = "a:1", .enough_bps = 1000000, .may_stay = true };
	struct end a, b;
	bool has = false;

	(void)state;
	pair_open(&a, &b);
	ask(&a, &b, 1000000);
	end_close(&b);
	wish.at = b.at; /* where nobody is any more */
	for (unsigned i = 0; i < NODE_WAYS + 2; i++) {
		snprintf(wish.with, sizeof(wish.with), "c%u:1", i);
		gauge_ask(a.gauge, &wish);
		wait_news(&a);
	}
	assert_int_equal(gauge_ways(a.gauge, ways), NODE_WAYS);
	assert_string_equal(ways[0].with, wish.with);
	for (unsigned i = 0; i < NODE_WAYS; i++)
		has |= !strcmp(ways[i].with, "b:1") && ways[i].out_bps > 1e6;
	assert_true(has);
	end_close(&a);
}

static int knock(const struct end *end)
{
	int fd = tcp_connect(&end->at, 1000);

	assert_true(fd >= 0);
	return fd;
}

static void say(int fd, const void *data, size_t bytes)
{
	struct iovec piece = { (void *)data, bytes };

	tcp_send(fd, &piece, 1);
}

/* The first bytes of a connection as they should be, from this name. */
static void ask_make(uint8_t out[ASK_BYTES], const char *from, size_t length)
{
	uint64_t enough = (uint64_t)1e15, proof;

	memset(out, 0, ASK_BYTES);
	memcpy(out, "TAG1", 4);
	memcpy(out + 8, &enough, 8);
	memcpy(out + 24, from, length);
	proof = secret_hash(&secret, out, ASK_BYTES - 8);
	memcpy(out + ASK_BYTES - 8, &proof, 8);
}

static void test_hostile(void **state)
{
	static const char nonsense[4096] = "GET / HTTP/1.1\r\n\r\n";
	struct node_way ways[NODE_WAYS];
	uint8_t bytes[ASK_BYTES];
	char name[TREE_NAME_MAX];
	struct end a, b;
	int silent, fd;

	(void)state;
	pair_open(&a, &b);
	silent = knock(&b); /* and says nothing, ever */
	close(knock(&b));
	fd = knock(&b);
	say(fd, nonsense, sizeof(nonsense));
	close(fd);
	/* Names without an end, or not for a log. */
	memset(name, 'x', sizeof(name));
	ask_make(bytes, name, sizeof(name));
	fd = knock(&b);
	say(fd, bytes, sizeof(bytes));
	say(fd, nonsense, sizeof(nonsense));
	close(fd);
	ask_make(bytes, "a\n:1", 4);
	fd = knock(&b);
	say(fd, bytes, sizeof(bytes));
	say(fd, nonsense, sizeof(nonsense));
	close(fd);
	/* One that knows the secret, and leaves, or never takes what comes. */
	ask_make(bytes, "z:1", 3);
	fd = knock(&b);
	say(fd, bytes, sizeof(bytes));
	say(fd, nonsense, sizeof(nonsense));
	close(fd);
	fd = knock(&b);
	say(fd, bytes, sizeof(bytes));
	say(fd, nonsense, sizeof(nonsense));
	/* They come one after the other: at the end of it all, an honest one is served. */
	do
		ask(&a, &b, 1000000);
	while (gauge_ways(a.gauge, ways) && !(ways[0].out_bps > 0));
	do
		wait_news(&b);
	while (!gauge_ways(b.gauge, ways) || strcmp(ways[0].with, "a:1") != 0);
	close(fd);
	close(silent);
	end_close(&a);
	end_close(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_both),
		cmocka_unit_test(test_secret),
		cmocka_unit_test(test_keeps),
		cmocka_unit_test(test_hostile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
