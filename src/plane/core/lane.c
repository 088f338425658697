/* SPDX-License-Identifier: Apache-2.0 */
#include "plane/core/internal.h"

#include "base/bitmap.h"
#include "base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PROBE_NS 20000000ull
#define PROBE_SOON_NS \
	1000000ull /* between the first ones: children join the group one after another */
#define PROBES_SOON 64u
#define YOUNG_US 200u /* a result that the kernel sent may be in a queue so long */

/* Cells here, sums there: packets lie side by side. */
static bool pool_new(struct lane *lane)
{
	struct dense_pool *pool = &lane->pool;
	uint32_t cells = lane->comm->cells;

	lane->dense = calloc(1, sizeof(*lane->dense));
	pool->cell_step = sizeof(struct dense_cell);
	pool->cells = calloc(cells, pool->cell_step);
	pool->packet_step = lane->stride;
	/* Memory is taken by the kernel only where fragments come to lie. */
	pool->packets = mmap(NULL, cells * pool->packet_step, PROT_READ | PROT_WRITE,
	                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (pool->packets == MAP_FAILED)
		pool->packets = NULL;
	return lane->dense && pool->cells && pool->packets;
}

/* Where the kernel can sum too, in memory that it shares with us. */
static bool pool_share(struct xdp_plane *plane, struct lane *lane)
{
	const struct comm *comm = lane->comm;
	const struct xdp_lane_options options = { .comm = comm->id,
		                                  .lane = lane->index,
		                                  .cookie = comm->cookie,
		                                  .job = comm->job,
		                                  .epoch = comm->epoch,
		                                  .cells = comm->cells,
		                                  .payload = comm->payload,
		                                  .children = comm->size };

	if (!plane)
		return false;
	lane->xdp = xdp_slot_open(plane, &options, &lane->dense, &lane->pool);
	if (!lane->xdp)
		comm_leave_kernel(lane->comm, lane->index, "", "%s", trib_last_error());
	return lane->xdp != NULL;
}

static void pool_free(struct lane *lane)
{
	if (lane->xdp) {
		xdp_slot_close(lane->xdp);
		return;
	}
	free(lane->dense);
	free(lane->pool.cells);
	if (lane->pool.packets)
		munmap(lane->pool.packets, lane->comm->cells * lane->pool.packet_step);
}

struct lane *lane_new(struct aggregator *aggregator, struct comm *comm, unsigned index)
{
	struct lane *lane = calloc(1, sizeof(*lane));

	if (!lane)
		return NULL;
	lane->comm = comm;
	lane->index = index;
	lane->group_fd = -1;
	lane->stride = WIRE_HEADER + comm->payload;
	lane->queue = calloc(2 * (size_t)comm->cells, sizeof(*lane->queue));
	lane->asked = aggregator->xdp ? calloc(comm->cells, sizeof(*lane->asked)) : NULL;
	if ((!pool_share(aggregator->xdp, lane) && !pool_new(lane)) || !lane->queue ||
	    (lane->xdp && !lane->asked) || (comm->has_parent && !uplink_open(aggregator, lane))) {
		lane_free(lane);
		return NULL;
	}
	for (uint32_t i = 0; i < comm->cells; i++)
		dense_cell(&lane->pool, i)->position = DENSE_EMPTY;
	lane->dense->cells = comm->cells;
	lane->dense->payload = comm->payload;
	for (uint64_t left = comm->present; left; left &= left - 1) {
		unsigned child = (unsigned)__builtin_ctzll(left);

		dense_add_child(lane->dense, child, join_covers(&comm->children[child].join));
		lane->heard_at[child] = comm->created_at;
	}
	lane->group = comm->group;
	if (lane->group.length)
		udp_set_port(&lane->group, (uint16_t)(udp_port(&comm->group) + index));
	if (lane->xdp) {
		xdp_slot_start(lane->xdp);
		lane->in_kernel = true;
		comm_enter_kernel(comm, index);
	}
	return lane;
}

void lane_free(struct lane *lane)
{
	if (!lane)
		return;
	uplink_close(lane);
	pool_free(lane);
	free(lane->queue);
	free(lane->asked);
	free(lane);
}

bool lane_queue_result(struct lane *lane, uint64_t position, uint8_t child)
{
	uint64_t used = lane->tail - lane->head;

	/* Half of the room is for first results, which are at most one a cell. */
	if (child != WIRE_ALL && used >= lane->dense->cells)
		return false;
	lane->queue[lane->tail++ % (2 * (uint64_t)lane->dense->cells)] =
		(struct result_entry){ .position = position, .child = child };
	return true;
}

struct wire_unsent lane_unsent(const struct lane *lane, uint64_t position)
{
	const struct comm *comm = lane->comm;

	return (struct wire_unsent){ .proof = wire_proof(comm->cookie, comm->job, comm->epoch),
		                     .pos = wire_pos(lane->index, position) };
}

static const char *op_name(uint8_t op)
{
	if (op <= WIRE_ADD64)
		return "a sum";
	if (op <= WIRE_MIN_U64)
		return "a minimum";
	if (op == WIRE_MAX_U8)
		return "a float sum, or a maximum";
	if (op <= WIRE_MAX_U64)
		return "a maximum";
	return op == WIRE_MAX_U16 ? "a float sum" : "a copy";
}

static void fail_mismatch(struct lane *lane, const struct dense_cell *cell,
                          const struct wire_header *header, uint32_t bytes)
{
	uint64_t position = dense_position(lane->dense, header);
	unsigned other = cell->arrived ? (unsigned)__builtin_ctzll(cell->arrived) : header->child;
	char one[200], two[200];

	comm_describe_child(lane->comm, other, two, sizeof(two));
	if (!cell->arrived && cell->position == position) /* a result from above */
		snprintf(two, sizeof(two), "rank %u, elsewhere in the tree,", cell->from);
	registry_fail(lane->comm, TRIB_ERR_MISMATCH, header->child,
	              "ranks called different collectives: %s sent %u bytes of %s (op %u) where %s "
	              "sent %u bytes of %s (op %u), at fragment %llu of lane %u",
	              comm_describe_child(lane->comm, header->child, one, sizeof(one)), bytes,
	              op_name(header->op), header->op, two, cell->bytes, op_name(cell->op),
	              cell->op, (unsigned long long)position, lane->index);
}

static void count_open(struct aggregator *aggregator, struct lane *lane, bool fresh,
                       enum dense_verdict verdict)
{
	if (fresh && (verdict == DENSE_ADDED || verdict == DENSE_COMPLETE) && !lane->open++)
		crowd_enter(aggregator, lane->comm);
	if (verdict == DENSE_COMPLETE && !--lane->open)
		crowd_leave(aggregator, lane->comm);
}

void lane_take_data(struct thread *thread, struct lane *lane, const struct wire_header *header,
                    uint32_t bytes)
{
	uint64_t position = dense_position(lane->dense, header);
	uint32_t index = dense_index(lane->dense, position);
	struct dense_cell *cell = dense_cell(&lane->pool, index);
	bool counts = thread->aggregator->options.capacity && !lane->dense->has_parent;
	bool fresh = cell->position != position;
	enum dense_verdict verdict;

	if (counts && atomic_load_explicit(&lane->comm->failed, memory_order_acquire))
		return; /* another one may have its turn by now */
	if (lane->xdp)
		xdp_cell_lock(cell);
	verdict = dense_take(lane->dense, cell, dense_packet(&lane->pool, index) + WIRE_HEADER,
	                     header, header + 1, bytes);
	if (verdict == DENSE_AHEAD && lane->dense->has_parent) {
		uplink_settle(&lane->up, lane->dense, &lane->pool);
		verdict = dense_take(lane->dense, cell,
		                     dense_packet(&lane->pool, index) + WIRE_HEADER, header,
		                     header + 1, bytes);
	}
	/* The kernel has added the last part of a sum, and leaves the sum and its count to us. */
	if (verdict == DENSE_DUPLICATE && uplink_is_left(cell))
		verdict = DENSE_SUMMED;
	if (verdict == DENSE_SUMMED)
		uplink_push(&lane->up, lane->dense, cell);
	if (lane->xdp)
		xdp_cell_unlock(cell);
	if (counts)
		count_open(thread->aggregator, lane, fresh, verdict);
	thread->counters.verdicts[verdict]++;
	lane->heard_at[header->child & 63] = thread->now;
	rates_note(thread, lane);
	switch (verdict) {
	case DENSE_COMPLETE:
	case DENSE_SUMMED:
		if (verdict == DENSE_COMPLETE)
			lane_queue_result(lane, position, WIRE_ALL);
		lane->last[header->child]++;
		thread->counters.payload += bytes;
		break;
	case DENSE_ADDED:
		thread->counters.payload += bytes;
		break;
	case DENSE_MISMATCH:
		fail_mismatch(lane, cell, header, bytes);
		break;
	default:
		break;
	}
}

/* A STATUS for everyone: where the window is, and what is complete. */
static void tell_low(struct thread *thread, struct lane *lane, const struct udp_address *to,
                     uint64_t base, uint32_t bits)
{
	struct {
		struct wire_control header;
		struct wire_status status;
	} packet = { .header = wire_answer(lane->comm, lane, WIRE_STATUS, WIRE_ALL) };

	packet.status.low = lane->dense->low;
	dense_complete(lane->dense, &lane->pool, base, bits, &packet.status);
	thread_send(thread, &packet, wire_cut(&packet), to);
}

/* Tries whether multicast reaches a child: it says so in its next report. */
static void probe_group(struct thread *thread, struct lane *lane)
{
	uint64_t every = lane->probes < PROBES_SOON ? PROBE_SOON_NS : PROBE_NS;

	if (!lane->group.length || thread->now < lane->probe_at + every)
		return;
	lane->probes++;
	lane->probe_at = thread->now;
	tell_low(thread, lane, &lane->group, 0, 0);
}

static void note_hearing(struct thread *thread, struct lane *lane,
                         const struct wire_control *header)
{
	if (header->flags & WIRE_HEARS_MULTICAST) {
		lane->hears |= dense_bit(header->child);
		return;
	}
	lane->hears &= ~dense_bit(header->child);
	if (lane->comm->grouped & dense_bit(header->child))
		probe_group(thread, lane);
}

void lane_tell(struct thread *thread, struct lane *lane, uint64_t base, uint32_t bits)
{
	uint64_t to = lane->known & ~lane->dense->left;

	lane->told_low = lane->dense->low;
	if (to & lane->hears)
		tell_low(thread, lane, &lane->group, base, bits);
	for (to &= ~lane->hears; to; to &= to - 1)
		tell_low(thread, lane, &lane->addresses[__builtin_ctzll(to)], base, bits);
}

void lane_announce_low(struct thread *thread, struct lane *lane)
{
	if (lane->head == lane->tail && lane->dense->low >= lane->told_low + lane->dense->cells / 8)
		lane_tell(thread, lane, 0, 0);
}

uint64_t lane_waiting(const struct lane *lane, uint64_t position)
{
	uint64_t children = dense_waiting(lane->dense, &lane->pool, position);
	uint64_t ranks = dense_ranks(lane->dense, children);

	for (; children; children &= children - 1) {
		unsigned child = (unsigned)__builtin_ctzll(children);
		uint64_t covers = join_covers(&lane->comm->children[child].join);

		/* An aggregator knows better whom it waits for. */
		if (lane->awaits[child] & covers)
			ranks = (ranks & ~covers) | (lane->awaits[child] & covers);
	}
	return ranks;
}

/* A child waits for one that has left: it will never come. */
static void check_left(struct lane *lane, unsigned child)
{
	uint64_t waiting = dense_waiting(lane->dense, &lane->pool, lane->dense->ack[child]);
	uint64_t left = waiting & lane->dense->left;
	char text[200];

	if (!left)
		return;
	child = (unsigned)__builtin_ctzll(left);
	registry_fail(lane->comm, TRIB_ERR_PEER, child,
	              lane->comm->children[child].join.height
	                      ? "the ranks of %s have called trib_finalize while others still wait "
	                        "for them in a collective"
	                      : "%s has called trib_finalize while others still wait for it in a "
	                        "collective",
	              comm_describe_child(lane->comm, child, text, sizeof(text)));
}

/* A child that was asked whether it is still here does not know us: it was started again. */
static void fail_forgotten(struct lane *lane, const struct udp_address *from)
{
	struct comm *comm = lane->comm;
	char text[200];

	for (uint64_t left = comm->present & ~comm->gone; left; left &= left - 1) {
		unsigned child = (unsigned)__builtin_ctzll(left);

		if (udp_same(&lane->addresses[child], from))
			registry_fail(comm, TRIB_ERR_AGGREGATOR, child,
			              "%s has been started again, and does not know the job",
			              comm_describe_child(comm, child, text, sizeof(text)));
	}
}

/* A child gave up, and says for whom it waited: the others shall know that too. */
void lane_take_abort(struct lane *lane, const struct wire_control *header,
                     const struct udp_address *from)
{
	const struct wire_abort *abort = wire_payload(header);

	if (header->child == WIRE_ALL) {
		fail_forgotten(lane, from);
		return;
	}

	if (abort->status < 0 && abort->status >= TRIB_ERR_CLOSED)
		registry_fail(lane->comm, (trib_status)abort->status, abort->rank, "%s",
		              abort->text);
}

/* Where a child is, is what its newest report says; a replayed one does not move it. */
static bool note_reporter(struct thread *thread, struct lane *lane,
                          const struct wire_control *header, const struct udp_address *from)
{
	const struct wire_report *report = wire_payload(header);
	uint64_t bit = dense_bit(header->child);
	int32_t newer;

	if (header->child >= WIRE_CHILDREN_MAX || !(lane->dense->members & bit)) {
		thread->counters.drops[DROP_STRANGER]++;
		return false;
	}
	newer = (int32_t)(report->stamp - lane->stamps[header->child]);
	if (lane->stamps[header->child] && newer < 0) {
		thread->counters.drops[DROP_REPLAYED]++;
		return false;
	}
	if (!lane->stamps[header->child] || newer > 0) {
		lane->stamps[header->child] = report->stamp;
		lane->addresses[header->child] = *from;
		lane->known |= bit;
	}
	if (lane->xdp)
		xdp_slot_route(lane->xdp, header->child, from);
	lane->heard_at[header->child] = thread->now;
	thread->counters.reports++;
	return true;
}

/*
 * What its link loses only a child knows: what we miss may not have left it
 * yet, and a result that it asks for once more may only be late.
 */
static void note_losses(struct lane *lane, unsigned child, const struct wire_report *report)
{
	uint32_t judged = report->judged - lane->told_judged[child];
	uint32_t lost = report->lost - lane->told_lost[child];
	uint16_t again = (uint16_t)(report->again - lane->told_again[child]);

	lane->told_again[child] = report->again;
	lane->repeated[child] += again <= INT16_MAX ? again : 0;
	lane->told_judged[child] = report->judged;
	lane->told_lost[child] = report->lost;
	if (lost > INT32_MAX || judged > INT32_MAX)
		return; /* no count goes back */
	lane->judged[child] += judged;
	lane->missed[child] += lost;
}

void lane_take_report(struct thread *thread, struct lane *lane, const struct wire_control *header,
                      const struct udp_address *from)
{
	const struct wire_report *report = wire_payload(header);
	uint64_t repeat[WIRE_GROUP / 64];
	struct {
		struct wire_control header;
		struct wire_status status;
	} packet = { .header = wire_answer(lane->comm, lane, WIRE_STATUS, header->child) };

	if (!note_reporter(thread, lane, header, from))
		return;
	note_hearing(thread, lane, header);
	if (lane->xdp) {
		xdp_slot_group(lane->xdp, lane->hears, &lane->group);
		lane_watch_frames(lane);
	}
	rates_hear(thread, lane, header);
	note_losses(lane, header->child, report);
	lane->awaits[header->child] = report->waiting;
	lane->carried[header->child] = report->carried;
	lane->waited[header->child] = report->waited;
	dense_ack(lane->dense, header->child, header->ack);
	if (lane->dense->has_parent)
		uplink_settle(&lane->up, lane->dense, &lane->pool);
	dense_answer(lane->dense, &lane->pool, header->child, report,
	             (uint32_t)(thread->now / 1000), lane->xdp ? YOUNG_US : 0, &packet.status,
	             repeat);
	if (lane->in_kernel)
		lane_watch(lane, header->child, report, repeat);
	/* A report that ends where the child is done is about nothing that it waits for. */
	if (lane->dense->ack[header->child] < report->base + report->bits)
		check_left(lane, header->child);
	if (atomic_load_explicit(&lane->comm->failed, memory_order_acquire)) {
		lane_send_abort(thread, lane, header->child);
		return;
	}
	for (uint32_t i = 0; i < WIRE_GROUP / 64; i++) {
		if (!report->young) /* the child knows that they are lost */
			lane->recent_losses[header->child] +=
				(uint32_t)__builtin_popcountll(repeat[i]);
		for (uint64_t word = repeat[i]; word; word &= word - 1)
			lane_queue_result(lane,
			                  report->base + 64 * i + (uint64_t)__builtin_ctzll(word),
			                  header->child);
	}
	lane_announce_low(thread, lane);
	/* What the answer calls complete has to be on its way before it. */
	if (!lane_send_results(thread, lane))
		memset(packet.status.complete, 0, sizeof(packet.status.complete));
	packet.header.pos = wire_pos(lane->index, lane->dense->ack[header->child]);
	packet.header.ack = (uint32_t)lane->dense->low;
	packet.status.waiting = lane_waiting(lane, lane->dense->ack[header->child]);
	if (lane->dense->has_parent &&
	    (!packet.status.waiting ||
	     !uplink_cell(lane->dense, &lane->pool, lane->dense->ack[header->child])))
		packet.status.waiting |= lane->up.waiting;
	rates_fill(thread, lane, header->child, &packet.status);
	if (report->stamp)
		thread_send(thread, &packet, wire_cut(&packet), &lane->addresses[header->child]);
	if (lane->dense->has_parent)
		uplink_follow(thread, lane, report);
}
