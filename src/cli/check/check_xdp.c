/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Could tribd --plane xdp or tc sum in the kernel here? Nothing is attached, since that may reset a
 * network card.
 */
#include "base/clock.h"
#include "cli/check/finding.h"
#include "plane/xdp/xdp.h"

#include <netinet/in.h>
#include <stdio.h>
#include <unistd.h>

#define AROUND 590u /* bytes of a page that drivers keep for themselves and for headers */
#define SHOWN 8u    /* interfaces shown at most; a switch may have many */

static bool check_program(struct check *check)
{
	struct xdp_options options = { .port = 7700, .lanes = 1, .payload = XDP_PAYLOAD_MAX };
	struct xdp_plane *plane;
	uint64_t start = clock_now();

	if (xdp_load(&options, &plane) != TRIB_OK) {
		check_tell(check, CHECK_WARN, "xdp",
		           xdp_is_built()
		                   ? "without it tribd sums in user space (--plane udp)"
		                   : "install clang, bpftool and libbpf-dev, and build again",
		           "%s", trib_last_error());
		return false;
	}
	xdp_close(plane);
	check_tell(check, CHECK_OK, "xdp", NULL,
	           "the kernel accepts the program, within %.1f s: tribd --plane xdp can sum there",
	           (double)(clock_now() - start) / 1e9);
	return true;
}

/* Only told if the kernel accepts the program for XDP. */
static void check_tc(struct check *check)
{
	struct xdp_options options = {
		.port = 7700, .lanes = 1, .payload = XDP_PAYLOAD_MAX, .tc = true
	};
	struct xdp_plane *plane = NULL;

	if (xdp_load(&options, &plane) != TRIB_OK)
		check_tell(check, CHECK_WARN, "tc", "use --plane xdp or udp", "%s",
		           trib_last_error());
	else if (!tc_is_possible(plane))
		check_tell(check, CHECK_WARN, "tc", "use --plane xdp or udp",
		           "the kernel is older than 6.6, so tribd --plane tc sums in user space");
	else
		check_tell(check, CHECK_OK, "tc", NULL,
		           "the kernel accepts the program: tribd --plane tc can sum small "
		           "vectors there");
	xdp_close(plane);
}

static void check_port(struct check *check, const struct xdp_port *port)
{
	static const char *const driver[] = {
		[XDP_UNKNOWN] = "in which mode will be seen: this kernel does not tell before",
		[XDP_UNABLE] = "generic mode only, which is slower: its driver has no XDP",
		[XDP_PARTLY] = "driver mode; its driver may not send frames to other interfaces",
		[XDP_ABLE] = "driver mode",
	};
	struct xdp_probe probe;

	xdp_probe(port->ifindex, &probe);
	if (*probe.other)
		check_tell(check, CHECK_WARN, "xdp",
		           "tribd does not replace it: remove it with ip link set dev INTERFACE "
		           "xdp off, or name other interfaces with --interface",
		           "interface %s already runs another program, %s", port->name,
		           probe.other);
	else if (probe.driver > XDP_UNABLE && port->mtu + AROUND > (unsigned)sysconf(_SC_PAGESIZE))
		check_tell(check, CHECK_WARN, "xdp",
		           "fragments that the kernel sums are at most 1696 bytes long, so that a "
		           "smaller MTU costs little",
		           "interface %s, MTU %u: generic mode, most likely, which is slower: most "
		           "drivers have XDP only for frames that fit into a page",
		           port->name, port->mtu);
	else
		check_tell(check, CHECK_OK, "xdp", NULL, "interface %s, MTU %u: %s", port->name,
		           port->mtu, driver[probe.driver]);
}

void check_xdp(struct check *check)
{
	struct udp_address any = { .length = sizeof(struct sockaddr_in) };
	struct xdp_port ports[XDP_INTERFACES_MAX];
	unsigned n;

	any.storage.ss_family = AF_INET;
	if (!check_program(check))
		return;
	check_tc(check);
	if (xdp_ports(&any, NULL, ports, &n) != TRIB_OK) {
		check_tell(check, CHECK_WARN, "xdp", NULL, "there is no interface but loopback");
		return;
	}
	for (unsigned i = 0; i < n && i < SHOWN; i++)
		check_port(check, &ports[i]);
	if (n > SHOWN)
		check_tell(check, CHECK_OK, "xdp", NULL, "%u more interfaces are not shown",
		           n - SHOWN);
}
