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

/* The end of a host's link, at the host or at the other side of the link. */
static trib_status accept_link(const struct cluster *cluster, unsigned host, bool at_host,
                               int program, struct accepted *out)
{
	struct link_end end;
	char hub[64];

	if (at_host) {
		plan_host_end(cluster, host, &end);
		return accept_at(cluster->hosts[host].ns, end.name, program, out);
	}
	plan_port_end(cluster, host, &end);
	plan_port_namespace(cluster, host, hub);
	return accept_at(hub, end.name, program, out);
}

/*
 * If s1 is a switch, the links are those of the workers. Otherwise they are those of the hosts in
 * `aggregates`; NULL: of the servers. `to_aggregator`: the programs are where aggregators receive.
 */
static trib_status accept_all(const struct cluster *cluster, const bool *aggregates,
                              bool to_aggregator, struct accepted *out)
{
	struct pass_bpf *skeleton = pass_bpf__open_and_load();
	trib_status status = TRIB_OK;

	out->n = 0;
	if (!skeleton)
		return status_fail_errno("cannot load an XDP program");
	for (unsigned i = 0; status == TRIB_OK && i < cluster->n; i++) {
		bool is_server = cluster->hosts[i].is_server;

		if (cluster->is_switch ? !is_server : aggregates ? aggregates[i] : is_server)
			status = accept_link(cluster, i, cluster->is_switch != to_aggregator,
			                     bpf_program__fd(skeleton->progs.pass), out);
	}
	pass_bpf__destroy(skeleton);
	return status;
}

trib_status accept_frames(const struct cluster *cluster, const bool *aggregates,
                          struct accepted *out)
{
	return accept_all(cluster, aggregates, false, out);
}

trib_status accept_at_servers(const struct cluster *cluster, struct accepted *out)
{
	return accept_all(cluster, NULL, true, out);
}

void accept_end(struct accepted *accepted)
{
	while (accepted->n)
		close(accepted->links[--accepted->n]);
}
