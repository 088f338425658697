/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sender as a NIC would be: frames in pages, without a socket buffer each,
 * so that XDP at the far end need not copy them first. The kernel runs the
 * program `emit` of sum.bpf.c over and over (BPF_F_TEST_XDP_LIVE_FRAMES); what
 * it redirects arrives at the veth's other end. When that is full, frames are
 * dropped on this side.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <net/if.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bench.h"

#define AT_ONCE (1u << 30) /* hours; a signal ends it */

static uint32_t sum16(const void *data, size_t bytes, uint32_t sum)
{
	const uint8_t *at = data;

	for (size_t i = 0; i < bytes; i += 2)
		sum += (uint32_t)(at[i] << 8 | at[i + 1]);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

/* Position and acknowledgement are complements, so one checksum is right for all. */
static void fill(uint8_t *frame, const struct bench *bench)
{
	struct ethhdr *eth = (struct ethhdr *)frame;
	struct iphdr *ip = (struct iphdr *)(eth + 1);
	struct udphdr *udp = (struct udphdr *)(ip + 1);
	struct wire_header *header = (struct wire_header *)(udp + 1);
	uint32_t *words = (uint32_t *)(header + 1);
	uint16_t udp_bytes = sizeof(*udp) + BENCH_DATAGRAM;

	memset(frame, 0, BENCH_FRAME);
	memcpy(eth->h_dest, bench->mac, ETH_ALEN);
	eth->h_proto = htons(ETH_P_IP);
	*ip = (struct iphdr){ .version = 4,
		              .ihl = 5,
		              .ttl = 64,
		              .protocol = IPPROTO_UDP,
		              .tot_len = htons(sizeof(*ip) + udp_bytes) };
	inet_pton(AF_INET, "10.77.0.1", &ip->saddr);
	inet_pton(AF_INET, bench->address, &ip->daddr);
	ip->check = htons((uint16_t)~sum16(ip, sizeof(*ip), 0));
	udp->source = htons(BENCH_PORT);
	udp->dest = htons(BENCH_PORT);
	udp->len = htons(udp_bytes);
	*header = (struct wire_header){ .magic = WIRE_MAGIC, .type = WIRE_DATA, .ack = ~0u };
	for (unsigned w = 0; w < BENCH_WORDS; w++)
		words[w] = 1;
	if (bench->checksum)
		udp->check = htons((uint16_t)~sum16(udp, udp_bytes,
		                                    sum16(&ip->saddr, 8, IPPROTO_UDP + udp_bytes)));
}

void *send_frames_run(void *argument)
{
	struct bench *bench = argument;
	static uint8_t frame[BENCH_FRAME];
	struct xdp_md context = { .data_end = BENCH_FRAME };
	LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = frame, .data_size_in = BENCH_FRAME,
	            .ctx_in = &context, .ctx_size_in = sizeof(context), .repeat = AT_ONCE,
	            .flags = BPF_F_TEST_XDP_LIVE_FRAMES);
	const struct iphdr *ip = (const struct iphdr *)(frame + sizeof(struct ethhdr));
	const struct udphdr *udp = (const struct udphdr *)(ip + 1);
	struct bench_knobs knobs = { .burst = bench->batch, .window = (uint32_t)bench->window };
	struct bpf_object *object = bpf_object__open_file(bench->object, NULL);
	int ns = open(bench->sender_ns, O_RDONLY | O_CLOEXEC);
	struct bpf_program *program;
	size_t size;
	void *rodata;

	bench_pin(0);
	if (ns < 0 || setns(ns, CLONE_NEWNET))
		bench_die(bench->sender_ns);
	close(ns);
	knobs.interface = if_nametoindex("trib-tx");
	fill(frame, bench);
	knobs.cells = bench->cells;
	knobs.ip_length = ip->tot_len;
	knobs.ip_check = ip->check;
	knobs.udp_length = udp->len;
	knobs.udp_check = udp->check;
	if (bench->rate)
		knobs.gap_ns = bench->batch * 1000000000ull / bench->rate;
	if (!object)
		bench_die(bench->object);
	rodata = (void *)bpf_map__initial_value(bpf_object__find_map_by_name(object, ".rodata"),
	                                        &size);
	if (size != sizeof(knobs))
		bench_die("knobs of sum.bpf.o");
	memcpy(rodata, &knobs, size);
	if (bpf_object__load(object))
		bench_die("load of sum.bpf.o");
	program = bpf_object__find_program_by_name(object, "emit");
	bench->emitter = mmap(NULL, sizeof(struct bench_state), PROT_READ | PROT_WRITE, MAP_SHARED,
	                      bpf_object__find_map_fd_by_name(object, ".bss"), 0);
	if (bench->emitter == MAP_FAILED)
		bench_die("the emitter's state");
	while (!bench->stop)
		if (bpf_prog_test_run_opts(bpf_program__fd(program), &options) && errno != EINTR)
			bench_die("BPF_F_TEST_XDP_LIVE_FRAMES");
	return NULL;
}
