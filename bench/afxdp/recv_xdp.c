/* SPDX-License-Identifier: Apache-2.0 */
/* Receivers inside the kernel, and the loading of programs. */
#define _GNU_SOURCE
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <dirent.h>
#include <linux/if_link.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bench.h"

static int attached_to;
static uint32_t attached_flags;

void device_set(const struct bench *bench, const char *name, const char *value)
{
	char path[300];
	FILE *file;

	snprintf(path, sizeof(path), "/sys/class/net/%s/%s", bench->device, name);
	file = fopen(path, "w");
	if (!file || fputs(value, file) < 0 || fclose(file))
		bench_die(path);
}

/*
 * A veth's NAPI runs where the sender is, unless it is a thread. It is there
 * once a program is attached or GRO is on, and can be made a thread only then.
 */
void napi_to_core_1(struct bench *bench)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	char want[32], path[300];
	FILE *file;

	device_set(bench, "threaded", "1");
	snprintf(want, sizeof(want), "napi/%s-", bench->device);
	while (proc && (entry = readdir(proc))) {
		char name[32] = "";
		cpu_set_t core;

		snprintf(path, sizeof(path), "/proc/%s/comm", entry->d_name);
		if (atoi(entry->d_name) <= 0 || !(file = fopen(path, "r")))
			continue;
		if (fgets(name, sizeof(name), file) && !strncmp(name, want, strlen(want))) {
			CPU_ZERO(&core);
			CPU_SET(1, &core);
			if (sched_setaffinity(atoi(entry->d_name), sizeof(core), &core))
				bench_die("NAPI thread's affinity");
			bench->napi_thread = atoi(entry->d_name);
		}
		fclose(file);
	}
	if (proc)
		closedir(proc);
	if (!bench->napi_thread)
		bench_die("no NAPI thread");
}

struct bpf_object *xdp_attach(struct bench *bench, const char *name, bool generic)
{
	struct bpf_object *object;
	struct bpf_program *program;
	struct bpf_map *knobs;
	size_t size;

	object = bpf_object__open_file(bench->object, NULL);
	if (!object)
		bench_die(bench->object);
	knobs = bpf_object__find_map_by_name(object, ".rodata");
	*(uint32_t *)bpf_map__initial_value(knobs, &size) = bench->cells;
	if (bpf_object__load(object))
		bench_die("load of sum.bpf.o");
	program = bpf_object__find_program_by_name(object, name);
	attached_to = (int)if_nametoindex(bench->device);
	attached_flags = generic ? XDP_FLAGS_SKB_MODE : XDP_FLAGS_DRV_MODE;
	if (bpf_xdp_attach(attached_to, bpf_program__fd(program), attached_flags, NULL))
		bench_die("attach");
	atexit(xdp_detach);
	if (!generic)
		napi_to_core_1(bench);
	return object;
}

void xdp_detach(void)
{
	bpf_xdp_detach(attached_to, attached_flags, NULL);
}

static void *map_memory(struct bpf_object *object, const char *name, size_t bytes)
{
	int fd = bpf_object__find_map_fd_by_name(object, name);
	void *memory = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);

	if (memory == MAP_FAILED)
		bench_die(name);
	return memory;
}

static void prepare(struct bench *bench, const char *program)
{
	struct bpf_object *object = xdp_attach(bench, program, false);

	bench->pool = map_memory(object, "pool", (size_t)BENCH_CELLS * BENCH_PAYLOAD);
	bench->received_by_bpf = map_memory(object, ".bss", sizeof(uint64_t));
}

static void prepare_words(struct bench *bench)
{
	prepare(bench, "add_words");
}

static void prepare_pairs(struct bench *bench)
{
	prepare(bench, "add_pairs");
}

static void prepare_nothing(struct bench *bench)
{
	bench->work = WORK_NONE;
	prepare(bench, "add_nothing");
}

const struct receiver receivers_xdp[] = {
	{ "xdp-words", prepare_words, NULL },
	{ "xdp-pairs", prepare_pairs, NULL },
	{ "xdp-drop", prepare_nothing, NULL },
	{ 0 },
};
