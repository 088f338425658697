/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A result that leaves in several copies: two interfaces, with two children behind one of them.
 * Frames really cross veth links, in a namespace of the test.
 */
#include "net/kernel/link.h"
#include "net/kernel/netlink.h"
#include "xdp_rig.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/veth.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define LINKS 2
#define CHILDREN 4u
#define CELLS 16u
#define PAYLOAD 512u

static struct rig rig;
static struct netns ns;
static int sockets[LINKS]; /* at the children's ends */
static unsigned ports[LINKS];
static uint64_t missing; /* copies that did not arrive */

static void link_pair(const char *port, const char *host)
{
	struct ifinfomsg info = { .ifi_flags = IFF_UP, .ifi_change = IFF_UP };
	struct ifinfomsg none = { 0 };
	struct rtattr *about, *data, *peer;
	struct nl_request request;

	nl_start(&request, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, &info, sizeof(info));
	nl_put_text(&request, IFLA_IFNAME, port);
	about = nl_nest(&request, IFLA_LINKINFO);
	nl_put_text(&request, IFLA_INFO_KIND, "veth");
	data = nl_nest(&request, IFLA_INFO_DATA);
	peer = nl_nest(&request, VETH_INFO_PEER);
	/*
	 * The peer's ifinfomsg has no header of its own in the nest, and precedes its attributes.
	 */
	memcpy((char *)&request + request.head.nlmsg_len, &none, sizeof(none));
	request.head.nlmsg_len += sizeof(none);
	nl_put_text(&request, IFLA_IFNAME, host);
	nl_nest_end(&request, peer);
	nl_nest_end(&request, data);
	nl_nest_end(&request, about);
	demand(nl_talk(ns.nl, &request) == 0);
	demand(link_set_up(&ns, host) == TRIB_OK);
}

static int socket_at(unsigned ifindex)
{
	struct sockaddr_ll address = { .sll_family = AF_PACKET,
		                       .sll_protocol = htons(ETH_P_ALL),
		                       .sll_ifindex = (int)ifindex };
	struct timeval patience = { .tv_sec = 5 }; /* reached only if a packet is lost */
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(ETH_P_ALL));

	demand(fd >= 0);
	demand(bind(fd, (const void *)&address, sizeof(address)) == 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	return fd;
}

/*
 * The program is at the ports. The other ends have one too, because a veth otherwise drops frames
 * sent by XDP.
 */
static void links_up(void)
{
	static const char *const names[LINKS][2] = { { "a0", "a1" }, { "b0", "b1" } };

	if (unshare(CLONE_NEWNET)) {
		printf("skipped: no right to a network namespace\n");
		exit(77);
	}
	ns.nl = nl_open();
	demand(ns.nl >= 0);
	for (unsigned i = 0; i < LINKS; i++) {
		link_pair(names[i][0], names[i][1]);
		for (unsigned end = 0; end < 2; end++) {
			unsigned ifindex = link_index(&ns, names[i][end]);

			demand(xdp_attach(rig.plane, ifindex, true) == TRIB_OK);
			if (end)
				sockets[i] = socket_at(ifindex);
			else
				ports[i] = ifindex;
		}
	}
}

/* Which children are behind which link, and how they are reached. */
struct layout {
	uint8_t link[CHILDREN];
	bool six[CHILDREN];
};

static void child_send(const struct layout *layout, unsigned child, const struct frame *frame)
{
	demand(send(sockets[layout->link[child]], frame->data, frame->bytes, 0) ==
	       (ssize_t)frame->bytes);
}

static const struct shape *shape_of(const struct layout *layout, unsigned child)
{
	return layout->six[child] ? &shape_six : &shape_plain;
}

static void learn_routes(const struct layout *layout)
{
	static struct packet packet;
	static struct frame frame;
	struct udp_address from;

	for (uint8_t child = 0; child < CHILDREN; child++) {
		volatile struct xdp_seen *seen = &rig.lane->seen[child];

		frame_make(&frame, shape_of(layout, child), child, &packet,
		           packet_report(&packet, child));
		child_send(layout, child, &frame);
		for (unsigned i = 0; !seen->ifindex && i < 2000; i++)
			usleep(1000);
		demand(seen->ifindex == ports[layout->link[child]]);
		child_address(child, layout->six[child], &from);
		xdp_handle_route(rig.handle, child, &from);
		demand(rig.lane->routes[child].ifindex == ports[layout->link[child]]);
	}
	demand(rig.lane->entries == CHILDREN);
}

/* The next frame for a child. False: none came. */
static bool next_result(unsigned link, struct frame *frame, unsigned *child)
{
	static const uint8_t prefix[] = { 2, 0, 0, 0, 1 };

	for (;;) {
		ssize_t got = recv(sockets[link], frame->data, sizeof(frame->data), 0);

		if (got < 0 && (errno == EAGAIN || errno == EINTR))
			return false;
		demand(got > 0);
		frame->bytes = (uint32_t)got;
		*child = frame->data[5];
		if (!memcmp(frame->data, prefix, sizeof(prefix)) && *child < CHILDREN)
			return true;
	}
}

/* The fragment of this result, counted from `first`. */
static uint64_t which(const struct frame *frame, bool six, uint64_t first)
{
	uint32_t at = ETH_HLEN + (six ? 40 : 20) + 8;
	struct wire_header header;

	demand(frame->bytes >= at + sizeof(header));
	memcpy(&header, frame->data + at, sizeof(header));
	return header.pos - first;
}

/*
 * Every child gets its own copy of each result once, on its own link. Other cores may send the next
 * one first.
 */
static void collect(const struct layout *layout, uint64_t first, uint64_t n)
{
	static struct frame frame;
	uint64_t got[CHILDREN] = { 0 }, seen[CHILDREN] = { 0 };
	unsigned child;

	for (unsigned link = 0; link < LINKS; link++) {
		uint64_t wanted = 0;

		for (child = 0; child < CHILDREN; child++)
			wanted += layout->link[child] == link ? n : 0;
		while (wanted && next_result(link, &frame, &child)) {
			uint64_t i = which(&frame, layout->six[child], first);

			demand(layout->link[child] == link && i < n && !(seen[child] >> i & 1));
			seen[child] |= 1ull << i;
			result_check(&rig, &frame, shape_of(layout, child), child, first + i);
			got[child]++;
			wanted--;
		}
	}
	for (child = 0; child < CHILDREN; child++) {
		if (got[child] != n)
			fprintf(stderr, "child %u got %llu results of %llu from %llu on\n", child,
			        (unsigned long long)got[child], (unsigned long long)n,
			        (unsigned long long)first);
		missing += n - got[child];
	}
	/* A veth on a busy machine may lose a fragment. A child that is left out would miss all. */
	demand(missing <= CHILDREN);
}

/* Sends `batch` fragments, then checks what has arrived. */
static void run(const struct layout *layout, uint64_t fragments, uint64_t batch)
{
	static struct frame frame;
	uint64_t position = 0;

	rig_lane(&rig, CHILDREN, CELLS, PAYLOAD);
	learn_routes(layout);
	for (; position < fragments; position += batch) {
		for (uint64_t i = position; i < position + batch; i++)
			for (uint8_t child = 0; child < CHILDREN; child++) {
				struct rig_data data =
					DATA(i, child, .ack = (uint32_t)position, .bytes = PAYLOAD);

				frame_data(&frame, shape_of(layout, child), &data);
				twin_take(&rig, &frame);
				child_send(layout, child, &frame);
				/*
				 * Sends may be in another order than links, so the twin would
				 * differ.
				 */
				for (unsigned wait = 0; wait < 1000 && child + 1u < CHILDREN;
				     wait++) {
					const volatile struct dense_cell *cell =
						dense_cell(&rig.pool, dense_index(rig.dense, i));

					if (cell->position == i && cell->arrived >> child & 1)
						break;
					usleep(100);
				}
			}
		collect(layout, position, batch);
	}
}

int main(void)
{
	static const struct layout layouts[] = {
		{ { 0, 0, 1, 1 }, { false, false, false, false } },
		{ { 1, 0, 0, 0 }, { false, true, false, true } },
		{ { 0, 1, 0, 1 }, { true, true, true, true } },
		{ { 0, 0, 0, 0 }, { false, false, true, false } },
	};
	uint64_t rounds = test_is_short() ? 4 : 16;

	rig_load(&rig, PAYLOAD);
	links_up();
	for (unsigned i = 0; i < countof(layouts); i++) {
		run(&layouts[i], rounds, 1);
		run(&layouts[i], 4 * rounds, 4);
	}
	rig_unload(&rig);
	return 0;
}
