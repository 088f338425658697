/* SPDX-License-Identifier: Apache-2.0 */
/* The controller: HTTP for people, tools and agents, UDP for workers, at one port number. */
#ifndef TRIB_CONTROL_CONTROLLER_H
#define TRIB_CONTROL_CONTROLLER_H

#include "control/control.h"
#include "path/udp.h"

struct controller_options {
	struct udp_address listen;
	const char *state; /* the folder; NULL: the usual one */
	bool plain;        /* HTTP without TLS also beyond loopback */
	int exit_below; /* percent, as TRIB_EXIT_BELOW, which it stands in for; below 0: not given
	                 */
};

struct aggregator;
struct controller;
trib_status controller_start(const struct controller_options *options, struct controller **out);
void controller_stop(struct controller *controller);

/* What agents and trib need as TRIB_CONTROLLER. */
const char *controller_address(const struct controller *controller);
const char *controller_folder(const struct controller *controller);
/* One in the same process, whose metrics are told too; NULL: it is about to end. */
void controller_set_aggregator(struct controller *controller, struct aggregator *aggregator);

#endif
