/* SPDX-License-Identifier: Apache-2.0 */
/* A host that has just started may have neither a link nor a route yet. */
#include "worker/trees/trees.h"

#include "base/clock.h"
#include "base/log.h"

#include <stdio.h>

#define LOOK_EVERY_NS 50000000ull /* 50 ms between two looks */

trib_status route_wait(struct trib_comm *comm, const struct udp_address *peer, const char *what,
                       uint64_t deadline)
{
	const struct timespec pause = clock_span(LOOK_EVERY_NS);
	char interface[64], address[64], why[200];
	struct udp_address local;
	bool told = false;

	udp_text(peer, address, sizeof(address));
	while (udp_route(peer, &local, interface, sizeof(interface)) != TRIB_OK) {
		if (clock_now() >= deadline || comm_is_over(comm)) {
			snprintf(why, sizeof(why), "%s", trib_last_error());
			return status_fail(TRIB_ERR_SYSTEM,
			                   "no way to the %s at %s within %.1f s: %s", what,
			                   address, comm->config.timeout_s, why);
		}
		if (!told)
			log_notice("no way to the %s at %s yet, waiting: %s", what, address,
			           trib_last_error());
		told = true;
		nanosleep(&pause, NULL);
	}
	return TRIB_OK;
}
