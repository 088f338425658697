/* SPDX-License-Identifier: Apache-2.0 */
#include "net/kernel/link.h"

#include "net/kernel/netlink.h"
#include "net/kernel/route.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_link.h>
#include <linux/if_bridge.h>
#include <linux/neighbour.h>
#include <linux/veth.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>

#define LINK_GROUP 84             /* marks our links, so that one request removes all of them */
#define LINK_QUERY_CLOCK_TICKS 10 /* 0.1 s for hosts to report their multicast groups */
/*
 * In version 3 every host answers. In older versions a host stays silent if another has answered,
 * and would then get nothing.
 */
#define LINK_IGMP_VERSION 3

#define LINK_NAP_NS 2000000
#define LINK_NAPS 1500 /* polls of 2 ms: 3 s; the kernel takes up to 1 s */

unsigned link_index(const struct netns *ns, const char *name)
{
	struct ifreq request = { 0 };

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
	if (ioctl(ns->nl, SIOCGIFINDEX, &request) < 0) {
		status_fail_errno("cannot find %s in %s", name, ns->name);
		return 0;
	}
	return (unsigned)request.ifr_ifindex;
}

static void link_put_common(struct nl_request *request, const struct link_end *end, unsigned mtu)
{
	nl_put_text(request, IFLA_IFNAME, end->name);
	nl_put_u32(request, IFLA_MTU, mtu);
	nl_put_u32(request, IFLA_GROUP, LINK_GROUP);
	nl_put(request, IFLA_ADDRESS, end->mac, LINK_MAC_BYTES);
}

/*
 * Makes the bridge ask which hosts are in which multicast group. It trusts the answers only after
 * their longest delay. It reads that delay when this request arrives, so this is a request of its
 * own.
 */
static trib_status bridge_query(const struct link_end *bridge)
{
	struct nl_request request;
	struct ifinfomsg info = { .ifi_index = (int)link_index(bridge->ns, bridge->name) };
	struct rtattr *linkinfo, *data;
	uint8_t on = 1;

	if (!info.ifi_index)
		return TRIB_ERR_SYSTEM;
	nl_start(&request, RTM_NEWLINK, 0, &info, sizeof(info));
	linkinfo = nl_nest(&request, IFLA_LINKINFO);
	nl_put_text(&request, IFLA_INFO_KIND, "bridge");
	data = nl_nest(&request, IFLA_INFO_DATA);
	nl_put(&request, IFLA_BR_MCAST_QUERIER, &on, sizeof(on));
	nl_nest_end(&request, data);
	nl_nest_end(&request, linkinfo);
	if (nl_talk(bridge->ns->nl, &request) < 0)
		return status_fail_errno("cannot make %s in %s query its multicast groups",
		                         bridge->name, bridge->ns->name);
	return TRIB_OK;
}

trib_status link_add_bridge(const struct link_end *bridge, unsigned mtu, bool snooping)
{
	struct nl_request request;
	struct ifinfomsg info = { .ifi_flags = IFF_UP, .ifi_change = IFF_UP };
	struct rtattr *linkinfo, *data;
	uint64_t response = LINK_QUERY_CLOCK_TICKS;
	uint8_t is_snooping = snooping, igmp = LINK_IGMP_VERSION;

	nl_start(&request, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, &info, sizeof(info));
	link_put_common(&request, bridge, mtu);
	linkinfo = nl_nest(&request, IFLA_LINKINFO);
	nl_put_text(&request, IFLA_INFO_KIND, "bridge");
	data = nl_nest(&request, IFLA_INFO_DATA);
	nl_put_u32(&request, IFLA_BR_STP_STATE, 0);
	nl_put_u32(&request, IFLA_BR_FORWARD_DELAY, 0);
	nl_put(&request, IFLA_BR_MCAST_SNOOPING, &is_snooping, sizeof(is_snooping));
	nl_put(&request, IFLA_BR_MCAST_IGMP_VERSION, &igmp, sizeof(igmp));
	nl_put(&request, IFLA_BR_MCAST_QUERY_RESPONSE_INTVL, &response, sizeof(response));
	nl_nest_end(&request, data);
	nl_nest_end(&request, linkinfo);
	if (nl_talk(bridge->ns->nl, &request) < 0)
		return status_fail_errno("cannot create the bridge %s in %s", bridge->name,
		                         bridge->ns->name);
	return snooping ? bridge_query(bridge) : TRIB_OK;
}

trib_status link_add_pair(const struct link_end *port, const struct link_end *host,
                          const struct link_end *bridge, unsigned mtu)
{
	struct nl_request request;
	struct ifinfomsg info = { .ifi_flags = IFF_UP, .ifi_change = IFF_UP };
	struct ifinfomsg none = { 0 };
	struct rtattr *linkinfo, *data, *peer;
	unsigned master = bridge ? link_index(bridge->ns, bridge->name) : 0;

	if (bridge && !master)
		return TRIB_ERR_SYSTEM;
	nl_start(&request, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, &info, sizeof(info));
	link_put_common(&request, port, mtu);
	if (master)
		nl_put_u32(&request, IFLA_MASTER, master);
	linkinfo = nl_nest(&request, IFLA_LINKINFO);
	nl_put_text(&request, IFLA_INFO_KIND, "veth");
	data = nl_nest(&request, IFLA_INFO_DATA);
	peer = nl_nest(&request, VETH_INFO_PEER);
	/*
	 * The peer's ifinfomsg has no header of its own in the nest, and precedes its attributes.
	 */
	memcpy((char *)&request + request.head.nlmsg_len, &none, sizeof(none));
	request.head.nlmsg_len += sizeof(none);
	link_put_common(&request, host, mtu);
	nl_put_u32(&request, IFLA_NET_NS_FD, (uint32_t)host->ns->fd);
	nl_nest_end(&request, peer);
	nl_nest_end(&request, data);
	nl_nest_end(&request, linkinfo);
	if (nl_talk(port->ns->nl, &request) < 0)
		return status_fail_errno("cannot create the link from %s in %s to %s in %s",
		                         host->name, host->ns->name, port->name, port->ns->name);
	return link_set_up(host->ns, host->name);
}

trib_status link_wait(const struct link_end *end)
{
	const struct timespec nap = { .tv_nsec = LINK_NAP_NS };
	struct ifreq request = { 0 };

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", end->name);
	for (unsigned i = 0; i < LINK_NAPS; i++) {
		if (ioctl(end->ns->nl, SIOCGIFFLAGS, &request) < 0)
			return status_fail_errno("cannot query %s in %s", end->name, end->ns->name);
		if ((unsigned short)request.ifr_flags & IFF_RUNNING)
			return TRIB_OK;
		nanosleep(&nap, NULL);
	}
	return status_fail(TRIB_ERR_TIMEOUT, "%s in %s has not come up", end->name, end->ns->name);
}

trib_status link_set_up(const struct netns *ns, const char *name)
{
	struct nl_request request;
	struct ifinfomsg info = { .ifi_flags = IFF_UP, .ifi_change = IFF_UP };

	nl_start(&request, RTM_NEWLINK, 0, &info, sizeof(info));
	nl_put_text(&request, IFLA_IFNAME, name);
	if (nl_talk(ns->nl, &request) < 0)
		return status_fail_errno("cannot set %s up in %s", name, ns->name);
	return TRIB_OK;
}

trib_status link_add_multicast_route(const struct link_end *end)
{
	struct route_way way = { .index = link_index(end->ns, end->name) };
	struct route_network groups = { htonl(0xe0000000), 4 };

	return way.index ? route_set(end->ns, RT_TABLE_MAIN, groups, &way, 1) : TRIB_ERR_SYSTEM;
}

trib_status link_add_address(const struct link_end *end, uint32_t address)
{
	struct nl_request request;
	unsigned index = link_index(end->ns, end->name);
	uint32_t broadcast = address | htonl(0xff);
	struct ifaddrmsg message = { .ifa_family = AF_INET,
		                     .ifa_prefixlen = 24,
		                     .ifa_index = index };

	if (!index)
		return TRIB_ERR_SYSTEM;
	nl_start(&request, RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, &message, sizeof(message));
	nl_put(&request, IFA_LOCAL, &address, sizeof(address));
	nl_put(&request, IFA_ADDRESS, &address, sizeof(address));
	nl_put(&request, IFA_BROADCAST, &broadcast, sizeof(broadcast));
	if (nl_talk(end->ns->nl, &request) < 0)
		return status_fail_errno("cannot give %s in %s its address", end->name,
		                         end->ns->name);
	return link_add_multicast_route(end);
}

trib_status link_add_peer(const struct link_end *end, uint32_t address, uint32_t peer)
{
	struct nl_request request;
	unsigned index = link_index(end->ns, end->name);
	struct ifaddrmsg message = { .ifa_family = AF_INET,
		                     .ifa_prefixlen = 32,
		                     .ifa_index = index };

	if (!index)
		return TRIB_ERR_SYSTEM;
	nl_start(&request, RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, &message, sizeof(message));
	nl_put(&request, IFA_LOCAL, &address, sizeof(address));
	nl_put(&request, IFA_ADDRESS, &peer, sizeof(peer));
	if (nl_talk(end->ns->nl, &request) < 0)
		return status_fail_errno("cannot give %s in %s its address", end->name,
		                         end->ns->name);
	return TRIB_OK;
}

static trib_status neighbour_add(const struct link_end *end, struct ndmsg message,
                                 const uint32_t *address, const uint8_t *mac)
{
	struct nl_request request;

	message.ndm_ifindex = (int)link_index(end->ns, end->name);
	if (!message.ndm_ifindex)
		return TRIB_ERR_SYSTEM;
	nl_start(&request, RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_REPLACE, &message, sizeof(message));
	if (address)
		nl_put(&request, NDA_DST, address, sizeof(*address));
	nl_put(&request, NDA_LLADDR, mac, LINK_MAC_BYTES);
	if (nl_talk(end->ns->nl, &request) < 0)
		return status_fail_errno("cannot add a neighbour of %s in %s", end->name,
		                         end->ns->name);
	return TRIB_OK;
}

trib_status link_add_neighbour(const struct link_end *end, uint32_t address,
                               const uint8_t mac[LINK_MAC_BYTES])
{
	struct ndmsg message = { .ndm_family = AF_INET, .ndm_state = NUD_PERMANENT };

	return neighbour_add(end, message, &address, mac);
}

trib_status link_add_forward(const struct link_end *port, const uint8_t mac[LINK_MAC_BYTES])
{
	struct ndmsg message = { .ndm_family = AF_BRIDGE,
		                 .ndm_state = NUD_NOARP,
		                 .ndm_flags = NTF_MASTER };

	return neighbour_add(port, message, NULL, mac);
}

trib_status link_remove_all(const struct netns *ns)
{
	struct nl_request request;
	struct ifinfomsg info = { 0 };

	nl_start(&request, RTM_DELLINK, 0, &info, sizeof(info));
	nl_put_u32(&request, IFLA_GROUP, LINK_GROUP);
	if (nl_talk(ns->nl, &request) < 0 && errno != ENODEV)
		return status_fail_errno("cannot remove the links in %s", ns->name);
	return TRIB_OK;
}
