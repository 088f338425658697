/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/rates/rates_halve.h"

#include "base/clock.h"
#include "net/accept.h"
#include "net/cluster.h"
#include "net/kernel/netns.h"
#include "net/cluster_plan.h"
#include "plane/aggregator.h"
#include "tributary.h"

#include <errno.h>
#include <ifaddrs.h>
#include <linux/if_link.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define PORT 7700u
#define COOKIE 0x7261746573ull
#define IN_FLIGHT 4u /* vectors in flight, so that there is always something to send */
#define WARM_UP_S 0.5
#define START_S 20.0
#define SPAN_S 0.25 /* seconds: the mean rate over this time is compared with the level */
#define NEAR                                                                                     \
	0.2 /* of the level: a probe ends a tenth above the link's rate, and a cut a tenth below \
	     */
#define RECEIVE_BYTES (16 << 20)
#define SEND_BYTES (512 << 10)

/* What a process reports to the process that measures. */
struct told {
	_Atomic uint64_t rounds, sent, resent, wrong;
	_Atomic uint64_t cpu_us;
	_Atomic bool ready;
	char why[200];
};

struct shared {
	_Atomic bool stop; /* tells the workers to end */
	_Atomic bool over; /* tells the aggregator to end */
	struct told aggregator, workers[HALVE_WORKERS_MAX];
};

struct halve {
	const struct halve_options *options;
	const char *plane;
	struct cluster cluster;
	struct shared *shared;
	struct accepted accepted;
	pid_t pids[1 + HALVE_WORKERS_MAX];
	unsigned n_pids;
	uint64_t last[HALVE_WORKERS_MAX]; /* bytes that each port of the bridge had received */
	struct halve_result *out;
};

static void sleep_until(uint64_t at)
{
	for (uint64_t now = clock_now(); now < at; now = clock_now()) {
		struct timespec span = clock_span(at - now);

		nanosleep(&span, NULL);
	}
}

static void cpu_tell(struct told *told)
{
	struct rusage usage;

	if (getrusage(RUSAGE_SELF, &usage) == 0)
		told->cpu_us = (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 +
		               (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static int give_up(struct told *told)
{
	snprintf(told->why, sizeof(told->why), "%s", trib_last_error());
	return 1;
}

/* ---- the processes ---- */

static int aggregator_main(const struct halve *halve)
{
	const struct cluster_host *host = cluster_find(&halve->cluster, "s1");
	struct told *told = &halve->shared->aggregator;
	struct aggregator_options options = {
		.plane = halve->plane,
		.cookie = COOKIE,
		.threads = 1,
		.multicast = true,
		.native = true,
		.link_bps = halve->options->told ? halve->options->link_bps : 0,
		.socket = { .offload = true,
		            .receive_bytes = RECEIVE_BYTES,
		            .send_bytes = SEND_BYTES },
	};
	struct aggregator *aggregator;

	if (cluster_enter(host) != TRIB_OK ||
	    udp_resolve(host->address, PORT, &options.listen) != TRIB_OK ||
	    aggregator_start(&options, &aggregator) != TRIB_OK)
		return give_up(told);
	if (strncmp(aggregator_plane(aggregator), halve->plane, strlen(halve->plane)) != 0) {
		snprintf(told->why, sizeof(told->why), "%s", aggregator_plane(aggregator));
		return 1;
	}
	told->ready = true;
	while (!halve->shared->over) {
		sleep_until(clock_now() + NSEC_PER_SEC / 20);
		cpu_tell(told);
	}
	aggregator_stop(aggregator);
	aggregator_free(aggregator);
	return 0;
}

static float value_of(unsigned rank, uint64_t round, size_t i)
{
	return (float)((i * 7 + round + rank * 3) % 1021) - 510;
}

static void vector_fill(float *vector, size_t count, unsigned rank, uint64_t round, bool last)
{
	for (size_t i = 1; i < count; i++)
		vector[i] = value_of(rank, round, i);
	vector[0] =
		last; /* the first rank that is told to stop tells all others, in the sum itself */
}

static uint64_t vector_check(const float *vector, size_t count, unsigned ranks, uint64_t round)
{
	uint64_t wrong = 0;

	for (size_t i = 1; i < count; i++) {
		float sum = 0;

		for (unsigned rank = 0; rank < ranks; rank++)
			sum += value_of(rank, round, i);
		wrong += vector[i] != sum;
	}
	return wrong;
}

static trib_status worker_round(struct told *told, trib_comm *comm, trib_request **request,
                                const float *vector, size_t count, uint64_t round)
{
	trib_stats stats = { .struct_size = sizeof(stats) };
	trib_status status = trib_wait(request, -1);

	if (status != TRIB_OK)
		return status;
	told->wrong += vector_check(vector, count, (unsigned)trib_size(comm), round);
	trib_get_stats(comm, &stats);
	told->sent = stats.sent_packets;
	told->resent = stats.resent_packets;
	told->rounds = round + 1;
	cpu_tell(told);
	return TRIB_OK;
}

static int worker_main(const struct halve *halve, unsigned rank)
{
	struct told *told = &halve->shared->workers[rank];
	size_t count = halve->options->bytes / sizeof(float);
	float *vectors = calloc(IN_FLIGHT, count * sizeof(float));
	trib_options options = TRIB_OPTIONS_INIT;
	trib_request *requests[IN_FLIGHT] = { NULL };
	trib_comm *comm;
	trib_status status;
	char address[64];
	bool last = false;

	snprintf(address, sizeof(address), "%s:%u", cluster_find(&halve->cluster, "s1")->address,
	         PORT);
	options.aggregator = address;
	options.has_rank = 1;
	options.rank = (int)rank;
	options.size = (int)halve->options->workers;
	if (!vectors || cluster_enter(&halve->cluster.hosts[rank]) != TRIB_OK ||
	    trib_init(&comm, &options) != TRIB_OK)
		return give_up(told);
	told->ready = true;
	for (uint64_t round = 0;; round++) {
		unsigned slot = round % IN_FLIGHT;
		float *vector = vectors + slot * count;

		if (requests[slot]) {
			status = worker_round(told, comm, &requests[slot], vector, count,
			                      round - IN_FLIGHT);
			if (status != TRIB_OK)
				return give_up(told);
			last |= vector[0] != 0;
		} else if (last) {
			break;
		}
		if (last)
			continue;
		vector_fill(vector, count, rank, round, rank == 0 && halve->shared->stop);
		status = trib_iallreduce(comm, TRIB_IN_PLACE, vector, count, TRIB_F32, TRIB_SUM,
		                         &requests[slot]);
		if (status != TRIB_OK)
			return give_up(told);
	}
	free(vectors);
	return trib_finalize(comm) == TRIB_OK ? 0 : give_up(told);
}

/* Starts a process; `rank` -1 is the aggregator. */
static trib_status process_start(struct halve *halve, int rank)
{
	pid_t parent = getpid(), pid = fork();

	if (pid < 0)
		return status_fail_errno("cannot fork");
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
		_exit(rank < 0 ? aggregator_main(halve) : worker_main(halve, (unsigned)rank));
	}
	halve->pids[halve->n_pids++] = pid;
	return TRIB_OK;
}

/* The first error that a process reports, if one has ended or does not get ready. */
static trib_status processes_fail(const struct halve *halve, const char *otherwise)
{
	if (halve->shared->aggregator.why[0])
		return status_fail(TRIB_ERR_AGGREGATOR, "%s", halve->shared->aggregator.why);
	for (unsigned i = 0; i < halve->options->workers; i++)
		if (halve->shared->workers[i].why[0])
			return status_fail(TRIB_ERR_PEER, "rank %u: %s", i,
			                   halve->shared->workers[i].why);
	return status_fail(TRIB_ERR_PEER, "%s", otherwise);
}

static trib_status wait_for(const struct halve *halve, const _Atomic bool *flag, unsigned n,
                            size_t step)
{
	uint64_t until = clock_now() + (uint64_t)(START_S * 1e9);
	unsigned ready = 0;

	while (ready < n) {
		if (clock_now() > until || waitpid(-1, NULL, WNOHANG) > 0)
			return processes_fail(halve, "a process did not start");
		sleep_until(clock_now() + NSEC_PER_SEC / 100);
		for (ready = 0; ready < n; ready++)
			if (!*(const _Atomic bool *)(const void *)((const char *)flag +
			                                           ready * step))
				break;
	}
	return TRIB_OK;
}

/* Tells all processes to end, and kills those that do not. */
static trib_status processes_end(struct halve *halve)
{
	uint64_t until = clock_now() + (uint64_t)(START_S * 1e9);
	bool well = true;

	halve->shared->stop = true;
	for (unsigned i = halve->n_pids;
	     i-- > 0;) { /* the aggregator last, since it was started first */
		int status = 0;
		pid_t pid = 0;

		halve->shared->over = i == 0;
		while (pid == 0 && clock_now() < until) {
			pid = waitpid(halve->pids[i], &status, WNOHANG);
			if (pid == 0)
				sleep_until(clock_now() + NSEC_PER_SEC / 100);
		}
		if (pid == 0) {
			kill(halve->pids[i], SIGKILL);
			waitpid(halve->pids[i], &status, 0);
		}
		well &= pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
	}
	return well ? TRIB_OK : processes_fail(halve, "a process did not end by itself");
}

/* ---- measuring ---- */

/*
 * Reads what the bridge has received from each worker. This thread is in the bridge's
 * namespace.
 */
static trib_status ports_look(struct halve *halve, double *bytes)
{
	struct ifaddrs *all, *at;

	*bytes = 0;
	if (getifaddrs(&all))
		return status_fail_errno("cannot read the counters of the links");
	for (unsigned i = 0; i < halve->options->workers; i++) {
		struct link_end port;

		plan_port_end(&halve->cluster, i, &port);
		for (at = all; at; at = at->ifa_next) {
			const struct rtnl_link_stats *stats = at->ifa_data;
			uint32_t news;

			if (!at->ifa_addr || at->ifa_addr->sa_family != AF_PACKET || !stats ||
			    strcmp(at->ifa_name, port.name) != 0)
				continue;
			news = stats->rx_bytes - (uint32_t)halve->last[i]; /* the counters wrap */
			halve->last[i] = stats->rx_bytes;
			*bytes += news;
		}
	}
	freeifaddrs(all);
	return TRIB_OK;
}

struct mark {
	uint64_t at, rounds, sent, resent;
};

static void mark_set(const struct halve *halve, struct mark *mark)
{
	*mark = (struct mark){ .at = clock_now(), .rounds = UINT64_MAX };
	for (unsigned i = 0; i < halve->options->workers; i++) {
		struct told *told = &halve->shared->workers[i];

		if (told->rounds < mark->rounds)
			mark->rounds = told->rounds;
		mark->sent += told->sent;
		mark->resent += told->resent;
	}
}

static unsigned windows_in(const struct halve_options *o, double seconds)
{
	unsigned n = (unsigned)(seconds / o->window_s + 0.5);

	return n ? n : 1;
}

static void phase_fill(const struct halve *halve, unsigned phase, const struct mark *from,
                       const struct mark *to)
{
	const struct halve_options *o = halve->options;
	struct halve_result *out = halve->out;
	struct halve_phase *p = &out->phases[phase];
	unsigned first = phase ? out->at[phase - 1] : 0;
	unsigned end = phase < 2 ? out->at[phase] : out->n;
	const struct settle how = { .span = windows_in(o, SPAN_S), .share = NEAR };

	p->goodput_bps = (double)(to->rounds - from->rounds) * (double)o->bytes * 8 * 1e9 /
	                 (double)(to->at - from->at);
	p->sent = to->sent - from->sent;
	p->resent = to->resent - from->resent;
	p->level_bps = settle_mean(out->bps, (first + end) / 2, end);
	/* Without the window in which the link changes: it belongs to both phases. */
	p->lowest_bps = settle_lowest(out->bps, first + (phase > 0), end);
	p->settled_s = settle_time(out->bps, first, end, &how, p->level_bps, o->window_s);
	p->ripple = settle_ripple(out->bps, (first + end) / 2, end, how.span, p->level_bps);
}

static uint64_t cpu_sum(const struct halve *halve)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < halve->options->workers; i++)
		sum += halve->shared->workers[i].cpu_us;
	return sum;
}

static trib_status measure(struct halve *halve)
{
	const struct halve_options *o = halve->options;
	struct halve_result *out = halve->out;
	unsigned a_phase = (unsigned)(o->phase_s / o->window_s + 0.5);
	struct mark marks[HALVE_PHASES + 1];
	trib_status status = TRIB_OK;
	uint64_t started, next, cpu, aggregator_cpu;
	double bytes;

	sleep_until(clock_now() + (uint64_t)(WARM_UP_S * 1e9));
	status = ports_look(halve, &bytes);
	cpu = cpu_sum(halve);
	aggregator_cpu = halve->shared->aggregator.cpu_us;
	started = next = clock_now();
	out->window_s = o->window_s;
	mark_set(halve, &marks[0]);
	for (unsigned i = 0; i < HALVE_PHASES * a_phase && status == TRIB_OK; i++) {
		unsigned phase = i / a_phase;
		uint64_t begun = next;

		if (i && i % a_phase == 0) {
			out->at[phase - 1] = i;
			mark_set(halve, &marks[phase]);
			status = cluster_shape(&halve->cluster, "s1",
			                       phase == 1 ? o->slow_bps : o->link_bps, o->whole);
		}
		sleep_until(next + (uint64_t)(o->window_s * 1e9));
		next = clock_now();
		if (status == TRIB_OK)
			status = ports_look(halve, &bytes);
		out->bps[out->n++] = bytes * 8 * 1e9 / (double)(next - begun) / o->workers;
		if (waitpid(-1, NULL, WNOHANG) > 0)
			status = processes_fail(halve, "a process has ended too early");
	}
	mark_set(halve, &marks[HALVE_PHASES]);
	out->worker_cpu = (double)(cpu_sum(halve) - cpu) * 1e3 / (double)(clock_now() - started);
	out->aggregator_cpu = (double)(halve->shared->aggregator.cpu_us - aggregator_cpu) * 1e3 /
	                      (double)(clock_now() - started);
	for (unsigned phase = 0; phase < HALVE_PHASES && status == TRIB_OK; phase++)
		phase_fill(halve, phase, &marks[phase], &marks[phase + 1]);
	return status;
}

static trib_status measure_at_ports(struct halve *halve)
{
	char hub[64];
	struct netns ns;
	trib_status status;
	int back;

	plan_bridge_namespace(&halve->cluster, hub);
	status = netns_open(hub, &ns);
	if (status != TRIB_OK)
		return status;
	status = netns_enter(hub, ns.fd, &back);
	if (status == TRIB_OK) {
		status = measure(halve);
		if (netns_return(back) != TRIB_OK && status == TRIB_OK)
			status = TRIB_ERR_SYSTEM;
	}
	netns_close(&ns);
	return status;
}

static trib_status run(struct halve *halve)
{
	const struct halve_options *o = halve->options;
	trib_status status = TRIB_OK, ended;
	char cookie[24];

	snprintf(cookie, sizeof(cookie), "%016llx", (unsigned long long)COOKIE);
	setenv("TRIB_COOKIE", cookie, 1);
	setenv("TRIB_PLANE", strcmp(halve->plane, "tcp") == 0 ? "tcp" : "udp", 1);
	setenv("TRIB_LOG", "warn", 0);
	if (strcmp(halve->plane, "xdp") == 0)
		status = accept_frames(&halve->cluster, NULL, &halve->accepted);
	if (status == TRIB_OK)
		status = process_start(halve, -1);
	if (status == TRIB_OK)
		status = wait_for(halve, &halve->shared->aggregator.ready, 1, 0);
	for (unsigned i = 0; i < o->workers && status == TRIB_OK; i++)
		status = process_start(halve, (int)i);
	if (status == TRIB_OK)
		status = wait_for(halve, &halve->shared->workers[0].ready, o->workers,
		                  sizeof(struct told));
	if (status == TRIB_OK)
		status = measure_at_ports(halve);
	if (status != TRIB_OK) {
		snprintf(halve->out->why, sizeof(halve->out->why), "%s", trib_last_error());
		for (unsigned i = 0; i < halve->n_pids; i++)
			kill(halve->pids[i], SIGKILL);
	}
	ended = processes_end(halve);
	accept_end(&halve->accepted);
	return status == TRIB_OK ? ended : status;
}

trib_status halve_run(const struct halve_options *options, const char *plane,
                      struct halve_result *out)
{
	struct halve *halve = calloc(1, sizeof(*halve));
	char name[32];
	struct cluster_options net = { .name = name,
		                       .workers = options->workers,
		                       .servers = 1,
		                       .rate_bps = options->link_bps,
		                       .no_offload = !options->whole };
	trib_status status;

	if (!halve)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for a benchmark");
	memset(out, 0, sizeof(*out));
	snprintf(out->plane, sizeof(out->plane), "%.7s", plane);
	snprintf(name, sizeof(name), "rates%d", (int)getpid());
	*halve = (struct halve){ .options = options, .plane = plane, .out = out };
	halve->shared = mmap(NULL, sizeof(*halve->shared), PROT_READ | PROT_WRITE,
	                     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (halve->shared == MAP_FAILED) {
		free(halve);
		return status_fail_errno("no memory to share");
	}
	status = cluster_up(&net, &halve->cluster);
	if (status == TRIB_OK) {
		status = run(halve);
		for (unsigned i = 0; i < options->workers; i++) {
			out->wrong += halve->shared->workers[i].wrong;
			out->rounds += halve->shared->workers[i].rounds;
		}
		if (status != TRIB_OK)
			snprintf(out->why, sizeof(out->why), "%s", trib_last_error());
		if (cluster_down(name) != TRIB_OK)
			fprintf(stderr, "trib bench rates: %s\n", trib_last_error());
	}
	munmap(halve->shared, sizeof(*halve->shared));
	free(halve);
	return status;
}
