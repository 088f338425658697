/* SPDX-License-Identifier: Apache-2.0 */
/* What an interface can do for the plane. It does not attach: attaching may reset a card. */
#include "plane/xdp/xdp.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* From <linux/netdev.h>, which older systems lack. */
#define NETDEV_DEV_GET 1
#define NETDEV_IFINDEX 1
#define NETDEV_XDP_FEATURES 3
/* Basic actions and redirecting. Sending is reported only once a program is attached. */
#define ACT_NEEDED 3u

struct message {
	struct nlmsghdr head;
	struct genlmsghdr kind;
	uint8_t rest[2048];
};

static void put(struct message *message, uint16_t type, const void *data, uint16_t bytes)
{
	uint8_t *at = (uint8_t *)message + NLMSG_ALIGN(message->head.nlmsg_len);
	struct nlattr attribute = { .nla_len = (uint16_t)(NLA_HDRLEN + bytes), .nla_type = type };

	memcpy(at, &attribute, sizeof(attribute));
	memcpy(at + NLA_HDRLEN, data, bytes);
	message->head.nlmsg_len += NLA_HDRLEN + NLA_ALIGN(bytes);
}

/* Sends a request, and copies the answer's attribute of this type to `out`. */
static bool ask(int fd, struct message *message, uint16_t type, void *out, size_t bytes)
{
	struct message answer = { 0 };
	ssize_t got;

	message->head.nlmsg_flags = NLM_F_REQUEST;
	if (send(fd, message, message->head.nlmsg_len, 0) < 0)
		return false;
	got = recv(fd, &answer, sizeof(answer), 0);
	if (got < (ssize_t)(NLMSG_HDRLEN + GENL_HDRLEN) || answer.head.nlmsg_type == NLMSG_ERROR)
		return false;
	for (size_t at = NLMSG_HDRLEN + GENL_HDRLEN; at + NLA_HDRLEN <= (size_t)got;) {
		struct nlattr attribute;

		memcpy(&attribute, (uint8_t *)&answer + at, sizeof(attribute));
		if (attribute.nla_len < NLA_HDRLEN || at + attribute.nla_len > (size_t)got)
			return false;
		if (attribute.nla_type == type && attribute.nla_len >= NLA_HDRLEN + bytes) {
			memcpy(out, (uint8_t *)&answer + at + NLA_HDRLEN, bytes);
			return true;
		}
		at += NLA_ALIGN(attribute.nla_len);
	}
	return false;
}

/* Kernels before 6.3 do not report it. */
static enum xdp_ability driver_ability(unsigned ifindex)
{
	struct message family = { .head = { .nlmsg_len = NLMSG_HDRLEN + GENL_HDRLEN,
		                            .nlmsg_type = GENL_ID_CTRL },
		                  .kind = { .cmd = CTRL_CMD_GETFAMILY, .version = 1 } };
	struct message device = { .head = { .nlmsg_len = NLMSG_HDRLEN + GENL_HDRLEN },
		                  .kind = { .cmd = NETDEV_DEV_GET, .version = 1 } };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC);
	enum xdp_ability ability = XDP_UNKNOWN;
	uint32_t index = ifindex;
	uint64_t features;

	if (fd < 0)
		return XDP_UNKNOWN;
	put(&family, CTRL_ATTR_FAMILY_NAME, "netdev", sizeof("netdev"));
	put(&device, NETDEV_IFINDEX, &index, sizeof(index));
	if (ask(fd, &family, CTRL_ATTR_FAMILY_ID, &device.head.nlmsg_type, sizeof(uint16_t)) &&
	    ask(fd, &device, NETDEV_XDP_FEATURES, &features, sizeof(features)))
		ability = (features & ACT_NEEDED) == ACT_NEEDED ? XDP_ABLE
		          : features & 1                        ? XDP_PARTLY
		                                                : XDP_UNABLE;
	close(fd);
	return ability;
}

static void name_program(uint32_t id, char *out, size_t size)
{
	struct bpf_prog_info info = { 0 };
	uint32_t length = sizeof(info);
	int fd = bpf_prog_get_fd_by_id(id); /* needs CAP_SYS_ADMIN */

	if (fd >= 0) {
		bpf_obj_get_info_by_fd(fd, &info, &length);
		close(fd);
	}
	snprintf(out, size, "%s (id %u)", info.name[0] ? info.name : "a program", id);
}

void xdp_probe(unsigned ifindex, struct xdp_probe *out)
{
	LIBBPF_OPTS(bpf_xdp_query_opts, query);
	uint32_t id = 0;

	*out = (struct xdp_probe){ .driver = driver_ability(ifindex) };
	if (!bpf_xdp_query((int)ifindex, 0, &query))
		id = query.prog_id       ? query.prog_id
		     : query.drv_prog_id ? query.drv_prog_id
		     : query.hw_prog_id  ? query.hw_prog_id
		                         : query.skb_prog_id;
	if (id)
		name_program(id, out->other, sizeof(out->other));
}
