/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which interfaces lead to workers: those with the listen address. A bridge has no
 * driver mode, so the program goes on its ports, where its packets arrive.
 */
#include "plane/xdp/xdp.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINKS_MAX 512u

struct link {
	unsigned index, master, mtu, flags;
	bool is_bridge;
	char name[IFNAMSIZ];
};

static bool info_is_bridge(const struct rtattr *info)
{
	int left = (int)RTA_PAYLOAD(info);

	for (const struct rtattr *a = RTA_DATA(info); RTA_OK(a, left); a = RTA_NEXT(a, left))
		if (a->rta_type == IFLA_INFO_KIND)
			return !strncmp(RTA_DATA(a), "bridge", RTA_PAYLOAD(a));
	return false;
}

static void link_read(struct link *link, struct nlmsghdr *message)
{
	const struct ifinfomsg *info = NLMSG_DATA(message);
	int left = (int)IFLA_PAYLOAD(message);

	*link = (struct link){ .index = (unsigned)info->ifi_index, .flags = info->ifi_flags };
	for (const struct rtattr *a = IFLA_RTA(info); RTA_OK(a, left); a = RTA_NEXT(a, left)) {
		const void *data = RTA_DATA(a);

		if (a->rta_type == IFLA_MASTER)
			memcpy(&link->master, data, sizeof(link->master));
		else if (a->rta_type == IFLA_MTU)
			memcpy(&link->mtu, data, sizeof(link->mtu));
		else if (a->rta_type == IFLA_IFNAME)
			snprintf(link->name, sizeof(link->name), "%s", (const char *)data);
		else if (a->rta_type == IFLA_LINKINFO)
			link->is_bridge = info_is_bridge(a);
	}
}

/* All links of this network namespace; -1 with errno. */
static int links_list(struct link *links)
{
	struct {
		struct nlmsghdr head;
		struct ifinfomsg info;
	} request = { .head = { .nlmsg_len = sizeof(request),
		                .nlmsg_type = RTM_GETLINK,
		                .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP } };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE), n = 0;
	static _Thread_local uint64_t buffer[32768 / 8];
	bool more = fd >= 0 && send(fd, &request, sizeof(request), 0) > 0;

	if (!more)
		n = -1;
	while (more) {
		ssize_t got = recv(fd, buffer, sizeof(buffer), 0);
		struct nlmsghdr *message = (struct nlmsghdr *)buffer;

		if (got <= 0) {
			n = -1;
			break;
		}
		for (uint32_t left = (uint32_t)got; NLMSG_OK(message, left);
		     message = NLMSG_NEXT(message, left)) {
			if (message->nlmsg_type == NLMSG_DONE || message->nlmsg_type == NLMSG_ERROR)
				more = false;
			else if (message->nlmsg_type == RTM_NEWLINK && n < (int)LINKS_MAX)
				link_read(&links[n++], message);
		}
	}
	if (fd >= 0)
		close(fd);
	return n;
}

static bool address_matches(const struct sockaddr *has, const struct udp_address *listen)
{
	const struct sockaddr_in6 *six = (const void *)&listen->storage;
	const struct sockaddr_in *four = (const void *)&listen->storage;

	if (!has || has->sa_family != listen->storage.ss_family)
		return false;
	if (has->sa_family == AF_INET)
		return ((const struct sockaddr_in *)(const void *)has)->sin_addr.s_addr ==
		       four->sin_addr.s_addr;
	return memcmp(&((const struct sockaddr_in6 *)(const void *)has)->sin6_addr, &six->sin6_addr,
	              sizeof(six->sin6_addr)) == 0;
}

static bool is_wildcard(const struct udp_address *listen)
{
	const struct sockaddr_in6 *six = (const void *)&listen->storage;

	if (listen->storage.ss_family == AF_INET6)
		return IN6_IS_ADDR_UNSPECIFIED(&six->sin6_addr);
	return ((const struct sockaddr_in *)(const void *)six)->sin_addr.s_addr == INADDR_ANY;
}

/* Does the interface carry the address? */
static bool carries(const struct link *link, const struct udp_address *listen,
                    const struct ifaddrs *all)
{
	if (is_wildcard(listen))
		return link->flags & IFF_UP && !(link->flags & IFF_LOOPBACK) && !link->master;
	for (; all; all = all->ifa_next)
		if (!strcmp(all->ifa_name, link->name) && address_matches(all->ifa_addr, listen))
			return true;
	return false;
}

static bool is_named(const char *names, const char *name)
{
	size_t length = strlen(name);

	for (const char *at = names; at && *at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
		if (!strncmp(at, name, length) && (at[length] == ',' || !at[length]))
			return true;
	return false;
}

/* Counts further if the array is full. */
static void add(struct xdp_port *ports, unsigned *n, const struct link *link)
{
	if (*n < XDP_INTERFACES_MAX) {
		ports[*n] = (struct xdp_port){ .ifindex = link->index, .mtu = link->mtu };
		memcpy(ports[*n].name, link->name, sizeof(ports[*n].name));
	}
	++*n;
}

/* The first name that no interface has, up to its comma; NULL: all exist. */
static const char *find_missing(const char *names, const struct link *links, int count)
{
	for (const char *at = names; at && *at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
		size_t length = strcspn(at, ",");
		int i = 0;

		while (i < count &&
		       (strlen(links[i].name) != length || strncmp(at, links[i].name, length) != 0))
			i++;
		if (i == count)
			return at;
	}
	return NULL;
}

/*
 * Adds the interface, or the ports of a bridge. A bond has ports too, but takes a
 * program itself and passes it on to them.
 */
static void add_link(const struct link *links, int count, int i, bool is_named_so,
                     struct xdp_port *ports, unsigned *n)
{
	unsigned before = *n;

	for (int j = 0; j < count && !is_named_so && links[i].is_bridge; j++)
		if (links[j].master == links[i].index)
			add(ports, n, &links[j]);
	if (*n == before)
		add(ports, n, &links[i]);
}

static trib_status choose(const struct udp_address *listen, const char *names,
                          const struct link *links, int count, const struct ifaddrs *addresses,
                          struct xdp_port *ports, unsigned *n)
{
	const char *missing = find_missing(names, links, count);
	char text[64];
	bool loopback = false;

	if (missing)
		return status_fail(TRIB_ERR_CONFIG, "there is no interface %.*s",
		                   (int)strcspn(missing, ","), missing);
	for (int i = 0; i < count; i++) {
		if (names ? !is_named(names, links[i].name)
		          : !carries(&links[i], listen, addresses))
			continue;
		/* The loopback has no wire and no Ethernet address. */
		if (links[i].flags & IFF_LOOPBACK)
			loopback = true;
		else
			add_link(links, count, i, names != NULL, ports, n);
	}
	if (*n > XDP_INTERFACES_MAX) {
		unsigned found = *n;

		*n = 0;
		return status_fail(TRIB_ERR_SYSTEM,
		                   "%u interfaces lead to workers, more than %u: name those that "
		                   "are to sum (--interface)",
		                   found, XDP_INTERFACES_MAX);
	}
	if (*n)
		return TRIB_OK;
	if (loopback)
		return status_fail(TRIB_ERR_SYSTEM,
		                   "%s is on the loopback interface, where XDP cannot send",
		                   udp_text(listen, text, sizeof(text)));
	return status_fail(TRIB_ERR_SYSTEM, "no interface has the address %s",
	                   udp_text(listen, text, sizeof(text)));
}

trib_status xdp_ports(const struct udp_address *listen, const char *names, struct xdp_port *ports,
                      unsigned *n)
{
	struct link *links = calloc(LINKS_MAX, sizeof(*links));
	struct ifaddrs *addresses = NULL;
	int count = links ? links_list(links) : -1;
	trib_status status;

	*n = 0;
	if (count < 0 || getifaddrs(&addresses)) {
		free(links);
		return status_fail_errno("cannot list the network interfaces");
	}
	status = choose(listen, names, links, count, addresses, ports, n);
	freeifaddrs(addresses);
	free(links);
	return status;
}
