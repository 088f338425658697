/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the path to an aggregator: its name, the route, the MTU, and whether it answers. */
#include "base/clock.h"
#include "cli/check/finding.h"
#include "path/egress.h"
#include "query/query.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MTU_SMALL 1280 /* the minimum MTU of IPv6; below, headers take too large a share */

static void check_mtu(struct check *check, const struct udp_address *peer)
{
	struct udp_options options = { .receive_bytes = 4096, .send_bytes = 4096 };
	bool gso;
	int fd;
	unsigned mtu;

	if (udp_open(NULL, peer, &options, &fd, &gso) != TRIB_OK) {
		check_tell(check, CHECK_WARN, "mtu", "set TRIB_MTU", "%s", trib_last_error());
		return;
	}
	mtu = udp_mtu(fd);
	close(fd);
	if (mtu < MTU_SMALL)
		check_tell(check, CHECK_WARN, "mtu",
		           "raise the MTU of the link; headers take a large share",
		           "packets of %u bytes fit the route", mtu);
	else
		check_tell(check, CHECK_OK, "mtu", NULL, "packets of %u bytes fit the route%s", mtu,
		           mtu < 9000 ? "; 9000 would cost less CPU, where the network has it"
		                      : "");
}

/* Which part spaces the packets of a lane that has a rate: the kernel or a token bucket. */
static void check_pacing(struct check *check, const struct udp_address *peer)
{
	struct udp_options options = { .receive_bytes = 4096, .send_bytes = 4096 };
	struct egress egress;
	trib_status status;
	bool gso, several;
	char fix[160];
	int fd;

	status = udp_open(NULL, peer, &options, &fd, &gso);
	if (status == TRIB_OK) {
		status = egress_find(fd, &egress);
		close(fd);
	}
	if (status != TRIB_OK) {
		check_tell(check, CHECK_WARN, "pacing", NULL, "by a token bucket: %s",
		           trib_last_error());
		return;
	}
	several = !strcmp(egress.qdisc.kind, "mq");
	snprintf(fix, sizeof(fix), "the kernel can, with fq%s: tc qdisc replace dev %s %s fq",
	         several ? " on each queue" : "", egress.interface,
	         several ? "parent (each of tc qdisc show)" : "root");
	if (rtnl_is_fair(&egress.qdisc))
		check_tell(check, CHECK_OK, "pacing", NULL,
		           "by the kernel: the queue of %s is fq%s", egress.interface,
		           several ? ", below mq" : "");
	else
		check_tell(check, CHECK_OK, "pacing",
		           strcmp(egress.interface, "lo") == 0 ? NULL : fix,
		           "by a token bucket: the queue of %s is %s, not fq", egress.interface,
		           *egress.qdisc.kind ? egress.qdisc.kind : "unknown");
}

/*
 * Asks over the network: is tribd there, does it accept our cookie, and how long does an answer
 * take?
 */
static void check_peer(struct check *check, const char *text)
{
	char page[2048];
	uint64_t start = clock_now();

	if (query_page(text, 0, 2, page, sizeof(page)) != TRIB_OK)
		check_tell(check, CHECK_FAIL, "aggregator",
		           "start tribd there, and give both sides the same TRIB_COOKIE", "%s",
		           trib_last_error());
	else
		check_tell(check, CHECK_OK, "aggregator", NULL, "answers within %.2f ms",
		           (double)(clock_now() - start) / 1e6);
}

void check_route(struct check *check, const char *text)
{
	struct udp_address peer, local;
	char to[64], from[64], interface[64];

	if (udp_resolve(text, UDP_DEFAULT_PORT, &peer) != TRIB_OK) {
		check_tell(check, CHECK_FAIL, "name",
		           "correct the name, or DNS or /etc/hosts, or give an address", "%s",
		           trib_last_error());
		return;
	}
	udp_text(&peer, to, sizeof(to));
	check_tell(check, CHECK_OK, "name", NULL, "%s is %s", text, to);
	if (udp_route(&peer, &local, interface, sizeof(interface)) != TRIB_OK) {
		check_tell(check, CHECK_FAIL, "route", "try: ip route get ADDRESS", "%s",
		           trib_last_error());
		return;
	}
	check_tell(check, CHECK_OK, "route", NULL, "to %s through interface %s, from %s%s", to,
	           interface, udp_text(&local, from, sizeof(from)),
	           strcmp(interface, "lo") == 0 ? "; all workers must be on this machine" : "");
	check_mtu(check, &peer);
	check_pacing(check, &peer);
	check_peer(check, text);
}
