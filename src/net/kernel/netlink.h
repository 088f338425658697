/* SPDX-License-Identifier: Apache-2.0 */
/*
 * netlink: requests to the kernel's rtnetlink, built by hand, so that a virtual cluster needs
 * neither the ip nor the tc program. A socket belongs to the namespace in which it was
 * opened, whatever namespace the thread enters later.
 */
#ifndef TRIB_NET_KERNEL_NETLINK_H
#define TRIB_NET_KERNEL_NETLINK_H

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stddef.h>
#include <stdint.h>

struct nl_request {
	struct nlmsghdr head;
	char body[2048];
};

/* A file descriptor, or -1 with errno. */
int nl_open(void);

/* `fixed` is the struct at the start of the message type, e.g. ifinfomsg. */
void nl_start(struct nl_request *request, uint16_t type, uint16_t flags, const void *fixed,
              size_t bytes);
void nl_put(struct nl_request *request, uint16_t type, const void *data, size_t bytes);
void nl_put_text(struct nl_request *request, uint16_t type, const char *text);
void nl_put_u32(struct nl_request *request, uint16_t type, uint32_t value);

/* Attributes put between the two calls are inside the nest. */
struct rtattr *nl_nest(struct nl_request *request, uint16_t type);
void nl_nest_end(struct nl_request *request, struct rtattr *nest);

/* Sends and waits for the kernel's answer: 0, or -1 with errno. */
int nl_talk(int fd, struct nl_request *request);

#endif
