/* SPDX-License-Identifier: Apache-2.0 */
/* A link probe between two agents, and hostile input at the port where they listen. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/clock.h"
#include "control/agent/link_probe.h"
#include "control/agent/probe_ask.h"
#include "path/tcp.h"

#include <fcntl.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ASK_BYTES ((int)sizeof(struct probe_ask))

static const struct secret secret = { { 1, 2, 3 } }, other = { { 1, 2, 4 } };

struct end {
	struct link_probe *probe;
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
	assert_int_equal(link_probe_open(&end->at, news, end, &end->probe), TRIB_OK);
	udp_set_port(&end->at, link_probe_port(end->probe));
}

/* Two agents with the same secret. */
static void pair_open(struct end *a, struct end *b)
{
	end_open(a);
	end_open(b);
	link_probe_set_secret(a->probe, &secret);
	link_probe_set_secret(b->probe, &secret);
}

static void end_close(struct end *end)
{
	link_probe_close(end->probe);
	sem_destroy(&end->news);
}

static void wait_news(struct end *end)
{
	while (sem_wait(&end->news))
		;
}

static void ask(struct end *a, const struct end *b, uint64_t enough)
{
	struct link_probe_request wish = {
		.self = "a:1", .with = "b:1", .at = b->at, .enough_bps = enough, .may_stay = true
	};

	link_probe_ask(a->probe, &wish);
	wait_news(a);
}

/* Does the agent have one sample with the other, with both rates? */
static bool has_seen(const struct end *end, const char *with)
{
	struct link_sample samples[LINK_SAMPLES_MAX];

	return link_probe_samples(end->probe, samples) == 1 && !strcmp(samples[0].with, with) &&
	       samples[0].out_bps > 1e6 && samples[0].in_bps > 1e6;
}

/* Both ends have a sample with the other end's name. */
static void test_both(void **state)
{
	struct link_sample samples[LINK_SAMPLES_MAX];
	struct end a, b;

	(void)state;
	pair_open(&a, &b);
	/* If cores are short, a direction may have no rate. */
	for (unsigned tries = 5; tries && !(has_seen(&a, "b:1") && has_seen(&b, "a:1")); tries--) {
		ask(&a, &b, 1000000);
		wait_news(&b);
	}
	assert_true(has_seen(&a, "b:1") && has_seen(&b, "a:1"));
	/* An impossible rate: the probe ends nevertheless, and the newest sample counts. */
	ask(&a, &b, (uint64_t)1e15);
	wait_news(&b);
	assert_int_equal(link_probe_samples(a.probe, samples), 1);
	assert_true(samples[0].out_bps < 1e15);
	end_close(&a);
	end_close(&b);
}

/* Without the secret there is no service; the failed probe is reported. */
static void test_secret(void **state)
{
	struct link_sample samples[LINK_SAMPLES_MAX];
	struct end a, b;

	(void)state;
	end_open(&a);
	end_open(&b);
	link_probe_set_secret(a.probe, &other);
	ask(&a, &b, 1000000); /* it has no secret yet */
	link_probe_set_secret(b.probe, &secret);
	ask(&a, &b, 1000000);
	assert_int_equal(link_probe_samples(b.probe, samples), 0);
	assert_int_equal(link_probe_samples(a.probe, samples), 1);
	assert_true(samples[0].out_bps == 0 && samples[0].in_bps == 0);
	/* Nobody listens. */
	end_close(&b);
	ask(&a, &b, 1000000);
	assert_int_equal(link_probe_samples(a.probe, samples), 1);
	end_close(&a);
}

/* It keeps the newest samples, and the one with the highest rate. */
static void test_keeps(void **state)
{
	struct link_sample samples[LINK_SAMPLES_MAX];
	struct link_probe_request wish = { .self = "a:1", .enough_bps = 1000000, .may_stay = true };
	struct end a, b;
	bool has = false;

	(void)state;
	pair_open(&a, &b);
	ask(&a, &b, 1000000);
	end_close(&b);
	wish.at = b.at; /* where nobody listens any more */
	for (unsigned i = 0; i < LINK_SAMPLES_MAX + 2; i++) {
		snprintf(wish.with, sizeof(wish.with), "c%u:1", i);
		link_probe_ask(a.probe, &wish);
		wait_news(&a);
	}
	assert_int_equal(link_probe_samples(a.probe, samples), LINK_SAMPLES_MAX);
	assert_string_equal(samples[0].with, wish.with);
	for (unsigned i = 0; i < LINK_SAMPLES_MAX; i++)
		has |= !strcmp(samples[i].with, "b:1") && samples[i].out_bps > 1e6;
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

/* A valid first message of a connection, from this name. */
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
	struct link_sample samples[LINK_SAMPLES_MAX];
	uint8_t bytes[ASK_BYTES];
	char name[TREE_NAME_MAX];
	struct end a, b;
	int silent, fd;

	(void)state;
	pair_open(&a, &b);
	silent = knock(&b); /* and sends nothing */
	close(knock(&b));
	fd = knock(&b);
	say(fd, nonsense, sizeof(nonsense));
	close(fd);
	/* Names without a terminator, or with characters that are unsafe in a log. */
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
	/* A client with the secret that closes early, or never reads. */
	ask_make(bytes, "z:1", 3);
	fd = knock(&b);
	say(fd, bytes, sizeof(bytes));
	say(fd, nonsense, sizeof(nonsense));
	close(fd);
	fd = knock(&b);
	say(fd, bytes, sizeof(bytes));
	say(fd, nonsense, sizeof(nonsense));
	/* After all hostile clients, an honest one is served. */
	do
		ask(&a, &b, 1000000);
	while (link_probe_samples(a.probe, samples) && !(samples[0].out_bps > 0));
	do
		wait_news(&b);
	while (!link_probe_samples(b.probe, samples) || strcmp(samples[0].with, "a:1") != 0);
	close(fd);
	close(silent);
	end_close(&a);
	end_close(&b);
}

/* A request that was recorded on another connection is not served. */
static void test_replayed(void **state)
{
	struct end a, b;
	struct probe_ask ask = { .magic = PROBE_ASK_MAGIC, .flows = 1, .from = "a:1" };
	struct timeval patience = { .tv_sec = 2 };
	uint64_t challenge, first = 0;
	uint8_t byte;

	(void)state;
	pair_open(&a, &b);
	for (unsigned i = 0; i < 2; i++) {
		int fd = tcp_connect(&b.at, 1000);

		assert_true(fd >= 0);
		assert_int_equal(fcntl(fd, F_SETFL, 0), 0);
		setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
		assert_int_equal(recv(fd, &challenge, sizeof(challenge), MSG_WAITALL), 8);
		assert_true(challenge != first);
		if (i == 0)
			first = ask.challenge = challenge;
		probe_ask_seal(&ask, &secret);
		assert_int_equal(probe_ask_is_good(&ask, &secret, challenge), i == 0);
		assert_int_equal(send(fd, &ask, sizeof(ask), 0), sizeof(ask));
		if (i == 1) /* closed at once, without a byte */
			assert_true(recv(fd, &byte, 1, 0) <= 0);
		close(fd);
	}
	end_close(&a);
	end_close(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_both),     cmocka_unit_test(test_secret),
		cmocka_unit_test(test_keeps),    cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_replayed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
