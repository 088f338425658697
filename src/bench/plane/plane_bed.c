/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/plane/plane_bed.h"

#include "base/clock.h"
#include "bench/load/join_children.h"
#include "net/accept.h"
#include "net/kernel/netns.h"
#include "net/cluster_plan.h"
#include "net/kernel/receive_core.h"
#include "net/relay.h"
#include "net/kernel/link_shape.h"
#include "plane/aggregator.h"
#include "plane/xdp/xdp.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PORT 7700
#define WARM_UP_S 0.2
#define PROGRAM_S \
	0.25 /* seconds for which the XDP program's own time is measured, apart from the rest */
#define TOLD_S 0.12 /* seconds: a little more than the age of an aggregator's counters */
#define RECEIVE_BYTES (32 << 20)
#define SEND_BYTES (512 << 10)
#define FRAMES_WINDOW 192u /* packets in flight: a veth's ring has 256 slots */
#define FRAMES_PACKETS \
	(5ull << 20) /* packets with a prepared checksum: enough for more than two seconds */
#define THREADS_MAX (LOAD_LANES_MAX * (LOAD_CHILDREN_MAX + 2))

struct bed {
	struct bed_options options;
	struct cluster cluster;
	bool made;
	char name[32];
	unsigned hosts; /* of a lane */
	const char *plane;
	struct accepted accepted;
	struct relay relay;
	struct aggregator *aggregator;
	struct load *load;
	struct frames *frames[LOAD_LANES_MAX];
	int threads[THREADS_MAX]; /* threads of the aggregator, and those that receive for it */
	unsigned n_threads;
	bool in_threads;
};

static const struct cluster_host *server(const struct bed *bed)
{
	return &bed->cluster.hosts[bed->hosts * bed->options.lanes];
}

static void sleep_s(double seconds)
{
	struct timespec span = clock_span((uint64_t)(seconds * 1e9));

	nanosleep(&span, NULL);
}

/* ---- hosts and links ---- */

/* GRO at the server's ports only: what hosts receive is not measured. */
static trib_status ports_join(const struct bed *bed)
{
	struct netns ns;
	trib_status status = netns_open(server(bed)->ns, &ns);

	for (unsigned i = 0; status == TRIB_OK && i < bed->hosts * bed->options.lanes; i++) {
		struct link_end end = { .ns = &ns };

		plan_port_end(&bed->cluster, i, &end);
		status = shape_gro(&end);
	}
	if (status == TRIB_OK)
		netns_close(&ns);
	return status;
}

trib_status bed_open(const struct bed_options *options, struct bed **out)
{
	static unsigned number;
	struct bed *bed = calloc(1, sizeof(*bed));
	struct cluster_options net = { .servers = 1,
		                       .is_switch = true,
		                       .is_routed = true,
		                       .is_framed = options->framed,
		                       .no_offload = options->offload != PLANE_WHOLE };
	trib_status status;

	if (!bed)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for a benchmark");
	bed->options = *options;
	bed->hosts = options->one_port ? 1 : options->children;
	snprintf(bed->name, sizeof(bed->name), "plane%d.%u", (int)getpid(), number++);
	for (char *dot = bed->name; *dot; dot++)
		*dot = *dot == '.' ? 'x' : *dot;
	net.name = bed->name;
	net.workers = bed->hosts * options->lanes;
	status = cluster_up(&net, &bed->cluster);
	bed->made = status == TRIB_OK;
	if (status == TRIB_OK && options->offload == PLANE_GRO)
		status = ports_join(bed);
	if (status != TRIB_OK) {
		bed_close(bed);
		return status;
	}
	*out = bed;
	return TRIB_OK;
}

void bed_close(struct bed *bed)
{
	if (!bed)
		return;
	bed_stop(bed);
	if (bed->made && cluster_down(bed->name) != TRIB_OK)
		fprintf(stderr, "trib bench plane: %s\n", trib_last_error());
	free(bed);
}

/* ---- the aggregator ---- */

/* Lists the ids of this process's threads. */
static unsigned own_threads(int *ids, unsigned max)
{
	DIR *folder = opendir("/proc/self/task");
	struct dirent *entry;
	unsigned n = 0;

	while (folder && (entry = readdir(folder)) && n < max)
		if (atoi(entry->d_name) > 0)
			ids[n++] = atoi(entry->d_name);
	if (folder)
		closedir(folder);
	return n;
}

static void threads_add_new(struct bed *bed, const int *old, unsigned n_old)
{
	int now[THREADS_MAX];
	unsigned n = own_threads(now, THREADS_MAX);

	for (unsigned i = 0; i < n; i++) {
		bool is_old = false;

		for (unsigned j = 0; j < n_old; j++)
			is_old |= now[i] == old[j];
		if (!is_old)
			bed->threads[bed->n_threads++] = now[i];
	}
}

static trib_status aggregator_open(struct bed *bed)
{
	const struct bed_options *o = &bed->options;
	struct aggregator_options options = { .plane = bed->plane,
		                              .cookie = PLANE_COOKIE,
		                              .threads = o->lanes,
		                              .native = true,
		                              .queue_bytes = AGGREGATOR_QUEUE_BYTES,
		                              .socket = { .offload = true,
		                                          .receive_bytes = RECEIVE_BYTES,
		                                          .send_bytes = SEND_BYTES } };
	int home = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC), old[THREADS_MAX];
	unsigned n_old = own_threads(old, THREADS_MAX);
	char pin[LOAD_LANES_MAX * 6];
	size_t used = 0;
	trib_status status;

	for (unsigned i = 0; i < o->lanes; i++)
		used += (size_t)snprintf(pin + used, sizeof(pin) - used, "%s%u", i ? "," : "",
		                         o->aggregator_cores[i]);
	options.pin = pin;
	status = udp_resolve(server(bed)->address, PORT, &options.listen);
	if (home < 0)
		return status_fail_errno("cannot find our own namespace");
	if (status == TRIB_OK)
		status = cluster_enter(server(bed));
	if (status == TRIB_OK)
		status = aggregator_start(&options, &bed->aggregator);
	if (netns_return(home) != TRIB_OK || status != TRIB_OK)
		return status == TRIB_OK ? TRIB_ERR_SYSTEM : status;
	threads_add_new(bed, old, n_old);
	if (strncmp(aggregator_plane(bed->aggregator), bed->plane, strlen(bed->plane)) != 0)
		return status_fail(TRIB_ERR_CONFIG, "%s", aggregator_plane(bed->aggregator));
	return TRIB_OK;
}

/*
 * Receive work of the server's ports goes to its cores, that of the hosts' links to the load's.
 */
static trib_status receive_place_all(struct bed *bed)
{
	trib_status status = TRIB_OK;

	bed->in_threads = true;
	for (unsigned i = 0; i < bed->hosts * bed->options.lanes && status == TRIB_OK; i++) {
		unsigned lane = i / bed->hosts;
		struct receive receive;
		struct link_end end;

		plan_port_end(&bed->cluster, i, &end);
		status = receive_place(server(bed)->ns, end.name,
		                       bed->options.aggregator_cores[lane], bed->options.urgent,
		                       &receive);
		if (status != TRIB_OK)
			break;
		bed->in_threads &= receive.n > 0;
		for (unsigned k = 0; k < receive.n && bed->n_threads < THREADS_MAX; k++)
			bed->threads[bed->n_threads++] = receive.threads[k];
		plan_host_end(&bed->cluster, i, &end);
		status = receive_place(bed->cluster.hosts[i].ns, end.name,
		                       bed->options.load_cores[lane], true, &receive);
		if (status == TRIB_OK && bed->options.framed)
			status = relay_place(&bed->cluster, i, bed->options.relay_cores[lane],
			                     bed->options.relay_cores[lane]);
	}
	return status;
}

static trib_status load_begin(struct bed *bed)
{
	const struct bed_options *o = &bed->options;
	struct load_options options = { .tcp = strcmp(bed->plane, "tcp") == 0,
		                        .gso = o->gso,
		                        .check = o->check,
		                        .to_all = o->to_all,
		                        .children = o->children,
		                        .lanes = o->lanes,
		                        .elements = o->elements,
		                        .window = o->window,
		                        .pool_bytes = o->pool_bytes,
		                        .port = PORT,
		                        .address = server(bed)->address };

	for (unsigned lane = 0; lane < o->lanes; lane++) {
		options.cores[lane] = o->load_cores[lane];
		options.frames[lane] = bed->frames[lane];
		for (unsigned child = 0; child < o->children; child++)
			options.hosts[lane][child] =
				&bed->cluster.hosts[lane * bed->hosts + child % bed->hosts];
	}
	return load_open(&options, &bed->load);
}

static trib_status frames_begin(struct bed *bed)
{
	const struct bed_options *o = &bed->options;
	trib_status status = TRIB_OK;

	if (!frames_open)
		return status_fail(TRIB_ERR_CONFIG,
		                   "this build has no XDP; it needs clang, bpftool and libbpf");
	for (unsigned lane = 0; lane < o->lanes && status == TRIB_OK; lane++) {
		const struct cluster_host *host = &bed->cluster.hosts[lane];
		struct frames_options options = { .host = host->address,
			                          .server = server(bed)->address,
			                          .namespace = host->ns,
			                          .link = "eth0",
			                          .port = (uint16_t)(PORT + lane),
			                          .children = o->children,
			                          .window = FRAMES_WINDOW,
			                          .packets = FRAMES_PACKETS };
		struct link_end end;

		plan_host_end(&bed->cluster, lane, &end);
		memcpy(options.host_mac, end.mac, sizeof(options.host_mac));
		plan_port_end(&bed->cluster, lane, &end);
		memcpy(options.server_mac, end.mac, sizeof(options.server_mac));
		status = frames_open(&options, &bed->frames[lane]);
	}
	return status;
}

trib_status bed_start(struct bed *bed, const char *plane)
{
	trib_status status = TRIB_OK;

	bed->plane = plane;
	bed->n_threads = 0;
	if (bed->options.frames)
		status = frames_begin(bed);
	if (status == TRIB_OK && bed->options.framed)
		status = relay_start(&bed->cluster, strcmp(plane, "xdp") != 0, 0, &bed->relay);
	else if (status == TRIB_OK && strcmp(plane, "xdp") == 0)
		status = accept_frames(&bed->cluster, NULL, &bed->accepted);
	else if (status == TRIB_OK && bed->options.copied)
		status = accept_at_servers(&bed->cluster, &bed->accepted);
	if (status == TRIB_OK)
		status = aggregator_open(bed);
	if (status == TRIB_OK)
		status = receive_place_all(bed);
	if (status == TRIB_OK)
		status = load_begin(bed);
	if (status != TRIB_OK)
		bed_stop(bed);
	return status;
}

void bed_stop(struct bed *bed)
{
	if (bed->aggregator) {
		aggregator_stop(bed->aggregator);
		aggregator_free(bed->aggregator);
	}
	load_close(bed->load);
	accept_end(&bed->accepted);
	relay_end(&bed->relay);
	for (unsigned lane = 0; lane < LOAD_LANES_MAX; lane++) {
		if (bed->frames[lane]) /* a build without BPF has no frames_close */
			frames_close(bed->frames[lane]);
		bed->frames[lane] = NULL;
	}
	bed->aggregator = NULL;
	bed->load = NULL;
}

/* ---- measuring ---- */

struct look {
	struct cpu_sample cpu;
	struct load_counts counts;
	double threads_s;
	unsigned long long switches;
};

static void look(const struct bed *bed, struct look *look)
{
	look->threads_s = 0;
	look->switches = 0;
	for (unsigned i = 0; i < bed->n_threads; i++) {
		look->threads_s += cpu_thread(bed->threads[i]);
		look->switches += cpu_thread_switches(bed->threads[i]);
	}
	load_count(bed->load, &look->counts);
	cpu_look(&look->cpu);
}

/* Reads a number from the aggregator's description of itself. */
static double told(struct bed *bed, const char *key)
{
	char text[4096];
	const char *at;

	aggregator_describe(bed->aggregator, text, sizeof(text));
	at = strstr(text, key);
	return at ? strtod(at + strlen(key), NULL) : 0;
}

static double program_time(struct bed *bed)
{
	return told(bed, "\"kernel_s\":");
}

static uint64_t packets_taken(struct bed *bed)
{
	return (uint64_t)(told(bed, "\"added\":") + told(bed, "\"completed\":"));
}

/* Measured apart from the rest, since it makes each packet a little slower. */
static double program_measure(struct bed *bed)
{
	struct load_counts before, after;
	int stats = xdp_stats_open();
	double time;

	if (stats < 0)
		return 0;
	load_count(bed->load, &before);
	time = program_time(bed);
	sleep_s(PROGRAM_S);
	time = program_time(bed) - time;
	load_count(bed->load, &after);
	close(stats);
	return after.packets > before.packets
	               ? time * 1e9 / (double)(after.packets - before.packets)
	               : 0;
}

static void figures_fill(const struct bed *bed, const struct look *a, const struct look *b,
                         struct bed_figures *out)
{
	const struct bed_options *o = &bed->options;
	const uint64_t *from = (const uint64_t *)&a->counts, *to = (const uint64_t *)&b->counts;

	out->seconds = b->cpu.at - a->cpu.at;
	for (size_t i = 0; i < sizeof(out->counts) / sizeof(uint64_t); i++)
		((uint64_t *)&out->counts)[i] = to[i] - from[i];
	out->payload_bytes = (double)out->counts.results * o->children * o->elements * 4;
	for (unsigned i = 0; i < o->lanes; i++)
		out->busy_s += cpu_busy(&a->cpu, &b->cpu, o->aggregator_cores[i]);
	if (o->shared_cores)
		out->busy_s = -1;
	out->threads_s = b->threads_s - a->threads_s;
	out->in_threads = bed->in_threads;
	out->switches = b->switches - a->switches;
	out->others = cpu_others(&a->cpu, &b->cpu) / out->seconds;
	out->forks = b->cpu.forks - a->cpu.forks;
}

/* This thread must not wait for the threads that it measures: those have priority 1. */
static void watch_first(const struct bed *bed, bool first)
{
	struct sched_param real_time = { .sched_priority = first ? RECEIVE_PRIORITY + 1 : 1 };

	if (bed->options.urgent)
		sched_setscheduler(0, SCHED_FIFO, &real_time);
}

trib_status bed_measure(struct bed *bed, double rate, double seconds, struct bed_figures *out)
{
	bool is_xdp = strcmp(bed->plane, "xdp") == 0;
	struct load_counts first = { 0 }, last;
	static struct look before, after;
	trib_status status;

	memset(out, 0, sizeof(*out));
	out->taken = packets_taken(bed);
	if (!bed->options.frames) /* frames are counted from 0 in each run */
		load_count(bed->load, &first);
	status = load_start(bed->load, rate, WARM_UP_S + seconds + PROGRAM_S);
	if (status != TRIB_OK)
		return status;
	watch_first(bed, true);
	sleep_s(WARM_UP_S);
	load_note(bed->load);
	look(bed, &before);
	sleep_s(seconds);
	look(bed, &after);
	out->program_ns = 0;
	figures_fill(bed, &before, &after, out);
	if (is_xdp && rate == LOAD_UNLIMITED)
		out->program_ns = program_measure(bed);
	load_stop(bed->load);
	watch_first(bed, false);
	load_count(bed->load, &last);
	out->latency_50 = load_latency(bed->load, 0.5);
	out->latency_99 = load_latency(bed->load, 0.99);
	if (last.fragments > first.fragments)
		out->lost = 1 - (double)(last.results - first.results) /
		                        (double)(last.fragments - first.fragments);
	if (last.segments > first.segments)
		out->retransmitted = (double)(last.retransmitted - first.retransmitted) /
		                     (double)(last.segments - first.segments);
	out->wrong = last.wrong - first.wrong;
	out->sent = last.packets - first.packets;
	sleep_s(TOLD_S);
	out->taken = packets_taken(bed) - out->taken;
	return TRIB_OK;
}
