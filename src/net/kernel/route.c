/* SPDX-License-Identifier: Apache-2.0 */
#include "net/kernel/route.h"

#include "net/kernel/netlink.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <linux/fib_rules.h>
#include <string.h>

/* A way in a message. Without a gateway it ends after `hop`. */
struct way_message {
	struct rtnexthop hop;
	struct rtattr head;
	uint32_t gateway;
};

static void ways_put(struct nl_request *request, const struct route_way *ways, unsigned n)
{
	char bytes[ROUTE_WAYS_MAX * sizeof(struct way_message)];
	size_t used = 0;

	assert(n <= ROUTE_WAYS_MAX);
	for (unsigned i = 0; i < n; i++) {
		size_t length =
			ways[i].gateway ? sizeof(struct way_message) : sizeof(struct rtnexthop);
		struct way_message way = {
			.hop = { .rtnh_len = (uint16_t)length, .rtnh_ifindex = (int)ways[i].index },
			.head = { .rta_len = RTA_LENGTH(sizeof(way.gateway)),
			          .rta_type = RTA_GATEWAY },
			.gateway = ways[i].gateway,
		};

		memcpy(bytes + used, &way, length);
		used += length;
	}
	nl_put(request, RTA_MULTIPATH, bytes, used);
}

static trib_status route_fail(const struct netns *ns, const char *what,
                              struct route_network network)
{
	char text[INET_ADDRSTRLEN];
	int error = errno;

	inet_ntop(AF_INET, &network.address, text, sizeof(text));
	errno = error;
	return status_fail_errno("cannot set the %s for %s/%u in %s", what, text, network.bits,
	                         ns->name);
}

trib_status route_set(const struct netns *ns, unsigned table, struct route_network to,
                      const struct route_way *ways, unsigned n)
{
	struct nl_request request;
	struct rtmsg route = { .rtm_family = AF_INET,
		               .rtm_dst_len = (uint8_t)to.bits,
		               .rtm_protocol = RTPROT_STATIC,
		               .rtm_scope =
		                       n && ways[0].gateway ? RT_SCOPE_UNIVERSE : RT_SCOPE_LINK,
		               .rtm_type = RTN_UNICAST };

	if (n) {
		nl_start(&request, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_REPLACE, &route,
		         sizeof(route));
		ways_put(&request, ways, n);
	} else {
		route.rtm_scope = RT_SCOPE_NOWHERE; /* any */
		nl_start(&request, RTM_DELROUTE, 0, &route, sizeof(route));
	}
	nl_put(&request, RTA_DST, &to.address, sizeof(to.address));
	nl_put_u32(&request, RTA_TABLE, table);
	if (nl_talk(ns->nl, &request) < 0 && (n || errno != ESRCH))
		return route_fail(ns, "route", to);
	return TRIB_OK;
}

trib_status route_rule(const struct netns *ns, unsigned preference, struct route_network network,
                       bool by_source, unsigned table)
{
	struct nl_request request;
	struct fib_rule_hdr rule = { .family = AF_INET,
		                     .src_len = (uint8_t)(by_source ? network.bits : 0),
		                     .dst_len = (uint8_t)(by_source ? 0 : network.bits),
		                     .action = FR_ACT_TO_TBL };

	nl_start(&request, RTM_NEWRULE, NLM_F_CREATE | NLM_F_EXCL, &rule, sizeof(rule));
	nl_put(&request, by_source ? FRA_SRC : FRA_DST, &network.address, sizeof(network.address));
	nl_put_u32(&request, FRA_PRIORITY, preference);
	nl_put_u32(&request, FRA_TABLE, table);
	if (nl_talk(ns->nl, &request) < 0)
		return route_fail(ns, "rule", network);
	return TRIB_OK;
}
