/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/log.h"
#include "path/tcp.h"
#include "sparse/server/server_connection.h"
#include "sparse/server/server_hello.h"
#include "sparse/server/server_hot.h"
#include "sparse/server/server_requests.h"
#include "sparse/server/server_status.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

#define EVENTS_MAX 64
#define TICK_NS (NSEC_PER_SEC / 4)
#define RETRY_NS (NSEC_PER_SEC / 5)         /* 0.2 s: until a failed commit is tried again */
#define CLOSING_NS (2 * NSEC_PER_SEC)       /* 2 s: for a refused client to read why */
#define CLIENT_HELLO_NS (10 * NSEC_PER_SEC) /* 10 s: for a new client to say HELLO */

/* ---- events ---- */

static void connection_lost(struct sparse_server *server, struct connection *c, uint64_t now)
{
	hello_undo(server, c, now);
	c->state = CONNECTION_DEAD;
}

static void connection_serve(struct sparse_server *server, struct connection *c, uint32_t events,
                             uint64_t now)
{
	bool alive = true;

	if (c->state == CONNECTION_DEAD)
		return;
	if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
		alive = connection_read(c);
	/* What arrived before the end counts. */
	requests_take(server, c, now);
	if (!alive)
		connection_lost(server, c, now);
}

static void event_serve(struct sparse_server *server, const struct epoll_event *event, uint64_t now)
{
	if (event->data.ptr == &server->listen_fd) {
		while (connection_accept(server, now))
			;
	} else if (event->data.ptr == &server->stop_fd) {
		server->is_running = false;
	} else if (event->data.ptr) { /* NULL: the socket of an aggregator, served in each round */
		connection_serve(server, event->data.ptr, event->events, now);
	}
}

/* ---- the end of a round ---- */

/* One write for all pushes of the round. Nobody hears of a push before it is in the log. */
static trib_status round_commit(struct sparse_server *server, uint64_t now)
{
	if (!sparse_log_pending(server->log) && !server->acks_due)
		return TRIB_OK;
	if (server->trouble[0] && now < server->retry_at)
		return TRIB_OK;
	if (sparse_log_commit(server->log, now) == TRIB_OK) {
		if (server->trouble[0])
			log_notice("the log can be written again");
		server->trouble[0] = '\0';
		/* ACKs name the round that shows what was committed, so they come second. */
		server_hot_committed(server, now);
		acks_add(server);
		return TRIB_OK;
	}
	if (sparse_log_is_broken(server->log))
		return TRIB_ERR_SYSTEM;
	if (!server->trouble[0])
		log_error("%s; pushes wait until it can be written", trib_last_error());
	snprintf(server->trouble, sizeof(server->trouble), "%s", trib_last_error());
	server->retry_at = now + RETRY_NS;
	return TRIB_OK;
}

/* Clients whose pushes wait hear why. */
static void trouble_tell(struct sparse_server *server)
{
	for (uint32_t i = 0; i < server->n_connections; i++) {
		struct connection *c = server->connections[i];

		if (c->state == CONNECTION_OPEN && c->waits_for_ack &&
		    !message_add_text(&c->out, MESSAGE_NOTICE, 0, server->trouble))
			connection_drop(c);
	}
}

static void connection_advance(struct sparse_server *server, struct connection *c, uint64_t now)
{
	bool waited;

	do {
		/* Messages that had to wait for room or for the log. */
		waited = requests_take(server, c, now);
		if (c->state != CONNECTION_DEAD && !connection_write(c))
			connection_lost(server, c, now);
	} while (waited && c->state == CONNECTION_OPEN && requests_allowed(server, c));
}

static void outputs_send(struct sparse_server *server, uint64_t now)
{
	for (uint32_t i = 0; i < server->n_connections; i++) {
		struct connection *c = server->connections[i];

		connection_advance(server, c, now);
		if (c->state != CONNECTION_DEAD)
			connection_poll(server, c, requests_allowed(server, c));
	}
	connections_sweep(server);
}

static void listener_watch(struct sparse_server *server)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = &server->listen_fd };

	if (!server->listens)
		server->listens =
			!epoll_ctl(server->epoll_fd, EPOLL_CTL_ADD, server->listen_fd, &event);
}

static void snapshot_begin(struct sparse_server *server, uint64_t now)
{
	struct sparse_log_stats stats;

	sparse_log_get_stats(server->log, &stats);
	if (!server->options.snapshot_bytes || stats.bytes < server->options.snapshot_bytes ||
	    sparse_log_is_snapshotting(server->log) || server->trouble[0])
		return;
	if (sparse_log_snapshot(server->log, now) != TRIB_OK)
		log_warn("no snapshot: %s", trib_last_error());
}

static trib_status server_tick(struct sparse_server *server, uint64_t now)
{
	uint64_t rates_at = server->rates_at;
	trib_status status = sparse_log_tick(server->log, now);

	if (status != TRIB_OK && sparse_log_is_broken(server->log))
		return status;
	if (status != TRIB_OK)
		log_warn("%s", trib_last_error());
	snapshot_begin(server, now);
	listener_watch(server);
	for (uint32_t i = 0; i < server->n_tables; i++)
		lost_workers_tell(server, server->tables[i], now);
	for (uint32_t i = 0; i < server->n_connections; i++) {
		struct connection *c = server->connections[i];

		if ((c->state == CONNECTION_CLOSING && !c->waits_for_bye &&
		     clock_since(now, c->closed_at) > CLOSING_NS) ||
		    (c->state == CONNECTION_NEW && clock_since(now, c->since) > CLIENT_HELLO_NS))
			c->state = CONNECTION_DEAD;
	}
	if (server->trouble[0])
		trouble_tell(server);
	server_rates_update(server, now);
	if (server->options.status_file && server->rates_at != rates_at)
		server_status_write(server, now);
	return TRIB_OK;
}

/* ---- the loop ---- */

static int wait_ms(const struct sparse_server *server, uint64_t now, uint64_t hot)
{
	uint64_t wake = server->tick_at < hot ? server->tick_at : hot;

	if (server->trouble[0] && server->retry_at < wake)
		wake = server->retry_at;
	return wake > now ? (int)((wake - now + 999999) / 1000000) : 0;
}

trib_status sparse_server_run(struct sparse_server *server)
{
	struct epoll_event events[EVENTS_MAX];
	trib_status status = TRIB_OK;
	uint64_t now = clock_now(), hot;

	server->is_running = true;
	server->started = server->rates_at = now;
	while (server->is_running && status == TRIB_OK) {
		int n;

		hot = server_hot_serve(server, now);
		status = round_commit(server, now);
		outputs_send(server, now);
		if (status == TRIB_OK && now >= server->tick_at) {
			status = server_tick(server, now);
			server->tick_at = now + TICK_NS;
		}
		/* Reading that went on in outputs_send may have appended to the log. */
		n = epoll_wait(server->epoll_fd, events, EVENTS_MAX,
		               (sparse_log_pending(server->log) || server->acks_due) &&
		                               !server->trouble[0]
		                       ? 0
		                       : wait_ms(server, now, hot));
		now = clock_now();
		for (int i = 0; i < n; i++)
			event_serve(server, &events[i], now);
	}
	return status;
}

void sparse_server_stop(struct sparse_server *server)
{
	uint64_t one = 1;

	if (write(server->stop_fd, &one, sizeof(one)) < 0)
		return;
}

/* ---- open and close ---- */

static trib_status server_listen(struct sparse_server *server)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = &server->stop_fd };
	struct sparse_server_options *o = &server->options;
	socklen_t length = sizeof(o->listen.storage);
	trib_status status = tcp_listen(&o->listen, &server->listen_fd);

	if (status != TRIB_OK)
		return status;
	server->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	server->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (server->epoll_fd < 0 || server->stop_fd < 0 ||
	    epoll_ctl(server->epoll_fd, EPOLL_CTL_ADD, server->stop_fd, &event) ||
	    getsockname(server->listen_fd, (void *)&o->listen.storage, &length) ||
	    getrandom(&server->random, sizeof(server->random), 0) < 0)
		return status_fail_errno("cannot start a parameter server");
	listener_watch(server);
	return TRIB_OK;
}

trib_status sparse_server_open(const struct sparse_server_options *options,
                               struct sparse_server **out)
{
	struct sparse_server *server = calloc(1, sizeof(*server));
	const struct sparse_log_options log = { .folder = options->folder,
		                                .shard = options->shard,
		                                .shards = options->shards,
		                                .sync = options->sync,
		                                .keep_logs = options->keep_logs,
		                                .repair = options->repair };
	trib_status status;

	*out = NULL;
	if (!server)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for a parameter server");
	server->options = *options;
	server->epoll_fd = server->listen_fd = server->stop_fd = -1;
	status = sparse_log_open(&log, &server->log);
	if (status == TRIB_OK) {
		server->state = sparse_log_state(server->log);
		status = server_listen(server);
	}
	if (status == TRIB_OK)
		*out = server;
	else
		sparse_server_close(server);
	return status;
}

uint16_t sparse_server_port(const struct sparse_server *server)
{
	return udp_port(&server->options.listen);
}

const struct sparse_log *sparse_server_log(const struct sparse_server *server)
{
	return server->log;
}

void sparse_server_close(struct sparse_server *server)
{
	for (uint32_t i = 0; i < server->n_connections; i++)
		server->connections[i]->state = CONNECTION_DEAD;
	connections_sweep(server);
	free(server->connections);
	for (uint32_t i = 0; i < server->n_tables; i++) {
		server_hot_end(server->tables[i]);
		clocks_free(&server->tables[i]->clocks);
		free(server->tables[i]);
	}
	free(server->scratch);
	if (server->epoll_fd >= 0)
		close(server->epoll_fd);
	if (server->listen_fd >= 0)
		close(server->listen_fd);
	if (server->stop_fd >= 0)
		close(server->stop_fd);
	if (server->log)
		sparse_log_close(server->log);
	free(server);
}
