/* SPDX-License-Identifier: Apache-2.0 */
/* Our channel: messages from one host to the other. */
#include "bench/path/bench_path.h"

#include "base/clock.h"
#include "path/channel/channel_io.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY 0x70617468u
#define TIMEOUT_NS (10 * NSEC_PER_SEC)
#define IN_FLIGHT 64u               /* messages at most */
#define IN_FLIGHT_BYTES (32u << 20) /* bytes at most; two messages may have more */

struct end {
	struct path_job *job;
	struct channel_io *io;
	struct channel_listener *listener;
	uint8_t *memory; /* places of messages */
	uint32_t places;
	uint64_t token_at; /* when the token left; 0: it is not on its way */
};

static uint32_t places_for(uint32_t bytes)
{
	uint32_t n = IN_FLIGHT_BYTES / (bytes ? bytes : 1);

	return n < 2 ? 2 : n > IN_FLIGHT ? IN_FLIGHT : n;
}

/* Every byte depends on its place. The message's number is in its first word. */
static void pattern(uint8_t *data, uint32_t bytes)
{
	for (uint32_t i = 0; i < bytes; i++)
		data[i] = (uint8_t)(i * 31u + (i >> 8) * 17u + (i >> 16));
}

static uint8_t *place_of(const struct end *end, uint32_t message)
{
	return end->memory + (size_t)(message % end->places) * end->job->what->bytes;
}

static void *place(void *user, uint32_t message, uint32_t bytes)
{
	const struct end *end = user;

	return bytes == end->job->what->bytes ? place_of(end, message) : NULL;
}

static bool is_right(const struct end *end, const uint8_t *data, uint32_t message)
{
	const uint32_t bytes = end->job->what->bytes;
	uint32_t number;

	if (bytes < sizeof(number))
		return true;
	memcpy(&number, data, sizeof(number));
	if (number != message)
		return false;
	for (uint32_t i = sizeof(number); end->job->what->check && i < bytes; i++)
		if (data[i] != (uint8_t)(i * 31u + (i >> 8) * 17u + (i >> 16)))
			return false;
	return true;
}

static void deliver(void *user, uint32_t message, void *memory, uint32_t bytes)
{
	struct end *end = user;

	if (!is_right(end, memory, message)) {
		status_fail(TRIB_ERR_SYSTEM, "message %u is wrong", message);
		path_job_fail(end->job);
	}
	memset(memory, 0, bytes < 4096 ? bytes : 4096);
	end->job->messages++;
	path_job_count(end->job, bytes);
	channel_grant(channel_of(end->io), 1);
}

static struct channel_io_config config_of(struct end *end, uint32_t self)
{
	const struct path_case *what = end->job->what;

	return (struct channel_io_config){
		.key = KEY,
		.self = self,
		.peer = !self,
		.name = self ? "the sender" : "the receiver",
		.longest = what->bytes,
		.credit = end->places,
		.timeout = TIMEOUT_NS,
		.chunk = what->chunk,
		.events = { .user = end, .place = place, .deliver = deliver },
	};
}

/* Waits for packets or timers, and takes a step. */
static trib_status step(struct end *end)
{
	struct pollfd fds[CHANNEL_FDS + 1];
	unsigned n = channel_fds(end->io, fds), own = n;
	uint64_t now = clock_now(), wait = channel_wait(end->io, now);
	struct timespec span = clock_span(wait < 20000000 ? wait : 20000000);

	if (end->listener)
		fds[n++] = (struct pollfd){ .fd = channel_listener_fd(end->listener),
			                    .events = POLLIN };
	if (ppoll(fds, n, &span, NULL) > 0) {
		channel_take(end->io, fds, own);
		if (end->listener && fds[own].revents)
			channel_listener_step(end->listener, now);
	}
	return channel_push(end->io, clock_now());
}

static trib_status end_open(struct end *end, struct path_job *job)
{
	*end = (struct end){ .job = job, .places = places_for(job->what->bytes) };
	end->memory = malloc((size_t)end->places * job->what->bytes + 1);
	if (!end->memory)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for messages");
	return TRIB_OK;
}

static void end_close(struct end *end)
{
	channel_io_free(end->io);
	channel_listener_free(end->listener);
	free(end->memory);
}

/* ---- the receiver ---- */

static trib_status receiver_open(struct end *end, struct path_job *job)
{
	struct channel_io_config config;
	struct udp_address any;
	trib_status status = end_open(end, job);

	if (status == TRIB_OK)
		status = cluster_enter(job->bed->to);
	if (status == TRIB_OK)
		status = udp_resolve("0.0.0.0:0", 0, &any);
	if (status == TRIB_OK)
		status = channel_listen(&any, &end->listener);
	if (status != TRIB_OK)
		return status;
	config = config_of(end, 1);
	job->port = channel_listener_port(end->listener);
	return channel_accept(end->listener, &config, clock_now(), &end->io);
}

static void echo(struct end *end, uint32_t *echoed)
{
	struct channel *channel = channel_of(end->io);

	while (end->job->what->token && *echoed < channel_delivered(channel) &&
	       channel_room(channel) &&
	       channel_send(channel, place_of(end, *echoed), end->job->what->bytes) == TRIB_OK)
		++*echoed;
}

void *path_channel_receive(void *user)
{
	struct path_job *job = user;
	struct end end;
	uint32_t echoed = 0;
	trib_status status = receiver_open(&end, job);

	job->ready = 1;
	while (status == TRIB_OK && !job->stop &&
	       channel_state(channel_of(end.io)) <= CHANNEL_OPEN) {
		status = step(&end);
		echo(&end, &echoed);
		path_job_cpu(job, 1);
	}
	if (status != TRIB_OK && !job->stop)
		path_job_fail(job);
	end_close(&end);
	return NULL;
}

/* ---- the sender ---- */

static trib_status sender_open(struct end *end, struct path_job *job)
{
	const struct cluster *cluster = &job->bed->cluster;
	struct virtual_path paths[PATHS_MAX];
	struct channel_io_config config;
	struct udp_address to;
	trib_status status = end_open(end, job);
	char text[40];

	memset(paths, 0, sizeof(paths));
	for (unsigned i = 0; i < job->what->paths && status == TRIB_OK; i++) {
		cluster_alias(cluster, (unsigned)(job->bed->from - cluster->hosts), i + 1, text);
		status = udp_resolve(text, 0, &paths[i].from);
		cluster_alias(cluster, (unsigned)(job->bed->to - cluster->hosts), i + 1, text);
		if (status == TRIB_OK)
			status = udp_resolve(text, job->port, &paths[i].to);
		udp_set_port(&paths[i].from, 0);
	}
	if (status == TRIB_OK)
		status = udp_resolve(job->bed->to->address, job->port, &to);
	if (status == TRIB_OK)
		status = cluster_enter(job->bed->from);
	if (status != TRIB_OK)
		return status;
	config = config_of(end, 0);
	config.paths = paths;
	config.n_paths = job->what->found ? 0 : job->what->paths;
	for (uint32_t i = 0; i < end->places; i++)
		pattern(place_of(end, i), job->what->bytes);
	return channel_connect(&config, &to, clock_now(), &end->io);
}

static trib_status send_more(struct end *end, uint32_t *queued)
{
	struct channel *channel = channel_of(end->io);
	uint32_t most = end->job->what->token ? 1 : end->places;
	trib_status status = TRIB_OK;

	while (status == TRIB_OK && *queued - channel_sent(channel) < most) {
		uint8_t *data = place_of(end, *queued);

		if (end->job->what->token && *queued > channel_delivered(channel))
			break;
		if (end->job->what->bytes >= sizeof(*queued))
			memcpy(data, queued, sizeof(*queued));
		status = channel_send(channel, data, end->job->what->bytes);
		*queued += status == TRIB_OK;
		end->token_at = end->job->what->token ? clock_now() : 0;
	}
	return status;
}

static void tell(struct end *end)
{
	const struct monitor *monitor = channel_monitor(channel_of(end->io));
	struct channel_counters counters = channel_counters(channel_of(end->io));

	for (unsigned i = 0; i < monitor->n; i++)
		end->job->by_path[i] = monitor->paths[i].delivered;
	end->job->packets = counters.packets;
	end->job->repeated = counters.repeated;
	path_job_cpu(end->job, 0);
}

/* The round trip of a token, if it is back. */
static void time_token(struct end *end, uint32_t queued)
{
	struct path_job *job = end->job;
	unsigned n = job->n_latencies;

	if (!end->token_at || channel_delivered(channel_of(end->io)) < queued)
		return;
	if (n < PATH_LATENCIES) {
		job->latencies[n] = (double)(clock_now() - end->token_at) / 2e9;
		job->n_latencies = n + 1;
	}
	end->token_at = 0;
}

void *path_channel_send(void *user)
{
	struct path_job *job = user;
	uint32_t queued = 0;
	struct end end;
	trib_status status = sender_open(&end, job);

	while (status == TRIB_OK && !job->stop) {
		time_token(&end, queued);
		status = send_more(&end, &queued);
		if (status == TRIB_OK)
			status = step(&end);
		tell(&end);
	}
	if (status != TRIB_OK && !job->stop)
		path_job_fail(job);
	end_close(&end);
	return NULL;
}
