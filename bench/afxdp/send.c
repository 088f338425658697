/* SPDX-License-Identifier: Apache-2.0 */
/* The sender: flat out, at a rate, or with a window of packets under way. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/udp.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"

#define BATCH_MAX 64
#define GSO_PACKETS 44

static uint8_t packets[BATCH_MAX][BENCH_DATAGRAM] __attribute__((aligned(64)));

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

static int open_socket(const struct bench *bench)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(BENCH_PORT) };
	int size = 16 << 20; /* else packets that wait at the far end hold the sender back */
	int ns = open(bench->sender_ns, O_RDONLY | O_CLOEXEC);
	int fd;

	if (ns < 0 || setns(ns, CLONE_NEWNET))
		bench_die(bench->sender_ns);
	close(ns);
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	inet_pton(AF_INET, bench->address, &to.sin_addr);
	if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to)))
		bench_die("connect");
	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size)))
		bench_die("SO_SNDBUFFORCE");
	if (bench->gso) {
		int segment = BENCH_DATAGRAM;

		if (setsockopt(fd, IPPROTO_UDP, UDP_SEGMENT, &segment, sizeof(segment)))
			bench_die("UDP_SEGMENT");
	}
	return fd;
}

/* Waits for room. What is silent for 5 ms is lost. */
static void wait_for_window(struct bench *bench, uint64_t sent, uint64_t *lost, unsigned count)
{
	int64_t since = 0;
	uint64_t seen = bench_received(bench);

	while (sent + count > seen + *lost + bench->window && !bench->stop) {
		uint64_t got = bench_received(bench);

		if (got != seen || !since)
			since = now_ns();
		else if (now_ns() - since > 5000000)
			*lost = sent - got;
		seen = got;
	}
}

void *send_run(void *argument)
{
	struct bench *bench = argument;
	struct mmsghdr messages[BATCH_MAX] = { 0 };
	struct iovec parts[BATCH_MAX];
	unsigned batch = bench->gso ? GSO_PACKETS : bench->batch;
	uint64_t sent = 0, lost = 0;
	int64_t next;
	int fd;

	bench_pin(0);
	fd = open_socket(bench);
	for (unsigned i = 0; i < batch; i++) {
		struct wire_header header = { .magic = WIRE_MAGIC, .type = WIRE_DATA };
		uint32_t *words = (uint32_t *)(packets[i] + WIRE_HEADER);

		memcpy(packets[i], &header, sizeof(header));
		for (unsigned w = 0; w < BENCH_WORDS; w++)
			words[w] = 1;
		parts[i] = (struct iovec){ packets[i], BENCH_DATAGRAM };
		messages[i].msg_hdr = (struct msghdr){ .msg_iov = &parts[i], .msg_iovlen = 1 };
	}
	next = now_ns();
	while (!bench->stop) {
		int done;

		if (bench->window)
			wait_for_window(bench, sent, &lost, batch);
		for (unsigned i = 0; i < batch; i++)
			((struct wire_header *)packets[i])->pos = (uint32_t)(sent + i);
		if (bench->gso) {
			ssize_t bytes = send(fd, packets, (size_t)batch * BENCH_DATAGRAM, 0);

			done = bytes < 0 ? -1 : (int)((size_t)bytes / BENCH_DATAGRAM);
		} else {
			done = sendmmsg(fd, messages, batch, 0);
		}
		if (done > 0)
			bench->sent = sent += (unsigned)done;
		if (bench->rate) {
			next += (int64_t)batch * 1000000000ll / (int64_t)bench->rate;
			while (now_ns() < next && !bench->stop)
				;
		}
	}
	close(fd);
	return NULL;
}
