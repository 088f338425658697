/* SPDX-License-Identifier: Apache-2.0 */
#include "sparse/client/client_thread.h"

#include "base/clock.h"
#include "sparse/client/client_hot.h"
#include "sparse/client/client_shard.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define SHARD_POLLS (1 + CLIENT_HOT_POLLS)

/* Steps whose pushes have all ended are told to the servers. */
static void steps_tell(trib_sparse *table)
{
	uint64_t open = table->pushes ? table->pushes->ticket : UINT64_MAX;
	uint32_t n = 0;

	while (n < table->n_steps && table->steps[n].ticket < open)
		table->told = table->steps[n++].clock;
	if (!n)
		return;
	for (uint32_t i = n; i < table->n_steps; i++)
		table->steps[i - n] = table->steps[i];
	table->n_steps -= n;
	for (uint32_t s = 0; s < table->n_shards; s++) {
		struct shard *shard = &table->shards[s];

		/* One that connects later says it in its HELLO. */
		if (shard->state == SHARD_OPEN &&
		    !message_add_short(&shard->control, MESSAGE_STEP, table->told, 0))
			client_fail(table, TRIB_ERR_NO_MEMORY, "no memory for a message");
	}
}

/* What the loop does before it waits; returns when it has to go on. */
static uint64_t shards_step(trib_sparse *table, uint64_t now)
{
	uint64_t wake = UINT64_MAX;

	/* Hot rows first: when they are durable a step may end, which the servers have to hear. */
	for (uint32_t s = 0; s < table->n_shards; s++) {
		uint64_t hot = client_hot_serve(&table->shards[s], now);

		wake = hot < wake ? hot : wake;
	}
	table->hurries = false;
	steps_tell(table);
	for (uint32_t s = 0; s < table->n_shards; s++) {
		struct shard *shard = &table->shards[s];
		uint64_t at = shard_step(shard, now);

		shard_send(shard, now);
		/* A connection that was lost in sending waits for its next attempt. */
		if (shard->state == SHARD_APART && shard->retry_at < at)
			at = shard->retry_at;
		wake = at < wake ? at : wake;
	}
	return wake;
}

/* After a failure nothing is sent. Servers see that this worker has gone. */
static void shards_drop(trib_sparse *table)
{
	for (uint32_t s = 0; s < table->n_shards; s++) {
		if (table->shards[s].fd >= 0)
			close(table->shards[s].fd);
		table->shards[s].fd = -1;
	}
}

static void polls_fill(trib_sparse *table, struct pollfd *polls)
{
	polls[0] = (struct pollfd){ .fd = table->wake_fd, .events = POLLIN };
	for (uint32_t s = 0; s < table->n_shards; s++) {
		struct shard *shard = &table->shards[s];
		struct pollfd *own = polls + 1 + (size_t)s * SHARD_POLLS;

		own[0] = (struct pollfd){ .fd = shard->fd, .events = shard_events(shard) };
		own[1] = (struct pollfd){ .fd = -1 };
		client_hot_polls(shard, own + 1);
	}
}

static void polls_serve(trib_sparse *table, const struct pollfd *polls)
{
	uint64_t now = clock_now(), count;

	if (polls[0].revents && read(table->wake_fd, &count, sizeof(count)) < 0 && errno != EAGAIN)
		client_fail(table, TRIB_ERR_SYSTEM, "cannot read an eventfd");
	for (uint32_t s = 0; s < table->n_shards; s++) {
		const struct pollfd *own = polls + 1 + (size_t)s * SHARD_POLLS;

		if (own[0].revents && own[0].fd == table->shards[s].fd)
			shard_serve(&table->shards[s], own[0].revents, now);
	}
}

static void *thread_run(void *context)
{
	trib_sparse *table = context;
	size_t n = 1 + (size_t)table->n_shards * SHARD_POLLS;
	struct pollfd *polls = calloc(n, sizeof(*polls));

	pthread_mutex_lock(&table->lock);
	if (!polls)
		client_fail(table, TRIB_ERR_NO_MEMORY, "no memory for %zu sockets", n);
	while (!table->is_closing && table->failed == TRIB_OK) {
		uint64_t now = clock_now(), wake = shards_step(table, now);
		struct timespec span = clock_span(wake > now ? wake - now : 0);

		polls_fill(table, polls);
		pthread_mutex_unlock(&table->lock);
		if (ppoll(polls, n, wake == UINT64_MAX ? NULL : &span, NULL) < 0)
			polls[0].revents = 0; /* EINTR: look at the timers */
		pthread_mutex_lock(&table->lock);
		polls_serve(table, polls);
	}
	shards_drop(table);
	pthread_mutex_unlock(&table->lock);
	free(polls);
	return NULL;
}

trib_status client_thread_start(trib_sparse *table)
{
	sigset_t all, before;
	int error;

	table->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (table->wake_fd < 0)
		return status_fail_errno("cannot make an eventfd");
	/* Signals are for the threads of the program. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(&table->thread, NULL, thread_run, table);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	errno = error;
	if (error)
		return status_fail_errno("cannot start a thread");
	table->has_thread = true;
	return TRIB_OK;
}

void client_thread_end(trib_sparse *table)
{
	if (table->has_thread) {
		pthread_mutex_lock(&table->lock);
		table->is_closing = true;
		pthread_mutex_unlock(&table->lock);
		client_wake(table);
		pthread_join(table->thread, NULL);
	}
	if (table->wake_fd >= 0)
		close(table->wake_fd);
}
