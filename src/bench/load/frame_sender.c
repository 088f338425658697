/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/load/frame_sender.h"

#include "net/kernel/link.h"
#include "frames.skel.h"

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <errno.h>
#include <linux/if_link.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define AT_ONCE (1u << 30) /* hours; a signal ends it */

struct frames {
	struct frames_options options;
	struct frames_bpf *bpf;
	struct netns ns;
	int link;
	uint64_t *checks;
	uint32_t bytes; /* of a frame */
	uint8_t frame[2 + FRAMES_BYTES];
	_Atomic bool stop;
};

static size_t checks_bytes(const struct frames *frames)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return (frames->options.packets * sizeof(uint64_t) + page - 1) / page * page;
}

/* Silences libbpf: we report errors ourselves. */
static int print_nothing(enum libbpf_print_level level, const char *format, va_list args)
{
	(void)level;
	(void)format;
	(void)args;
	return 0;
}

static trib_status load(struct frames *frames)
{
	LIBBPF_OPTS(bpf_link_create_opts, options, .flags = XDP_FLAGS_DRV_MODE);
	unsigned index = link_index(&frames->ns, frames->options.link);
	struct frames_bpf *bpf;
	int home;

	libbpf_set_print(print_nothing);
	bpf = frames->bpf = frames_bpf__open();
	if (!bpf || !index)
		return status_fail_errno("cannot load the program of a load");
	bpf->rodata->settings = (struct frames_settings){ .children = frames->options.children,
		                                          .interface = index,
		                                          .window = frames->options.window };
	if (bpf_map__set_max_entries(bpf->maps.checks, (uint32_t)frames->options.packets) ||
	    frames_bpf__load(bpf))
		return status_fail_errno("the kernel does not take the program of a load");
	frames->checks = mmap(NULL, checks_bytes(frames), PROT_READ | PROT_WRITE, MAP_SHARED,
	                      bpf_map__fd(bpf->maps.checks), 0);
	if (frames->checks == MAP_FAILED) {
		frames->checks = NULL;
		return status_fail_errno("cannot map the checksums of a load");
	}
	if (netns_enter(frames->ns.name, frames->ns.fd, &home) != TRIB_OK)
		return TRIB_ERR_SYSTEM;
	frames->link =
		bpf_link_create(bpf_program__fd(bpf->progs.catch), (int)index, BPF_XDP, &options);
	if (frames->link < 0)
		status_fail_errno("%s in %s takes no XDP program", frames->options.link,
		                  frames->ns.name);
	return netns_return(home) == TRIB_OK && frames->link >= 0 ? TRIB_OK : TRIB_ERR_SYSTEM;
}

trib_status frames_open(const struct frames_options *options, struct frames **out)
{
	struct frames *frames = calloc(1, sizeof(*frames));
	trib_status status;

	if (!frames)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for a load");
	frames->options = *options;
	frames->link = -1;
	status = netns_open(options->namespace, &frames->ns);
	if (status == TRIB_OK)
		status = load(frames);
	if (status != TRIB_OK) {
		frames_close(frames);
		return status;
	}
	*out = frames;
	return TRIB_OK;
}

void frames_close(struct frames *frames)
{
	if (!frames)
		return;
	if (frames->link >= 0)
		close(frames->link);
	if (frames->checks)
		munmap(frames->checks, checks_bytes(frames));
	frames_bpf__destroy(frames->bpf);
	netns_close(&frames->ns);
	free(frames);
}

/* ---- what is in a frame ---- */

static uint16_t ip_check(const uint8_t *ip)
{
	uint32_t sum = 0;

	for (unsigned i = 0; i < 20; i += 2)
		sum += (uint32_t)(ip[i] << 8 | ip[i + 1]);
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t) ~(sum + (sum >> 16));
}

static void put16(uint8_t *at, unsigned value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

/* No UDP checksum: the packet has its own. */
static void front_make(const struct frames *frames, unsigned child, uint32_t bytes, uint8_t *frame)
{
	const struct frames_options *o = &frames->options;
	uint8_t *ip = frame + 14, *udp = ip + 20;

	memset(frame, 0, FRAMES_FRONT);
	memcpy(frame, o->server_mac, 6);
	memcpy(frame + 6, o->host_mac, 6);
	put16(frame + 12, 0x0800);
	ip[0] = 0x45;
	put16(ip + 2, 28 + bytes);
	ip[6] = 0x40;
	ip[8] = 64;
	ip[9] = IPPROTO_UDP;
	inet_pton(AF_INET, o->host, ip + 12);
	inet_pton(AF_INET, o->server, ip + 16);
	put16(ip + 10, ip_check(ip));
	put16(udp, 40000 + child);
	put16(udp + 2, o->port);
	put16(udp + 4, 8 + bytes);
}

trib_status frames_prepare(struct frames *frames, uint64_t first, uint64_t behind, uint64_t sum,
                           frames_packet *packet, void *context)
{
	unsigned children = frames->options.children, block = FRAMES_BLOCK * children;
	uint64_t buffer[WIRE_PACKET_MAX / 8];
	struct frames_template template;

	for (uint32_t child = 0; child < children; child++) {
		uint32_t bytes = packet(context, child, first, buffer);
		struct wire_header *header = (void *)(frames->frame + FRAMES_FRONT);

		frames->bytes = FRAMES_FRONT + bytes;
		if (frames->bytes > sizeof(frames->frame))
			return status_fail(TRIB_ERR_ARGUMENT, "packets too long for frames");
		front_make(frames, child, bytes, frames->frame);
		memcpy(header, buffer, bytes);
		memset(&template, 0, sizeof(template));
		memcpy(&template.start, frames->frame, 2);
		memcpy(template.words, frames->frame + 2, frames->bytes - 2);
		if (bpf_map_update_elem(bpf_map__fd(frames->bpf->maps.templates), &child, &template,
		                        0))
			return status_fail_errno("cannot hand over a frame");
	}
	for (uint64_t i = 0; i < frames->options.packets; i++) {
		packet(context, (unsigned)(i % block / FRAMES_BLOCK),
		       first + i / block * FRAMES_BLOCK + i % FRAMES_BLOCK, buffer);
		frames->checks[i] = ((struct wire_header *)(void *)buffer)->check;
	}
	memset(&frames->bpf->bss->state, 0, sizeof(frames->bpf->bss->state));
	frames->bpf->bss->state.first = first;
	frames->bpf->bss->state.behind = behind;
	frames->bpf->bss->state.sum = sum;
	frames->stop = false;
	return TRIB_OK;
}

trib_status frames_run(struct frames *frames)
{
	struct xdp_md context = { .data_end = frames->bytes };
	LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = frames->frame,
	            .data_size_in = frames->bytes, .ctx_in = &context,
	            .ctx_size_in = sizeof(context), .repeat = AT_ONCE,
	            .flags = BPF_F_TEST_XDP_LIVE_FRAMES);
	trib_status status = TRIB_OK;
	int home;

	if (netns_enter(frames->ns.name, frames->ns.fd, &home) != TRIB_OK)
		return TRIB_ERR_SYSTEM;
	while (!frames->stop && status == TRIB_OK)
		if (bpf_prog_test_run_opts(bpf_program__fd(frames->bpf->progs.emit), &options) &&
		    errno != EINTR)
			status = status_fail_errno("the kernel does not send frames for us");
	return netns_return(home) == TRIB_OK ? status : TRIB_ERR_SYSTEM;
}

void frames_end(struct frames *frames)
{
	frames->stop = true;
}

struct frames_state *frames_state(struct frames *frames)
{
	return &frames->bpf->bss->state;
}
