/* SPDX-License-Identifier: Apache-2.0 */
/* Receivers with an AF_XDP socket: the rings by hand, as libxdp is not everywhere. */
#define _GNU_SOURCE
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/if_xdp.h>
#include <net/if.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "bench.h"

#define RING 2048u
#define CHUNK 2048u
#define BATCH 64u
#define HEADROOM 6u /* brings the datagram, 42 bytes into the frame, to a multiple of 8 */
#define BEFORE (14u + 20u + 8u)

struct ring {
	uint32_t *producer, *consumer, *flags;
	void *entries;
};

static struct {
	int fd;
	uint8_t *memory;
	struct ring fill, rx;
	bool busy;
} xsk;

static struct ring ring_map(const struct xdp_ring_offset *at, size_t entry, off_t which)
{
	uint8_t *base = mmap(NULL, at->desc + RING * entry, PROT_READ | PROT_WRITE,
	                     MAP_SHARED | MAP_POPULATE, xsk.fd, which);

	if (base == MAP_FAILED)
		bench_die("mmap of a ring");
	return (struct ring){ (uint32_t *)(base + at->producer), (uint32_t *)(base + at->consumer),
		              (uint32_t *)(base + at->flags), base + at->desc };
}

static void set(int option, const void *value, socklen_t size, const char *name)
{
	if (setsockopt(xsk.fd, SOL_XDP, option, value, size))
		bench_die(name);
}

/* The device must leave its NAPI to us for a while, else both run it. */
static void set_busy(const struct bench *bench)
{
	int yes = 1, us = 20, budget = BATCH, id = 0;
	socklen_t size = sizeof(id);

	/* 0 on the veth of Linux 6.18: the kernel then has nothing to poll. */
	getsockopt(xsk.fd, SOL_SOCKET, SO_INCOMING_NAPI_ID, &id, &size);
	if (!id)
		fprintf(stderr, "the socket has no NAPI to poll: this only spins\n");
	if (setsockopt(xsk.fd, SOL_SOCKET, SO_PREFER_BUSY_POLL, &yes, sizeof(yes)) ||
	    setsockopt(xsk.fd, SOL_SOCKET, SO_BUSY_POLL, &us, sizeof(us)) ||
	    setsockopt(xsk.fd, SOL_SOCKET, SO_BUSY_POLL_BUDGET, &budget, sizeof(budget)))
		bench_die("SO_BUSY_POLL");
	device_set(bench, "napi_defer_hard_irqs", "2");
	device_set(bench, "gro_flush_timeout", "200000");
	xsk.busy = true;
}

static void prepare(struct bench *bench, bool generic, uint16_t mode)
{
	uint32_t size = RING, zero = 0;
	struct xdp_mmap_offsets at;
	socklen_t at_size = sizeof(at);
	struct xdp_umem_reg umem = { .len = RING * CHUNK,
		                     .chunk_size = CHUNK,
		                     .headroom = HEADROOM };
	struct sockaddr_xdp to = { .sxdp_family = AF_XDP,
		                   .sxdp_flags = mode | XDP_USE_NEED_WAKEUP,
		                   .sxdp_ifindex = if_nametoindex(bench->device) };
	struct bpf_object *object = xdp_attach(bench, "to_socket", generic);

	xsk.memory = mmap(NULL, RING * CHUNK, PROT_READ | PROT_WRITE,
	                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	umem.addr = (uintptr_t)xsk.memory;
	xsk.fd = socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (xsk.fd < 0 || xsk.memory == MAP_FAILED)
		bench_die("AF_XDP socket");
	set(XDP_UMEM_REG, &umem, sizeof(umem), "XDP_UMEM_REG");
	set(XDP_UMEM_FILL_RING, &size, sizeof(size), "XDP_UMEM_FILL_RING");
	set(XDP_UMEM_COMPLETION_RING, &size, sizeof(size), "XDP_UMEM_COMPLETION_RING");
	set(XDP_RX_RING, &size, sizeof(size), "XDP_RX_RING");
	if (getsockopt(xsk.fd, SOL_XDP, XDP_MMAP_OFFSETS, &at, &at_size))
		bench_die("XDP_MMAP_OFFSETS");
	xsk.fill = ring_map(&at.fr, sizeof(uint64_t), XDP_UMEM_PGOFF_FILL_RING);
	xsk.rx = ring_map(&at.rx, sizeof(struct xdp_desc), XDP_PGOFF_RX_RING);
	if (bind(xsk.fd, (struct sockaddr *)&to, sizeof(to)))
		bench_die(mode == XDP_ZEROCOPY ? "bind for zero copy" : "bind");
	for (uint32_t i = 0; i < RING; i++)
		((uint64_t *)xsk.fill.entries)[i] = (uint64_t)i * CHUNK;
	__atomic_store_n(xsk.fill.producer, RING, __ATOMIC_RELEASE);
	if (bpf_map_update_elem(bpf_object__find_map_fd_by_name(object, "sockets"), &zero, &xsk.fd,
	                        0))
		bench_die("the map of sockets");
}

static void prepare_copy(struct bench *bench)
{
	prepare(bench, false, XDP_COPY);
}

static void prepare_busy(struct bench *bench)
{
	prepare(bench, false, XDP_COPY);
	set_busy(bench);
}

static void prepare_generic(struct bench *bench)
{
	prepare(bench, true, XDP_COPY);
}

static void prepare_zero_copy(struct bench *bench)
{
	prepare(bench, false, XDP_ZEROCOPY);
}

static uint32_t receive(struct bench *bench)
{
	uint32_t first = *xsk.rx.consumer;
	uint32_t count = __atomic_load_n(xsk.rx.producer, __ATOMIC_ACQUIRE) - first;
	uint32_t filled = *xsk.fill.producer;
	const struct xdp_desc *in = xsk.rx.entries;
	uint64_t *out = xsk.fill.entries;

	if (count > BATCH)
		count = BATCH;
	for (uint32_t i = 0; i < count; i++) {
		struct xdp_desc frame = in[(first + i) % RING];

		bench_take(bench, xsk.memory + frame.addr + BEFORE, frame.len - BEFORE);
		out[(filled + i) % RING] = frame.addr;
	}
	__atomic_store_n(xsk.rx.consumer, first + count, __ATOMIC_RELEASE);
	__atomic_store_n(xsk.fill.producer, filled + count, __ATOMIC_RELEASE);
	return count;
}

static void run(struct bench *bench)
{
	struct pollfd poller = { .fd = xsk.fd, .events = POLLIN };

	while (!bench->stop) {
		uint32_t count = receive(bench);

		if (count)
			bench_count(bench, count);
		if (!xsk.busy && count)
			continue;
		bench->wakeups++;
		if (xsk.busy)
			recvfrom(xsk.fd, NULL, 0, MSG_DONTWAIT, NULL, NULL);
		else
			poll(&poller, 1, 100);
	}
}

const struct receiver receivers_afxdp[] = {
	{ "afxdp", prepare_copy, run },
	{ "afxdp-busy", prepare_busy, run },
	{ "afxdp-generic", prepare_generic, run },
	{ "afxdp-zc", prepare_zero_copy, run },
	{ 0 },
};
