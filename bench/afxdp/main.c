/* SPDX-License-Identifier: Apache-2.0 */
/* One measurement: options in, one line of JSON out. run.sh makes the network and the table. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"

#define WARM_UP_S 0.3

static clockid_t receiver_clock;
static const char *const work_names[] = { "add", "floats", "none" };

struct sample {
	double time, idle[2], others, threads;
	unsigned long long forks;
	uint64_t sent, received, wakeups;
};

void bench_die(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(errno == EOPNOTSUPP ? 77 : 1);
}

void bench_pin(int core)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(core, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		bench_die("affinity");
}

uint64_t bench_received(struct bench *bench)
{
	return bench->received_by_bpf ? *bench->received_by_bpf : bench->received;
}

void bench_count(struct bench *bench, uint64_t packets)
{
	uint64_t all = atomic_fetch_add(&bench->received, packets) + packets;

	if (bench->emitter)
		bench->emitter->arrived = all;
}

void bench_take(struct bench *bench, const void *datagram, size_t bytes)
{
	const struct wire_header *header = datagram;
	const uint32_t *restrict in = (const uint32_t *)(header + 1);
	uint32_t *restrict sum;

	if (bytes < BENCH_DATAGRAM || header->magic != WIRE_MAGIC || bench->work == WORK_NONE)
		return;
	sum = bench->pool + (header->pos % bench->cells) * BENCH_WORDS;
	if (bench->work == WORK_ADD) {
		for (unsigned i = 0; i < BENCH_WORDS; i++)
			sum[i] += in[i];
	} else {
		float *restrict out = (float *)sum;

		for (unsigned i = 0; i < BENCH_WORDS; i++)
			out[i] = (float)(int32_t)in[i] * 0x1p-20f;
	}
}

/* Every packet is all ones: each cell must be of one value, and all cells add up to the count. */
static void check(struct bench *bench)
{
	uint64_t total = 0;

	if (bench->work != WORK_ADD)
		return;
	for (uint32_t c = 0; c < bench->cells; c++) {
		const uint32_t *cell = bench->pool + (size_t)c * BENCH_WORDS;

		total += cell[0];
		for (unsigned i = 1; i < BENCH_WORDS; i++)
			if (cell[i] != cell[0]) {
				fprintf(stderr, "cell %u word %u: wrong sum\n", c, i);
				exit(1);
			}
	}
	if (total != bench_received(bench)) {
		fprintf(stderr, "%llu packets in the sums, %llu received\n",
		        (unsigned long long)total, (unsigned long long)bench_received(bench));
		exit(1);
	}
}

/* CPU seconds of processes that are no part of this: on a shared machine a run may be spoilt. */
static double others_seconds(void)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	double ticks = 0;

	while (proc && (entry = readdir(proc))) {
		char path[300], name[64];
		unsigned long user, system;
		FILE *file;

		snprintf(path, sizeof(path), "/proc/%s/stat", entry->d_name);
		if (atoi(entry->d_name) <= 0 || atoi(entry->d_name) == getpid() ||
		    !(file = fopen(path, "r")))
			continue;
		if (fscanf(file,
		           "%*d (%63[^)]) %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu",
		           name, &user, &system) == 3 &&
		    strncmp(name, "napi/", 5) && strncmp(name, "ksoftirqd/", 10))
			ticks += (double)(user + system);
		fclose(file);
	}
	if (proc)
		closedir(proc);
	return ticks / (double)sysconf(_SC_CLK_TCK);
}

/* Exact CPU seconds of the receiver's threads; 0 where softirqs do its work, unaccounted. */
static double threads_seconds(const struct bench *bench)
{
	unsigned long long napi = 0;
	struct timespec own = { 0 };
	char path[64];
	FILE *file;

	if (!bench->napi_thread)
		return 0;
	snprintf(path, sizeof(path), "/proc/%d/schedstat", bench->napi_thread);
	file = fopen(path, "r");
	if (!file || fscanf(file, "%llu", &napi) != 1)
		bench_die(path);
	fclose(file);
	if (receiver_clock)
		clock_gettime(receiver_clock, &own);
	return (double)napi * 1e-9 + (double)own.tv_sec + (double)own.tv_nsec * 1e-9;
}

static struct sample look(struct bench *bench)
{
	struct sample s = { .sent = bench->emitter ? bench->emitter->sent : bench->sent,
		            .received = bench_received(bench),
		            .wakeups = bench->wakeups };
	struct timespec t;
	char line[4096];
	FILE *file = fopen("/proc/stat", "r");

	clock_gettime(CLOCK_MONOTONIC, &t);
	s.time = (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
	while (file && fgets(line, sizeof(line), file)) {
		unsigned core;
		unsigned long long idle, wait;

		if (sscanf(line, "cpu%u %*u %*u %*u %llu %llu", &core, &idle, &wait) == 3 &&
		    core < 2)
			s.idle[core] = (double)(idle + wait) / (double)sysconf(_SC_CLK_TCK);
		sscanf(line, "processes %llu", &s.forks);
	}
	if (file)
		fclose(file);
	s.others = others_seconds();
	s.threads = threads_seconds(bench);
	return s;
}

static void sleep_s(double seconds)
{
	struct timespec t = { (time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9) };

	nanosleep(&t, NULL);
}

static void report(const struct bench *bench, const struct sample *a, const struct sample *b)
{
	double time = b->time - a->time;
	double packets = (double)(b->received - a->received);
	double busy[2];

	for (int i = 0; i < 2; i++)
		busy[i] = 1 - (b->idle[i] - a->idle[i]) / time;
	printf("{\"receiver\":\"%s\",\"work\":\"%s\",\"cells\":%u,\"rate\":%llu,\"window\":%llu,"
	       "\"gso\":%d,\"offered_pps\":%.0f,\"received_pps\":%.0f,\"lost\":%.4f,"
	       "\"busy_receiver\":%.4f,\"busy_sender\":%.4f,\"ns_per_packet\":%.1f,"
	       "\"payload_bytes_per_cpu_s\":%.0f,\"packets_per_wakeup\":%.1f,\"ns_in_threads\":%."
	       "1f,"
	       "\"others\":%.3f,\"forks\":%llu}\n",
	       bench->receiver, work_names[bench->work], bench->cells,
	       (unsigned long long)bench->rate, (unsigned long long)bench->window, bench->gso,
	       (double)(b->sent - a->sent) / time, packets / time,
	       1 - packets / (double)(b->sent - a->sent), busy[1], busy[0],
	       busy[1] * time * 1e9 / packets, packets * BENCH_PAYLOAD / (busy[1] * time),
	       b->wakeups > a->wakeups ? packets / (double)(b->wakeups - a->wakeups) : 0.,
	       (b->threads - a->threads) * 1e9 / packets, fabs(b->others - a->others) / time,
	       b->forks - a->forks);
}

static const struct receiver *find(const char *name)
{
	const struct receiver *tables[] = { receivers_xdp, receivers_afxdp, receivers_udp };

	for (int t = 0; t < 3; t++)
		for (const struct receiver *r = tables[t]; r->name; r++)
			if (!strcmp(r->name, name))
				return r;
	fprintf(stderr, "no receiver %s\n", name);
	exit(2);
}

static void *receiver_run(void *argument)
{
	struct bench *bench = argument;

	bench_pin(1);
	find(bench->receiver)->run(bench);
	return NULL;
}

static struct bench parse(int argc, char **argv)
{
	struct bench bench = { .device = "trib-rx",
		               .sender_ns = "/run/netns/trib-afxdp-tx",
		               .address = "10.77.0.2",
		               .cells = BENCH_CELLS,
		               .batch = 16,
		               .seconds = 2,
		               .receiver = "udp" };
	int option;

	while ((option = getopt(argc, argv, "r:w:c:b:p:W:gfdHt:")) != -1)
		switch (option) {
		case 'r':
			bench.receiver = optarg;
			break;
		case 'w':
			bench.work = !strcmp(optarg, "floats") ? WORK_FLOATS
			             : !strcmp(optarg, "none") ? WORK_NONE
			                                       : WORK_ADD;
			break;
		case 'c':
			bench.cells = (uint32_t)atoi(optarg);
			break;
		case 'b':
			bench.batch = (uint32_t)atoi(optarg);
			break;
		case 'p':
			bench.rate = strtoull(optarg, NULL, 10);
			break;
		case 'W':
			bench.window = strtoull(optarg, NULL, 10);
			break;
		case 'g':
			bench.gso = true;
			break;
		case 'f':
			bench.frames = true;
			break;
		case 'd':
			bench.defer = true;
			break;
		case 'H':
			bench.huge = true;
			break;
		case 't':
			bench.seconds = atof(optarg);
			break;
		default:
			fprintf(stderr,
			        "usage: afxdp [-r receiver] [-w add|floats|none] [-c cells] "
			        "[-b batch] [-p packets/s] [-W window] [-g] [-f] [-d] [-H] [-t "
			        "seconds]\n");
			exit(2);
		}
	if (!bench.cells || bench.cells > BENCH_CELLS || !bench.batch || bench.batch > 64) {
		fprintf(stderr, "cells: 1 to %u, batch: 1 to 64\n", BENCH_CELLS);
		exit(2);
	}
	return bench;
}

static void find_files(struct bench *bench)
{
	char path[300];
	ssize_t length = readlink("/proc/self/exe", bench->object, sizeof(bench->object) - 20);
	FILE *file;
	uint8_t *m = bench->mac;

	if (length < 0)
		bench_die("/proc/self/exe");
	bench->object[length] = 0;
	strcpy(strrchr(bench->object, '/') + 1, "sum.bpf.o");
	snprintf(path, sizeof(path), "/sys/class/net/%s/address", bench->device);
	file = fopen(path, "r");
	if (!file || fscanf(file, "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", m, m + 1, m + 2, m + 3, m + 4,
	                    m + 5) != 6)
		bench_die(path);
	fclose(file);
}

static void ignore(int number)
{
	(void)number;
}

int main(int argc, char **argv)
{
	static struct bench bench;
	const struct receiver *receiver;
	size_t bytes = (size_t)BENCH_CELLS * BENCH_PAYLOAD;
	struct sample before, after;
	pthread_t sender, taker;

	bench = parse(argc, argv);
	receiver = find(bench.receiver);
	find_files(&bench);
	bench.pool = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (bench.pool == MAP_FAILED)
		bench_die("pool");
	if (bench.huge)
		madvise(bench.pool, bytes, MADV_HUGEPAGE);
	memset(bench.pool, 0, bytes);
	signal(SIGUSR1, ignore);
	device_set(&bench, "napi_defer_hard_irqs", bench.defer ? "2" : "0");
	device_set(&bench, "gro_flush_timeout", bench.defer ? "200000" : "0");
	receiver->prepare(&bench);
	if (receiver->run) {
		pthread_create(&taker, NULL, receiver_run, &bench);
		pthread_getcpuclockid(taker, &receiver_clock);
	}
	pthread_create(&sender, NULL, bench.frames ? send_frames_run : send_run, &bench);
	sleep_s(WARM_UP_S);
	before = look(&bench);
	sleep_s(bench.seconds);
	after = look(&bench);
	bench.stop = true;
	pthread_kill(sender, SIGUSR1);
	pthread_join(sender, NULL);
	if (receiver->run)
		pthread_join(taker, NULL);
	sleep_s(0.05); /* what is under way inside the kernel */
	report(&bench, &before, &after);
	check(&bench);
	return 0;
}
