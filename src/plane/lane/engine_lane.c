/* SPDX-License-Identifier: Apache-2.0 */
#include "plane/lane/engine_lane.h"

#include "base/log.h"
#include "plane/core/failure.h"
#include "plane/lane/child_calls.h"
#include "plane/lane/child_packets.h"
#include "wire/parse.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

/* Where the kernel part does not have them. */
static bool open_cells(struct agg_lane *lane)
{
	struct engine_pool *pool = &lane->engine;
	size_t bytes;

	pool->step = engine_cell_bytes(lane->comm->payload);
	bytes = lane->comm->cells * pool->step;
	/* The kernel commits memory only to pages that are used. */
	pool->cells = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
	                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (pool->cells == MAP_FAILED)
		pool->cells = NULL;
	pool->lane = pool->cells ? calloc(1, sizeof(*pool->lane)) : NULL;
	return pool->lane != NULL;
}

static void close_lane(struct agg_lane *lane)
{
	if (lane->kernel)
		return;
	if (lane->engine.lane && lane->comm->engine->close)
		lane->comm->engine->close(&lane->engine);
	if (lane->engine.cells)
		munmap(lane->engine.cells, lane->comm->cells * lane->engine.step);
	free(lane->engine.lane);
}

/* The engine runs on a switch: how much of it the lane takes. */
static void note_use(struct aggregator *aggregator, const struct agg_lane *lane)
{
	struct engine_use *use = &aggregator->switch_use;
	const struct comm *comm = lane->comm;
	char text[ENGINE_STAGES_MAX * 40] = "";
	size_t used = 0;

	if (!comm->engine->use)
		return;
	comm->engine->use(&lane->engine, use);
	for (uint32_t i = 0; i < use->stages && used < sizeof(text); i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used,
		                         "%s stage %u: %.2f %% of its memory", i ? "," : "", i,
		                         use->share[i] / 100.0);
	log_info("job %u: communicator %u: switch: %u slots of %u bytes;%s", comm->job, comm->id,
	         comm->cells, comm->payload, text);
}

static bool open_lane(struct aggregator *aggregator, struct agg_lane *lane)
{
	const struct comm *comm = lane->comm;

	if (!lane->kernel && !open_cells(lane))
		return false;
	lane->engine.lane->members = comm->present;
	lane->engine.lane->cells = comm->cells;
	lane->engine.lane->payload = comm->payload;
	if (!comm->engine->open(&lane->engine))
		return false;
	note_use(aggregator, lane);
	return true;
}

static void send_packet(struct thread *thread, const struct agg_lane *lane,
                        struct engine_packet *packet)
{
	const struct wire_unsent unsent = agg_lane_unsent(lane, packet->position);
	struct wire_header *header = (void *)packet->data;

	header->magic = WIRE_MAGIC;
	header->comm = lane->comm->id;
	wire_seal_fragment(header, packet->bytes, &unsent);
	thread->aggregator->carrier->send_copies(thread, lane, header, packet->bytes, packet->to);
}

/* The sum can never be complete, so the communicator is over. */
static void fail_refused(struct agg_lane *lane, unsigned child)
{
	const char *why = lane->comm->engine->why(&lane->engine);
	char text[200];

	comm_set_failed(lane->comm, TRIB_ERR_REFUSED, child,
	                "%s called what the switch cannot do: %s; %suse another plane",
	                comm_describe_child(lane->comm, child, text, sizeof(text)), why,
	                lane->comm->engine->calls ? "set TRIB_ENGINE=dense on all ranks, or " : "");
}

/* The kernel part watches whether the results that it sends arrive. */
static void tell_kernel(const struct thread *thread, struct agg_lane *lane,
                        const struct wire_header *header, enum engine_verdict verdict)
{
	uint32_t cell = lane->comm->engine->view(&lane->engine, header).cell;

	if (verdict == ENGINE_COMPLETE) {
		engine_cell(&lane->engine, cell)->sent_at = 0; /* we send it */
		lane->kernel->ops->sent(lane);
	}
	if (verdict == ENGINE_FINISHED)
		lane->kernel->ops->repeated(lane, header->child, cell, thread->now);
}

static void take_data(struct thread *thread, struct agg_lane *lane,
                      const struct wire_header *header, uint32_t bytes)
{
	const struct engine *engine = lane->comm->engine;
	struct engine_packet out[2];
	enum engine_verdict verdict;

	if (atomic_load_explicit(&lane->comm->failed, memory_order_acquire))
		return;
	verdict = engine->take(&lane->engine, header, bytes, out);
	if (engine->count)
		engine->count(&lane->engine, &thread->counters.on_switch);
	for (unsigned i = 0; i < 2; i++)
		if (out[i].bytes)
			send_packet(thread, lane, &out[i]);
	lane->heard_at[header->child & 63] = thread->now;
	if (verdict == ENGINE_REFUSED)
		fail_refused(lane, header->child & 63);
	else if (verdict == ENGINE_ACK) /* an acknowledgement alone counts as a report */
		thread->counters.reports++;
	else
		thread->counters.verdicts[verdict]++;
	if (verdict == ENGINE_ADDED || verdict == ENGINE_COMPLETE)
		thread->counters.payload += bytes;
	if (lane->kernel)
		tell_kernel(thread, lane, header, verdict);
	if (verdict == ENGINE_COMPLETE) {
		thread->counters.results++;
		lane->last[header->child & 63]++;
	}
	if (verdict == ENGINE_MISMATCH) {
		struct engine_view view = engine->view(&lane->engine, header);

		child_dispute(lane, header, bytes, &view, thread->now);
	}
}

static void begin_or_end(struct thread *thread, struct agg_lane *lane)
{
	(void)thread;
	(void)lane;
}

static void leave(struct agg_lane *lane)
{
	lane->engine.lane->left = lane->left;
}

static uint64_t position_of(const struct agg_lane *lane, const struct wire_header *header)
{
	return lane->comm->engine->position(&lane->engine, header);
}

static void note_report(struct thread *thread, struct agg_lane *lane,
                        const struct wire_control *header)
{
	const struct wire_report *report = wire_payload(header);

	(void)thread;
	lane->ways[header->child] = (uint8_t)report->want;
	if (lane->kernel)
		lane->kernel->ops->group_probe_seen(lane);
}

static uint64_t owed(const struct agg_lane *lane, unsigned child, const struct wire_report *report)
{
	(void)child;
	(void)report;
	return lane->comm->engine->waiting(&lane->engine);
}

static void answer(struct thread *thread, struct agg_lane *lane, unsigned child,
                   const struct wire_report *report, struct status_packet *packet)
{
	(void)thread;
	packet->status.waiting = agg_lane_late(lane, owed(lane, child, report));
}

static void follow(struct thread *thread, struct agg_lane *lane, const struct wire_report *report)
{
	(void)thread;
	(void)lane;
	(void)report;
}

/* Engines have no window that counters could tell. */
static uint64_t low(const struct agg_lane *lane)
{
	(void)lane;
	return 0;
}

static uint64_t done(const struct agg_lane *lane, unsigned child)
{
	(void)lane;
	(void)child;
	return 0;
}

const struct lane_kind lane_of_engine = {
	.open = open_lane,
	.close = close_lane,
	.begin = begin_or_end,
	.end = begin_or_end,
	.tick = begin_or_end,
	.leave = leave,
	.position = position_of,
	.take_data = take_data,
	.note_report = note_report,
	.owed = owed,
	.answer = answer,
	.follow = follow,
	.low = low,
	.done = done,
};
