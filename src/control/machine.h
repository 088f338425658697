/* SPDX-License-Identifier: Apache-2.0 */
/* What this machine has, and how much of it is in use. */
#ifndef TRIB_CONTROL_MACHINE_H
#define TRIB_CONTROL_MACHINE_H

#include "control/nodes.h"

/* The last look, for what is counted from one to the next. */
struct machine {
	uint64_t looked_at;
	uint64_t busy, all; /* ticks of all cores */
	double own_s;       /* CPU time of this process */
};

/* Fills cores, memory, load, busy and rights. */
void machine_look(struct machine *machine, struct node_report *report);

/* The rate of an interface in bits a second: what a shaper on it says, else its speed; 0: unknown.
 */
uint64_t link_rate(const char *interface);

#endif
