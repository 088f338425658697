/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/path/bench_path.h"

#include "base/clock.h"
#include "path/udp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FRAME 1514.0   /* bytes of a full frame, as the shaper counts them */
#define PAYLOAD 1448.0 /* bytes of a message in it, with our channel and with TCP */
#define LOAD_PORT 7799
#define LOAD_BYTES 1472u

static double link_bps(const struct path_bed *bed, unsigned leaf, unsigned spine)
{
	char name[CLUSTER_LINK_NAME_BYTES];
	unsigned link;

	snprintf(name, sizeof(name), "leaf%u-spine%u", leaf, spine);
	if (cluster_link_find(&bed->cluster, name, &link) != TRIB_OK)
		return 0;
	return (double)cluster_link_rate(&bed->cluster, link);
}

/* The first host below the first leaf sends to the first one below the second. */
static trib_status choose_hosts(struct path_bed *bed)
{
	const struct cluster *cluster = &bed->cluster;
	const struct cluster_host **ends[2][2] = { { &bed->from, &bed->load_from },
		                                   { &bed->to, &bed->load_to } };

	for (unsigned i = 0; i < cluster->n; i++) {
		const struct cluster_host *host = &cluster->hosts[i];

		if (host->leaf < 1 || host->leaf > 2)
			continue;
		if (!*ends[host->leaf - 1][0])
			*ends[host->leaf - 1][0] = host;
		else if (!*ends[host->leaf - 1][1])
			*ends[host->leaf - 1][1] = host;
	}
	if (!bed->from || !bed->to || !cluster->fabric.paths)
		return status_fail(TRIB_ERR_ARGUMENT,
		                   "cluster %s has no two hosts with several paths between them "
		                   "(trib net up --leaf 2 --spine 4 --route static)",
		                   cluster->name);
	return TRIB_OK;
}

trib_status path_bed_open(struct path_bed *bed, const struct cluster_options *options,
                          const char *name)
{
	struct cluster_options own = *options;
	char made[32];
	trib_status status;

	snprintf(made, sizeof(made), "path%d", (int)getpid());
	own.name = made;
	status = name ? cluster_load(name, &bed->cluster) : cluster_up(&own, &bed->cluster);
	bed->made = !name && status == TRIB_OK;
	if (status == TRIB_OK)
		status = choose_hosts(bed);
	if (status != TRIB_OK)
		return status;
	bed->paths = bed->cluster.fabric.paths < PATHS_MAX ? bed->cluster.fabric.paths : PATHS_MAX;
	for (unsigned i = 0; i < bed->paths; i++) {
		unsigned spine = i % bed->cluster.fabric.spines + 1;
		double up = link_bps(bed, 1, spine), down = link_bps(bed, 2, spine);

		bed->bps[i] = up < down ? up : down;
	}
	return TRIB_OK;
}

void path_bed_close(struct path_bed *bed)
{
	if (bed->made)
		cluster_down(bed->cluster.name);
}

double path_bed_sum(const struct path_bed *bed, unsigned paths)
{
	double sum = 0;

	for (unsigned i = 0; i < paths; i++)
		sum += bed->bps[i] * (1 - bed->load[i]);
	return sum * PAYLOAD / FRAME;
}

/* ---- background traffic ---- */

struct load_stream {
	int fd;
	double bps;
	uint64_t next;
};

struct path_load {
	const struct path_bed *bed;
	pthread_t thread;
	_Atomic bool stop;
	_Atomic int ready; /* 1: sends; -1: has failed */
	char why[200];
	unsigned n;
	struct load_stream streams[PATHS_MAX];
};

static trib_status load_open(struct path_load *load)
{
	const struct path_bed *bed = load->bed;
	struct udp_options options = { .receive_bytes = 65536, .send_bytes = 1 << 20 };
	trib_status status = cluster_enter(bed->load_from);

	for (unsigned i = 0; i < bed->paths && status == TRIB_OK; i++) {
		struct load_stream *stream = &load->streams[load->n];
		struct udp_address from, to;
		char text[2][40];
		bool gso;

		if (bed->load[i] <= 0)
			continue;
		cluster_alias(&bed->cluster, (unsigned)(bed->load_from - bed->cluster.hosts), i + 1,
		              text[0]);
		cluster_alias(&bed->cluster, (unsigned)(bed->load_to - bed->cluster.hosts), i + 1,
		              text[1]);
		stream->bps = bed->bps[i] * bed->load[i];
		status = udp_resolve(text[0], 0, &from);
		udp_set_port(&from, 0);
		if (status == TRIB_OK)
			status = udp_resolve(text[1], LOAD_PORT, &to);
		if (status == TRIB_OK)
			status = udp_open(&from, &to, &options, &stream->fd, &gso);
		load->n += status == TRIB_OK;
	}
	return status;
}

/* Sends what is due, packet by packet, and sleeps until the next one is. */
static void load_send(struct path_load *load)
{
	static const uint8_t packet[LOAD_BYTES];
	uint64_t now = clock_now(), next = now + 10000000;

	for (unsigned i = 0; i < load->n; i++) {
		struct load_stream *stream = &load->streams[i];
		uint64_t gap = (uint64_t)(FRAME * 8e9 / stream->bps);

		if (!stream->next || stream->next + 10000000 < now)
			stream->next = now;
		for (; stream->next <= now; stream->next += gap)
			(void)!send(stream->fd, packet, sizeof(packet), MSG_DONTWAIT);
		next = stream->next < next ? stream->next : next;
	}
	now = clock_now();
	if (next > now) {
		struct timespec span = clock_span(next - now < 500000 ? 500000 : next - now);

		nanosleep(&span, NULL);
	}
}

static void *load_run(void *user)
{
	struct path_load *load = user;
	trib_status status = load_open(load);

	if (status != TRIB_OK)
		snprintf(load->why, sizeof(load->why), "%s", trib_last_error());
	load->ready = status == TRIB_OK ? 1 : -1;
	while (status == TRIB_OK && !load->stop)
		load_send(load);
	for (unsigned i = 0; i < load->n; i++)
		close(load->streams[i].fd);
	return NULL;
}

trib_status path_load_start(const struct path_bed *bed, struct path_load **out)
{
	struct path_load *load;
	double sum = 0;

	*out = NULL;
	for (unsigned i = 0; i < bed->paths; i++)
		sum += bed->load[i];
	if (sum <= 0)
		return TRIB_OK;
	if (!bed->load_from || !bed->load_to)
		return status_fail(TRIB_ERR_ARGUMENT,
		                   "background traffic needs two hosts below each leaf");
	load = calloc(1, sizeof(*load));
	if (!load)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for background traffic");
	load->bed = bed;
	if (pthread_create(&load->thread, NULL, load_run, load)) {
		free(load);
		return status_fail(TRIB_ERR_SYSTEM, "cannot start a thread");
	}
	while (!load->ready)
		usleep(1000);
	*out = load;
	return load->ready > 0 ? TRIB_OK : status_fail(TRIB_ERR_SYSTEM, "%s", load->why);
}

void path_load_stop(struct path_load *load)
{
	if (!load)
		return;
	load->stop = true;
	pthread_join(load->thread, NULL);
	free(load);
}
