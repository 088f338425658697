/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The TCP connection of a channel, over real sockets: both ends in one process. Every message
 * arrives once, whole and in order, whatever happens to the connection.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/random_bits.h"
#include "path/channel/carried.h"
#include "path/channel/channel_io.h"
#include "path/tcp_link/frame_reader.h"
#include "path/tcp_link/tcp_link.h"
#include "path/tcp.h"
#include "message_words.h"
#include "short.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LONGEST 300000u
#define CREDIT 16u
#define LIMIT_NS (60 * NSEC_PER_SEC)

/* ---- what the connection sends: tcp_send() is the only one that calls sendmsg ---- */

static struct {
	uint64_t bytes;
	int fd;       /* of the last call */
	uint64_t fds; /* bits of all that have sent */
	bool full;    /* nothing leaves any more */
} sent;

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
	ssize_t n;

	sent.fd = fd;
	if (sent.full) {
		errno = EAGAIN;
		return -1;
	}
	n = syscall(SYS_sendmsg, fd, message, flags);
	sent.bytes += n > 0 ? (uint64_t)n : 0;
	sent.fds |= 1ull << (fd % 64);
	return n;
}

/* ---- connections that are accepted ---- */

static struct {
	bool none;      /* no descriptor is left */
	unsigned calls; /* that have failed for that */
} accepts;

int accept4(int fd, struct sockaddr *address, socklen_t *length, int flags)
{
	if (!accepts.none)
		return (int)syscall(SYS_accept4, fd, address, length, flags);
	accepts.calls++;
	errno = EMFILE;
	return -1;
}

/* ---- two ends ---- */

struct end {
	struct channel_io *io;
	uint64_t seed;
	uint32_t next, freed, came, granted;
	bool quiet; /* sends nothing */
	void *messages[CHANNEL_MESSAGES];
};

struct ends {
	struct channel_listener *listener;
	struct end ends[2]; /* 0 calls */
	uint64_t start;
};

static uint32_t bytes_of(const struct end *end, uint32_t number)
{
	uint64_t bits = bits_mix(end->seed + number);

	return bits & 1 ? (uint32_t)(bits >> 8) % LONGEST : (uint32_t)(bits >> 8) % 2000;
}

static void *place(void *user, uint32_t number, uint32_t bytes)
{
	(void)user;
	(void)number;
	return malloc(bytes + 1);
}

static void unplace(void *user, void *memory)
{
	(void)user;
	free(memory);
}

/* Both ends send the same row of messages. */
static void deliver(void *user, uint32_t number, void *memory, uint32_t bytes)
{
	struct end *end = user;
	uint8_t *right = malloc(LONGEST);

	assert_int_equal(number, end->came);
	assert_int_equal(bytes, bytes_of(end, number));
	message_fill(right, bytes, number, (uint32_t)end->seed);
	assert_true(!memcmp(memory, right, bytes));
	end->came++;
	free(right);
	free(memory);
}

static struct channel_io_config config_of(struct ends *ends, unsigned self)
{
	return (struct channel_io_config){
		.key = 77,
		.self = self,
		.peer = !self,
		.name = self ? "rank 0" : "rank 1",
		.longest = LONGEST,
		.credit = CREDIT,
		.timeout = 30 * NSEC_PER_SEC,
		.carrier = &tcp_link_carrier,
		.events = { .user = &ends->ends[self],
		            .place = place,
		            .deliver = deliver,
		            .unplace = unplace },
	};
}

/* `carries`: bits of the ends that have a carrier. */
static void ends_open(struct ends *ends, unsigned carries, uint64_t seed)
{
	struct channel_io_config config[2] = { config_of(ends, 0), config_of(ends, 1) };
	struct virtual_path path = { 0 };
	struct udp_address any;
	uint64_t now = clock_now();
	char text[32];

	*ends = (struct ends){ .start = now };
	memset(&sent, 0, sizeof(sent));
	assert_int_equal(udp_resolve("0.0.0.0:0", 0, &any), TRIB_OK);
	assert_int_equal(channel_listen(&any, &ends->listener), TRIB_OK);
	assert_int_equal(udp_resolve("127.0.0.2:0", 0, &path.from), TRIB_OK);
	snprintf(text, sizeof(text), "127.0.1.2:%u", channel_listener_port(ends->listener));
	assert_int_equal(udp_resolve(text, 0, &path.to), TRIB_OK);
	config[0].paths = &path;
	config[0].n_paths = 1;
	for (unsigned i = 0; i < 2; i++) {
		ends->ends[i].seed = seed;
		ends->ends[i].granted = CREDIT;
		if (!(carries >> i & 1))
			config[i].carrier = NULL;
	}
	assert_int_equal(channel_connect(&config[0], &path.to, now, &ends->ends[0].io), TRIB_OK);
	assert_int_equal(channel_accept(ends->listener, &config[1], now, &ends->ends[1].io),
	                 TRIB_OK);
}

static void free_sent(struct end *end, uint32_t until)
{
	for (; end->freed != until; end->freed++)
		free(end->messages[end->freed % CHANNEL_MESSAGES]);
}

static void ends_close(struct ends *ends)
{
	for (unsigned i = 0; i < 2; i++) {
		channel_io_free(ends->ends[i].io);
		free_sent(&ends->ends[i], ends->ends[i].next);
	}
	channel_listener_free(ends->listener);
}

static void send_next(struct end *end, uint32_t messages)
{
	struct channel *channel = channel_of(end->io);

	messages = end->quiet ? 0 : messages;
	free_sent(end, channel_sent(channel));
	while (end->next < messages && channel_room(channel) > CHANNEL_MESSAGES - CREDIT) {
		uint32_t bytes = bytes_of(end, end->next);
		uint8_t *data = malloc(bytes + 1);

		message_fill(data, bytes, end->next, (uint32_t)end->seed);
		assert_int_equal(channel_send(channel, data, bytes), TRIB_OK);
		end->messages[end->next++ % CHANNEL_MESSAGES] = data;
	}
	channel_grant(channel, end->came + CREDIT - end->granted);
	end->granted = end->came + CREDIT;
}

static void step(struct ends *ends, uint32_t messages)
{
	struct pollfd fds[2 * CHANNEL_FDS + 1];
	uint64_t now = clock_now(), wait = UINT64_MAX;
	unsigned n = 0, first[3];

	assert_true(now < ends->start + LIMIT_NS);
	for (unsigned i = 0; i < 2; i++) {
		uint64_t one = channel_wait(ends->ends[i].io, now);

		first[i] = n;
		n += channel_fds(ends->ends[i].io, fds + n);
		wait = one < wait ? one : wait;
	}
	first[2] = n;
	fds[n++] = (struct pollfd){ .fd = channel_listener_fd(ends->listener), .events = POLLIN };
	poll(fds, n, (int)(wait / 1000000));
	if (!sent.bytes)
		usleep(1000); /* until there is a connection, a message each millisecond */
	channel_listener_step(ends->listener, clock_now());
	for (unsigned i = 0; i < 2; i++) {
		struct end *end = &ends->ends[i];

		channel_take(end->io, fds + first[i], first[i + 1] - first[i]);
		send_next(end, messages);
		assert_int_equal(channel_push(end->io, clock_now()), TRIB_OK);
	}
}

static bool is_complete(const struct ends *ends, uint32_t messages)
{
	return ends->ends[0].came == messages && ends->ends[1].came == messages;
}

static void run_until(struct ends *ends, uint32_t messages)
{
	while (!is_complete(ends, messages))
		step(ends, messages);
}

/* ---- tests ---- */

static void test_long_messages(void **state)
{
	uint64_t data = 0;
	struct ends ends;

	(void)state;
	ends_open(&ends, 3, 1);
	while (__builtin_popcountll(sent.fds) < 2)
		run_until(&ends, ends.ends[0].came + 1);
	sent.bytes = 0;
	for (uint32_t i = ends.ends[0].came; i < 400; i++)
		if (bytes_of(&ends.ends[0], i) >= tcp_link_carrier.from)
			data += 2 * (bytes_of(&ends.ends[0], i) + sizeof(struct path_frame));
	run_until(&ends, 400);
	print_message("%.1f of %.1f MB by TCP\n", (double)sent.bytes / 1e6, (double)data / 1e6);
	assert_int_equal(sent.bytes, data);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(channel_counters(channel_of(ends.ends[i].io)).repeated, 0);
	ends_close(&ends);
}

/* The connection ends again and again, amid messages. */
static void test_connection_ends(void **state)
{
	unsigned cuts = 0, wanted = (unsigned)test_count("cuts", 5, 2);
	struct ends ends;

	(void)state;
	ends_open(&ends, 3, 2);
	for (uint32_t messages = 10; cuts < wanted; messages += 10) {
		run_until(&ends, messages);
		if (sent.bytes < LONGEST)
			continue;
		for (unsigned i = 0; i < 3; i++)
			step(&ends, messages + 10);
		cuts += !shutdown(sent.fd, SHUT_RDWR);
		sent.bytes = 0;
	}
	run_until(&ends, ends.ends[0].next + 50);
	ends_close(&ends);
}

/* The peer says that it has a message whose end has not left. The memory of that message is gone.
 */
static void test_told_too_much(void **state)
{
	struct channel *channel;
	struct ends ends;
	uint32_t before;

	(void)state;
	ends_open(&ends, 3, 10);
	channel = channel_of(ends.ends[0].io);
	for (uint32_t messages = 10; !sent.bytes; messages += 10)
		run_until(&ends, messages);
	sent.full = true;
	for (unsigned i = 0; i < 20; i++)
		step(&ends, ends.ends[0].next + 20);
	do {
		before = channel_sent(channel);
		carried_take_counts(channel, 0,
		                    (struct carried_counts){ before + 1, before + CREDIT },
		                    clock_now());
	} while (channel_sent(channel) != before);
	free_sent(&ends.ends[0], before);
	sent.full = false;
	sent.bytes = 0;
	channel_push(ends.ends[0].io, clock_now());
	assert_int_equal(sent.bytes, 0);
	ends_close(&ends);
}

/* A thread must not be woken again and again by a connection that it cannot accept. */
static void test_no_descriptor(void **state)
{
	struct ends ends;

	(void)state;
	accepts.none = true;
	accepts.calls = 0;
	ends_open(&ends, 3, 9);
	run_until(&ends, 30);
	for (uint64_t end = clock_now() + NSEC_PER_SEC / 2; clock_now() < end;)
		step(&ends, 30);
	assert_in_range(accepts.calls, 1, 4);
	accepts.none = false;
	for (uint32_t messages = 40; !sent.bytes; messages += 10)
		run_until(&ends, messages);
	ends_close(&ends);
}

/* A path may carry less than its first link. */
static void test_short_packets(void **state)
{
	socklen_t length = sizeof(int);
	struct ends ends;
	int most = 0;

	(void)state;
	setenv("TRIB_MTU", "1400", 1);
	ends_open(&ends, 3, 8);
	unsetenv("TRIB_MTU");
	for (uint32_t messages = 10; !sent.bytes; messages += 10)
		run_until(&ends, messages);
	assert_int_equal(getsockopt(sent.fd, IPPROTO_TCP, TCP_MAXSEG, &most, &length), 0);
	assert_in_range(most, 1, 1400 - 20 - 20);
	ends_close(&ends);
}

/* A side that only receives opens a connection as soon as one that sends. */
static void test_one_way(void **state)
{
	struct ends ends;

	(void)state;
	ends_open(&ends, 3, 7);
	ends.ends[0].quiet = true;
	for (unsigned cuts = 0; cuts < 7; cuts++) { /* if waits double, 63 s */
		uint32_t wanted;

		for (sent.bytes = 0; sent.bytes < LONGEST;)
			step(&ends, ends.ends[0].came + 10);
		for (wanted = ends.ends[1].next; ends.ends[0].came < wanted;)
			step(&ends, wanted);
		shutdown(sent.fd, SHUT_RDWR);
	}
	ends_close(&ends);
}

/* Nothing leaves by the connection any more, but packets do. */
static void test_stall(void **state)
{
	struct ends ends;

	(void)state;
	ends_open(&ends, 3, 3);
	for (uint32_t messages = 10; !sent.bytes; messages += 10)
		run_until(&ends, messages);
	sent.full = true;
	run_until(&ends, ends.ends[0].next + 100);
	ends_close(&ends);
}

/* Makes a socket one whose peer has closed it. Returns what it was. */
static int lose_socket(int fd)
{
	int was = dup(fd), pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
	close(pair[1]);
	assert_int_equal(dup2(pair[0], fd), fd);
	close(pair[0]);
	return was;
}

/* The side that is called loses the connection. The side that calls only receives, and hears
 * nothing of it. */
static void test_half_open(void **state)
{
	struct ends ends;
	int was;

	(void)state;
	ends_open(&ends, 3, 6);
	ends.ends[0].quiet = true;
	while (!sent.bytes)
		step(&ends, ends.ends[0].came + 10);
	was = lose_socket(sent.fd);
	sent.bytes = 0;
	while (!sent.bytes)
		step(&ends, ends.ends[0].came + 10);
	close(was);
	ends_close(&ends);
}

static void test_peer_without(void **state)
{
	for (unsigned carries = 0; carries < 3; carries++) {
		struct ends ends;

		(void)state;
		ends_open(&ends, carries, 4);
		run_until(&ends, 60);
		assert_int_equal(sent.bytes, 0);
		ends_close(&ends);
	}
}

static bool is_ended_by_peer(int fd)
{
	char byte;

	return recv(fd, &byte, 1, MSG_DONTWAIT) == 0 || (errno != EAGAIN && errno != EINTR);
}

/* A stranger connects before the peer does: from another address, and with another id. */
static void test_stranger(void **state)
{
	struct path_greeting greeting = { .magic = PATH_GREETING, .epoch = 1, .id = 12345 };

	(void)state;
	for (unsigned same_host = 0; same_host < 2; same_host++) {
		const struct path_carrier *word;
		struct udp_address from, to;
		struct ends ends;
		int fd;

		ends_open(&ends, 3, 5);
		while (!(word = carried_heard(channel_of(ends.ends[0].io), 0)) || !word->qpn)
			step(&ends, 20);
		fd = socket(AF_INET, SOCK_STREAM, 0);
		assert_int_equal(udp_resolve(same_host ? "127.0.0.2:0" : "127.0.0.9:0", 0, &from),
		                 TRIB_OK);
		assert_int_equal(udp_resolve("127.0.1.2:0", 0, &to), TRIB_OK);
		udp_set_port(&to, (uint16_t)word->qpn);
		assert_int_equal(bind(fd, (const void *)&from.storage, from.length), 0);
		if (!connect(fd, (const void *)&to.storage, to.length)) {
			(void)!send(fd, &greeting, sizeof(greeting), MSG_NOSIGNAL);
			while (!is_ended_by_peer(fd))
				step(&ends, ends.ends[0].came + 1);
		}
		close(fd);
		run_until(&ends, ends.ends[0].next + 50);
		ends_close(&ends);
	}
}

/* Messages with all lengths come in pieces of all lengths. */
static void test_frame_reader(void **state)
{
	struct frame_reader reader = { 0 };
	uint8_t stream[100000], memory[4096];
	size_t end = 0, at = 0;
	uint32_t came = 0, sent_messages = 0;
	uint64_t random = 9;

	(void)state;
	while (end + sizeof(struct path_frame) + 4096 < sizeof(stream)) {
		struct path_frame head = { .message = sent_messages,
			                   .bytes = 1 + (uint32_t)(bits_mix(random++) % 4096) };

		memcpy(stream + end, &head, sizeof(head));
		memset(stream + end + sizeof(head), (int)sent_messages++, head.bytes);
		end += sizeof(head) + head.bytes;
	}
	while (at < end) {
		struct iovec room[2];
		unsigned n = frame_reader_room(&reader, room);
		size_t piece = 1 + bits_mix(random++) % 5000, left = 0;
		enum frame_event event;

		for (unsigned i = 0; i < n; i++) {
			size_t part = room[i].iov_len < piece ? room[i].iov_len : piece;

			part = part < end - at ? part : end - at;
			memcpy(room[i].iov_base, stream + at, part);
			at += part;
			left += part;
			piece -= part;
		}
		while ((event = frame_reader_take(&reader, &left)) != FRAME_MORE) {
			if (event == FRAME_HEAD) {
				assert_int_equal(reader.head.message, came);
				frame_reader_place(&reader, memory);
				continue;
			}
			for (uint32_t i = 0; i < reader.head.bytes; i++)
				assert_int_equal(memory[i], (uint8_t)came);
			came++;
		}
		assert_int_equal(left, 0);
	}
	assert_int_equal(came, sent_messages);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_frame_reader),    cmocka_unit_test(test_long_messages),
		cmocka_unit_test(test_connection_ends), cmocka_unit_test(test_stall),
		cmocka_unit_test(test_short_packets),   cmocka_unit_test(test_one_way),
		cmocka_unit_test(test_half_open),       cmocka_unit_test(test_peer_without),
		cmocka_unit_test(test_stranger),        cmocka_unit_test(test_no_descriptor),
		cmocka_unit_test(test_told_too_much),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
