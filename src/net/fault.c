/* SPDX-License-Identifier: Apache-2.0 */
#include "net/fault.h"

#include "fault.skel.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"

bool fault_available(void)
{
	return true;
}

/* Without this function libbpf prints the verifier's whole log. */
static int libbpf_log(enum libbpf_print_level level, const char *format, va_list args)
{
	char line[512];

	vsnprintf(line, sizeof(line), format, args);
	line[strcspn(line, "\n")] = '\0';
	if (level == LIBBPF_WARN)
		log_info("%s", line);
	else
		log_debug("%s", line);
	return 0;
}

static uint64_t probability_scale(double probability)
{
	return (uint64_t)(probability * 4294967296.0);
}

static struct fault_bpf *fault_load(enum fault_way way, const struct fault_rates *rates,
                                    uint64_t stream)
{
	struct fault_bpf *skeleton = fault_bpf__open();

	if (!skeleton)
		return NULL;
	skeleton->rodata->goes_out = way == FAULT_OUT;
	skeleton->rodata->loses_all = rates->loses_all;
	skeleton->rodata->loss_below = probability_scale(rates->of[FAULT_LOSS]);
	skeleton->rodata->dup_below = probability_scale(rates->of[FAULT_DUP]);
	skeleton->rodata->reorder_below = probability_scale(rates->of[FAULT_REORDER]);
	skeleton->rodata->corrupt_below = probability_scale(rates->of[FAULT_CORRUPT]);
	/* Odd factors spread neighbouring seeds and links over all 64 bits. */
	skeleton->rodata->seed =
		(rates->seed + 1) * 0xd1342543de82ef95 ^ (stream + 1) * 0xaf251af3b0f025b5;
	if (fault_bpf__load(skeleton)) {
		int error = errno;

		fault_bpf__destroy(skeleton);
		errno = error;
		return NULL;
	}
	return skeleton;
}

static enum bpf_tc_attach_point fault_point(enum fault_way way)
{
	return way == FAULT_IN ? BPF_TC_INGRESS : BPF_TC_EGRESS;
}

/* Runs in the link's namespace, because libbpf uses the namespace of the calling thread. */
static trib_status fault_attach_here(const struct link_end *end, enum fault_way way,
                                     const struct fault_bpf *skeleton)
{
	LIBBPF_OPTS(bpf_tc_hook, hook, .attach_point = fault_point(way));
	LIBBPF_OPTS(bpf_tc_opts, opts, .handle = 1, .priority = 1);
	int error;

	hook.ifindex = (int)link_index(end->ns, end->name);
	if (!hook.ifindex)
		return TRIB_ERR_SYSTEM;
	opts.prog_fd = bpf_program__fd(skeleton->progs.fault);
	error = bpf_tc_hook_create(&hook);
	if (!error || error == -EEXIST)
		error = bpf_tc_attach(&hook, &opts);
	if (!error)
		return TRIB_OK;
	errno = -error;
	return status_fail_errno("cannot attach the fault program to %s in %s", end->name,
	                         end->ns->name);
}

trib_status fault_attach(const struct link_end *end, enum fault_way way,
                         const struct fault_rates *rates, uint64_t stream)
{
	trib_status status;
	int back;

	libbpf_set_print(libbpf_log);
	struct fault_bpf *skeleton = fault_load(way, rates, stream);

	if (!skeleton)
		return status_fail_errno("cannot load the fault program (TRIB_LOG=info says more)");
	status = netns_enter(end->ns->name, end->ns->fd, &back);
	if (status == TRIB_OK) {
		status = fault_attach_here(end, way, skeleton);
		if (netns_return(back) != TRIB_OK)
			status = TRIB_ERR_SYSTEM;
	}
	fault_bpf__destroy(skeleton); /* the tc filter keeps the program and its maps alive */
	return status;
}

/* The id of the program at the interface; 0: none. */
static uint32_t fault_program_id(const struct netns *ns, const char *link, enum fault_way way)
{
	LIBBPF_OPTS(bpf_tc_hook, hook, .attach_point = fault_point(way));
	LIBBPF_OPTS(bpf_tc_opts, opts, .handle = 1, .priority = 1);
	uint32_t id = 0;
	int back;

	hook.ifindex = (int)link_index(ns, link);
	if (!hook.ifindex || netns_enter(ns->name, ns->fd, &back) != TRIB_OK)
		return 0;
	if (bpf_tc_query(&hook, &opts) == 0)
		id = opts.prog_id;
	netns_return(back);
	return id;
}

static bool counts_read(uint32_t map_id, struct fault_counts *out)
{
	struct bpf_map_info info = { 0 };
	uint32_t bytes = sizeof(info), zero = 0;
	int map = bpf_map_get_fd_by_id(map_id);
	bool is_read;

	if (map < 0)
		return false;
	is_read = bpf_obj_get_info_by_fd(map, &info, &bytes) == 0 &&
	          strcmp(info.name, "counts") == 0 && info.value_size == sizeof(*out) &&
	          bpf_map_lookup_elem(map, &zero, out) == 0;
	close(map);
	return is_read;
}

bool fault_read(const char *namespace, const char *link, enum fault_way way,
                struct fault_counts *out)
{
	uint32_t maps[8] = { 0 };
	struct bpf_prog_info info = { .nr_map_ids = 8, .map_ids = (uintptr_t)maps };
	uint32_t bytes = sizeof(info);
	struct netns ns;
	bool is_read = false;

	libbpf_set_print(libbpf_log);
	if (netns_open(namespace, &ns) != TRIB_OK)
		return false;
	int program = bpf_prog_get_fd_by_id(fault_program_id(&ns, link, way));

	netns_close(&ns);
	if (program < 0)
		return false;
	if (bpf_obj_get_info_by_fd(program, &info, &bytes) == 0)
		for (unsigned i = 0; !is_read && i < info.nr_map_ids && i < 8; i++)
			is_read = counts_read(maps[i], out);
	close(program);
	return is_read;
}
