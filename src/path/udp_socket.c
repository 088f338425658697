/* SPDX-License-Identifier: Apache-2.0 */
#include "path/udp.h"

#include "base/log.h"

#include <errno.h>
#include <linux/net_tstamp.h>
#include <netinet/udp.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void set_option(int fd, int level, int name, int value)
{
	/* Optional: an older kernel lacks some of these options. */
	if (setsockopt(fd, level, name, &value, sizeof(value)))
		log_debug("setsockopt %d/%d: %s", level, name, strerror(errno));
}

/* The FORCE options ignore the system's limits and need root; otherwise the kernel caps the size.
 */
static void set_send_bytes(int fd, int bytes)
{
	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes)))
		set_option(fd, SOL_SOCKET, SO_SNDBUF, bytes);
}

static void set_buffers(int fd, const struct udp_options *options)
{
	int in = options->receive_bytes;

	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &in, sizeof(in)))
		set_option(fd, SOL_SOCKET, SO_RCVBUF, in);
	set_send_bytes(fd, options->send_bytes);
}

static bool set_common(int fd, const struct udp_options *options)
{
	int zero = 0;

	set_buffers(fd, options);
	if (options->busy_poll)
		set_option(fd, SOL_SOCKET, SO_BUSY_POLL, (int)options->busy_poll);
	if (!options->offload)
		return false;
	set_option(fd, SOL_UDP, UDP_GRO, 1);
	return setsockopt(fd, SOL_UDP, UDP_SEGMENT, &zero, sizeof(zero)) == 0;
}

trib_status udp_open(const struct udp_address *bind_to, const struct udp_address *peer,
                     const struct udp_options *options, int *fd, bool *gso)
{
	int family = (bind_to ? bind_to : peer)->storage.ss_family;
	char text[64];
	int s = socket(family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (s < 0)
		return status_fail_errno("cannot open a UDP socket");
	*gso = set_common(s, options);
	/* Never fragment: a packet that is too long must be an error. */
	if (family == AF_INET) {
		set_option(s, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO);
	} else {
		set_option(s, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_DO);
		/* The XDP plane sends no UDP checksum: every packet carries our own. */
		set_option(s, SOL_UDP, UDP_NO_CHECK6_RX, 1);
	}
	if (options->shares_port)
		set_option(s, SOL_SOCKET, SO_REUSEADDR, 1);
	if (bind_to && bind(s, (const void *)&bind_to->storage, bind_to->length)) {
		trib_status status = status_fail_errno("cannot listen on %s",
		                                       udp_text(bind_to, text, sizeof(text)));
		close(s);
		return status;
	}
	if (peer && connect(s, (const void *)&peer->storage, peer->length)) {
		trib_status status =
			status_fail_errno("no route to %s", udp_text(peer, text, sizeof(text)));
		close(s);
		return status;
	}
	*fd = s;
	return TRIB_OK;
}

trib_status udp_open_group(struct in_addr group, uint16_t port, struct in_addr local,
                           const struct udp_options *options, int *fd)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
		                       .sin_port = htons(port),
		                       .sin_addr = group };
	struct ip_mreq member = { .imr_multiaddr = group, .imr_interface = local };
	int s = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (s < 0)
		return status_fail_errno("cannot open a UDP socket");
	set_common(s, options);
	/* Several workers of one host listen to the same multicast group and port. */
	set_option(s, SOL_SOCKET, SO_REUSEADDR, 1);
	set_option(s, IPPROTO_IP, IP_MULTICAST_ALL, 0);
	if (bind(s, (const void *)&address, sizeof(address)) ||
	    setsockopt(s, IPPROTO_IP, IP_ADD_MEMBERSHIP, &member, sizeof(member))) {
		trib_status status = status_fail_errno("cannot join the multicast group");
		close(s);
		return status;
	}
	*fd = s;
	return TRIB_OK;
}

bool udp_let_times(int fd)
{
	struct sock_txtime times = { .clockid = CLOCK_MONOTONIC };

	return setsockopt(fd, SOL_SOCKET, SO_TXTIME, &times, sizeof(times)) == 0;
}

void udp_let_stamps(int fd)
{
	set_option(fd, SOL_SOCKET, SO_TIMESTAMPNS, 1);
}

uint32_t udp_send_room(int fd, int wanted)
{
	int bytes = 0;
	socklen_t length = sizeof(bytes);

	if (wanted)
		set_send_bytes(fd, wanted);
	if (getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, &length) || bytes < 0)
		return 0;
	return (uint32_t)bytes;
}

unsigned udp_mtu(int fd)
{
	int mtu = 0;
	socklen_t length = sizeof(mtu);

	if (getsockopt(fd, IPPROTO_IP, IP_MTU, &mtu, &length) &&
	    getsockopt(fd, IPPROTO_IPV6, IPV6_MTU, &mtu, &length))
		return 0;
	return mtu > 0 ? (unsigned)mtu : 0;
}

unsigned udp_group_mtu(const struct udp_address *local)
{
	struct in_addr from = ((const struct sockaddr_in *)&local->storage)->sin_addr;
	/* Any multicast address will do: nothing is sent. */
	struct sockaddr_in group = { .sin_family = AF_INET,
		                     .sin_port = htons(9),
		                     .sin_addr.s_addr = htonl(0xefff0001u) };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	unsigned mtu = 0;

	if (fd < 0)
		return 0;
	if (!setsockopt(fd, IPPROTO_IP, IP_MULTICAST_IF, &from, sizeof(from)) &&
	    !connect(fd, (const void *)&group, sizeof(group)))
		mtu = udp_mtu(fd);
	close(fd);
	return mtu;
}

unsigned udp_route_mtu(const struct udp_address *peer)
{
	struct udp_options options = { .receive_bytes = 4096, .send_bytes = 4096 };
	unsigned mtu;
	bool gso;
	int fd = -1;

	if (udp_open(NULL, peer, &options, &fd, &gso) != TRIB_OK)
		return 0;
	mtu = udp_mtu(fd);
	close(fd);
	return mtu;
}
