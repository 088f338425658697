/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server: starts and stops the controller, and serves workers by UDP (worker_server).
 *
 * The controller serves HTTP for users, tools and agents, and UDP for workers, at one port number.
 * This folder is the top of control/: it calls all other folders and no other folder calls it. It
 * makes no decision of its own.
 */
#ifndef TRIB_CONTROL_SERVER_CONTROLLER_H
#define TRIB_CONTROL_SERVER_CONTROLLER_H

#include "control/control.h"
#include "path/udp.h"

struct controller_options {
	struct udp_address listen;
	const char *state; /* the state folder; NULL: the default */
	bool plain;        /* allow HTTP without TLS beyond loopback */
	int exit_below;    /* percent; overrides TRIB_EXIT_BELOW; below 0: not given */
};

struct aggregator;
struct controller;
trib_status controller_start(const struct controller_options *options, struct controller **out);
void controller_stop(struct controller *controller);

/* The value that agents and trib need as TRIB_CONTROLLER. */
const char *controller_address(const struct controller *controller);
/* An aggregator in this process, whose metrics are served too; NULL: it is about to end. */
void controller_set_aggregator(struct controller *controller, struct aggregator *aggregator);

#endif
