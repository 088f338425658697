/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets, datagrams to the peer, and waking the library's thread. */
#include "base/clock.h"
#include "tribverbs.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define PORT_FIRST 12000u /* the port of a QP is this and its number, modulo PORTS */
#define PORTS 20000u

static int wake_fd = -1;

static uint16_t port_of(uint32_t qpn)
{
	return htons((uint16_t)(PORT_FIRST + qpn % PORTS));
}

static struct in_addr address_in(const uint8_t gid[16])
{
	struct in_addr address;

	memcpy(&address, gid + 12, sizeof(address));
	return address;
}

int agreement_socket(const uint8_t own[16], uint32_t qpn)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
		                  .sin_port = port_of(qpn),
		                  .sin_addr = address_in(own) };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), on = 1;

	if (fd < 0)
		return -1;
	if (bind(fd, (struct sockaddr *)&at, sizeof(at)) != 0 ||
	    setsockopt(fd, IPPROTO_IP, IP_RECVERR, &on, sizeof(on)) != 0) {
		int error = errno;

		close(fd);
		errno = error;
		return -1;
	}
	return fd;
}

static void send_to(const struct link_qp *link, unsigned from, const uint8_t to[16],
                    const uint8_t *bytes, size_t n)
{
	struct sockaddr_in peer = { .sin_family = AF_INET,
		                    .sin_port = port_of(link->rtr.dest_qp_num),
		                    .sin_addr = address_in(to) };

	(void)!sendto(link->sockets[from], bytes, n, MSG_DONTWAIT | MSG_NOSIGNAL,
	              (struct sockaddr *)&peer, sizeof(peer));
}

unsigned agreement_own_path(const struct link_qp *link)
{
	for (unsigned i = 0; i < link->own.n_paths; i++)
		if (link->gid_index[i] == link->rtr.ah_attr.grh.sgid_index)
			return i;
	return 0;
}

/* On all paths, since any of them may be cut. */
void agreement_tell(struct link_qp *link, uint64_t now)
{
	uint8_t bytes[PACT_BYTES_MAX];
	size_t n = pact_write(&link->own, bytes);

	link->asked = now;
	link->wants_send = false;
	if (!link->n_paths)
		send_to(link, agreement_own_path(link), link->rtr.ah_attr.grh.dgid.raw, bytes, n);
	for (unsigned i = 0; i < link->n_paths; i++)
		send_to(link, i, link->peer.paths[i].address, bytes, n);
}

void agreement_leave(struct link_qp *link)
{
	if (link->own.leaving)
		return;
	link->own.leaving = true;
	link->own.serial++;
	agreement_tell(link, clock_now());
}

/* The first datagram comes from the address to which the program has connected its QP. */
bool agreement_is_from_peer(const struct link_qp *link, const struct sockaddr_in *from)
{
	struct in_addr peer = address_in(link->rtr.ah_attr.grh.dgid.raw);
	bool known = from->sin_addr.s_addr == peer.s_addr;

	for (unsigned i = 0; i < link->n_paths; i++) {
		peer = address_in(link->peer.paths[i].address);
		known = known || from->sin_addr.s_addr == peer.s_addr;
	}
	return known && from->sin_port == port_of(link->rtr.dest_qp_num);
}

int agreement_wake_open(void)
{
	wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return wake_fd;
}

void agreement_wake(void)
{
	uint64_t one = 1;

	if (wake_fd >= 0)
		(void)!write(wake_fd, &one, sizeof(one));
}
