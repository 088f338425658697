/* SPDX-License-Identifier: Apache-2.0 */
/* Receivers with a UDP socket: recvmmsg, and with UDP_GRO. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "bench.h"

#define BATCH 64
#define GRO_BATCH 8
#define ROOM 65536u

static int fd;
static bool gro;
static uint8_t *buffers;

static void prepare_plain(struct bench *bench)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(BENCH_PORT) };
	struct timeval patience = { .tv_usec = 100000 };
	int size = 8 << 20;

	(void)bench;
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof(at)))
		bench_die("bind");
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)) ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)))
		bench_die("SO_RCVBUFFORCE");
	buffers = aligned_alloc(4096, (size_t)GRO_BATCH * ROOM);
	if (!buffers)
		bench_die("memory");
	memset(buffers, 0, (size_t)GRO_BATCH * ROOM);
}

static void prepare_gro(struct bench *bench)
{
	int yes = 1;

	prepare_plain(bench);
	if (setsockopt(fd, IPPROTO_UDP, UDP_GRO, &yes, sizeof(yes)))
		bench_die("UDP_GRO");
	gro = true;
}

/* For a device with GRO, which has a NAPI; without, RPS brings packets to core 1. */
static void prepare_plain_napi(struct bench *bench)
{
	prepare_plain(bench);
	napi_to_core_1(bench);
}

static void prepare_gro_napi(struct bench *bench)
{
	prepare_gro(bench);
	napi_to_core_1(bench);
}

/* Frames of send_frames.c arrive only where a program is. */
static void prepare_plain_frames(struct bench *bench)
{
	prepare_plain(bench);
	xdp_attach(bench, "pass", false);
}

/* What has no checksum is not joined. */
static void prepare_gro_frames(struct bench *bench)
{
	prepare_gro(bench);
	xdp_attach(bench, "pass", false);
	bench->checksum = true;
}

static void run(struct bench *bench)
{
	unsigned batch = gro ? GRO_BATCH : BATCH;
	size_t room = gro ? ROOM : 2048;
	struct mmsghdr messages[BATCH] = { 0 };
	struct iovec parts[BATCH];

	for (unsigned i = 0; i < batch; i++) {
		parts[i] = (struct iovec){ buffers + i * room, room };
		messages[i].msg_hdr = (struct msghdr){ .msg_iov = &parts[i], .msg_iovlen = 1 };
	}
	while (!bench->stop) {
		int count = recvmmsg(fd, messages, batch, MSG_WAITFORONE, NULL);
		uint64_t packets = 0;

		bench->wakeups++;
		/* Every datagram here has the same size: no need for UDP_GRO's cmsg. */
		for (int i = 0; i < count; i++)
			for (size_t at = 0; at < messages[i].msg_len;
			     at += BENCH_DATAGRAM, packets++)
				bench_take(bench, buffers + (size_t)i * room + at,
				           messages[i].msg_len - at);
		bench_count(bench, packets);
	}
}

const struct receiver receivers_udp[] = {
	{ "udp", prepare_plain, run },
	{ "udp-gro", prepare_gro, run },
	{ "udp-napi", prepare_plain_napi, run },
	{ "udp-gro-napi", prepare_gro_napi, run },
	{ "udp-frames", prepare_plain_frames, run },
	{ "udp-gro-frames", prepare_gro_frames, run },
	{ 0 },
};
