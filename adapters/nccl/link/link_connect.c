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

#define RETRY_NS 50000000ull /* 50 ms between two attempts */

/* A connection that is being made. NCCL calls link_connect again with the same handle. */
struct attempt {
	struct attempt *next;
	uint64_t id;
	struct link *link;
	struct handle handle;
	uint64_t deadline, retry_at;
	struct hello hello;
	unsigned ready; /* sockets that have said hello */
	size_t said;    /* bytes of the hello of the next socket */
	bool connected; /* the next socket is */
};

static struct attempt *attempts;
static pthread_mutex_t attempts_lock = PTHREAD_MUTEX_INITIALIZER;

static void attempt_free(struct attempt *attempt)
{
	if (attempt->link)
		link_free(attempt->link);
	free(attempt);
}

/* Takes an attempt out of the list. NULL: there is none with this number. */
static struct attempt *attempt_take(uint64_t id)
{
	struct attempt **at, *found;

	pthread_mutex_lock(&attempts_lock);
	for (at = &attempts; *at && (*at)->id != id; at = &(*at)->next)
		;
	found = *at;
	if (found)
		*at = found->next;
	pthread_mutex_unlock(&attempts_lock);
	return found;
}

static void attempt_keep(struct attempt *attempt)
{
	pthread_mutex_lock(&attempts_lock);
	attempt->next = attempts;
	attempts = attempt;
	pthread_mutex_unlock(&attempts_lock);
}

void link_drop_attempts(void)
{
	struct attempt *next;

	pthread_mutex_lock(&attempts_lock);
	for (; attempts; attempts = next) {
		next = attempts->next;
		attempt_free(attempts);
	}
	pthread_mutex_unlock(&attempts_lock);
}

static trib_status attempt_new(const struct handle *handle, void *bytes, struct attempt **out)
{
	struct attempt *attempt = calloc(1, sizeof(*attempt));

	*out = attempt;
	if (!attempt)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for a connection");
	attempt->handle = *handle;
	attempt->deadline = clock_now() + plugin_timeout();
	attempt->link = link_new(LINK_STRIPES, true, &handle->address);
	if (!attempt->link)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for a connection");
	if (endpoint_draw(&attempt->hello.caller, sizeof(attempt->hello.caller)) != TRIB_OK ||
	    endpoint_draw(&attempt->id, sizeof(attempt->id)) != TRIB_OK)
		return TRIB_ERR_SYSTEM;
	attempt->id |= 1; /* not 0 */
	attempt->hello.stripes = LINK_STRIPES;
	hello_write(&attempt->hello, handle);
	handle_set_attempt(bytes, attempt->id);
	return TRIB_OK;
}

/* The socket has failed. TRIB_IN_PROGRESS: it is tried again. */
static trib_status call_again(struct attempt *attempt, int error)
{
	int *fd = &attempt->link->fds[attempt->ready];

	if (*fd >= 0)
		close(*fd);
	*fd = -1;
	attempt->connected = false;
	attempt->said = 0;
	attempt->retry_at = clock_now() + RETRY_NS;
	if (attempt->retry_at < attempt->deadline)
		return TRIB_IN_PROGRESS;
	return status_fail(TRIB_ERR_PEER, "cannot connect to %s: %s", attempt->link->peer,
	                   strerror(error));
}

/* Brings the next socket one step on. TRIB_OK: it has said hello. */
static trib_status call_step(struct attempt *attempt)
{
	int *fd = &attempt->link->fds[attempt->ready], error;
	ssize_t n;

	if (*fd < 0) {
		if (clock_now() < attempt->retry_at)
			return TRIB_IN_PROGRESS;
		*fd = tcp_begin(&attempt->handle.address);
		if (*fd < 0)
			return call_again(attempt, -*fd);
		endpoint_keep_alive(*fd);
	}
	if (!attempt->connected) {
		error = tcp_wait(*fd, 0);
		if (error == ETIMEDOUT && clock_now() < attempt->deadline)
			return TRIB_IN_PROGRESS;
		if (error)
			return call_again(attempt, error);
		attempt->connected = true;
	}
	attempt->hello.stripe = (uint16_t)attempt->ready;
	n = send(*fd, (const uint8_t *)&attempt->hello + attempt->said,
	         sizeof(attempt->hello) - attempt->said, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? TRIB_IN_PROGRESS
		                                         : call_again(attempt, errno);
	attempt->said += (size_t)n;
	return attempt->said == sizeof(attempt->hello) ? TRIB_OK : TRIB_IN_PROGRESS;
}

/* TRIB_OK: all sockets have said hello. */
static trib_status attempt_step(struct attempt *attempt)
{
	trib_status status = TRIB_OK;

	while (attempt->ready < attempt->link->n && (status = call_step(attempt)) == TRIB_OK) {
		attempt->ready++;
		attempt->said = 0;
		attempt->connected = false;
	}
	return status;
}

static trib_status find_attempt(const struct handle *handle, void *bytes, struct attempt **out)
{
	*out = NULL;
	if (handle->kind != GREETING_LINK)
		return status_fail(TRIB_ERR_ARGUMENT, "the handle is that of a collective");
	if (!handle->attempt)
		return attempt_new(handle, bytes, out);
	*out = attempt_take(handle->attempt);
	return *out ? TRIB_OK
	            : status_fail(TRIB_ERR_ARGUMENT, "the handle names no connection of this "
	                                             "process");
}

/* Over several paths: the link is ready at once. */
static int connect_paths(const struct handle *handle, void **send_comm)
{
	char peer[64];
	struct paths *paths;
	trib_status status =
		paths_connect(handle, udp_text(&handle->address, peer, sizeof(peer)), &paths);

	if (status == TRIB_OK && !(*send_comm = link_over(paths, &handle->address)))
		status = status_fail(TRIB_ERR_NO_MEMORY, "no memory for a connection");
	return plugin_report(status, "connect");
}

int link_connect(int number, void *handle, void **send_comm)
{
	struct attempt *attempt = NULL;
	struct handle peer;
	trib_status status;

	*send_comm = NULL;
	if (number != 0)
		return NCCL_INVALID_ARGUMENT;
	status = handle_read(handle, &peer);
	if (status == TRIB_OK && peer.kind == GREETING_PATHS)
		return connect_paths(&peer, send_comm);
	if (status == TRIB_OK)
		status = find_attempt(&peer, handle, &attempt);
	if (status == TRIB_OK)
		status = attempt_step(attempt);
	if (attempt && status == TRIB_IN_PROGRESS) {
		attempt_keep(attempt);
		return NCCL_SUCCESS;
	}
	if (status == TRIB_OK) {
		*send_comm = attempt->link;
		attempt->link = NULL;
	}
	if (attempt) {
		handle_set_attempt(handle, 0);
		attempt_free(attempt);
	}
	return plugin_report(status, "connect");
}
