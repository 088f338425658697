/* SPDX-License-Identifier: Apache-2.0 */
/* Another rate for a link that is in use. What is in its queue stays there. */
#include "net/cluster.h"
#include "net/plan.h"
#include "net/shape.h"

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
		return status_fail(TRIB_ERR_ARGUMENT, "no link of %s can get another rate", host);
	i = (unsigned)(found - cluster->hosts);
	plan_bridge_namespace(cluster, hub);
	plan_host_end(cluster, i, &own);
	plan_port_end(cluster, i, &port);
	status = end_shape(hub, &port, bps, batches, found->rate_bps);
	return status == TRIB_OK ? end_shape(found->ns, &own, bps, batches, found->rate_bps)
	                         : status;
}
