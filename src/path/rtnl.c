/* SPDX-License-Identifier: Apache-2.0 */
#include "path/rtnl.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <string.h>

/* The unread bytes. They may be unaligned, so fields are copied out. */
struct reader {
	const uint8_t *at;
	size_t left;
};

_Static_assert(RTA_ALIGNTO == NLMSG_ALIGNTO, "attributes and messages have the same padding");

/* Takes `length` bytes and their padding. Their content is behind the head; false: they are cut. */
static bool take_block(struct reader *reader, size_t head, size_t length, struct reader *content)
{
	size_t step = RTA_ALIGN(length);

	if (length < head || length > reader->left)
		return false;
	content->at = reader->at + head;
	content->left = length - head;
	if (step > reader->left)
		step = reader->left;
	reader->at += step;
	reader->left -= step;
	return true;
}

/* The next attribute and its content; false: none is left, or it is cut short. */
static bool next_attribute(struct reader *reader, struct rtattr *attr, struct reader *content)
{
	if (reader->left < sizeof(*attr))
		return false;
	memcpy(attr, reader->at, sizeof(*attr));
	return take_block(reader, RTA_LENGTH(0), attr->rta_len, content);
}

/* The next message and its content; false: none is left, or it is cut short. */
static bool next_message(struct reader *reader, struct nlmsghdr *head, struct reader *content)
{
	if (reader->left < sizeof(*head))
		return false;
	memcpy(head, reader->at, sizeof(*head));
	return take_block(reader, NLMSG_HDRLEN, head->nlmsg_len, content);
}

static bool take(struct reader *reader, void *out, size_t bytes)
{
	if (reader->left < bytes)
		return false;
	memcpy(out, reader->at, bytes);
	reader->at += bytes;
	reader->left -= bytes;
	return true;
}

static uint32_t read_u32(struct reader content)
{
	uint32_t value = 0;

	take(&content, &value, sizeof(value));
	return value;
}

/* The result in an error message or at the end of an answer: 0 or -errno. */
static int read_error(struct reader content)
{
	int32_t error = (int32_t)read_u32(content);

	return error <= 0 && error > -4096 ? (int)error : -EPROTO;
}

static uint32_t read_flow_limit(struct reader options)
{
	struct reader content;
	struct rtattr attr;
	uint32_t limit = 0;

	while (next_attribute(&options, &attr, &content))
		if (attr.rta_type == TCA_FQ_FLOW_PLIMIT)
			limit = read_u32(content);
	return limit;
}

static void take_qdisc(struct rtnl_qdisc *qdisc, int index, struct reader message)
{
	struct reader content, options = { 0 };
	char kind[RTNL_KIND] = "";
	struct rtattr attr;
	struct tcmsg about;
	uint32_t limit;

	if (!take(&message, &about, sizeof(about)) || about.tcm_ifindex != index)
		return;
	while (next_attribute(&message, &attr, &content)) {
		size_t bytes = content.left < RTNL_KIND - 1 ? content.left : RTNL_KIND - 1;

		if (attr.rta_type == TCA_KIND) {
			memset(kind, 0, sizeof(kind));
			memcpy(kind, content.at, bytes);
		} else if (attr.rta_type == TCA_OPTIONS) {
			options = content;
		}
	}
	if (about.tcm_parent == TC_H_ROOT) {
		memcpy(qdisc->kind, kind, sizeof(kind));
		qdisc->handle = about.tcm_handle;
	} else if (*qdisc->kind && TC_H_MAJ(about.tcm_parent) == TC_H_MAJ(qdisc->handle)) {
		qdisc->leaves++; /* the kernel tells the root first */
		qdisc->fair += !strcmp(kind, "fq");
	}
	limit = strcmp(kind, "fq") ? 0 : read_flow_limit(options);
	if (limit && (!qdisc->flow_limit || limit < qdisc->flow_limit))
		qdisc->flow_limit = limit;
}

int rtnl_take_qdiscs(struct rtnl_qdisc *qdisc, int index, const void *data, size_t bytes)
{
	struct reader reader = { data, bytes }, content;
	struct nlmsghdr head;

	while (next_message(&reader, &head, &content)) {
		if (head.nlmsg_type == NLMSG_DONE || head.nlmsg_type == NLMSG_ERROR)
			return read_error(content);
		if (head.nlmsg_type == RTM_NEWQDISC)
			take_qdisc(qdisc, index, content);
	}
	return reader.left ? -EPROTO : 1;
}

bool rtnl_is_fair(const struct rtnl_qdisc *qdisc)
{
	if (!strcmp(qdisc->kind, "mq"))
		return qdisc->leaves && qdisc->fair == qdisc->leaves;
	return !strcmp(qdisc->kind, "fq");
}

static void take_gateway(struct rtnl_route *route, struct reader address)
{
	if (address.left != 4 && address.left != 16)
		return;
	memcpy(route->gateway, address.at, address.left);
	route->gateway_size = (unsigned)address.left;
}

static void take_route(struct rtnl_route *route, struct reader content)
{
	struct reader value;
	struct rtattr attr;
	uint16_t family;

	while (next_attribute(&content, &attr, &value)) {
		if (attr.rta_type == RTA_OIF && (int32_t)read_u32(value) > 0)
			route->interface = read_u32(value);
		else if (attr.rta_type == RTA_GATEWAY ||
		         (attr.rta_type == RTA_VIA && take(&value, &family, sizeof(family))))
			take_gateway(route, value);
	}
}

int rtnl_read_route(const void *data, size_t bytes, struct rtnl_route *route)
{
	struct reader reader = { data, bytes }, content;
	struct nlmsghdr head;
	struct rtmsg about;

	*route = (struct rtnl_route){ 0 };
	while (next_message(&reader, &head, &content)) {
		int error = head.nlmsg_type == NLMSG_ERROR ? read_error(content) : 0;

		if (error)
			return error;
		if (head.nlmsg_type != RTM_NEWROUTE || !take(&content, &about, sizeof(about)))
			continue;
		take_route(route, content);
		if (route->interface)
			return 0;
	}
	return -EPROTO;
}
