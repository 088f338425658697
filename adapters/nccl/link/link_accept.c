/* SPDX-License-Identifier: Apache-2.0 */
#include "common/nccl_endpoint.h"
#include "nccl_link.h"
#include "common/plugin.h"

#include "base/clock.h"
#include "path/tcp.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define CALLERS_MAX 64u /* sockets whose connection is not complete */

/* A socket that has called. */
struct caller {
	int fd;
	struct udp_address from;
	struct hello hello;
	size_t heard; /* bytes of the hello */
	uint64_t deadline;
};

struct listener {
	pthread_mutex_t lock;
	int fd;
	struct handle handle;
	struct paths *paths; /* instead of the socket; NULL: none, or a link has them */
	unsigned n;
	struct caller callers[CALLERS_MAX];
};

int link_listen(int number, void *handle, void **out)
{
	struct listener *listener;
	trib_status status;

	*out = NULL;
	if (number != 0)
		return NCCL_INVALID_ARGUMENT;
	listener = calloc(1, sizeof(*listener));
	if (!listener)
		return NCCL_SYSTEM_ERROR;
	listener->fd = -1;
	pthread_mutex_init(&listener->lock, NULL);
	if (paths_wanted())
		status = paths_listen(&listener->handle, &listener->paths);
	else
		status = endpoint_listen(GREETING_LINK, &listener->handle, &listener->fd);
	if (status != TRIB_OK) {
		link_close_listen(listener);
	} else {
		handle_write(&listener->handle, handle);
		*out = listener;
	}
	return plugin_report(status, "listen");
}

int link_close_listen(void *closed)
{
	struct listener *listener = closed;

	if (!listener)
		return NCCL_SUCCESS;
	for (unsigned i = 0; i < listener->n; i++)
		close(listener->callers[i].fd);
	if (listener->fd >= 0)
		close(listener->fd);
	paths_free(listener->paths);
	pthread_mutex_destroy(&listener->lock);
	free(listener);
	return NCCL_SUCCESS;
}

static void caller_drop(struct listener *listener, unsigned index)
{
	close(listener->callers[index].fd);
	listener->callers[index] = listener->callers[--listener->n];
}

/* Reads the hello. False: the caller is not wanted. */
static bool caller_hear(const struct listener *listener, struct caller *caller)
{
	uint8_t *hello = (uint8_t *)&caller->hello;
	ssize_t n;

	if (caller->heard == sizeof(caller->hello))
		return true;
	n = recv(caller->fd, hello + caller->heard, sizeof(caller->hello) - caller->heard,
	         MSG_DONTWAIT);
	if (n < 0)
		return (errno == EAGAIN || errno == EINTR) && clock_now() < caller->deadline;
	if (n == 0)
		return false;
	caller->heard += (size_t)n;
	if (caller->heard < sizeof(caller->hello))
		return true;
	if (hello_check(&caller->hello, &listener->handle) == TRIB_OK)
		return true;
	plugin_warn("a caller is refused: %s", trib_last_error());
	return false;
}

static void take_callers(struct listener *listener)
{
	while (listener->n < CALLERS_MAX) {
		struct caller *caller = &listener->callers[listener->n];

		*caller = (struct caller){ .deadline = clock_now() + plugin_timeout() };
		caller->fd = tcp_accept(listener->fd, &caller->from);
		if (caller->fd < 0)
			break;
		endpoint_keep_alive(caller->fd);
		listener->n++;
	}
	for (unsigned i = listener->n; i-- > 0;)
		if (!caller_hear(listener, &listener->callers[i]))
			caller_drop(listener, i);
}

static bool is_of(const struct caller *caller, const struct hello *hello)
{
	return caller->heard == sizeof(caller->hello) && caller->hello.caller == hello->caller &&
	       caller->hello.stripes == hello->stripes;
}

/* The number of callers whose sockets belong to the same connection. */
static unsigned count_like(const struct listener *listener, const struct hello *hello)
{
	unsigned mask = 0;

	for (unsigned i = 0; i < listener->n; i++)
		if (is_of(&listener->callers[i], hello))
			mask |= 1u << listener->callers[i].hello.stripe;
	return (unsigned)__builtin_popcount(mask);
}

/* Makes a link of the sockets of one connection, and takes them out of the list. */
static struct link *join_callers(struct listener *listener, const struct caller *first)
{
	const struct hello hello = first->hello;
	struct link *link = link_new(hello.stripes, false, &first->from);

	for (unsigned i = listener->n; link && i-- > 0;) {
		struct caller *caller = &listener->callers[i];

		if (!is_of(caller, &hello))
			continue;
		if (link->fds[caller->hello.stripe] >= 0) { /* said twice */
			caller_drop(listener, i);
			continue;
		}
		link->fds[caller->hello.stripe] = caller->fd;
		*caller = listener->callers[--listener->n];
	}
	return link;
}

/* The link over several paths, when the peer has called. */
static int accept_paths(struct listener *listener, void **recv_comm)
{
	if (!paths_is_called(listener->paths))
		return NCCL_SUCCESS;
	*recv_comm = link_over(listener->paths, &listener->handle.address);
	listener->paths = NULL;
	return *recv_comm ? NCCL_SUCCESS : NCCL_SYSTEM_ERROR;
}

int link_accept(void *listening, void **recv_comm)
{
	struct listener *listener = listening;
	int result = NCCL_SUCCESS;

	*recv_comm = NULL;
	pthread_mutex_lock(&listener->lock);
	if (listener->paths)
		result = accept_paths(listener, recv_comm);
	else if (listener->fd >= 0)
		take_callers(listener);
	for (unsigned i = 0; i < listener->n; i++) {
		const struct caller *caller = &listener->callers[i];

		if (!is_of(caller, &caller->hello) ||
		    count_like(listener, &caller->hello) != caller->hello.stripes)
			continue;
		*recv_comm = join_callers(listener, caller);
		result = *recv_comm ? NCCL_SUCCESS : NCCL_SYSTEM_ERROR;
		break;
	}
	pthread_mutex_unlock(&listener->lock);
	return result;
}
