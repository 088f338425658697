/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rate of an interface. A shaper (tbf) on it is the real limit. Without one, the driver's speed
 * is taken. The speed of a virtual interface means nothing, but nothing better is known.
 */
#include "control/agent/host_info.h"

#include <linux/ethtool.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define ANSWER_BYTES 65536

static const void *attribute(const struct rtattr *first, int bytes, unsigned short type,
                             size_t least)
{
	for (const struct rtattr *at = first; RTA_OK(at, bytes); at = RTA_NEXT(at, bytes))
		if ((at->rta_type & NLA_TYPE_MASK) == type)
			return RTA_PAYLOAD(at) >= least ? RTA_DATA(at) : NULL;
	return NULL;
}

/* Bytes per second, if this is a tbf at the root of the interface; else 0. */
static uint64_t tbf_rate(const struct nlmsghdr *head, int index)
{
	const struct tcmsg *message = NLMSG_DATA(head);
	const struct rtattr *first = TCA_RTA(message), *options = NULL;
	int bytes = (int)TCA_PAYLOAD(head);
	const char *kind = attribute(first, bytes, TCA_KIND, sizeof("tbf"));
	const struct tc_tbf_qopt *tbf;
	const uint64_t *wide;
	uint64_t rate;

	if (message->tcm_ifindex != index || message->tcm_parent != TC_H_ROOT || !kind ||
	    strcmp(kind, "tbf"))
		return 0;
	for (const struct rtattr *at = first; RTA_OK(at, bytes); at = RTA_NEXT(at, bytes))
		if ((at->rta_type & NLA_TYPE_MASK) == TCA_OPTIONS)
			options = at;
	if (!options)
		return 0;
	tbf = attribute(RTA_DATA(options), (int)RTA_PAYLOAD(options), TCA_TBF_PARMS, sizeof(*tbf));
	wide = attribute(RTA_DATA(options), (int)RTA_PAYLOAD(options), TCA_TBF_RATE64,
	                 sizeof(*wide));
	if (!tbf)
		return 0;
	if (!wide)
		return tbf->rate.rate;
	memcpy(&rate, wide, sizeof(rate)); /* attributes lie at multiples of four */
	return rate;
}

static uint64_t shaped_rate(int index)
{
	struct {
		struct nlmsghdr head;
		struct tcmsg message;
	} ask = { .head = { .nlmsg_len = sizeof(ask),
		            .nlmsg_type = RTM_GETQDISC,
		            .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP },
		  .message = { .tcm_ifindex = index } };
	static _Thread_local uint64_t answer[ANSWER_BYTES / 8];
	struct timeval wait = { .tv_sec = 1 };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	uint64_t rate = 0;
	ssize_t n;

	if (fd < 0)
		return 0;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
	if (send(fd, &ask, sizeof(ask), 0) != sizeof(ask)) {
		close(fd);
		return 0;
	}
	while ((n = recv(fd, answer, sizeof(answer), 0)) > 0) {
		const struct nlmsghdr *head = (const void *)answer;

		for (; NLMSG_OK(head, n); head = NLMSG_NEXT(head, n)) {
			if (head->nlmsg_type != RTM_NEWQDISC) {
				close(fd); /* the end, or an error */
				return rate;
			}
			if (!rate)
				rate = tbf_rate(head, index);
		}
	}
	close(fd);
	return rate;
}

/* A socket is in our network namespace; /sys may show another one. */
static uint64_t driver_rate(const char *interface)
{
	struct ethtool_cmd command = { .cmd = ETHTOOL_GSET };
	struct ifreq request = { .ifr_data = (void *)&command };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	uint32_t megabits = 0;

	if (fd < 0)
		return 0;
	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", interface);
	if (ioctl(fd, SIOCETHTOOL, &request) == 0)
		megabits = ethtool_cmd_speed(&command);
	close(fd);
	return megabits == (uint32_t)SPEED_UNKNOWN ? 0 : (uint64_t)megabits * 1000000;
}

uint64_t link_rate(const char *interface)
{
	unsigned index = if_nametoindex(interface);
	uint64_t rate = index ? shaped_rate((int)index) * 8 : 0;

	return rate ? rate : driver_rate(interface);
}
