/* SPDX-License-Identifier: Apache-2.0 */
#include "net/relay.h"

#include "net/kernel/link.h"
#include "net/kernel/link_shape.h"
#include "net/cluster_plan.h"
#include "net/kernel/receive_core.h"
#include "relay.skel.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/if_link.h>
#include <unistd.h>

/* A value of enum bpf_attach_type that older headers lack. */
#define TCX_INGRESS ((enum bpf_attach_type)46)

/*
 * Attaches a program to an end in the current namespace. It stays attached as long as the file
 * descriptor is open.
 */
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
		return status_fail_errno("%s in %s takes no %s program", end->name, end->ns->name,
		                         where == BPF_XDP ? "XDP" : "tcx (Linux 6.6)");
	out->links[out->n++] = fd;
	return TRIB_OK;
}

/* Lets the network stack receive frames at an end in the current namespace. */
static trib_status receive_here(const struct relay_bpf *bpf, const struct link_end *end, bool plain,
                                struct relay *out)
{
	trib_status status;

	/* An aggregator that attaches its own XDP program may detach it. With GRO, a veth takes
	 * frames without a program, too. */
	if (plain)
		status = attach(end, bpf_program__fd(bpf->progs.pass), BPF_XDP, out);
	else
		status = shape_gro(end);
	return status == TRIB_OK ? attach(end, bpf_program__fd(bpf->progs.trust), TCX_INGRESS, out)
	                         : status;
}

static trib_status receiver(const struct relay_bpf *bpf, const char *namespace,
                            const struct link_end *at, bool plain, struct relay *out)
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
		status = receive_here(bpf, &end, plain, out);
		if (netns_return(back) != TRIB_OK)
			status = TRIB_ERR_SYSTEM;
	}
	netns_close(&ns);
	return status;
}

/* Prepares the ends of a link that receive frames. The aggregator is at one of them. */
static trib_status receivers(const struct cluster *cluster, const struct relay_bpf *bpf, unsigned i,
                             bool plain, struct relay *out)
{
	struct link_end end = { .ns = NULL };
	trib_status status;
	char server[64];

	plan_host_end(cluster, i, &end);
	if (!cluster->is_switch)
		return receiver(bpf, cluster->hosts[i].ns, &end, plain, out);
	status = receiver(bpf, cluster->hosts[i].ns, &end, true, out);
	plan_bridge_namespace(cluster, server);
	plan_port_end(cluster, i, &end);
	return status == TRIB_OK ? receiver(bpf, server, &end, plain, out) : status;
}

static trib_status map_way(struct bpf_map *map, const struct link_end *from,
                           const struct link_end *to)
{
	uint32_t in = link_index(from->ns, from->name), way = link_index(to->ns, to->name);

	if (!in || !way)
		return TRIB_ERR_SYSTEM;
	if (bpf_map_update_elem(bpf_map__fd(map), &in, &way, 0))
		return status_fail_errno("cannot join %s and %s", from->name, to->name);
	return TRIB_OK;
}

/* Forwards packets that arrive at `from` to `to`, as XDP frames. */
static trib_status join(const struct relay_bpf *bpf, const struct link_end *from,
                        const struct link_end *to, struct relay *out)
{
	trib_status status = map_way(bpf->maps.ways, from, to);

	return status == TRIB_OK ? attach(from, bpf_program__fd(bpf->progs.relay), BPF_XDP, out)
	                         : status;
}

/*
 * Forwards packets that arrive at `from`, as frames or socket buffers, through the queue of `to`.
 */
static trib_status join_queue(const struct relay_bpf *bpf, const struct link_end *from,
                              const struct link_end *to, struct relay *out)
{
	trib_status status = map_way(bpf->maps.queues, from, to);

	if (status == TRIB_OK)
		status = attach(from, bpf_program__fd(bpf->progs.pass), BPF_XDP, out);
	return status == TRIB_OK ? attach(from, bpf_program__fd(bpf->progs.queue), TCX_INGRESS, out)
	                         : status;
}

/* Joins the two ends in the middle of a link, in both directions. */
static trib_status middle(const struct cluster *cluster, const struct relay_bpf *bpf, unsigned i,
                          unsigned wait_us, const struct netns *ns, struct relay *out)
{
	struct link_end near = { .ns = ns }, far = { .ns = ns };
	/* The end where packets for the aggregator arrive. */
	const struct link_end *in = cluster->is_switch ? &near : &far;
	trib_status status;

	plan_relay_ends(cluster, i, &near, &far);
	status = join(bpf, &far, &near, out);
	if (status == TRIB_OK && wait_us)
		status = receive_moderate(ns, in->name, wait_us);
	if (status != TRIB_OK)
		return status;
	return cluster->is_switch ? join(bpf, &near, &far, out) : join_queue(bpf, &near, &far, out);
}

static trib_status middles(const struct cluster *cluster, const struct relay_bpf *bpf,
                           unsigned wait_us, struct relay *out)
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
			if (plan_is_relayed(cluster, i))
				status = middle(cluster, bpf, i, wait_us, &ns, out);
		if (netns_return(back) != TRIB_OK)
			status = TRIB_ERR_SYSTEM;
	}
	netns_close(&ns);
	return status;
}

trib_status relay_start(const struct cluster *cluster, bool plain, unsigned wait_us,
                        struct relay *out)
{
	struct relay_bpf *bpf = relay_bpf__open_and_load();
	trib_status status = TRIB_OK;

	out->n = 0;
	if (!bpf)
		return status_fail_errno("cannot load the programs of a relay");
	for (unsigned i = 0; status == TRIB_OK && i < cluster->n; i++)
		if (plan_is_relayed(cluster, i))
			status = receivers(cluster, bpf, i, plain, out);
	if (status == TRIB_OK)
		status = middles(cluster, bpf, wait_us, out);
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

trib_status relay_place(const struct cluster *cluster, unsigned i, unsigned in, unsigned out)
{
	struct link_end near, far;
	struct receive receive;
	trib_status status;
	char name[64];

	plan_relay_namespace(cluster, name);
	plan_relay_ends(cluster, i, &near, &far);
	status = receive_place(name, near.name, cluster->is_switch ? in : out, true, &receive);
	if (status != TRIB_OK)
		return status;
	return receive_place(name, far.name, cluster->is_switch ? out : in, true, &receive);
}
