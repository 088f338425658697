/* SPDX-License-Identifier: Apache-2.0 */
#include "control/transport/http_guard.h"

#include "base/clock.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>

#define REQUEST_NS (5 * NSEC_PER_SEC) /* 5 s for a stranger's request */
#define LOOK_EVERY (NSEC_PER_SEC / 2) /* 500 ms between two looks */

struct http_visit {
	struct http_guard *guard;
	struct http_visit *next, **at; /* oldest first */
	uint64_t since;                /* when it came, or its last request ended */
	int fd;
	bool proven, told; /* told: it was asked to go */
};

struct http_guard {
	pthread_mutex_t lock;
	pthread_cond_t wake;
	pthread_t thread;
	struct http_visit *first, **end;
	unsigned strangers, strangers_max;
	bool stop;
};

static void append(struct http_guard *guard, struct http_visit *visit)
{
	visit->next = NULL;
	visit->at = guard->end;
	*guard->end = visit;
	guard->end = &visit->next;
}

static void take_out(struct http_guard *guard, struct http_visit *visit)
{
	*visit->at = visit->next;
	if (visit->next)
		visit->next->at = visit->at;
	else
		guard->end = visit->at;
}

/* The server sees the end of the stream, and closes the connection itself. */
static void send_away(struct http_visit *visit)
{
	visit->told = true;
	visit->guard->strangers--;
	shutdown(visit->fd, SHUT_RDWR);
}

static void look(struct http_guard *guard, uint64_t now)
{
	for (struct http_visit *visit = guard->first; visit; visit = visit->next)
		if (!visit->proven && !visit->told && now > visit->since + REQUEST_NS)
			send_away(visit);
}

static void *guard_main(void *context)
{
	struct http_guard *guard = context;

	pthread_mutex_lock(&guard->lock);
	while (!guard->stop) {
		struct timespec until = clock_span(clock_now() + LOOK_EVERY);

		pthread_cond_timedwait(&guard->wake, &guard->lock, &until);
		look(guard, clock_now());
	}
	pthread_mutex_unlock(&guard->lock);
	return NULL;
}

struct http_guard *http_guard_open(unsigned places)
{
	struct http_guard *guard = calloc(1, sizeof(*guard));
	pthread_condattr_t monotonic;

	if (!guard)
		return NULL;
	guard->end = &guard->first;
	guard->strangers_max = places / 2 ? places / 2 : 1;
	pthread_mutex_init(&guard->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&guard->wake, &monotonic);
	pthread_condattr_destroy(&monotonic);
	if (pthread_create(&guard->thread, NULL, guard_main, guard)) {
		free(guard);
		return NULL;
	}
	return guard;
}

void http_guard_close(struct http_guard *guard)
{
	pthread_mutex_lock(&guard->lock);
	guard->stop = true;
	pthread_cond_signal(&guard->wake);
	pthread_mutex_unlock(&guard->lock);
	pthread_join(guard->thread, NULL);
	free(guard);
}

struct http_visit *http_visit_begin(struct http_guard *guard, int fd)
{
	struct http_visit *visit = calloc(1, sizeof(*visit)), *oldest;

	if (!visit)
		return NULL;
	visit->guard = guard;
	visit->fd = fd;
	visit->since = clock_now();
	pthread_mutex_lock(&guard->lock);
	if (guard->strangers >= guard->strangers_max) {
		for (oldest = guard->first; oldest && (oldest->proven || oldest->told);)
			oldest = oldest->next;
		if (oldest)
			send_away(oldest);
	}
	append(guard, visit);
	guard->strangers++;
	pthread_mutex_unlock(&guard->lock);
	return visit;
}

void http_visit_prove(struct http_visit *visit)
{
	struct http_guard *guard = visit->guard;

	pthread_mutex_lock(&guard->lock);
	if (!visit->proven && !visit->told)
		guard->strangers--;
	visit->proven = true;
	pthread_mutex_unlock(&guard->lock);
}

void http_visit_rest(struct http_visit *visit)
{
	struct http_guard *guard = visit->guard;

	pthread_mutex_lock(&guard->lock);
	visit->since = clock_now();
	take_out(guard, visit);
	append(guard, visit);
	pthread_mutex_unlock(&guard->lock);
}

void http_visit_end(struct http_visit *visit)
{
	struct http_guard *guard = visit ? visit->guard : NULL;

	if (!visit)
		return;
	pthread_mutex_lock(&guard->lock);
	take_out(guard, visit);
	guard->strangers -= !visit->proven && !visit->told;
	pthread_mutex_unlock(&guard->lock);
	free(visit);
}
