/* SPDX-License-Identifier: Apache-2.0 */
#include "net/relay.h"

#include "net/link.h"
#include "net/plan.h"
#include "net/receive.h"
#include "relay.skel.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/if_link.h>
#include <unistd.h>

#define TCX_INGRESS 46 /* of enum bpf_attach_type, which older headers do not have in full */

/* A program at an end, in whose namespace we are. The link lives as long as its descriptor. */
static trib_status attach(const struct link_end *end, int program, enum bpf_attach_type where,
                          struct relay *out)
{
	LIBBPF_OPTS(bpf_link_create_opts, options,
	            .flags = where == BPF_XDP ? XDP_FLAGS_DRV_MODE : 0);
	unsigned index = link_index(end->ns, end->name);
	int fd = index ? bpf_link_create(program, (int)index, where, &options) : -1;

	if (!index)
		return TRIB_ERR_SYSTEM;
	if (fd < 0)
		return status_fail_errno("%s in %s takes no program%s", end->name, end->ns->name,
		                         where == BPF_XDP ? ""
		                                          : " for packets (kernel 6.6 has it)");
	out->links[out->n++] = fd;
	return TRIB_OK;
}

/* An end where frames are received: by the stack, or by a program that is there already. */
static trib_status receiver(const struct relay_bpf *bpf, const char *namespace,
                            const struct link_end *at, bool is_xdp, struct relay *out)
{
	struct link_end end = *at;
	struct netns ns;
	trib_status status = netns_open(namespace, &ns);
	int back;

	if (status != TRIB_OK)
		return status;
	end.ns = &ns;
	status = netns_enter(ns.name, ns.fd, &back);
	if (status == TRIB_OK) {
		if (!is_xdp)
			status = attach(&end, bpf_program__fd(bpf->progs.pass), BPF_XDP, out);
		if (status == TRIB_OK)
			status = attach(&end, bpf_program__fd(bpf->progs.trust),
			                (enum bpf_attach_type)TCX_INGRESS, out);
		if (netns_return(back) != TRIB_OK)
			status = TRIB_ERR_SYSTEM;
	}
	netns_close(&ns);
	return status;
}

static trib_status join(const struct relay_bpf *bpf, const struct link_end *from,
                        const struct link_end *to, struct relay *out)
{
	uint32_t in = link_index(from->ns, from->name), way = link_index(to->ns, to->name);

	if (!in || !way)
		return TRIB_ERR_SYSTEM;
	if (bpf_map_update_elem(bpf_map__fd(bpf->maps.ways), &in, &way, 0))
		return status_fail_errno("cannot join %s and %s", from->name, to->name);
	return attach(from, bpf_program__fd(bpf->progs.relay), BPF_XDP, out);
}

/* The two ends in the middle, both ways. */
static trib_status middle(const struct cluster *cluster, const struct relay_bpf *bpf, unsigned i,
                          const struct netns *ns, struct relay *out)
{
	struct link_end near = { .ns = ns }, far = { .ns = ns };
	trib_status status;

	plan_relay_ends(cluster, i, &near, &far);
	status = join(bpf, &near, &far, out);
	return status == TRIB_OK ? join(bpf, &far, &near, out) : status;
}

static trib_status middles(const struct cluster *cluster, const struct relay_bpf *bpf,
                           struct relay *out)
{
	char name[64];
	struct netns ns;
	trib_status status;
	int back;

	plan_relay_namespace(cluster, name);
	status = netns_open(name, &ns);
	if (status != TRIB_OK)
		return status;
	status = netns_enter(ns.name, ns.fd, &back);
	if (status == TRIB_OK) {
		for (unsigned i = 0; status == TRIB_OK && i < cluster->n; i++)
			if (!cluster->hosts[i].is_server)
				status = middle(cluster, bpf, i, &ns, out);
		if (netns_return(back) != TRIB_OK)
			status = TRIB_ERR_SYSTEM;
	}
	netns_close(&ns);
	return status;
}

trib_status relay_start(const struct cluster *cluster, bool ports, struct relay *out)
{
	struct relay_bpf *bpf = relay_bpf__open_and_load();
	trib_status status = TRIB_OK;
	char server[64];

	out->n = 0;
	if (!bpf)
		return status_fail_errno("cannot load the programs of a relay");
	plan_bridge_namespace(cluster, server);
	for (unsigned i = 0; status == TRIB_OK && i < cluster->n; i++) {
		const struct cluster_host *host = &cluster->hosts[i];
		struct link_end end = { .ns = NULL };

		if (host->is_server)
			continue;
		plan_host_end(cluster, i, &end);
		status = receiver(bpf, host->ns, &end, false, out);
		plan_port_end(cluster, i, &end);
		if (status == TRIB_OK)
			status = receiver(bpf, server, &end, !ports, out);
	}
	if (status == TRIB_OK)
		status = middles(cluster, bpf, out);
	relay_bpf__destroy(bpf);
	if (status != TRIB_OK)
		relay_end(out);
	return status;
}

void relay_end(struct relay *relay)
{
	while (relay->n)
		close(relay->links[--relay->n]);
}

trib_status relay_place(const struct cluster *cluster, unsigned i, unsigned core)
{
	struct link_end near, far;
	struct receive receive;
	trib_status status;
	char name[64];

	plan_relay_namespace(cluster, name);
	plan_relay_ends(cluster, i, &near, &far);
	status = receive_place(name, near.name, core, true, &receive);
	return status == TRIB_OK ? receive_place(name, far.name, core, true, &receive) : status;
}
