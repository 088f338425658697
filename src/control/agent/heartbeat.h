/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent: the node's side of the control plane.
 *
 * This folder owns the heartbeat to the controller, what it says of the machine (host_info,
 * link_rate) and link probes (link_probe). It makes no decision: it carries out what the
 * controller's answer says. It gives the aggregator the secret from which cookies of jobs are made.
 *
 * The agent keeps no state: every heartbeat says everything. So agent and controller may start,
 * stop and restart in any order.
 */
#ifndef TRIB_CONTROL_AGENT_HEARTBEAT_H
#define TRIB_CONTROL_AGENT_HEARTBEAT_H

#include "control/control.h"
#include "path/udp.h"

struct aggregator;

struct agent_options {
	const char *controller;    /* in the form of TRIB_CONTROLLER */
	const char *state;         /* the state folder, which may have a token; NULL: the default */
	const char *name;          /* NULL: the host name */
	uint64_t link_bps;         /* 0: ask the interface */
	bool is_switch;            /* a port of that rate for each neighbour */
	struct udp_address listen; /* the aggregator's address and port */
	unsigned threads, capacity;
	const char *rack, *above; /* as in struct node_report; NULL: empty */
	struct aggregator *aggregator;
};

struct agent;
trib_status agent_start(const struct agent_options *options, struct agent **out);
/* Says goodbye to the controller, if it answers. */
void agent_stop(struct agent *agent);

#endif
