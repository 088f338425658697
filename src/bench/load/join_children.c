/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/load/join_children.h"

#include "base/clock.h"
#include "net/kernel/netns.h"
#include "path/tcp.h"
#include "wire/frame.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define CHILD_ASK_MS 20
#define PATIENCE_NS 5000000000ull
#define CONNECT_MS 1000
#define BUFFER_BYTES (16 << 20)
#define TIMEOUT_MS 60000

static int packet_send(int fd, bool tcp, void *packet, uint32_t bytes)
{
	if (tcp)
		wire_seal_frame(packet, bytes);
	else
		wire_seal(packet, bytes);
	return send(fd, packet, bytes, MSG_NOSIGNAL) == (ssize_t)bytes ? 0 : -1;
}

void plane_report(int fd, bool tcp, const struct wire_welcome *welcome, unsigned child,
                  unsigned lane, uint64_t ack, uint32_t token)
{
	struct {
		struct wire_control header;
		struct wire_report report;
	} packet = { .header = { .type = WIRE_REPORT,
		                 .cookie = welcome->cookie,
		                 .job = PLANE_JOB,
		                 .comm = welcome->comm,
		                 .epoch = welcome->epoch,
		                 .child = (uint8_t)child,
		                 .token = token,
		                 .pos = wire_pos(lane, ack),
		                 .ack = (uint32_t)ack },
		     .report = { .base = ack,
		                 .stamp = (uint32_t)(clock_now() / 1000) | 1,
		                 .serial = clock_now() } };

	packet_send(fd, tcp, &packet, sizeof(packet));
}

static void ask(const struct load_options *o, unsigned child, uint32_t token)
{
	static const uint64_t nonce = 0x706c616e65ull;
	uint32_t bytes = WIRE_HEADER + o->elements * 4;
	struct {
		struct wire_control header;
		struct wire_join join;
		uint8_t padding[WIRE_PACKET_MAX - WIRE_CONTROL - sizeof(struct wire_join)];
	} packet = { .header = { .type = WIRE_JOIN,
		                 .cookie = PLANE_COOKIE,
		                 .job = PLANE_JOB,
		                 .child = (uint8_t)child,
		                 .token = token },
		     .join = { .pool_bytes = o->pool_bytes * o->lanes,
		               .nonce = nonce + child,
		               .rank = child,
		               .size = o->children,
		               .payload = o->elements * 4,
		               .lanes = o->lanes,
		               .timeout_ms = TIMEOUT_MS,
		               .pid = (uint32_t)getpid() } };

	snprintf(packet.join.host, sizeof(packet.join.host), "%s", o->hosts[0][child]->name);
	if (bytes < WIRE_JOIN_LEAST || o->tcp)
		bytes = WIRE_JOIN_LEAST;
	packet_send(o->fds[0][child], o->tcp, &packet, bytes);
}

/* The socket is non-blocking, so this polls. */
static bool read_all(int fd, void *out, size_t bytes, int wait_ms)
{
	struct pollfd wait = { .fd = fd, .events = POLLIN };

	for (size_t have = 0; have < bytes;) {
		ssize_t n = poll(&wait, 1, wait_ms) > 0
		                    ? recv(fd, (uint8_t *)out + have, bytes - have, 0)
		                    : -1;

		if (n <= 0)
			return false;
		have += (size_t)n;
	}
	return true;
}

/*
 * Waits for the next packet of this type; other packets of a stream are skipped. A packet that
 * brings another token ends the wait: the caller has to ask again with it.
 */
static bool hear(int fd, bool tcp, uint8_t type, uint32_t *token, void *out, size_t size)
{
	uint64_t buffer[WIRE_PACKET_MAX / 8];
	struct wire_control *header = (void *)buffer;
	struct pollfd wait = { .fd = fd, .events = POLLIN };

	while (poll(&wait, 1, CHILD_ASK_MS) > 0) {
		if (tcp ? !read_all(fd, buffer, WIRE_HEADER, CONNECT_MS)
		        : recv(fd, buffer, sizeof(buffer), 0) < (ssize_t)WIRE_HEADER)
			return false;
		if (header->magic != WIRE_MAGIC)
			return false;
		if (tcp && (header->check < WIRE_HEADER || header->check > sizeof(buffer) ||
		            !read_all(fd, buffer + WIRE_HEADER / 8, header->check - WIRE_HEADER,
		                      CONNECT_MS)))
			return false;
		if (!wire_is_fragment(&header->head) && header->token && header->token != *token) {
			*token = header->token;
			return false;
		}
		if (header->type != type)
			continue;
		memcpy(out, wire_payload(header), size);
		return true;
	}
	return false;
}

static trib_status open_one(struct load_options *o, unsigned lane, unsigned child)
{
	const struct udp_options socket_options = { .offload = o->gso,
		                                    .receive_bytes = BUFFER_BYTES,
		                                    .send_bytes = BUFFER_BYTES };
	struct udp_address peer;
	trib_status status = udp_resolve(o->address, o->port, &peer);
	bool gso;
	int fd;

	if (status != TRIB_OK)
		return status;
	udp_set_port(&peer, (uint16_t)(o->port + lane));
	if (!o->tcp) {
		status = udp_open(NULL, &peer, &socket_options, &o->fds[lane][child], &gso);
		o->gso &= gso;
		return status;
	}
	fd = tcp_connect(&peer, CONNECT_MS);
	o->fds[lane][child] = fd < 0 ? -1 : fd;
	errno = fd < 0 ? -fd : 0;
	return fd < 0 ? status_fail_errno("no connection to the aggregator") : TRIB_OK;
}

/* Opens each socket on its host, then returns to this thread's own namespace. */
static trib_status open_all(struct load_options *o)
{
	int home = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	trib_status status =
		home < 0 ? status_fail_errno("cannot find our own namespace") : TRIB_OK;

	for (unsigned lane = 0; lane < o->lanes; lane++)
		for (unsigned child = 0; child < o->children && status == TRIB_OK; child++) {
			status = cluster_enter(o->hosts[lane][child]);
			if (status == TRIB_OK)
				status = open_one(o, lane, child);
		}
	if (home >= 0 && netns_return(home) != TRIB_OK)
		status = TRIB_ERR_SYSTEM;
	return status;
}

/* None joins before the last one may: so a round hears every child, and its token. */
static trib_status ask_all(struct load_options *o, struct wire_welcome *welcome)
{
	uint64_t until = clock_now() + PATIENCE_NS;
	uint32_t tokens[LOAD_CHILDREN_MAX] = { 0 };
	unsigned in = 0;

	while (in < o->children) {
		if (clock_now() > until)
			return status_fail(TRIB_ERR_AGGREGATOR,
			                   "not all %u children could join the aggregator",
			                   o->children);
		for (unsigned child = 0; child < o->children; child++)
			ask(o, child, tokens[child]);
		in = 0;
		for (unsigned child = 0; child < o->children; child++) {
			welcome->verdict = WIRE_WAIT;
			do
				if (!hear(o->fds[0][child], o->tcp, WIRE_WELCOME, &tokens[child],
				          welcome, sizeof(*welcome)))
					break;
			while (welcome->verdict == WIRE_WAIT);
			if (welcome->verdict == WIRE_REFUSED)
				return status_fail(TRIB_ERR_REFUSED,
				                   "the aggregator refuses to let a child join: %s",
				                   welcome->text);
			in += welcome->verdict == WIRE_JOINED;
		}
	}
	return TRIB_OK;
}

/* Every lane's port learns the address of every child, and answers then. */
static trib_status report_all(const struct load_options *o, const struct wire_welcome *welcome)
{
	struct wire_status answer;

	for (unsigned lane = 0; lane < o->lanes; lane++)
		for (unsigned child = 0; child < o->children; child++) {
			int fd = o->fds[lane][child];
			unsigned tries = 0;
			uint32_t token = 0;

			do
				plane_report(fd, o->tcp, welcome, child, lane, 0, token);
			while (!hear(fd, o->tcp, WIRE_STATUS, &token, &answer, sizeof(answer)) &&
			       ++tries < PATIENCE_NS / 1000000 / CHILD_ASK_MS);
			if (tries == PATIENCE_NS / 1000000 / CHILD_ASK_MS)
				return status_fail(TRIB_ERR_AGGREGATOR,
				                   "lane %u of the aggregator does not answer",
				                   lane);
		}
	return TRIB_OK;
}

trib_status plane_join(struct load_options *options, struct wire_welcome *welcome)
{
	trib_status status;

	for (unsigned lane = 0; lane < LOAD_LANES_MAX; lane++)
		for (unsigned child = 0; child < LOAD_CHILDREN_MAX; child++)
			options->fds[lane][child] = -1;
	status = open_all(options);
	memset(welcome, 0, sizeof(*welcome));
	if (status == TRIB_OK)
		status = ask_all(options, welcome);
	if (status == TRIB_OK)
		status = report_all(options, welcome);
	return status;
}
