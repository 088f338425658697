/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probe_meter: the connections of a link probe, and how fast bytes travel on them and through their
 * interface. link_probe.c decides what is sent and when a probe ends.
 */
#ifndef TRIB_CONTROL_AGENT_PROBE_METER_H
#define TRIB_CONTROL_AGENT_PROBE_METER_H

#include "path/spans.h"

#include <stdbool.h>
#include <stdint.h>

#define PROBE_FLOWS 4u /* connections of a probe: a single one would use one leg of a bond */

/* The connections of one probe. */
struct flows {
	int fds[PROBE_FLOWS];
	unsigned n;
};

void flows_close(struct flows *flows);
/* Waits up to 5 ms until a connection is ready, or a result may have come. */
void flows_wait(const struct flows *flows, short events);

/* One direction of a probe. */
struct measurement {
	const struct flows *flows;
	char interface[64];
	bool outward;
	struct spans stream, link; /* bytes of the connections; bytes of the interface */
	uint64_t began, ran;       /* start, and thread_ran() at the start */
	uint64_t bytes;            /* received; outward: sent, including retransmissions */
	double share;              /* of the time that the thread ran or waited for a core */
};

void measurement_begin(struct measurement *measurement, const struct flows *flows, bool outward);
/* Called often. The caller has counted measurement->bytes, unless they go outward. */
void measurement_note(struct measurement *measurement, uint64_t now);
/* Bits a second of other traffic of the interface. Connections do not count headers. */
double measurement_others(const struct measurement *measurement);

#endif
