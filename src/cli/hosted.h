/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A job that asks a controller for hosts, on behalf of a command that starts its
 * ranks there: asks, waits for its turn where it is to, keeps the lease while the
 * ranks run, and gives the hosts back.
 */
#ifndef TRIB_CLI_HOSTED_H
#define TRIB_CLI_HOSTED_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

struct hosted_wish {
	const char *command;    /* for what is said meanwhile: "trib run" */
	const char *controller; /* NULL: TRIB_CONTROLLER, or one on this machine */
	const char *name;       /* NULL: "job" */
	const char *policy;
	uint64_t hosts, per_host, min;
	bool waits; /* where there are not enough */
};

struct hosted;

/* Returns when the job has its hosts. */
trib_status hosted_start(const struct hosted_wish *wish, struct hosted **out);
/* From now on somebody else says when it is over: its ranks, or trib job end. */
void hosted_hand_over(struct hosted *hosted);
/* Ends the job, unless it was handed over. */
void hosted_end(struct hosted *hosted);

unsigned hosted_count(const struct hosted *hosted);
const char *hosted_address(const struct hosted *hosted, unsigned host);
/* Of the controller, as workers need it for TRIB_AGGREGATOR. */
const char *hosted_controller(const struct hosted *hosted);
uint64_t hosted_job(const struct hosted *hosted);
uint64_t hosted_cookie(const struct hosted *hosted);
/* All that the controller said, for programs; to stdout. */
void hosted_dump(const struct hosted *hosted);

#endif
