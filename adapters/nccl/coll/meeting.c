/* SPDX-License-Identifier: Apache-2.0 */
#include "meeting.h"
#include "common/nccl_endpoint.h"
#include "common/plugin.h"

#include "base/clock.h"
#include "path/tcp.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#define TRY_EVERY_MS 50
#define TALK_NS (2 * NSEC_PER_SEC) /* a caller says which node it is within this time */

/* Others wait longer than the host, so that they hear its verdict. */
static uint64_t deadline_of(const struct meeting *meeting)
{
	uint64_t timeout = plugin_timeout();

	return clock_now() +
	       (meeting->rank ? 2 * timeout + 2 * NSEC_PER_SEC : timeout + NSEC_PER_SEC);
}

static trib_status fail_left(int node, int error)
{
	return status_fail(TRIB_ERR_PEER, "node %d: %s", node,
	                   error == ETIMEDOUT ? "no answer before the deadline" : "it has left");
}

/* Hears the hello of a caller. False: it is not wanted, and the socket is closed. */
static bool admit(struct meeting *meeting, const struct handle *host, int fd)
{
	struct hello hello;

	endpoint_keep_alive(fd);
	if (!tcp_talk(fd, &hello, sizeof(hello), false, clock_now() + TALK_NS)) {
		if (hello_check(&hello, host) != TRIB_OK) {
			plugin_warn("a node is refused: %s", trib_last_error());
		} else if (hello.rank > 0 && hello.rank < (uint32_t)meeting->size &&
		           meeting->fds[hello.rank] < 0) {
			meeting->fds[hello.rank] = fd;
			return true;
		}
	}
	close(fd);
	return false;
}

/* The host waits for all nodes. */
static trib_status gather(struct meeting *meeting, int listener, const struct handle *host,
                          uint64_t deadline)
{
	int missing = meeting->size - 1;

	while (missing && clock_now() < deadline) {
		struct pollfd wait = { .fd = listener, .events = POLLIN };
		struct udp_address from;
		int fd;

		poll(&wait, 1, TRY_EVERY_MS);
		fd = tcp_accept(listener, &from);
		if (fd >= 0 && admit(meeting, host, fd))
			missing--;
	}
	for (int r = 1; missing && r < meeting->size; r++)
		if (meeting->fds[r] < 0)
			return status_fail(TRIB_ERR_TIMEOUT, "node %d has not come", r);
	return TRIB_OK;
}

/* Others call the host. */
static trib_status call(struct meeting *meeting, const struct handle *host, uint64_t deadline)
{
	const struct timespec pause = { .tv_nsec = TRY_EVERY_MS * 1000000L };
	struct hello hello = { .stripes = 1, .rank = (uint32_t)meeting->rank };
	char address[64];
	int error;

	hello_write(&hello, host);
	for (;;) {
		int fd = tcp_connect(&host->address, (int)(TALK_NS / 1000000));

		if (fd >= 0) {
			endpoint_keep_alive(fd);
			meeting->fds[0] = fd;
			error = tcp_talk(fd, &hello, sizeof(hello), true, deadline);
			return error ? fail_left(0, error) : TRIB_OK;
		}
		if (clock_now() + TALK_NS >= deadline)
			return status_fail(TRIB_ERR_PEER, "cannot connect to node 0 at %s: %s",
			                   udp_text(&host->address, address, sizeof(address)),
			                   strerror(-fd));
		nanosleep(&pause, NULL);
	}
}

/* The host hears all, and says whether all agree. */
static trib_status decide(struct meeting *meeting, enum note_step asked, enum note_step answer,
                          trib_status status, const char *refusal, uint64_t deadline)
{
	struct note note;
	int error;

	if (status == TRIB_OK && refusal)
		status = status_fail(TRIB_ERR_REFUSED, "node 0: %s", refusal);
	for (int r = 1; r < meeting->size; r++) {
		if (meeting->fds[r] < 0)
			continue; /* gather() has found that */
		error = tcp_talk(meeting->fds[r], &note, sizeof(note), false, deadline);
		if (status != TRIB_OK)
			continue;
		if (error)
			status = fail_left(r, error);
		else if ((status = note_check(&note, asked)) == TRIB_OK && !note.ok)
			status = status_fail(TRIB_ERR_REFUSED, "node %d: %.*s", r, (int)NOTE_TEXT,
			                     note.text);
	}
	note_write(&note, answer, status == TRIB_OK, status == TRIB_OK ? "" : trib_last_error());
	note.key = meeting->key;
	for (int r = 1; r < meeting->size; r++)
		if (meeting->fds[r] >= 0)
			tcp_talk(meeting->fds[r], &note, sizeof(note), true, clock_now() + TALK_NS);
	return status;
}

/* Another node says what it has to say, and hears the verdict. */
static trib_status ask(struct meeting *meeting, enum note_step asked, enum note_step answer,
                       const char *refusal, uint64_t deadline)
{
	struct note note;
	trib_status status;
	int error;

	note_write(&note, asked, !refusal, refusal);
	error = tcp_talk(meeting->fds[0], &note, sizeof(note), true, deadline);
	if (!error)
		error = tcp_talk(meeting->fds[0], &note, sizeof(note), false, deadline);
	if (error)
		return fail_left(0, error);
	status = note_check(&note, answer);
	if (status == TRIB_OK && !note.ok)
		status = status_fail(TRIB_ERR_REFUSED, "%.*s", (int)NOTE_TEXT, note.text);
	if (answer == NOTE_JOIN)
		meeting->key = note.key;
	return status;
}

trib_status meeting_begin(struct meeting *meeting, int listener, const struct handle *host,
                          const char *refusal)
{
	uint64_t deadline = deadline_of(meeting);
	trib_status status;

	for (unsigned i = 0; i < WIRE_CHILDREN_MAX; i++)
		meeting->fds[i] = -1;
	if (meeting->rank == 0) {
		status = endpoint_draw(&meeting->key, sizeof(meeting->key));
		meeting->key |= 1;
		if (status == TRIB_OK)
			status = gather(meeting, listener, host, deadline);
		return decide(meeting, NOTE_READY, NOTE_JOIN, status, refusal, deadline);
	}
	status = call(meeting, host, deadline);
	return status == TRIB_OK ? ask(meeting, NOTE_READY, NOTE_JOIN, refusal, deadline) : status;
}

trib_status meeting_end(struct meeting *meeting, const char *refusal)
{
	uint64_t deadline = deadline_of(meeting);

	return meeting->rank ? ask(meeting, NOTE_JOINED, NOTE_USE, refusal, deadline)
	                     : decide(meeting, NOTE_JOINED, NOTE_USE, TRIB_OK, refusal, deadline);
}

void meeting_close(struct meeting *meeting)
{
	for (unsigned i = 0; i < WIRE_CHILDREN_MAX; i++)
		if (meeting->fds[i] >= 0)
			close(meeting->fds[i]);
}
