/* SPDX-License-Identifier: Apache-2.0 */
/* reshape: changes the rate of a link in use. Packets in its queue stay there. */
#include "net/cluster.h"
#include "net/cluster_plan.h"
#include "net/kernel/link_shape.h"

static trib_status end_shape(const char *namespace, const struct link_end *which, uint64_t bps,
                             bool batches, uint64_t highest)
{
	struct netns ns;
	struct link_end end = *which;
	trib_status status = netns_open(namespace, &ns);

	if (status != TRIB_OK)
		return status;
	end.ns = &ns;
	status = shape_again(&end, bps, batches, highest);
	netns_close(&ns);
	return status;
}

trib_status cluster_shape(const struct cluster *cluster, const char *host, uint64_t bps,
                          bool batches)
{
	const struct cluster_host *found = cluster_find(cluster, host);
	struct link_end own = { 0 }, port = { 0 };
	char hub[64];
	trib_status status;
	unsigned i;

	if (!found || !bps || cluster->is_switch)
		return status_fail(TRIB_ERR_ARGUMENT, "the rate of %s's link cannot be changed",
		                   host);
	i = (unsigned)(found - cluster->hosts);
	plan_bridge_namespace(cluster, hub);
	plan_host_end(cluster, i, &own);
	plan_port_end(cluster, i, &port);
	status = end_shape(hub, &port, bps, batches, found->rate_bps);
	return status == TRIB_OK ? end_shape(found->ns, &own, bps, batches, found->rate_bps)
	                         : status;
}
