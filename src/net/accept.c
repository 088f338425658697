/* SPDX-License-Identifier: Apache-2.0 */
#include "net/accept.h"

#include "net/kernel/link.h"
#include "net/cluster_plan.h"
#include "pass.skel.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/if_link.h>
#include <unistd.h>

/* Attaches the program to a link. It stays attached as long as the file descriptor is open. */
static trib_status accept_at(const char *namespace, const char *link, int program,
                             struct accepted *out)
{
	LIBBPF_OPTS(bpf_link_create_opts, options, .flags = XDP_FLAGS_DRV_MODE);
	struct netns ns;
	trib_status status = netns_open(namespace, &ns);
	int back, fd = -1, error = 0;

	if (status != TRIB_OK)
		return status;
	status = netns_enter(ns.name, ns.fd, &back);
	if (status == TRIB_OK) {
		fd = bpf_link_create(program, (int)link_index(&ns, link), BPF_XDP, &options);
		error = errno;
		status = netns_return(back);
	}
	netns_close(&ns);
	if (fd >= 0)
		out->links[out->n++] = fd;
	if (status != TRIB_OK || fd >= 0 || error == EBUSY) /* any other program serves as well */
		return status;
	errno = error;
	return status_fail_errno("%s in %s takes no XDP program", link, namespace);
}

trib_status accept_frames(const struct cluster *cluster, const bool *aggregates,
                          struct accepted *out)
{
	struct pass_bpf *skeleton = pass_bpf__open_and_load();
	trib_status status = TRIB_OK;
	struct link_end end;
	char ports[64];
	int program;

	out->n = 0;
	if (!skeleton)
		return status_fail_errno("cannot load an XDP program");
	program = bpf_program__fd(skeleton->progs.pass);
	for (unsigned i = 0; status == TRIB_OK && i < cluster->n; i++) {
		const struct cluster_host *host = &cluster->hosts[i];
		bool sends = aggregates ? aggregates[i] : host->is_server;

		if (cluster->is_switch && !host->is_server) {
			plan_host_end(cluster, i, &end);
			status = accept_at(host->ns, end.name, program, out);
		} else if (!cluster->is_switch && sends) {
			plan_port_end(cluster, i, &end);
			plan_port_namespace(cluster, i, ports);
			status = accept_at(ports, end.name, program, out);
		}
	}
	pass_bpf__destroy(skeleton);
	return status;
}

trib_status accept_at_servers(const struct cluster *cluster, struct accepted *out)
{
	struct pass_bpf *skeleton = pass_bpf__open_and_load();
	trib_status status = TRIB_OK;
	struct link_end end;
	char ports[64];
	int program;

	out->n = 0;
	if (!skeleton)
		return status_fail_errno("cannot load an XDP program");
	program = bpf_program__fd(skeleton->progs.pass);
	for (unsigned i = 0; status == TRIB_OK && i < cluster->n; i++) {
		const struct cluster_host *host = &cluster->hosts[i];

		if (cluster->is_switch && !host->is_server) {
			plan_port_end(cluster, i, &end);
			plan_port_namespace(cluster, i, ports);
			status = accept_at(ports, end.name, program, out);
		} else if (!cluster->is_switch && host->is_server) {
			plan_host_end(cluster, i, &end);
			status = accept_at(host->ns, end.name, program, out);
		}
	}
	pass_bpf__destroy(skeleton);
	return status;
}

void accept_end(struct accepted *accepted)
{
	while (accepted->n)
		close(accepted->links[--accepted->n]);
}
