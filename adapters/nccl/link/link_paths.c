/* SPDX-License-Identifier: Apache-2.0 */
#include "link_paths.h"
#include "common/nccl_endpoint.h"
#include "common/plugin.h"

#include "base/clock.h"
#include "base/settings.h"
#include "path/channel/channel_io.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LAZY_NS 1000000      /* 1 ms: while NCCL serves the channel, its thread sleeps */
#define WAIT_MAX_NS 20000000 /* 20 ms: the thread notices the end of the link */
#define LONGEST (1u << 30)   /* bytes of a message */

struct path_message {
	void *data;
	uint64_t room, size;
	uint32_t number; /* of the message in the channel */
	bool used;
};

struct paths {
	pthread_t thread;
	bool runs; /* the thread does */
	atomic_bool closing;
	_Atomic uint64_t moved_at; /* when NCCL last served the channel */
	char peer[64];
	bool sends;
	pthread_mutex_t lock; /* for all below */
	bool called;
	struct channel_io_config config;
	struct channel_listener *listener; /* NULL: this side calls */
	struct channel_io *io;
	uint32_t posted;
	struct path_message messages[NCCL_REQUESTS_MAX];
};

bool paths_wanted(void)
{
	enum path_search search;
	unsigned most;
	const char *text = setting_text(SETTING_PATHS, NULL);

	return text && strcmp(text, settings[SETTING_PATHS].fallback) != 0 &&
	       setting_paths(&search, &most) == TRIB_OK && search != PATHS_OFF && most > 1;
}

/* A message has begun to come. It goes to the buffer that was posted for it. */
static void *place(void *user, uint32_t number, uint32_t bytes)
{
	struct paths *paths = user;
	struct path_message *message = &paths->messages[number % NCCL_REQUESTS_MAX];

	if (!message->used || message->number != number || bytes > message->room)
		return NULL;
	message->size = bytes;
	return message->data;
}

/* Nobody has called within the timeout, so the channel has failed: another one waits. */
static trib_status wait_again(struct paths *paths, uint64_t now)
{
	channel_io_free(paths->io);
	paths->io = NULL;
	return channel_accept(paths->listener, &paths->config, now, &paths->io);
}

/* The caller holds the lock. */
static trib_status serve(struct paths *paths)
{
	uint64_t now = clock_now();
	trib_status status;

	if (!paths->io)
		return TRIB_ERR_NO_MEMORY;
	if (paths->listener)
		channel_listener_step(paths->listener, now);
	status = channel_step(paths->io, now);
	if (channel_state(channel_of(paths->io)) == CHANNEL_OPEN)
		paths->called = true;
	if (status != TRIB_OK && paths->listener && !paths->called)
		status = wait_again(paths, now);
	if (status == TRIB_OK && channel_state(channel_of(paths->io)) == CHANNEL_CLOSED)
		status = status_fail(TRIB_ERR_PEER, "the peer has gone");
	return status;
}

/* Waits for packets, or until the channel has something to do. */
static void wait_for_work(struct paths *paths)
{
	struct pollfd fds[CHANNEL_FDS + 1];
	uint64_t wait;
	unsigned n = 0;

	pthread_mutex_lock(&paths->lock);
	wait = paths->io ? channel_wait(paths->io, clock_now()) : WAIT_MAX_NS;
	if (paths->io)
		n = channel_fds(paths->io, fds);
	if (paths->listener)
		fds[n++] = (struct pollfd){ .fd = channel_listener_fd(paths->listener),
			                    .events = POLLIN };
	pthread_mutex_unlock(&paths->lock);
	poll(fds, n, (int)((wait < WAIT_MAX_NS ? wait : WAIT_MAX_NS) / 1000000));
}

/* Serves the channel while NCCL does not. */
static void *serve_idle(void *user)
{
	const struct timespec pause = { .tv_nsec = LAZY_NS };
	struct paths *paths = user;

	while (!atomic_load(&paths->closing)) {
		if (clock_now() < atomic_load(&paths->moved_at) + 2 * LAZY_NS) {
			nanosleep(&pause, NULL);
			continue;
		}
		pthread_mutex_lock(&paths->lock);
		serve(paths);
		pthread_mutex_unlock(&paths->lock);
		wait_for_work(paths);
	}
	return NULL;
}

/* The configuration of both sides. The cookie is their secret. */
static struct paths *paths_new(const struct handle *handle, bool sends, const char *peer)
{
	struct paths *paths = calloc(1, sizeof(*paths));

	if (!paths)
		return NULL;
	pthread_mutex_init(&paths->lock, NULL);
	paths->sends = sends;
	snprintf(paths->peer, sizeof(paths->peer), "%s", peer);
	paths->config = (struct channel_io_config){ .self = sends,
		                                    .peer = !sends,
		                                    .name = paths->peer,
		                                    .longest = LONGEST,
		                                    .timeout = plugin_timeout(),
		                                    .events = { .user = paths, .place = place } };
	memcpy(&paths->config.key, handle->cookie, sizeof(paths->config.key));
	return paths;
}

/* Lets the thread run, if all went well until here. */
static trib_status paths_start(struct paths *paths, trib_status status, struct paths **out)
{
	if (status == TRIB_OK && pthread_create(&paths->thread, NULL, serve_idle, paths))
		status = status_fail(TRIB_ERR_SYSTEM, "cannot start a thread");
	if (status == TRIB_OK) {
		paths->runs = true;
		*out = paths;
	} else {
		paths_free(paths);
	}
	return status;
}

trib_status paths_listen(struct handle *handle, struct paths **out)
{
	const struct device *device = device_get();
	struct udp_address any;
	struct paths *paths;
	trib_status status;

	*out = NULL;
	memset(handle, 0, sizeof(*handle));
	handle->kind = GREETING_PATHS;
	status = endpoint_draw(handle->cookie, sizeof(handle->cookie));
	if (status != TRIB_OK)
		return status;
	if (!device)
		return status_fail(TRIB_ERR_CONFIG, "there is no network interface");
	paths = paths_new(handle, false, "the peer");
	if (!paths)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for a connection");
	/* Paths may come to any address of this host. */
	status = udp_resolve(device->address.storage.ss_family == AF_INET ? "0.0.0.0:0" : "[::]:0",
	                     0, &any);
	if (status == TRIB_OK)
		status = channel_listen(&any, &paths->listener);
	if (status == TRIB_OK)
		status = channel_accept(paths->listener, &paths->config, clock_now(), &paths->io);
	if (status == TRIB_OK) {
		handle->address = device->address;
		udp_set_port(&handle->address, channel_listener_port(paths->listener));
	}
	return paths_start(paths, status, out);
}

trib_status paths_connect(const struct handle *handle, const char *peer, struct paths **out)
{
	struct paths *paths = paths_new(handle, true, peer);

	*out = NULL;
	if (!paths)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for a connection");
	return paths_start(
		paths, channel_connect(&paths->config, &handle->address, clock_now(), &paths->io),
		out);
}

/* A peer that has heard the call waits for messages. Only an open channel can say goodbye to it. */
static void linger(struct paths *paths)
{
	const struct timespec pause = { .tv_nsec = LAZY_NS };
	uint64_t until = clock_now() + CHANNEL_LINGER_NS;

	while (paths->io && channel_state(channel_of(paths->io)) == CHANNEL_OPENING &&
	       serve(paths) == TRIB_OK && clock_now() < until)
		nanosleep(&pause, NULL);
}

void paths_free(struct paths *paths)
{
	if (!paths)
		return;
	atomic_store(&paths->closing, true);
	if (paths->runs)
		pthread_join(paths->thread, NULL);
	if (paths->sends)
		linger(paths);
	channel_io_free(paths->io);
	channel_listener_free(paths->listener);
	pthread_mutex_destroy(&paths->lock);
	free(paths);
}

bool paths_is_called(struct paths *paths)
{
	bool called;

	pthread_mutex_lock(&paths->lock);
	called = paths->called;
	pthread_mutex_unlock(&paths->lock);
	return called;
}

int paths_post(struct paths *paths, void *data, uint64_t bytes)
{
	unsigned index = paths->posted % NCCL_REQUESTS_MAX;
	struct path_message *message = &paths->messages[index];
	int result = -1;

	pthread_mutex_lock(&paths->lock);
	if (!message->used && bytes <= LONGEST && paths->io &&
	    (!paths->sends ||
	     channel_send(channel_of(paths->io), data, (uint32_t)bytes) == TRIB_OK)) {
		*message = (struct path_message){ .data = data,
			                          .room = bytes,
			                          .size = bytes,
			                          .number = paths->posted++,
			                          .used = true };
		if (!paths->sends)
			channel_grant(channel_of(paths->io), 1);
		result = (int)index;
	}
	pthread_mutex_unlock(&paths->lock);
	return result;
}

trib_status paths_move(struct paths *paths)
{
	trib_status status;

	atomic_store(&paths->moved_at, clock_now());
	pthread_mutex_lock(&paths->lock);
	status = serve(paths);
	pthread_mutex_unlock(&paths->lock);
	return status;
}

bool paths_done(struct paths *paths, unsigned index)
{
	const struct path_message *message = &paths->messages[index];
	const struct channel *channel;
	uint32_t passed;
	bool done = false;

	pthread_mutex_lock(&paths->lock);
	if (paths->io && message->used) {
		channel = channel_of(paths->io);
		passed = paths->sends ? channel_sent(channel) : channel_delivered(channel);
		done = (int32_t)(passed - message->number) > 0;
	}
	pthread_mutex_unlock(&paths->lock);
	return done;
}

uint64_t paths_release(struct paths *paths, unsigned index)
{
	uint64_t size;

	pthread_mutex_lock(&paths->lock);
	paths->messages[index].used = false;
	size = paths->messages[index].size;
	pthread_mutex_unlock(&paths->lock);
	return size;
}
