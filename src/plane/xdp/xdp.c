/* SPDX-License-Identifier: Apache-2.0 */
/* The programs: loading them, and what they counted. */
#include "plane/xdp/xdp_internal.h"

#include "base/log.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/if_link.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

uint32_t xdp_room(const struct xdp_plane *plane)
{
	return plane->room;
}

bool xdp_is_built(void)
{
	return true;
}

/* Messages of libbpf and of the verifier go to our log. */
static int print(enum libbpf_print_level level, const char *format, va_list args)
{
	char *text, *rest;

	if (vasprintf(&text, format, args) < 0)
		return 0;
	rest = text;
	for (char *line; (line = strsep(&rest, "\n")) != NULL;) {
		if (*line && level == LIBBPF_WARN)
			log_info("%s", line);
		else if (*line)
			log_debug("%s", line);
	}
	free(text);
	return 0;
}

static trib_status fail_load(int error)
{
	if (error == -EPERM) /* the verifier refuses with EACCES */
		return status_fail(TRIB_ERR_SYSTEM,
		                   "no right to load BPF programs: CAP_BPF, CAP_NET_ADMIN and "
		                   "CAP_PERFMON are needed (as root, or setcap "
		                   "cap_bpf,cap_net_admin,cap_perfmon+ep tribd)");
	return status_fail(TRIB_ERR_SYSTEM, "the kernel refuses the program: %s", strerror(-error));
}

static int load(struct xdp_plane *plane, const struct xdp_options *options)
{
	struct plane_bpf *bpf = plane->bpf;
	int error;

	plane->payload =
		options->payload < XDP_PAYLOAD_MAX ? options->payload & ~7u : XDP_PAYLOAD_MAX;
	plane->room = options->tc && options->payload > XDP_PAYLOAD_MAX ? options->payload & ~7u
	                                                                : plane->payload;
	bpf_program__set_autoload(bpf->progs.aggregate_again, options->again);
	bpf_program__set_autoload(bpf->progs.aggregate, !options->tc);
	bpf_program__set_autoload(bpf->progs.fan_out, !options->tc);
	plane->settings = (struct xdp_settings){ .first_port = options->port,
		                                 .ports = options->lanes,
		                                 .payload = plane->payload };
	bpf->rodata->settings = plane->settings;
	error = bpf_map__set_value_size(bpf_map__inner_map(bpf->maps.pools),
	                                (uint32_t)sizeof(struct xdp_cell) + plane->payload);
	if (!error)
		error = plane_bpf__load(bpf);
	return error || !options->tc ? error : tc_load(plane);
}

trib_status xdp_load(const struct xdp_options *options, struct xdp_plane **out)
{
	struct xdp_plane *plane = calloc(1, sizeof(*plane));
	int error;

	if (!plane)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for a plane");
	libbpf_set_print(print);
	plane->bpf = plane_bpf__open();
	error = plane->bpf ? load(plane, options) : -errno;
	if (!error) {
		plane->lanes = mmap(NULL, page_up(XDP_LANES * sizeof(*plane->lanes)),
		                    PROT_READ | PROT_WRITE, MAP_SHARED,
		                    bpf_map__fd(plane->bpf->maps.lanes), 0);
		if (plane->lanes == MAP_FAILED) {
			error = -errno;
			plane->lanes = NULL;
		}
	}
	if (error) {
		xdp_close(plane);
		return fail_load(error);
	}
	queues_open(plane, options);
	*out = plane;
	return TRIB_OK;
}

void xdp_close(struct xdp_plane *plane)
{
	if (!plane)
		return;
	for (unsigned i = 0; i < plane->n_links; i++)
		close(plane->links[i]);
	if (plane->lanes)
		munmap(plane->lanes, page_up(XDP_LANES * sizeof(*plane->lanes)));
	queues_close(plane);
	engines_close(plane);
	bpf_object__close(plane->tc);
	plane_bpf__destroy(plane->bpf);
	free(plane);
}

/* ---- counting and running ---- */

void xdp_count(struct xdp_plane *plane, struct xdp_counts *sum)
{
	int cpus = libbpf_num_possible_cpus();
	struct xdp_counts *each = cpus > 0 ? calloc((size_t)cpus, sizeof(*each)) : NULL;
	uint32_t key = 0;

	memset(sum, 0, sizeof(*sum));
	if (!each)
		return;
	if (bpf_map_lookup_elem(bpf_map__fd(plane->bpf->maps.counts), &key, each) == 0)
		for (int cpu = 0; cpu < cpus; cpu++)
			for (size_t i = 0; i < sizeof(*sum) / sizeof(uint64_t); i++)
				((uint64_t *)sum)[i] += ((uint64_t *)&each[cpu])[i];
	free(each);
}

double xdp_run_time(struct xdp_plane *plane)
{
	const int programs[] = { plane->tc ? tc_program(plane)
		                           : bpf_program__fd(plane->bpf->progs.aggregate),
		                 bpf_program__fd(plane->bpf->progs.fan_out) };
	double seconds = 0;

	for (unsigned i = 0; i < 2; i++) {
		struct bpf_prog_info info = { 0 };
		uint32_t length = sizeof(info);

		if (bpf_obj_get_info_by_fd(programs[i], &info, &length) == 0)
			seconds += (double)info.run_time_ns / 1e9;
	}
	return seconds;
}

int xdp_stats_open(void)
{
	int fd = bpf_enable_stats(BPF_STATS_RUN_TIME);

	return fd < 0 ? -1 : fd;
}

trib_status xdp_run(struct xdp_plane *plane, struct xdp_run *run)
{
	const struct plane_bpf *bpf = plane->bpf;
	int program = plane->tc    ? tc_program(plane)
	              : run->again ? bpf_program__fd(bpf->progs.aggregate_again)
	                           : bpf_program__fd(bpf->progs.aggregate);
	struct xdp_md context = { .data_end = run->bytes, .ingress_ifindex = run->ifindex };
	LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = run->in, .data_size_in = run->bytes,
	            .data_out = run->out, .data_size_out = run->out ? run->bytes + XDP_HEAD_MAX : 0,
	            .repeat = (int)run->repeat);

	if (run->ifindex) {
		options.ctx_in = &context;
		options.ctx_size_in = sizeof(context);
	}
	if (bpf_prog_test_run_opts(program, &options))
		return status_fail_errno("the kernel does not run the program on a frame");
	run->action = plane->tc ? tc_action(options.retval) : options.retval;
	run->ns = options.duration;
	run->out_bytes = options.data_size_out;
	return TRIB_OK;
}
