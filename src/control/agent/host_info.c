/* SPDX-License-Identifier: Apache-2.0 */
#include "control/agent/host_info.h"

#include "base/clock.h"

#include <inttypes.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define CAP_PERFMON_BIT 38 /* newer than the headers of some systems */
#define CAP_BPF_BIT 39
#define SMOOTH 0.25

static void look_cores(struct node_report *report)
{
	cpu_set_t set;

	report->cores =
		sched_getaffinity(0, sizeof(set), &set) == 0 ? (uint32_t)CPU_COUNT(&set) : 1;
}

static void look_memory(struct node_report *report)
{
	FILE *file = fopen("/proc/meminfo", "re");
	uint64_t kilobytes, available = 0;
	char line[128];

	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "MemTotal: %" SCNu64, &kilobytes) == 1)
			report->memory = kilobytes << 10;
		if (sscanf(line, "MemAvailable: %" SCNu64, &kilobytes) == 1)
			available = kilobytes << 10;
	}
	if (file)
		fclose(file);
	report->memory_used = report->memory > available ? report->memory - available : 0;
}

static void look_rights(struct node_report *report)
{
	static const struct {
		unsigned bit;
		const char *name;
	} known[] = { { CAP_NET_ADMIN, "net_admin" },
		      { CAP_SYS_ADMIN, "sys_admin" },
		      { CAP_PERFMON_BIT, "perfmon" },
		      { CAP_BPF_BIT, "bpf" } };
	FILE *file = fopen("/proc/self/status", "re");
	uint64_t have = 0;
	char line[256];

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "CapEff: %" SCNx64, &have) == 1)
			break;
	if (file)
		fclose(file);
	report->rights[0] = '\0';
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
		size_t used = strlen(report->rights);

		if (have >> known[i].bit & 1)
			snprintf(report->rights + used, sizeof(report->rights) - used, "%s%s",
			         used ? " " : "", known[i].name);
	}
}

/* The fourth and fifth count of a line are idle time and waiting for a disk. */
static bool line_ticks(const char *counts, uint64_t *busy, uint64_t *all)
{
	uint64_t t[8] = { 0 }, sum = 0;

	if (sscanf(counts,
	           " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
	           " %" SCNu64 " %" SCNu64,
	           &t[0], &t[1], &t[2], &t[3], &t[4], &t[5], &t[6], &t[7]) != 8)
		return false;
	for (int i = 0; i < 8; i++)
		sum += t[i];
	*all += sum;
	*busy += sum - t[3] - t[4];
	return true;
}

/* Counts only cores on which this process may run. */
static bool read_ticks(uint64_t *busy, uint64_t *all)
{
	FILE *file = fopen("/proc/stat", "re");
	bool have_set, found = false;
	char line[512];
	cpu_set_t set;

	*busy = *all = 0;
	have_set = sched_getaffinity(0, sizeof(set), &set) == 0;
	while (file && fgets(line, sizeof(line), file)) {
		unsigned core;
		int length = 0;

		if (!have_set && !strncmp(line, "cpu ", 4))
			found = line_ticks(line + 4, busy, all);
		else if (have_set && sscanf(line, "cpu%u%n", &core, &length) == 1 &&
		         core < CPU_SETSIZE && CPU_ISSET(core, &set))
			found |= line_ticks(line + length, busy, all);
	}
	if (file)
		fclose(file);
	return found;
}

/* The load by others is the total load less that of this process. */
static void look_load(struct host_info *info, struct node_report *report)
{
	struct rusage own;
	uint64_t now = clock_now(), busy, all;
	double own_s, seconds = (double)(now - info->looked_at) / 1e9;

	getrusage(RUSAGE_SELF, &own);
	own_s = (double)(own.ru_utime.tv_sec + own.ru_stime.tv_sec) +
	        (double)(own.ru_utime.tv_usec + own.ru_stime.tv_usec) / 1e6;
	if (!read_ticks(&busy, &all))
		return;
	if (info->looked_at && seconds > 0 && all > info->all && busy >= info->busy) {
		double used = (double)(busy - info->busy) / (double)(all - info->all);

		report->busy = (own_s - info->own_s) / seconds;
		used -= report->busy / (report->cores ? report->cores : 1);
		/* Smoothed over some seconds: a short load is no reason to migrate a job. */
		report->load += ((used < 0 ? 0 : used) - report->load) * SMOOTH;
	}
	*info = (struct host_info){ now, busy, all, own_s };
}

void host_info_look(struct host_info *info, struct node_report *report)
{
	look_cores(report);
	look_memory(report);
	look_rights(report);
	/* A tick is 10 ms: between two heartbeats there are too few for a rate. */
	if (clock_now() > info->looked_at + NSEC_PER_SEC)
		look_load(info, report);
}
