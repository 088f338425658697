/* SPDX-License-Identifier: Apache-2.0 */
/* The resources of this machine, and how much of them is in use. */
#ifndef TRIB_CONTROL_AGENT_HOST_INFO_H
#define TRIB_CONTROL_AGENT_HOST_INFO_H

#include "control/policy/node_table.h"

/* The last sample: rates are differences of counters. */
struct host_info {
	uint64_t looked_at;
	uint64_t busy, all; /* ticks of all cores */
	double own_s;       /* CPU time of this process */
};

/* Fills cores, memory, load, busy and rights. */
void host_info_look(struct host_info *info, struct node_report *report);

/* The rate of an interface in bits per second: of a shaper on it, else its speed; 0: unknown. */
uint64_t link_rate(const char *interface);

#endif
