/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The controller's answer to a heartbeat, from JSON. Fields that are missing or malformed count as
 * not said: an older controller says less.
 */
#ifndef TRIB_CONTROL_TRANSPORT_HEARTBEAT_ANSWER_H
#define TRIB_CONTROL_TRANSPORT_HEARTBEAT_ANSWER_H

#include "plane/core/job_roster.h"
#include "base/secret.h"
#include "control/transport/node_report.h"

#define ANSWER_LEAVES_MAX 64u /* the controller repeats what has not been done */

/* A plan of a communicator whose trees the aggregator has to leave. */
struct answer_leave {
	uint16_t job;
	uint64_t key;
	uint32_t generation;
	char why[200];
};

/* A link probe to make. */
struct answer_probe {
	char with[TREE_NAME_MAX]; /* "": none */
	char at[TREE_NAME_MAX];   /* "": not known */
	uint64_t enough_bps;      /* at least 1 */
	double forget_s;          /* results older than this are void; negative: none */
};

struct heartbeat_answer {
	uint64_t heartbeat_ns; /* 0: not said */
	bool has_secret, has_roster;
	struct secret secret;
	struct job_roster roster;
	struct answer_leave leaves[ANSWER_LEAVES_MAX];
	unsigned n_leaves;
	struct answer_probe probe;
};

void heartbeat_answer_parse(struct heartbeat_answer *answer, const json_t *json);

#endif
