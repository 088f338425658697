/* SPDX-License-Identifier: Apache-2.0 */
#include "nccl_endpoint.h"
#include "plugin.h"

#include "base/clock.h"
#include "path/tcp.h"

#include <netinet/tcp.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define UNANSWERED 2 /* packets, before a peer can count as silent */

static int at_least_one(uint64_t value)
{
	return value > 1 ? (int)value : 1;
}

void endpoint_keep_alive(int fd)
{
	uint64_t timeout = plugin_timeout() / NSEC_PER_SEC;
	int one = 1, idle = at_least_one(timeout / 2), every = at_least_one(timeout / 8);
	int times = at_least_one(timeout / 2 / (uint64_t)every);

	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &every, sizeof(every));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &times, sizeof(times));
}

bool endpoint_is_silent(int fd)
{
	struct tcp_info info;
	socklen_t length = sizeof(info);

	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length))
		return false;
	return info.tcpi_retransmits + info.tcpi_probes >= UNANSWERED &&
	       info.tcpi_last_ack_recv >= plugin_timeout() / 1000000;
}

trib_status endpoint_draw(void *bytes, size_t n)
{
	return getrandom(bytes, n, 0) == (ssize_t)n ? TRIB_OK
	                                            : status_fail_errno("no random numbers");
}

trib_status endpoint_listen(enum greeting_kind kind, struct handle *handle, int *fd)
{
	const struct device *device = device_get();
	trib_status status;

	*fd = -1;
	memset(handle, 0, sizeof(*handle));
	if (!device)
		return status_fail(TRIB_ERR_CONFIG, "there is no network interface");
	handle->kind = kind;
	handle->address = device->address;
	status = endpoint_draw(handle->cookie, sizeof(handle->cookie));
	if (status == TRIB_OK)
		status = tcp_listen(&device->address, fd);
	if (status == TRIB_OK &&
	    getsockname(*fd, (void *)&handle->address.storage, &handle->address.length)) {
		status = status_fail_errno("cannot learn the port");
		close(*fd);
		*fd = -1;
	}
	return status;
}
