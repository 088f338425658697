/* SPDX-License-Identifier: Apache-2.0 */
#include "path/egress.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <unistd.h>

#define ANSWER_BYTES 32768u /* the longest datagram of an rtnetlink answer */
#define ANSWER_SECONDS 2    /* timeout; the kernel normally answers at once */

struct question {
	struct nlmsghdr head;
	union {
		struct rtmsg route;
		struct tcmsg qdisc;
	} about;
	uint8_t attributes[128];
};

static void put(struct question *question, uint16_t type, const void *data, size_t bytes)
{
	struct rtattr attr = { .rta_type = type, .rta_len = (uint16_t)RTA_LENGTH(bytes) };
	uint8_t *at = (uint8_t *)question + NLMSG_ALIGN(question->head.nlmsg_len);

	memcpy(at, &attr, sizeof(attr));
	memcpy(at + RTA_LENGTH(0), data, bytes);
	question->head.nlmsg_len =
		(uint32_t)(NLMSG_ALIGN(question->head.nlmsg_len) + RTA_LENGTH(bytes));
}

static trib_status ask(int fd, const struct question *question)
{
	if (send(fd, question, question->head.nlmsg_len, 0) < 0)
		return status_fail_errno("cannot ask the kernel for routes and queues");
	return TRIB_OK;
}

static trib_status hear(int fd, void *answer, size_t *bytes)
{
	ssize_t n;

	do
		n = recv(fd, answer, ANSWER_BYTES, 0);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return status_fail_errno("the kernel does not tell routes and queues");
	*bytes = (size_t)n;
	return TRIB_OK;
}

static trib_status refused(const char *what, int error)
{
	errno = -error;
	return status_fail_errno("cannot find %s", what);
}

/* A multipath route is chosen by addresses, ports and protocol: ask with all of them. */
static trib_status find_route(int netlink, const struct udp_address *own,
                              const struct udp_address *peer, void *answer,
                              struct rtnl_route *route)
{
	struct question question = { .head = { .nlmsg_type = RTM_GETROUTE,
		                               .nlmsg_flags = NLM_F_REQUEST,
		                               .nlmsg_len = NLMSG_LENGTH(sizeof(struct rtmsg)) } };
	uint16_t from = htons(udp_port(own)), to = htons(udp_port(peer));
	uint8_t protocol = IPPROTO_UDP;
	trib_status status;
	size_t bytes;
	int error;

	*route = (struct rtnl_route){ 0 };
	if (peer->storage.ss_family == AF_INET6 &&
	    ((const struct sockaddr_in6 *)&peer->storage)->sin6_scope_id) {
		route->interface = ((const struct sockaddr_in6 *)&peer->storage)->sin6_scope_id;
		return TRIB_OK; /* a link-local address names its interface */
	}
	question.about.route.rtm_family = (uint8_t)peer->storage.ss_family;
	udp_raw(peer, &bytes);
	question.about.route.rtm_dst_len = question.about.route.rtm_src_len = (uint8_t)(8 * bytes);
	put(&question, RTA_DST, udp_raw(peer, &bytes), bytes);
	put(&question, RTA_SRC, udp_raw(own, &bytes), bytes);
	put(&question, RTA_IP_PROTO, &protocol, sizeof(protocol));
	put(&question, RTA_SPORT, &from, sizeof(from));
	put(&question, RTA_DPORT, &to, sizeof(to));
	if ((status = ask(netlink, &question)) || (status = hear(netlink, answer, &bytes)))
		return status;
	error = rtnl_read_route(answer, bytes, route);
	return error ? refused("the interface of a route", error) : TRIB_OK;
}

static trib_status find_interface(int netlink, int fd, void *answer, unsigned *index)
{
	struct udp_address peer = { .length = sizeof(peer.storage) };
	struct udp_address own = { .length = sizeof(own.storage) };
	struct rtnl_route route;
	trib_status status;

	if (getpeername(fd, (void *)&peer.storage, &peer.length) ||
	    getsockname(fd, (void *)&own.storage, &own.length))
		return status_fail_errno("the socket has no peer");
	status = find_route(netlink, &own, &peer, answer, &route);
	*index = route.interface;
	return status;
}

static trib_status find_qdisc(int netlink, unsigned index, void *answer, struct rtnl_qdisc *qdisc)
{
	const struct question question = { .head = { .nlmsg_type = RTM_GETQDISC,
		                                     .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP,
		                                     .nlmsg_len =
		                                             NLMSG_LENGTH(sizeof(struct tcmsg)) } };
	trib_status status = ask(netlink, &question);
	size_t bytes = 0;
	int more = 1;

	*qdisc = (struct rtnl_qdisc){ 0 };
	while (status == TRIB_OK && more > 0) {
		status = hear(netlink, answer, &bytes);
		if (status == TRIB_OK)
			more = rtnl_take_qdiscs(qdisc, (int)index, answer, bytes);
	}
	return status == TRIB_OK && more < 0 ? refused("the queue of an interface", more) : status;
}

static trib_status open_netlink(int *netlink)
{
	struct timeval limit = { .tv_sec = ANSWER_SECONDS };

	*netlink = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	if (*netlink < 0)
		return status_fail_errno("cannot open a netlink socket");
	setsockopt(*netlink, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	return TRIB_OK;
}

trib_status egress_route(const struct udp_address *from, const struct udp_address *to,
                         struct rtnl_route *route)
{
	uint8_t answer[ANSWER_BYTES];
	trib_status status;
	int netlink;

	if ((status = open_netlink(&netlink)))
		return status;
	status = find_route(netlink, from, to, answer, route);
	close(netlink);
	return status;
}

trib_status egress_find(int fd, struct egress *egress)
{
	uint8_t answer[ANSWER_BYTES];
	unsigned index = 0;
	trib_status status;
	int netlink;

	memset(egress, 0, sizeof(*egress));
	if ((status = open_netlink(&netlink)))
		return status;
	status = find_interface(netlink, fd, answer, &index);
	if (status == TRIB_OK && !if_indextoname(index, egress->interface))
		status = status_fail_errno("interface %u has no name", index);
	if (status == TRIB_OK)
		status = find_qdisc(netlink, index, answer, &egress->qdisc);
	close(netlink);
	return status;
}
