/* SPDX-License-Identifier: Apache-2.0 */
/* A channel over real sockets: both ends in one process, paths between addresses of loopback. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/clock.h"
#include "channel_paths.h"
#include "path/channel/channel_io.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MESSAGE (3u << 20)
#define PATHS 4u
#define LIMIT_NS (20 * NSEC_PER_SEC)

struct box {
	uint8_t *memory;
	uint32_t came;
};

static void *place(void *user, uint32_t message, uint32_t bytes)
{
	struct box *box = user;

	return bytes <= MESSAGE ? box->memory + (size_t)(message % 2) * MESSAGE : NULL;
}

static void deliver(void *user, uint32_t message, void *memory, uint32_t bytes)
{
	struct box *box = user;
	const uint32_t *words = memory;

	assert_int_equal(message, box->came++);
	for (uint32_t i = 0; i < bytes / 4; i++)
		assert_int_equal(words[i], i * 2654435761u + message);
}

struct ends {
	struct channel_listener *listener;
	struct channel_io *io[2]; /* 0 calls */
	struct box boxes[2];
	trib_status status[2];
	uint64_t start;
};

/* System calls that receive, and those that found nothing though the one before was not full. */
static unsigned receives, in_vain;

int recvmmsg(int fd, struct mmsghdr *messages, unsigned n, int flags, struct timespec *timeout)
{
	static bool was_full;
	int got = (int)syscall(SYS_recvmmsg, fd, messages, n, flags, timeout);

	receives++;
	in_vain += got < 0 && errno == EAGAIN && !was_full;
	was_full = got == (int)n;
	return got;
}

static void ends_step(struct ends *ends)
{
	struct pollfd fds[2 * CHANNEL_FDS + 1];
	uint64_t now = clock_now(), wait = UINT64_MAX;
	unsigned n = 0, first[3] = { 0 };

	assert_true(now < ends->start + LIMIT_NS);
	for (unsigned i = 0; i < 2; i++) {
		uint64_t one;

		first[i] = first[i + 1] = n;
		if (!ends->io[i])
			continue;
		n += channel_fds(ends->io[i], fds + n);
		first[i + 1] = n;
		one = channel_wait(ends->io[i], now);
		wait = one < wait ? one : wait;
	}
	fds[n++] = (struct pollfd){ .fd = channel_listener_fd(ends->listener), .events = POLLIN };
	poll(fds, n, (int)(wait / 1000000));
	now = clock_now();
	if (fds[n - 1].revents)
		channel_listener_step(ends->listener, now);
	for (unsigned i = 0; i < 2; i++) {
		if (!ends->io[i])
			continue;
		channel_take(ends->io[i], fds + first[i], first[i + 1] - first[i]);
		ends->status[i] = channel_push(ends->io[i], now);
	}
}

static struct channel_io_config config_of(struct ends *ends, unsigned self)
{
	return (struct channel_io_config){
		.key = 77,
		.self = self,
		.peer = !self,
		.name = self ? "rank 0" : "rank 1",
		.longest = MESSAGE,
		.credit = 2,
		.timeout = 10 * NSEC_PER_SEC,
		.events = { .user = &ends->boxes[self], .place = place, .deliver = deliver },
	};
}

static void ends_open(struct ends *ends, unsigned paths)
{
	struct channel_io_config config[2];
	struct virtual_path virtual[PATHS];
	struct udp_address any, to;
	uint64_t now = clock_now();

	memset(ends, 0, sizeof(*ends));
	ends->start = now;
	for (unsigned i = 0; i < 2; i++) {
		config[i] = config_of(ends, i);
		ends->boxes[i].memory = malloc(2 * MESSAGE);
	}
	memset(virtual, 0, sizeof(virtual));
	assert_int_equal(udp_resolve("0.0.0.0:0", 0, &any), TRIB_OK);
	assert_int_equal(channel_listen(&any, &ends->listener), TRIB_OK);
	for (unsigned i = 0; i < PATHS; i++) {
		char text[32];

		snprintf(text, sizeof(text), "127.0.0.%u:0", 2 + i);
		assert_int_equal(udp_resolve(text, 0, &virtual[i].from), TRIB_OK);
		snprintf(text, sizeof(text), "127.0.1.%u:%u", 2 + i,
		         channel_listener_port(ends->listener));
		assert_int_equal(udp_resolve(text, 0, &virtual[i].to), TRIB_OK);
	}
	config[0].paths = virtual;
	config[0].n_paths = paths;
	to = virtual[0].to;
	assert_int_equal(channel_connect(&config[0], &to, now, &ends->io[0]), TRIB_OK);
	assert_int_equal(channel_accept(ends->listener, &config[1], now, &ends->io[1]), TRIB_OK);
}

static void ends_close(struct ends *ends)
{
	for (unsigned i = 0; i < 2; i++) {
		channel_io_free(ends->io[i]);
		free(ends->boxes[i].memory);
	}
	channel_listener_free(ends->listener);
}

static void test_messages(void **state)
{
	uint32_t *data = malloc(2 * MESSAGE), queued[2] = { 0 }, granted[2] = { 0 };
	struct ends ends;

	(void)state;
	ends_open(&ends, PATHS);
	while (ends.boxes[0].came < 6 || ends.boxes[1].came < 6) {
		for (unsigned i = 0; i < 2; i++) {
			struct channel *channel = channel_of(ends.io[i]);
			uint32_t *words = data + i * (MESSAGE / 4);

			if (queued[i] == channel_sent(channel) && queued[i] < 6) {
				for (uint32_t k = 0; k < MESSAGE / 4; k++)
					words[k] = k * 2654435761u + queued[i];
				assert_int_equal(channel_send(channel, words, MESSAGE), TRIB_OK);
				queued[i]++;
			}
		}
		ends_step(&ends);
		for (unsigned i = 0; i < 2; i++) {
			assert_int_equal(ends.status[i], TRIB_OK);
			if (ends.boxes[i].came > granted[i])
				granted[i]++, channel_grant(channel_of(ends.io[i]), 1);
		}
	}
	for (unsigned i = 0; i < PATHS; i++)
		assert_true(channel_path_works(channel_of(ends.io[0]), i));
	channel_close(channel_of(ends.io[0]), clock_now());
	while (channel_state(channel_of(ends.io[0])) != CHANNEL_CLOSED ||
	       channel_state(channel_of(ends.io[1])) != CHANNEL_CLOSED)
		ends_step(&ends);
	ends_close(&ends);
	free(data);
	print_message("%u calls that receive 36 MB on %u paths, %u in vain\n", receives, PATHS,
	              in_vain);
	assert_int_equal(in_vain, 0);
}

/* The other process ends before it has taken the message: the channel is closed here, too. */
static void test_abandoned(void **state)
{
	struct ends ends;
	struct channel *channel;

	(void)state;
	ends_open(&ends, 2);
	channel = channel_of(ends.io[0]);
	while (channel_state(channel_of(ends.io[1])) != CHANNEL_OPEN ||
	       channel_state(channel) != CHANNEL_OPEN)
		ends_step(&ends);
	assert_int_equal(channel_send(channel, ends.boxes[1].memory, 100000), TRIB_OK);
	channel_io_free(ends.io[1]);
	ends.io[1] = NULL;
	while (channel_state(channel) == CHANNEL_OPEN)
		ends_step(&ends);
	assert_int_equal(channel_state(channel), CHANNEL_CLOSED);
	assert_int_equal(channel_sent(channel), 0);
	assert_int_equal(channel_send(channel, "", 0), TRIB_ERR_PEER);
	ends_close(&ends);
}

/* A caller of another version is told so, and is not taken for a peer. */
static void test_other_version(void **state)
{
	struct path_control hello = { .magic = 0x3350, .kind = PATH_HELLO }, answer;
	struct udp_options options = { .receive_bytes = 65536, .send_bytes = 65536 };
	struct udp_address to;
	struct ends ends;
	char text[32];
	int fd;
	bool gso;

	(void)state;
	ends_open(&ends, 1);
	snprintf(text, sizeof(text), "127.0.0.1:%u", channel_listener_port(ends.listener));
	assert_int_equal(udp_resolve(text, 0, &to), TRIB_OK);
	assert_int_equal(udp_open(NULL, &to, &options, &fd, &gso), TRIB_OK);
	assert_int_equal(send(fd, &hello, sizeof(hello), 0), sizeof(hello));
	while (recv(fd, &answer, sizeof(answer), MSG_DONTWAIT) < 0)
		ends_step(&ends);
	assert_int_equal(answer.magic, PATH_MAGIC);
	close(fd);
	ends_close(&ends);
}

/* One of the peer's addresses is wrong: the other path works. */
static void test_wrong_address(void **state)
{
	struct channel_io_config config;
	struct virtual_path paths[2] = { 0 };
	struct ends ends;
	char text[32];
	uint64_t start = clock_now();

	(void)state;
	ends_open(&ends, 1);
	channel_io_free(ends.io[0]);
	config = config_of(&ends, 0);
	snprintf(text, sizeof(text), "127.0.0.1:%u", channel_listener_port(ends.listener));
	assert_int_equal(udp_resolve(text, 0, &paths[0].to), TRIB_OK);
	paths[1].to = paths[0].to;
	assert_int_equal(udp_resolve("192.0.2.1:0", 0, &paths[1].from), TRIB_OK);
	config.paths = paths;
	config.n_paths = 2;
	assert_int_equal(channel_connect(&config, &paths[0].to, start, &ends.io[0]), TRIB_OK);
	memset(ends.boxes[0].memory, 0, 2 * MESSAGE);
	assert_int_equal(channel_send(channel_of(ends.io[0]), ends.boxes[0].memory, 0), TRIB_OK);
	while (!ends.boxes[1].came) {
		ends_step(&ends);
	}
	assert_true(channel_path_works(channel_of(ends.io[0]), 0));
	assert_false(channel_path_works(channel_of(ends.io[0]), 1));
	ends_close(&ends);
}

/* The process that should call has died before its first packet. */
static void test_never_comes(void **state)
{
	struct ends ends;

	(void)state;
	ends_open(&ends, 1);
	assert_int_equal(channel_step(ends.io[1], clock_now()), TRIB_OK);
	assert_int_equal(channel_step(ends.io[1], clock_now() + 11 * NSEC_PER_SEC), TRIB_ERR_PEER);
	ends_close(&ends);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_messages),      cmocka_unit_test(test_abandoned),
		cmocka_unit_test(test_other_version), cmocka_unit_test(test_wrong_address),
		cmocka_unit_test(test_never_comes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
