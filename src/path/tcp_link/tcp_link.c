/* SPDX-License-Identifier: Apache-2.0 */
#include "path/tcp_link/tcp_link.h"

#include "base/clock.h"
#include "base/log.h"
#include "path/channel/carried.h"
#include "path/tcp.h"
#include "path/tcp_link/frame_reader.h"

#include <errno.h>
#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define DEPTH 64u             /* messages that may be on their way */
#define SHORTEST 6144u        /* bytes: shorter messages cost no more as packets */
#define RECEIVE_CALLS 16u     /* before something is sent */
#define RETRY_NS NSEC_PER_SEC /* 1 s after a failure; then 2 s, 4 s ... 32 s */
#define FAILURES_MOST 6u
#define OPENING_NS (2 * NSEC_PER_SEC) /* 2 s: to connect, or to greet */
#define STALL_NS (NSEC_PER_SEC / 4)   /* 250 ms without progress: the peer is asked */
#define PATH 0u                       /* the only one */

enum link_state {
	LINK_IDLE,
	LINK_LISTENS,  /* `fd` is the listening socket */
	LINK_GREETED,  /* accepted, and the greeting has not come */
	LINK_CONNECTS, /* `fd` is not connected yet */
	LINK_UP,
};

struct flight {
	uint32_t message, bytes;
	uint64_t sent_at;
};

struct tcp_link {
	struct channel *channel;
	struct channel_events events;
	uint32_t longest;
	char name[CHANNEL_NAME];
	bool known; /* the path's addresses */
	struct udp_address from, to;

	enum link_state state;
	int fd;            /* -1 in LINK_IDLE only */
	uint64_t since;    /* the state began */
	unsigned failures; /* connections and attempts that have ended since a message
	                    * arrived, here or at the peer */
	uint32_t epoch;    /* of the port: own, or the one that was tried */
	bool told;         /* the side that is called hears that a connection is wanted */

	struct path_greeting greeting;
	uint32_t greeted; /* bytes of it that have come */
	struct frame_reader reader;

	struct path_frame head; /* of the message that is sent now */
	const uint8_t *data;
	uint32_t left; /* bytes of head and message that have not left */

	struct flight flights[DEPTH]; /* ring, in the order of sending */
	unsigned first, flying;
	uint64_t moved_at; /* the last time that bytes left or messages arrived */
	uint64_t asked_at; /* the last question to the peer since then; 0: none */
	int waited;        /* bytes that the peer's kernel had not got when it was asked */
};

/* ---- life ---- */

static trib_status link_open(struct channel *channel, const char *name, uint32_t longest,
                             const struct channel_events *events, void **carrier)
{
	struct tcp_link *link = calloc(1, sizeof(*link));

	if (!link)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for a connection to %s", name);
	link->channel = channel;
	link->events = *events;
	link->longest = longest;
	link->fd = -1;
	snprintf(link->name, sizeof(link->name), "%s", name);
	*carrier = link;
	return TRIB_OK;
}

static void set_state(struct tcp_link *link, enum link_state state, int fd, uint64_t now)
{
	if (link->fd >= 0 && link->fd != fd)
		close(link->fd);
	link->fd = fd;
	link->state = state;
	link->since = now;
}

static void drop_partial(struct tcp_link *link)
{
	if (link->reader.memory && link->events.unplace)
		link->events.unplace(link->events.user, link->reader.memory);
	link->reader = (struct frame_reader){ 0 };
}

static void link_close(void *carrier)
{
	struct tcp_link *link = carrier;

	drop_partial(link);
	set_state(link, LINK_IDLE, -1, 0);
	free(link);
}

static bool read_address(const struct path_address *from, struct udp_address *address)
{
	if (from->size != 4 && from->size != 16)
		return false;
	udp_from_raw(from->raw, from->size, from->port, address);
	return true;
}

static void link_add_path(void *carrier, unsigned path, const struct path_address *from,
                          const struct path_address *to)
{
	struct tcp_link *link = carrier;

	if (path == PATH)
		link->known = read_address(from, &link->from) && read_address(to, &link->to);
}

static struct pollfd link_poll(const void *carrier)
{
	const struct tcp_link *link = carrier;
	bool writes = link->state == LINK_CONNECTS || (link->state == LINK_UP && link->left);

	return (struct pollfd){ .fd = link->fd, .events = writes ? POLLIN | POLLOUT : POLLIN };
}

/* ---- the end of a connection ---- */

/* Flights that the peer has told about are over. */
static void end_flights(struct tcp_link *link, uint64_t now)
{
	while (link->flying) {
		const struct flight *flight = &link->flights[link->first];

		if ((int32_t)(flight->message - channel_sent(link->channel)) >= 0)
			return;
		carried_arrived(link->channel, PATH, flight->message, flight->bytes,
		                flight->sent_at, now);
		link->first = (link->first + 1) % DEPTH;
		link->flying--;
		link->moved_at = now;
		link->asked_at = 0;
		link->failures = 0;
	}
}

/* Messages that have not arrived go again as packets. */
static void link_fail(struct tcp_link *link, const char *why, uint64_t now)
{
	if (channel_state(link->channel) == CHANNEL_OPEN && !link->failures)
		log_info("messages to %s travel as packets for a while: the TCP connection %s",
		         link->name, why);
	end_flights(link, now);
	for (; link->flying; link->flying--, link->first = (link->first + 1) % DEPTH)
		carried_lost(link->channel, PATH, link->flights[link->first].message, now);
	carried_set_up(link->channel, PATH, false, now);
	drop_partial(link);
	link->left = 0;
	link->told = false;
	link->failures += link->failures < FAILURES_MOST;
	set_state(link, LINK_IDLE, -1, now);
}

/* ---- opening ---- */

static void link_up(struct tcp_link *link, uint64_t now)
{
	tcp_share(link->fd);
	set_state(link, LINK_UP, link->fd, now);
	link->moved_at = now;
	carried_set_up(link->channel, PATH, true, now);
	log_debug("long messages to %s travel by TCP", link->name);
}

static void tell(struct tcp_link *link, uint16_t port)
{
	struct path_carrier word = { .qpn = port, .epoch = link->epoch, .phase = PATH_PHASE_TCP };

	carried_tell(link->channel, PATH, &word);
}

/* What the peer has told; NULL: nothing. */
static const struct path_carrier *heard(const struct tcp_link *link)
{
	const struct path_carrier *word = carried_heard(link->channel, PATH);

	return word && word->phase == PATH_PHASE_TCP ? word : NULL;
}

/* The side that is called: listens at the path's own address. */
static void start_listening(struct tcp_link *link, uint64_t now)
{
	struct udp_address at = link->from;
	struct sockaddr_storage bound;
	socklen_t length = sizeof(bound);
	int fd;

	udp_set_port(&at, 0);
	if (tcp_listen(&at, &fd) != TRIB_OK) {
		link_fail(link, trib_last_error(), now);
		return;
	}
	set_state(link, LINK_LISTENS, fd, now);
	if (getsockname(fd, (struct sockaddr *)&bound, &length)) {
		link_fail(link, strerror(errno), now);
		return;
	}
	memcpy(&at.storage, &bound, sizeof(bound));
	link->epoch++;
	tell(link, udp_port(&at));
}

/*
 * Has the peer given up this connection, or the port? The side that calls then tells the epoch that
 * it has tried, and the side that is called a new one.
 */
static bool is_given_up(const struct tcp_link *link)
{
	const struct path_carrier *word = heard(link);

	if (!word || link->state == LINK_IDLE)
		return false;
	return (word->epoch == link->epoch) != channel_calls(link->channel);
}

/* Bytes of TCP data in a packet as long as the channel's: the path may carry no more, and nobody
 * may say so. 0: the kernel chooses. */
static unsigned segment_most(const struct channel *channel)
{
	uint32_t unit = channel_unit(channel);

	return unit < CHANNEL_UNIT_MAX ? (unsigned)(unit + CHANNEL_HEADER + sizeof(struct udphdr) -
	                                            sizeof(struct tcphdr))
	                               : 0;
}

/* The side that calls: connects to a port that it has not tried yet. */
static void start_connecting(struct tcp_link *link, uint64_t now)
{
	const struct path_carrier *word = heard(link);
	struct udp_address at = link->to;
	int fd;

	if (!word || !word->qpn || word->qpn > UINT16_MAX || word->epoch == link->epoch) {
		if (!link->told)
			tell(link, 0);
		link->told = true;
		return;
	}
	link->epoch = word->epoch;
	udp_set_port(&at, (uint16_t)word->qpn);
	fd = tcp_begin_from(&link->from, &at, segment_most(link->channel));
	if (fd < 0)
		link_fail(link, strerror(-fd), now);
	else
		set_state(link, LINK_CONNECTS, fd, now);
}

/* Each side that has long messages asks for a connection. */
static void start(struct tcp_link *link, uint64_t now)
{
	uint64_t wait = link->failures ? RETRY_NS << (link->failures - 1) : 0;

	if (!link->known || channel_state(link->channel) != CHANNEL_OPEN ||
	    now < link->since + wait)
		return;
	if (!carried_is_wanted(link->channel) && !heard(link))
		return;
	if (channel_calls(link->channel))
		start_connecting(link, now);
	else
		start_listening(link, now);
}

/* A connection from another host is none of the peer's. */
static void take_connection(struct tcp_link *link, uint64_t now)
{
	struct udp_address peer;
	int fd = tcp_accept(link->fd, &peer);

	if (fd == -EAGAIN || fd == -EINTR || fd == -ECONNABORTED)
		return;
	if (fd < 0) { /* e.g. no descriptor is left: the connection that waits would wake us on */
		link_fail(link, strerror(-fd), now);
		return;
	}
	if (!udp_same_host(&peer, &link->to)) {
		close(fd);
		return;
	}
	link->greeted = 0;
	set_state(link, LINK_GREETED, fd, now);
}

static void take_greeting(struct tcp_link *link, uint64_t now)
{
	const struct path_greeting *greeting = &link->greeting;
	ssize_t n = recv(link->fd, (uint8_t *)&link->greeting + link->greeted,
	                 sizeof(link->greeting) - link->greeted, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	link->greeted += n > 0 ? (uint32_t)n : 0;
	if (n <= 0)
		link_fail(link, "was closed before the greeting", now);
	else if (link->greeted < sizeof(*greeting))
		return;
	else if (greeting->magic != PATH_GREETING || greeting->epoch != link->epoch ||
	         greeting->id != channel_id(link->channel))
		link_fail(link, "came from a stranger", now);
	else
		link_up(link, now);
}

static void greet(struct tcp_link *link, uint64_t now)
{
	struct path_greeting greeting = { .magic = PATH_GREETING,
		                          .epoch = link->epoch,
		                          .id = channel_id(link->channel) };
	int error = tcp_wait(link->fd, 0);

	if (error == ETIMEDOUT)
		return;
	if (error)
		link_fail(link, strerror(error), now);
	else if (send(link->fd, &greeting, sizeof(greeting), MSG_DONTWAIT | MSG_NOSIGNAL) !=
	         sizeof(greeting))
		link_fail(link, "takes no greeting", now);
	else
		link_up(link, now);
}

/* ---- messages that leave ---- */

static void begin_message(struct tcp_link *link, const struct carried_message *message,
                          uint64_t now)
{
	struct carried_counts counts = carried_tell_counts(link->channel, PATH);

	link->head = (struct path_frame){ .message = message->number,
		                          .bytes = message->bytes,
		                          .delivered = counts.delivered,
		                          .credit = counts.credit };
	link->data = message->data;
	link->left = sizeof(link->head) + message->bytes;
	link->flights[(link->first + link->flying++) % DEPTH] =
		(struct flight){ message->number, message->bytes, now };
}

/* False: the socket is full, or the connection has ended. */
static bool send_rest(struct tcp_link *link, uint64_t now)
{
	uint32_t whole = sizeof(link->head) + link->head.bytes, done = whole - link->left;
	struct iovec parts[2] = {
		{ (uint8_t *)&link->head + done,
		  done < sizeof(link->head) ? sizeof(link->head) - done : 0 },
		{ 0 },
	};
	uint32_t body = done > sizeof(link->head) ? done - (uint32_t)sizeof(link->head) : 0;
	int64_t n;

	parts[1] =
		(struct iovec){ (uint8_t *)(uintptr_t)link->data + body, link->head.bytes - body };
	n = parts[0].iov_len ? tcp_send(link->fd, parts, 2) : tcp_send(link->fd, parts + 1, 1);
	if (n < 0)
		link_fail(link, strerror((int)-n), now);
	if (n <= 0)
		return false;
	link->left -= (uint32_t)n;
	link->moved_at = now;
	link->asked_at = 0;
	return !link->left;
}

/* Does the peer say that it has a message whose end has not left? Its memory may be gone. */
static bool is_told_too_much(const struct tcp_link *link)
{
	return link->left && (int32_t)(link->head.message - channel_sent(link->channel)) < 0;
}

static void send_messages(struct tcp_link *link, uint64_t now)
{
	struct carried_message message;

	if (link->left && !send_rest(link, now))
		return;
	while (carried_next(link->channel, now, &message)) {
		begin_message(link, &message, now);
		if (!send_rest(link, now))
			return;
	}
}

/* Bytes that have left, and that the peer's kernel has not got; -1: unknown. */
static int waiting(const struct tcp_link *link)
{
	int bytes;

	return ioctl(link->fd, SIOCOUTQ, &bytes) ? -1 : bytes;
}

/* A peer that answers on the path, and takes nothing from the connection: that leads nowhere. A
 * slow link is no stall. */
static void look_for_stall(struct tcp_link *link, uint64_t now)
{
	if (!link->flying || now < link->moved_at + STALL_NS)
		return;
	if (!link->asked_at) {
		carried_ask(link->channel, PATH);
		link->asked_at = now;
		link->waited = waiting(link);
	} else if (now < link->asked_at + STALL_NS ||
	           carried_heard_at(link->channel) <= link->asked_at) {
		return;
	} else if (waiting(link) != link->waited) {
		link->moved_at = now;
		link->asked_at = 0;
	} else {
		link_fail(link, "stalls", now);
	}
}

static void link_push(void *carrier, uint64_t now)
{
	struct tcp_link *link = carrier;
	bool opens = link->state == LINK_GREETED || link->state == LINK_CONNECTS;

	end_flights(link, now);
	if (opens && now >= link->since + OPENING_NS)
		link_fail(link, "does not open", now);
	if (is_given_up(link))
		link_fail(link, "was given up by the peer", now);
	if (link->state == LINK_IDLE)
		start(link, now);
	if (link->state == LINK_UP && is_told_too_much(link))
		link_fail(link, "carries a message that the peer says it has", now);
	if (link->state == LINK_UP)
		send_messages(link, now);
	if (link->state == LINK_UP)
		look_for_stall(link, now);
}

/* ---- messages that come ---- */

/* False: the connection has ended. */
static bool take_head(struct tcp_link *link, uint64_t now)
{
	const struct path_frame *head = &link->reader.head;
	struct carried_counts counts = { head->delivered, head->credit };
	void *memory;

	if (!head->bytes || head->bytes > link->longest ||
	    !carried_expects(link->channel, head->message) ||
	    !carried_take_counts(link->channel, PATH, counts, now)) {
		link_fail(link, "carried no message", now);
		return false;
	}
	memory = link->events.place(link->events.user, head->message, head->bytes);
	if (!memory) {
		link_fail(link, "carried a message that is not expected", now);
		return false;
	}
	frame_reader_place(&link->reader, memory);
	return true;
}

static void take_whole(struct tcp_link *link, uint64_t now)
{
	const struct path_frame *head = &link->reader.head;
	uint8_t *memory = link->reader.whole;

	link->failures = 0;
	if (!carried_came(link->channel, PATH, head->message, memory, head->bytes, now) &&
	    link->events.unplace)
		link->events.unplace(link->events.user, memory);
}

/* False: nothing more is there, or the connection has ended. */
static bool receive_some(struct tcp_link *link, uint64_t now)
{
	struct iovec room[2];
	struct msghdr message = { .msg_iov = room,
		                  .msg_iovlen = frame_reader_room(&link->reader, room) };
	size_t asked = room[0].iov_len + (message.msg_iovlen > 1 ? room[1].iov_len : 0), left;
	ssize_t n = recvmsg(link->fd, &message, MSG_DONTWAIT);
	enum frame_event event;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n <= 0) {
		link_fail(link, n ? strerror(errno) : "was closed by the peer", now);
		return false;
	}
	left = (size_t)n;
	while ((event = frame_reader_take(&link->reader, &left)) != FRAME_MORE) {
		if (event == FRAME_WHOLE)
			take_whole(link, now);
		else if (!take_head(link, now))
			return false;
	}
	return (size_t)n == asked;
}

static void link_take(void *carrier, uint64_t now)
{
	struct tcp_link *link = carrier;

	if (link->state == LINK_LISTENS)
		take_connection(link, now);
	if (link->state == LINK_GREETED)
		take_greeting(link, now);
	if (link->state == LINK_CONNECTS)
		greet(link, now);
	for (unsigned i = 0; i < RECEIVE_CALLS && link->state == LINK_UP; i++)
		if (!receive_some(link, now))
			break;
	end_flights(link, now);
}

const struct channel_carrier tcp_link_carrier = {
	.depth = DEPTH,
	.from = SHORTEST,
	.open = link_open,
	.close = link_close,
	.add_path = link_add_path,
	.poll = link_poll,
	.take = link_take,
	.push = link_push,
};
