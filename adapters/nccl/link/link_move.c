/* SPDX-License-Identifier: Apache-2.0 */
#include "common/nccl_endpoint.h"
#include "nccl_link.h"
#include "common/plugin.h"

#include "base/clock.h"
#include "path/tcp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECK_NS (NSEC_PER_SEC / 2)

struct link *link_new(unsigned n, bool sends, const struct udp_address *peer)
{
	struct link *link = calloc(1, sizeof(*link));

	if (!link)
		return NULL;
	pthread_mutex_init(&link->lock, NULL);
	link->n = n;
	for (unsigned i = 0; i < STRIPES_MAX; i++)
		link->fds[i] = -1;
	udp_text(peer, link->peer, sizeof(link->peer));
	stripes_init(&link->stripes, n, sends);
	for (unsigned i = 0; i < NCCL_REQUESTS_MAX; i++)
		link->requests[i] = (struct link_request){ .link = link, .index = i };
	return link;
}

struct link *link_over(struct paths *paths, const struct udp_address *peer)
{
	struct link *link = link_new(0, false, peer);

	if (link)
		link->paths = paths;
	else
		paths_free(paths);
	return link;
}

void link_free(struct link *link)
{
	paths_free(link->paths);
	for (unsigned i = 0; i < link->n; i++)
		if (link->fds[i] >= 0)
			close(link->fds[i]);
	pthread_mutex_destroy(&link->lock);
	free(link);
}

static void fail(struct link *link, trib_status status)
{
	link->failed = status;
	plugin_warn("connection with %s: %s", link->peer, trib_last_error());
}

/* Bytes moved, 0: the socket is not ready, or -errno. */
static int64_t move_once(const struct link *link, int fd, struct iovec *pieces, unsigned n)
{
	struct msghdr message = { .msg_iov = pieces, .msg_iovlen = n };
	ssize_t got;

	if (link->stripes.sends)
		return tcp_send(fd, pieces, n);
	do
		got = recvmsg(fd, &message, MSG_DONTWAIT);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return errno == EAGAIN ? 0 : -errno;
	return got ? got : -ECONNRESET;
}

/* Moves on one socket what can be moved now. */
static void move_stream(struct link *link, unsigned stream)
{
	struct iovec pieces[2];
	unsigned n;

	while (link->failed == TRIB_OK && (n = stripes_next(&link->stripes, stream, pieces))) {
		int64_t moved = move_once(link, link->fds[stream], pieces, n);
		trib_status status;

		if (moved == 0)
			return;
		if (moved < 0) {
			errno = (int)-moved;
			fail(link,
			     status_fail(TRIB_ERR_PEER, "the peer has gone: %s", strerror(errno)));
			return;
		}
		status = stripes_moved(&link->stripes, stream, (uint64_t)moved);
		if (status != TRIB_OK)
			fail(link, status);
	}
}

/* Looks now and then whether the peer of what waits to be sent still answers. */
static void check_peer(struct link *link)
{
	uint64_t now = clock_now();

	if (!link->stripes.sends || now < link->checked_at + CHECK_NS)
		return;
	link->checked_at = now;
	for (unsigned i = 0; i < link->n && link->failed == TRIB_OK; i++)
		if (endpoint_is_silent(link->fds[i]))
			fail(link, status_fail(TRIB_ERR_PEER, "the peer is silent"));
}

static void move_all(struct link *link)
{
	trib_status status = link->paths ? paths_move(link->paths) : TRIB_OK;

	if (status != TRIB_OK && link->failed == TRIB_OK)
		fail(link, status);
	for (unsigned i = 0; i < link->n; i++)
		move_stream(link, i);
	check_peer(link);
}

static bool is_done(struct link *link, unsigned index)
{
	return link->paths ? paths_done(link->paths, index) : stripes_done(&link->stripes, index);
}

/* Posts a message or a buffer. *request NULL: too many are in use. */
static int post(struct link *link, void *data, size_t size, void **request)
{
	int index, result;

	*request = NULL;
	pthread_mutex_lock(&link->lock);
	if (link->failed != TRIB_OK)
		index = -1;
	else if (link->paths)
		index = paths_post(link->paths, data, size);
	else
		index = stripes_post(&link->stripes, data, size);
	if (index >= 0) {
		*request = &link->requests[index];
		move_all(link);
	}
	result = plugin_result(link->failed);
	pthread_mutex_unlock(&link->lock);
	return result;
}

int link_send(void *send_comm, void *data, size_t size, void **request)
{
	return post(send_comm, data, size, request);
}

int link_receive(void *recv_comm, int n, void **data, size_t *sizes, void **request)
{
	if (n != 1)
		return NCCL_INVALID_USAGE; /* the properties say one buffer */
	return post(recv_comm, data[0], sizes[0], request);
}

int link_test(void *request, int *done, int *sizes)
{
	struct link_request *asked = request;
	struct link *link = asked->link;
	int result = NCCL_SUCCESS;

	*done = 0;
	pthread_mutex_lock(&link->lock);
	if (!is_done(link, asked->index))
		move_all(link);
	if (is_done(link, asked->index)) {
		uint64_t bytes = link->paths ? paths_release(link->paths, asked->index)
		                             : stripes_release(&link->stripes, asked->index);

		*done = 1;
		if (sizes)
			sizes[0] = (int)bytes;
	} else {
		result = plugin_result(link->failed);
	}
	pthread_mutex_unlock(&link->lock);
	return result;
}

int link_close(void *comm)
{
	if (comm)
		link_free(comm);
	return NCCL_SUCCESS;
}
