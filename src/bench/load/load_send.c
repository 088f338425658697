/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/load/load_lane.h"

#include "base/clock.h"
#include "wire/frame.h"

#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>

#define CHECKS_MAX (12u << 20) /* packets whose checksums are made in advance */
#define RATE_GUESS 2500000.0   /* packets a second that are assumed if the rate is not limited */

/*
 * The content depends on the position alone. So a packet can be sealed in advance, and again if
 * it was sent in part.
 */
static void header_make(const struct load_lane *lane, unsigned child, uint64_t position,
                        struct wire_header *header)
{
	const struct load *load = lane->load;
	uint64_t behind = load->welcome.cells / 2;

	*header = (struct wire_header){
		.magic = WIRE_MAGIC,
		.type = WIRE_DATA,
		.comm = load->welcome.comm,
		.child = (uint8_t)child,
		.op = WIRE_ADD64,
		.pos = (uint32_t)position,
		.ack = (uint32_t)(position > behind ? position - behind : 0),
		.from = WIRE_ALL,
		.to = load->options.to_all ? WIRE_ALL : 0,
	};
}

struct wire_unsent load_unsent(const struct load_lane *lane, uint64_t position)
{
	const struct wire_welcome *welcome = &lane->load->welcome;

	return (struct wire_unsent){
		.proof = wire_proof(welcome->cookie, PLANE_JOB, welcome->epoch),
		.pos = wire_pos(lane->index, position),
	};
}

static uint32_t packet_check(const struct load_lane *lane, unsigned child, uint64_t position,
                             uint64_t *packet)
{
	const struct wire_unsent unsent = load_unsent(lane, position);

	header_make(lane, child, position, (void *)packet);
	wire_seal_fragment(packet, lane->load->stride, &unsent);
	return ((struct wire_header *)(void *)packet)->check;
}

static void packet_of(const struct load_lane *lane, unsigned child, uint64_t *packet)
{
	memcpy(packet + WIRE_HEADER / 8, lane->load->payloads[child], lane->load->bytes);
}

void load_prepare(struct load_lane *lane)
{
	const struct load *load = lane->load;
	unsigned children = load->options.children;
	uint64_t packet[WIRE_PACKET_MAX / 8];
	double rate = load->rate > 0 ? load->rate * children * 1.1 : RATE_GUESS;
	uint64_t n = load->rate < 0 ? 0 : (uint64_t)(rate * (load->seconds + 0.1));

	free(lane->checks);
	lane->checks = NULL;
	lane->n_checks = 0;
	if (load->options.tcp || !n)
		return;
	if (n > CHECKS_MAX)
		n = CHECKS_MAX;
	n -= n % children;
	lane->checks = malloc(n * sizeof(*lane->checks));
	if (!lane->checks)
		return;
	for (unsigned child = 0; child < children; child++) {
		packet_of(lane, child, packet);
		for (uint64_t i = child; i < n; i += children)
			lane->checks[i] =
				packet_check(lane, child, lane->next + i / children, packet);
	}
	lane->checks_from = lane->next;
	lane->n_checks = n;
}

/*
 * With frames all children send the same bytes, since a page may have been another child's
 * before.
 */
uint32_t load_packet(void *context, unsigned child, uint64_t position, void *packet)
{
	const struct load_lane *lane = context;

	packet_of(lane, 0, packet);
	packet_check(lane, child, position, packet);
	return lane->load->stride;
}

static void header_seal(const struct load_lane *lane, unsigned child, uint64_t position,
                        struct wire_header *header)
{
	uint64_t i = (position - lane->checks_from) * lane->load->options.children + child;
	uint64_t packet[WIRE_PACKET_MAX / 8];

	header_make(lane, child, position, header);
	if (lane->load->options.tcp) {
		wire_seal_frame(header, lane->load->stride);
	} else if (position >= lane->checks_from && i < lane->n_checks) {
		header->check = lane->checks[i];
	} else {
		packet_of(lane, child, packet);
		header->check = packet_check(lane, child, position, packet);
	}
}

/* ---- sending ---- */

static void vectors_fill(struct load_lane *lane, unsigned child, uint64_t position, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		header_seal(lane, child, position + i, &lane->headers[i]);
		lane->vectors[2 * i] = (struct iovec){ &lane->headers[i], WIRE_HEADER };
		lane->vectors[2 * i + 1] =
			(struct iovec){ lane->load->payloads[child], lane->load->bytes };
	}
}

static int send_joined(const struct load_lane *lane, int fd, unsigned n)
{
	_Alignas(8) uint8_t control[CMSG_SPACE(sizeof(uint16_t))] = { 0 };
	struct msghdr message = { .msg_iov = (struct iovec *)(uintptr_t)lane->vectors,
		                  .msg_iovlen = 2 * n,
		                  .msg_control = control,
		                  .msg_controllen = sizeof(control) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&message);
	uint16_t segment = (uint16_t)lane->load->stride;

	c->cmsg_level = SOL_UDP;
	c->cmsg_type = UDP_SEGMENT;
	c->cmsg_len = CMSG_LEN(sizeof(segment));
	memcpy(CMSG_DATA(c), &segment, sizeof(segment));
	return sendmsg(fd, &message, MSG_DONTWAIT) < 0 ? -1 : (int)n;
}

static int send_singly(const struct load_lane *lane, int fd, unsigned n)
{
	struct mmsghdr messages[LOAD_BATCH] = { 0 };

	for (unsigned i = 0; i < n; i++) {
		messages[i].msg_hdr.msg_iov = (struct iovec *)(uintptr_t)&lane->vectors[2 * i];
		messages[i].msg_hdr.msg_iovlen = 2;
	}
	return sendmmsg(fd, messages, n, MSG_DONTWAIT);
}

/* Sends datagrams of one child up to this position, as many as the socket takes. */
static void child_send(struct load_lane *lane, unsigned child, uint64_t until)
{
	while (lane->sent[child] < until) {
		uint64_t left = until - lane->sent[child];
		unsigned n = left < LOAD_BATCH ? (unsigned)left : LOAD_BATCH;
		int sent;

		vectors_fill(lane, child, lane->sent[child], n);
		sent = n > 1 && lane->load->options.gso ? send_joined(lane, lane->fds[child], n)
		                                        : send_singly(lane, lane->fds[child], n);
		if (sent <= 0)
			return;
		lane->sent[child] += (unsigned)sent;
		lane->packets += (unsigned)sent;
	}
}

/* Sends frames of one child. A socket may take a part of one. */
static void child_stream(struct load_lane *lane, unsigned child, uint64_t until)
{
	uint32_t stride = lane->load->stride;

	while (lane->sent[child] < until * stride) {
		uint64_t position = lane->sent[child] / stride, left = until - position;
		uint32_t cut = (uint32_t)(lane->sent[child] % stride);
		unsigned n = left < LOAD_BATCH ? (unsigned)left : LOAD_BATCH;
		struct iovec *first = lane->vectors;
		int64_t sent;

		vectors_fill(lane, child, position, n);
		if (cut >= WIRE_HEADER) {
			first++;
			cut -= WIRE_HEADER;
		}
		first->iov_base = (uint8_t *)first->iov_base + cut;
		first->iov_len -= cut;
		sent = tcp_send(lane->fds[child], first, (unsigned)(lane->vectors + 2 * n - first));
		if (sent <= 0)
			return;
		lane->sent[child] += (uint64_t)sent;
		lane->packets += lane->sent[child] / stride - position;
	}
}

void load_send(struct load_lane *lane, uint64_t until, uint64_t now)
{
	const struct load_options *o = &lane->load->options;
	uint64_t common = until;

	for (unsigned child = 0; child < o->children; child++) {
		uint64_t reached;

		/* A fragment's latency counts from its last packet. */
		if (child == o->children - 1) {
			now = clock_now();
			for (uint64_t p = lane->next; p < until; p++)
				lane->ring[p % LOAD_RING] =
					(struct fragment){ p, now, FRAGMENT_SENT };
		}
		if (o->tcp)
			child_stream(lane, child, until);
		else
			child_send(lane, child, until);
		reached = o->tcp ? lane->sent[child] / lane->load->stride : lane->sent[child];
		common = reached < common ? reached : common;
	}
	lane->fragments += common - lane->next;
	lane->next = common;
}
