/* SPDX-License-Identifier: Apache-2.0 */
#include "net/kernel/netlink.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int nl_open(void)
{
	struct sockaddr_nl own = { .nl_family = AF_NETLINK };
	int one = 1;
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

	if (fd < 0)
		return -1;
	/* Without this option an error message contains the whole request. */
	setsockopt(fd, SOL_NETLINK, NETLINK_CAP_ACK, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&own, sizeof(own)) < 0) {
		int error = errno;

		close(fd);
		errno = error;
		return -1;
	}
	return fd;
}

/* Reserves `bytes` more, aligned and zeroed. */
static void *nl_reserve(struct nl_request *request, size_t bytes)
{
	size_t at = NLMSG_ALIGN(request->head.nlmsg_len);

	assert(at + NLMSG_ALIGN(bytes) <= sizeof(*request));
	request->head.nlmsg_len = (uint32_t)(at + bytes);
	return memset((char *)request + at, 0, NLMSG_ALIGN(bytes));
}

void nl_start(struct nl_request *request, uint16_t type, uint16_t flags, const void *fixed,
              size_t bytes)
{
	request->head = (struct nlmsghdr){
		.nlmsg_len = NLMSG_HDRLEN,
		.nlmsg_type = type,
		.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | flags,
	};
	memcpy(nl_reserve(request, bytes), fixed, bytes);
}

void nl_put(struct nl_request *request, uint16_t type, const void *data, size_t bytes)
{
	struct rtattr *attr = nl_reserve(request, RTA_LENGTH(bytes));

	attr->rta_type = type;
	attr->rta_len = (uint16_t)RTA_LENGTH(bytes);
	if (bytes)
		memcpy(RTA_DATA(attr), data, bytes);
}

void nl_put_text(struct nl_request *request, uint16_t type, const char *text)
{
	nl_put(request, type, text, strlen(text) + 1);
}

void nl_put_u32(struct nl_request *request, uint16_t type, uint32_t value)
{
	nl_put(request, type, &value, sizeof(value));
}

struct rtattr *nl_nest(struct nl_request *request, uint16_t type)
{
	struct rtattr *nest = nl_reserve(request, RTA_LENGTH(0));

	nest->rta_type = type;
	return nest;
}

void nl_nest_end(struct nl_request *request, struct rtattr *nest)
{
	char *end = (char *)request + request->head.nlmsg_len;

	nest->rta_len = (uint16_t)(end - (char *)nest);
}

int nl_talk(int fd, struct nl_request *request)
{
	struct {
		struct nlmsghdr head;
		struct nlmsgerr result;
		char more[512];
	} answer;
	ssize_t n;

	if (send(fd, request, request->head.nlmsg_len, 0) < 0)
		return -1;
	do {
		n = recv(fd, &answer, sizeof(answer), 0);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -1;
	if ((size_t)n < NLMSG_LENGTH(sizeof(answer.result)) ||
	    answer.head.nlmsg_type != NLMSG_ERROR) {
		errno = EPROTO;
		return -1;
	}
	if (answer.result.error) {
		errno = -answer.result.error;
		return -1;
	}
	return 0;
}
