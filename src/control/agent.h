/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent: tells a controller what this machine has and that it lives, and
 * gives its aggregator the secret that the jobs' cookies are made from. It
 * needs no memory of its own: each beat says all, so either side may start
 * first, stop and start again.
 */
#ifndef TRIB_CONTROL_AGENT_H
#define TRIB_CONTROL_AGENT_H

#include "control/control.h"
#include "path/udp.h"

struct aggregator;

struct agent_options {
	const char *controller;    /* as TRIB_CONTROLLER is */
	const char *state;         /* the folder where a token may be; NULL: the usual one */
	const char *name;          /* NULL: the host's */
	uint64_t link_bps;         /* 0: found out */
	bool is_switch;            /* a port for each neighbour, each of that rate */
	struct udp_address listen; /* the aggregator's, with the port that it has */
	unsigned threads, capacity;
	const char *rack, *above; /* as in struct node_report; NULL: empty */
	struct aggregator *aggregator;
};

struct agent;
trib_status agent_start(const struct agent_options *options, struct agent **out);
/* Says good-bye where it can. */
void agent_stop(struct agent *agent);

#endif
