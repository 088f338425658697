/* SPDX-License-Identifier: Apache-2.0 */
#include "plane/membership/comm_table.h"

#include "plane/core/cookies.h"
#include "plane/core/join_check.h"
#include "plane/lane/engine_lane.h"
#include "plane/lane/lane_handover.h"
#include "plane/stream/parent_lane.h"
#include "plane/stream/stream_lane.h"

#include <stdio.h>
#include <stdlib.h>

struct comm *comm_table_find(struct aggregator *aggregator, uint16_t job,
                             const struct wire_join *join)
{
	for (unsigned id = 1; id < COMMS_MAX; id++) {
		struct comm *comm = aggregator->comms[id];

		if (comm && !comm->retired && comm->job == job && comm->key == join->key &&
		    comm->tree == join->tree && comm->generation == join->generation &&
		    comm->first.engine == join->engine)
			return comm;
	}
	return NULL;
}

/* A job or a host that takes many places must not lock out others. */
static bool quota_fault(const struct aggregator *aggregator, uint16_t job,
                        const struct udp_address *from, char why[COMM_WHY_MAX])
{
	unsigned of_job = 0, of_host = 0, all = 0;

	for (unsigned id = 1; id < COMMS_MAX; id++) {
		const struct comm *comm = aggregator->comms[id];

		all += comm != NULL;
		of_job += comm && comm->job == job;
		of_host += comm && udp_same_host(&comm->founder, from);
	}
	if (all == COMMS_MAX - 1)
		snprintf(why, COMM_WHY_MAX, "the aggregator holds %u communicators, no more fit",
		         all);
	else if (of_job >= COMMS_A_JOB)
		snprintf(why, COMM_WHY_MAX,
		         "job %u has %u communicators at this aggregator, and may not have more",
		         job, of_job);
	else if (of_host >= COMMS_A_HOST)
		snprintf(why, COMM_WHY_MAX,
		         "processes of this host have begun %u communicators at this aggregator, "
		         "and may not begin more",
		         of_host);
	else
		return false;
	return true;
}

struct comm *comm_table_new(struct aggregator *aggregator, uint16_t job,
                            const struct wire_join *join, const struct udp_address *from,
                            char why[COMM_WHY_MAX])
{
	struct comm *comm;
	unsigned id = COMMS_MAX - 1;

	if (quota_fault(aggregator, job, from, why))
		return NULL;
	while (aggregator->comms[id]) /* low ids are for those that run */
		id--;
	comm = calloc(1, sizeof(*comm));
	if (!comm || !cookie_make(aggregator, job, &comm->cookie)) {
		snprintf(why, COMM_WHY_MAX, "no memory, or no random numbers");
		free(comm);
		return NULL;
	}
	comm->founder = *from;
	comm->job = job;
	comm->key = join->key;
	comm->id = (uint16_t)id;
	comm->epoch = 1;
	comm->tree = join->tree;
	comm->generation = join->generation;
	comm->size = join->size;
	comm->first = *join;
	comm->ranks = join_ranks(join);
	comm->has_parent = join->hops > 0;
	comm->engine = aggregator_engine(aggregator, join->engine);
	comm->does = comm->engine->streams ? &lane_of_stream : &lane_of_engine;
	comm->created_at = aggregator->threads[0].now;
	aggregator->comms[id] = comm;
	return comm;
}

void comm_table_promote(struct aggregator *aggregator, struct comm *comm)
{
	unsigned id = 1;

	while (aggregator->comms[id] && id < comm->id)
		id++;
	aggregator->comms[comm->id] = NULL;
	aggregator->comms[id] = comm;
	comm->id = (uint16_t)id;
}

uint64_t comm_table_cell_bytes(const struct comm *comm)
{
	const struct kernel *kernel = comm->kernel;

	if (!comm->engine->streams)
		return engine_cell_bytes(comm->payload);
	return kernel ? kernel->ops->cell_bytes(kernel) : WIRE_HEADER + comm->payload;
}

uint64_t comm_table_pool_bytes(const struct comm *comm)
{
	return comm->cells * comm_table_cell_bytes(comm) * comm->lanes;
}

void comm_table_retire(struct aggregator *aggregator, struct comm *comm)
{
	struct agg_lane *lane = aggregator->threads[0].lanes[comm->id];

	comm->retired = true;
	if (!comm->running)
		return;
	if (comm->has_parent && atomic_load(&comm->failed) && lane && lane->comm == comm)
		parent_lane_send_abort(&aggregator->threads[0], lane);
	aggregator->pools -= comm_table_pool_bytes(comm);
	for (unsigned i = 0; i < comm->lanes; i++)
		lane_handover_post(&aggregator->threads[i], comm->id, NULL);
}

uint64_t comm_table_pool_left(const struct aggregator *aggregator)
{
	uint64_t limit = aggregator->options.pool_bytes, each = aggregator->options.each_pool_bytes;
	uint64_t left = limit > aggregator->pools ? limit - aggregator->pools : 0;

	if (!limit)
		left = UINT64_MAX;
	return each && each < left ? each : left;
}

/*
 * The terms are those that every child can keep. With a kernel part, a fragment is
 * no longer than the kernel part can sum.
 */
void comm_table_settle(const struct aggregator *aggregator, struct comm *comm)
{
	uint64_t left = comm_table_pool_left(aggregator);

	comm->payload = WIRE_PAYLOAD_MAX;
	comm->kernel = aggregator_kernel(aggregator);
	if (comm->kernel && !comm->kernel->ops->sums(comm->engine))
		comm->kernel = NULL;
	if (comm->kernel)
		comm->payload = comm->kernel->ops->payload_max(comm->kernel);
	comm->lanes = aggregator->n_threads; /* a thread has at most one lane of a communicator */
	if (!comm->engine->streams &&
	    (comm->engine->fit || (comm->kernel && comm->kernel->ops->one_lane)))
		comm->lanes = 1; /* a switch has one pool; XDP takes all packets by itself */
	comm->pool_bytes = UINT64_MAX;
	comm->dead_after_ms = DEAD_AFTER_MAX;
	for (uint64_t c = comm->present; c; c &= c - 1) {
		const struct wire_join *join = &comm->children[__builtin_ctzll(c)].join;
		uint32_t dead_after_ms = join->timeout_ms / 2 < 100 ? 100 : join->timeout_ms / 2;

		if (join->payload < comm->payload)
			comm->payload = join->payload & ~7u;
		if (join->lanes < comm->lanes)
			comm->lanes = join->lanes;
		if (join->pool_bytes < comm->pool_bytes)
			comm->pool_bytes = join->pool_bytes;
		if (dead_after_ms < comm->dead_after_ms)
			comm->dead_after_ms = dead_after_ms;
	}
	/*
	 * All aggregators of a tree have the same number of cells, so that they have
	 * the same window.
	 */
	if (comm->pool_bytes > left)
		comm->pool_bytes = left;
	if (!comm->parent.joined)
		return;
	comm->payload = comm->parent.payload;
	comm->lanes = comm->parent.lanes;
	if (comm->parent.dead_after_ms < comm->dead_after_ms)
		comm->dead_after_ms = comm->parent.dead_after_ms;
}

void comm_table_free(struct aggregator *aggregator)
{
	for (unsigned id = 0; id < COMMS_MAX; id++)
		free(aggregator->comms[id]);
}
