/* SPDX-License-Identifier: Apache-2.0 */
#include "path/virtual/hop_probe.h"

#include <errno.h>
#include <linux/errqueue.h>
#include <linux/icmpv6.h>
#include <netinet/ip_icmp.h>
#include <string.h>
#include <unistd.h>

static trib_status prepare(struct virtual_path *path, int fd)
{
	bool six = path->from.storage.ss_family == AF_INET6;
	char from[64], to[64];
	int on = 1;

	if (setsockopt(fd, six ? SOL_IPV6 : SOL_IP, six ? IPV6_RECVERR : IP_RECVERR, &on,
	               sizeof(on)) ||
	    getsockname(fd, (void *)&path->from.storage, &path->from.length))
		return status_fail_errno("cannot look for paths from %s to %s",
		                         udp_text(&path->from, from, sizeof(from)),
		                         udp_text(&path->to, to, sizeof(to)));
	return TRIB_OK;
}

trib_status hop_probe_open(struct virtual_path *path, int *fd)
{
	/* An answer takes as much of the buffer as the driver has reserved for a packet. */
	const struct udp_options options = { .receive_bytes = 65536, .send_bytes = 65536 };
	trib_status status;
	bool gso;

	status = udp_open(&path->from, &path->to, &options, fd, &gso);
	if (status == TRIB_OK && (status = prepare(path, *fd)))
		close(*fd);
	return status;
}

bool hop_probe_send(int fd, unsigned hop)
{
	uint8_t payload = (uint8_t)hop; /* a router quotes it */
	int ttl = (int)hop + 1, family = AF_UNSPEC;
	socklen_t length = sizeof(family);
	bool six;

	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &length))
		return false;
	six = family == AF_INET6;
	return setsockopt(fd, six ? SOL_IPV6 : SOL_IP, six ? IPV6_UNICAST_HOPS : IP_TTL, &ttl,
	                  sizeof(ttl)) == 0 &&
	       send(fd, &payload, sizeof(payload), MSG_DONTWAIT) == sizeof(payload);
}

static enum hop_answer read_error(const struct cmsghdr *head, struct path_hop *told)
{
	struct {
		struct sock_extended_err error;
		union {
			struct sockaddr any;
			struct sockaddr_in four;
			struct sockaddr_in6 six;
		} offender;
	} said;
	size_t bytes = head->cmsg_len - CMSG_LEN(0);

	memset(&said, 0, sizeof(said));
	memcpy(&said, CMSG_DATA(head), bytes < sizeof(said) ? bytes : sizeof(said));
	memset(told, 0, sizeof(*told));
	if (said.error.ee_origin == SO_EE_ORIGIN_ICMP && said.error.ee_type == ICMP_TIME_EXCEEDED &&
	    said.offender.any.sa_family == AF_INET) {
		memcpy(told->raw, &said.offender.four.sin_addr, 4);
		return HOP_TOLD;
	}
	if (said.error.ee_origin == SO_EE_ORIGIN_ICMP6 &&
	    said.error.ee_type == ICMPV6_TIME_EXCEED && said.offender.any.sa_family == AF_INET6) {
		memcpy(told->raw, &said.offender.six.sin6_addr, 16);
		return HOP_TOLD;
	}
	return said.error.ee_errno == ECONNREFUSED ? HOP_REACHED : HOP_REFUSED;
}

enum hop_answer hop_probe_take(int fd, unsigned hop, struct path_hop *told)
{
	union {
		struct cmsghdr head;
		uint8_t bytes[256];
	} control;
	uint8_t payload = 0;
	struct iovec data = { &payload, sizeof(payload) };
	struct msghdr message = { .msg_iov = &data,
		                  .msg_iovlen = 1,
		                  .msg_control = &control,
		                  .msg_controllen = sizeof(control) };
	ssize_t n = recvmsg(fd, &message, MSG_ERRQUEUE | MSG_DONTWAIT);

	if (n < 0)
		return HOP_NONE;
	/* Not all routers quote what the datagram contained. */
	if (n == sizeof(payload) && payload != hop)
		return HOP_STALE;
	for (struct cmsghdr *i = CMSG_FIRSTHDR(&message); i; i = CMSG_NXTHDR(&message, i))
		if ((i->cmsg_level == SOL_IP && i->cmsg_type == IP_RECVERR) ||
		    (i->cmsg_level == SOL_IPV6 && i->cmsg_type == IPV6_RECVERR))
			return read_error(i, told);
	return HOP_STALE;
}
