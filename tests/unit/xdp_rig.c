/* SPDX-License-Identifier: Apache-2.0 */
#include "base/random_bits.h"
#include "xdp_rig.h"

#include "base/log.h"
#include "wire/parse.h"

#include <string.h>
#include <unistd.h>

uint64_t rig_random(uint64_t *state)
{
	return random_next(state);
}

/* ---- the program and its lane ---- */

static void load(struct rig *rig, uint32_t payload, bool tc)
{
	const struct xdp_options options = { .port = RIG_PORT,
		                             .lanes = RIG_LANES,
		                             .payload = payload,
		                             .queue = RIG_QUEUE,
		                             .six = true,
		                             .tc = tc };

	log_set_level(LOG_INFO); /* shows the verifier's log */
	memset(rig, 0, sizeof(*rig));
	rig->tc = tc;
	rig->room = payload;
	if (xdp_load(&options, &rig->plane) == TRIB_OK)
		return;
	printf("skipped: %s\n", trib_last_error());
	fflush(stdout);
	/* A refusal by the verifier is no reason to skip. libFuzzer does not allow exit(). */
	_exit(strstr(trib_last_error(), "no right") ? 77 : 1);
}

void rig_load(struct rig *rig, uint32_t payload)
{
	load(rig, payload, false);
}

void rig_load_tc(struct rig *rig, uint32_t payload)
{
	load(rig, payload, true);
}

static void slot_close(struct rig *rig)
{
	if (!rig->handle)
		return;
	xdp_handle_close(rig->handle);
	free(rig->twin_pool.cells);
	free(rig->engine_twin.cells);
	rig->handle = NULL;
	rig->engine = NULL;
	rig->engine_twin.cells = rig->twin_pool.cells = NULL;
}

void rig_clear(struct rig *rig)
{
	memset(rig->dense, 0, sizeof(*rig->dense));
	memset(rig->lane->last, 0, sizeof(rig->lane->last));
	memset(rig->pool.cells, 0, rig->cells * rig->pool.cell_step);
	rig->dense->has_parent = rig->has_parent;
	rig->lane->parent.launched = rig->lane->parent.sent = 0;
	rig->lane->parent.told = rig->lane->parent.heard = 0;
	rig->lane->parent.allowed = UINT64_MAX;
	rig->dense->cells = rig->cells;
	rig->dense->payload = rig->payload;
	for (unsigned child = 0; child < rig->children; child++)
		dense_add_child(rig->dense, child, child_bit(child));
	for (uint32_t i = 0; i < rig->cells; i++)
		dense_cell(&rig->pool, i)->position = DENSE_EMPTY;
	rig_copy(rig);
}

void rig_lane(struct rig *rig, uint32_t children, uint32_t cells, uint32_t payload)
{
	const struct xdp_lane_options options = { .comm = RIG_COMM,
		                                  .lane = RIG_LANE,
		                                  .cookie = RIG_COOKIE,
		                                  .job = RIG_JOB,
		                                  .epoch = RIG_EPOCH,
		                                  .cells = cells,
		                                  .payload = payload,
		                                  .children = children };

	slot_close(rig);
	rig->handle = xdp_handle_open(rig->plane, &options, &rig->dense, &rig->pool);
	demand(rig->handle);
	rig->lane = xdp_handle_lane(rig->handle);
	rig->has_parent = false;
	memset(rig->ways, 0, sizeof(rig->ways));
	rig->children = children;
	rig->cells = cells;
	rig->payload = payload;
	rig->twin_pool = rig->pool;
	rig->twin_pool.cells = malloc(cells * rig->pool.cell_step);
	demand(rig->twin_pool.cells);
	rig->twin_pool.packets = rig->twin_pool.cells + (rig->pool.packets - rig->pool.cells);
	rig_clear(rig);
	xdp_handle_start(rig->handle);
}

void rig_engine_lane(struct rig *rig, const struct engine *engine, uint32_t children,
                     uint32_t cells, uint32_t payload, const struct shape *shape)
{
	const struct xdp_lane_options options = { .comm = RIG_COMM,
		                                  .lane = RIG_LANE,
		                                  .cookie = RIG_COOKIE,
		                                  .job = RIG_JOB,
		                                  .epoch = RIG_EPOCH,
		                                  .cells = 8,
		                                  .payload = payload,
		                                  .children = children,
		                                  .engine = engine,
		                                  .engine_cells = cells };

	slot_close(rig);
	rig->handle = xdp_handle_open(rig->plane, &options, &rig->dense, &rig->pool);
	demand(rig->handle);
	rig->lane = xdp_handle_lane(rig->handle);
	rig->engine = engine;
	rig->children = children;
	rig->cells = cells;
	rig->payload = payload;
	rig->engine_pool = xdp_handle_engine(rig->handle);
	*rig->engine_pool.lane =
		(struct engine_lane){ .members = children < 64 ? (1ull << children) - 1 : ~0ull,
		                      .cells = cells,
		                      .payload = payload };
	demand(engine->open(&rig->engine_pool));
	rig_routes(rig, shape);
	for (unsigned i = 0; i < children; i++) {
		rig->lane->entry[i] = (uint8_t)i;
		rig->lane->entry_port[i] = RIG_LO;
	}
	rig->lane->shared_ports = children > 1;
	rig->lane->entries = (uint8_t)children;
	xdp_handle_start(rig->handle);
	rig->engine_state = *rig->engine_pool.lane;
	rig->engine_twin = (struct engine_pool){ .lane = &rig->engine_state,
		                                 .cells = malloc(cells * rig->engine_pool.step),
		                                 .step = rig->engine_pool.step };
	demand(rig->engine_twin.cells);
	memcpy(rig->engine_twin.cells, rig->engine_pool.cells, cells * rig->engine_pool.step);
	memcpy(rig->twin_last, rig->lane->last, sizeof(rig->twin_last));
	xdp_count(rig->plane, &rig->counts);
}

void rig_engine_compare(struct rig *rig)
{
	struct xdp_counts counts;

	xdp_count(rig->plane, &counts);
	demand(!memcmp(&counts, &rig->counts, sizeof(counts)));
	demand(!memcmp(rig->lane->last, rig->twin_last, sizeof(rig->twin_last)));
	demand(!memcmp(rig->engine_pool.lane, &rig->engine_state, sizeof(rig->engine_state)));
	for (uint32_t i = 0; i < rig->cells; i++) /* the twin sends nothing, and has no clock */
		engine_cell(&rig->engine_pool, i)->sent_at = 0;
	demand(!memcmp(rig->engine_pool.cells, rig->engine_twin.cells,
	               rig->cells * rig->engine_pool.step));
}

void rig_parent(struct rig *rig, const struct shape *shape)
{
	struct xdp_parent *parent = &rig->lane->parent;
	static struct frame from;

	child_address(RIG_PARENT, shape->six, &rig->parent);
	demand(xdp_handle_parent(rig->handle, &rig->parent, RIG_PARENT_COOKIE, RIG_PARENT_COMM,
	                         RIG_PARENT_EPOCH, RIG_PARENT_CHILD) == TRIB_OK);
	frame_make(&from, shape, RIG_PARENT, "", 0);
	route_make(&parent->route, shape, RIG_PARENT, RIG_LO);
	parent->mac = parent->address = 0;
	memcpy(&parent->mac, from.data, 6);
	memcpy(&parent->address, from.data + from.at - 16, 8);
	parent->active = 1;
	rig->has_parent = true;
	rig_clear(rig);
}

void rig_unload(struct rig *rig)
{
	slot_close(rig);
	xdp_close(rig->plane);
}

void rig_copy(struct rig *rig)
{
	rig->twin = *rig->dense;
	memcpy(rig->twin_pool.cells, rig->pool.cells, rig->cells * rig->pool.cell_step);
	memcpy(rig->twin_last, rig->lane->last, sizeof(rig->twin_last));
	rig->twin_parent = rig->lane->parent;
	xdp_count(rig->plane, &rig->counts);
}

uint32_t rig_run(struct rig *rig, const struct frame *in, struct frame *out, uint32_t ifindex)
{
	static struct frame unused;
	struct xdp_run run = { .in = in->data, .bytes = in->bytes, .ifindex = ifindex };

	out = out ? out : &unused;
	run.out = out->data;
	demand(xdp_run(rig->plane, &run) == TRIB_OK);
	out->bytes = run.out_bytes;
	out->l2 = in->l2;
	out->l3 = in->l3;
	out->at = in->at;
	return run.action;
}

/* ---- the queue ---- */

void rig_queue(struct rig *rig, unsigned child, const struct shape *shape)
{
	route_make(&rig->lane->routes[child], shape, child, RIG_LO);
	rig->lane->routes[child].queued = 1;
	rig->ways[child] = shape;
}

struct queue_has {
	const struct frame *frame;
	struct udp_address from;
	unsigned packets;
};

static void queue_take(void *context, const void *packet, uint32_t bytes,
                       const struct udp_address *from)
{
	struct queue_has *has = context;
	const uint8_t *udp = has->frame->data + has->frame->at - 8;

	demand(bytes + 8 == ((uint32_t)udp[4] << 8 | udp[5]));
	demand(!memcmp(packet, udp + 8, bytes) && (uintptr_t)packet % 8 == 0);
	demand(udp_same(from, &has->from));
	has->packets++;
}

bool queue_check(struct rig *rig, const struct frame *frame, unsigned child)
{
	uint8_t mapped[16] = { [10] = 0xff, [11] = 0xff };
	struct queue_has has = { .frame = frame };
	size_t size;

	child_address(child, frame->l3 == 40, &has.from);
	if (frame->l3 != 40) { /* as a socket for both families reports it */
		memcpy(mapped + 12, udp_raw(&has.from, &size), 4);
		udp_from_raw(mapped, 16, udp_port(&has.from), &has.from);
	}
	demand(xdp_queue_read(rig->plane, RIG_LANE, 2, queue_take, &has) == has.packets);
	demand(has.packets < 2);
	return has.packets;
}

/* ---- kernel and twin ---- */

static bool is_admitted(const struct rig *rig, const struct wire_header *header, uint32_t bytes)
{
	return header->comm == RIG_COMM && header->type == WIRE_DATA && bytes <= rig->room;
}

/* Does the frame come from the parent's address? */
static bool is_parents_frame(const struct rig *rig, const struct frame *frame)
{
	const struct sockaddr_in6 *six = (const void *)&rig->parent.storage;
	const struct sockaddr_in *four = (const void *)&rig->parent.storage;
	const uint8_t *ip = frame->data + frame->l2;

	if (rig->parent.storage.ss_family == AF_INET6)
		return frame->l3 == 40 && !memcmp(ip + 8, &six->sin6_addr, 16) &&
		       !memcmp(ip + 40, &six->sin6_port, 2);
	return frame->l3 == 20 && !memcmp(ip + 12, &four->sin_addr, 4) &&
	       !memcmp(ip + 20, &four->sin_port, 2);
}

/* The length of the datagram that UDP would deliver to the lane's socket; 0: none. */
static uint32_t datagram(const struct frame *frame, struct packet *packet)
{
	const uint8_t *ip = frame->data + frame->l2, *udp = ip + frame->l3;
	uint32_t bytes;

	if (frame->bytes < frame->at || (frame->l3 == 20 && (ip[0] != 0x45 || ip[9] != 17)) ||
	    (frame->l3 == 40 && ip[6] != 17) || (frame->l3 != 20 && frame->l3 != 40))
		return 0;
	bytes = (uint32_t)udp[4] << 8 | udp[5];
	if ((udp[2] << 8 | udp[3]) != (int)(RIG_PORT + RIG_LANE) || bytes < 8 ||
	    bytes > frame->bytes - frame->at + 8 || bytes - 8 > sizeof(*packet))
		return 0;
	memcpy(packet, frame->data + frame->at, bytes - 8);
	return bytes - 8;
}

static bool is_from_parent(const struct rig *rig, const struct wire_header *header, uint32_t bytes,
                           const struct frame *frame)
{
	const struct xdp_parent *parent = &rig->twin_parent;
	uint64_t mac = 0;

	memcpy(&mac, frame->data, 6);
	return header->type == WIRE_RESULT && rig->has_parent && parent->active &&
	       rig->lane->entries && header->comm == RIG_PARENT_COMM && header->child == WIRE_ALL &&
	       bytes <= rig->room && mac == parent->mac && is_parents_frame(rig, frame) &&
	       !memcmp(frame->data + frame->at - 16, &parent->address, 8);
}

/* A valid result of the parent. */
static int result_take(struct rig *rig, const struct packet *packet, uint32_t payload)
{
	const struct wire_header *header = &packet->header;
	uint64_t position = dense_position(&rig->twin, header);
	uint32_t index = dense_index(&rig->twin, position);
	struct dense_cell *cell = dense_cell(&rig->twin_pool, index);
	bool by_kernel = cell->position == position && cell->queued == UPLINK_RAISED;
	enum dense_verdict verdict =
		uplink_take(&rig->twin, cell, dense_packet(&rig->twin_pool, index) + WIRE_HEADER,
	                    header, packet->words, payload);

	if (verdict == DENSE_FINISHED || verdict == DENSE_STALE)
		rig->counts.echoes++;
	if (verdict != DENSE_COMPLETE)
		return verdict == DENSE_FINISHED || verdict == DENSE_STALE ? (int)verdict
		                                                           : TAKEN_NOT;
	rig->twin_parent.heard += by_kernel;
	rig->counts.lowered++;
	rig->counts.results++;
	rig->counts.sends += header->to != WIRE_ALL ? 1 : rig->lane->entries;
	return DENSE_COMPLETE;
}

/* The last part of a sum, which goes up or is left to the daemon. */
static int sum_take(struct rig *rig, struct dense_cell *cell, unsigned child, uint32_t payload)
{
	struct xdp_parent *parent = &rig->twin_parent;
	unsigned contributors =
		(unsigned)__builtin_popcountll(dense_expected(&rig->twin, cell->from));

	rig->counts.added += contributors - 1;
	rig->counts.payload += (uint64_t)(contributors - 1) * payload;
	if (!parent->active || parent->launched >= parent->allowed) {
		cell->queued = UPLINK_LEFT;
		rig->counts.left++;
		rig->aside = true;
		return TAKEN_LEFT;
	}
	cell->queued = UPLINK_RAISED;
	parent->launched++;
	if (cell->position >= parent->sent)
		parent->sent = cell->position + 1;
	parent->told = rig->twin.settled;
	rig->counts.payload += payload;
	rig->counts.raised++;
	rig->counts.verdicts[DENSE_SUMMED]++;
	rig->twin_last[child]++;
	return DENSE_SUMMED;
}

/* A child's report, as far as the program checks it. */
static bool is_report(const struct wire_control *control, uint32_t bytes)
{
	return bytes >= WIRE_CONTROL && bytes <= XDP_REPORT_MAX && control->comm == RIG_COMM &&
	       control->cookie == RIG_COOKIE && control->job == RIG_JOB &&
	       control->epoch == RIG_EPOCH && wire_lane(control) == RIG_LANE;
}

static int packet_take(struct rig *rig, struct packet *packet, uint32_t bytes,
                       const struct frame *frame)
{
	uint32_t payload = bytes - WIRE_HEADER;
	uint64_t position = dense_position(&rig->twin, &packet->header);
	uint32_t index = dense_index(&rig->twin, position);
	struct wire_unsent unsent = rig_unsent(position);
	enum dense_verdict verdict;
	bool from_parent;

	if (bytes < WIRE_HEADER || bytes % 8 || packet->header.magic != WIRE_MAGIC)
		return TAKEN_NOT;
	if (packet->header.type == WIRE_REPORT) {
		rig->aside = is_report(wire_control(&packet->header), bytes);
		return TAKEN_NOT;
	}
	/* The daemon reports errors other than the checksum. */
	from_parent = is_from_parent(rig, &packet->header, payload, frame);
	if (wire_parse(packet, bytes) != WIRE_SOUND ||
	    (packet->header.to >= WIRE_CHILDREN_MAX && packet->header.to != WIRE_ALL) ||
	    (!from_parent && !is_admitted(rig, &packet->header, payload)))
		return TAKEN_NOT;
	if (from_parent)
		unsent = rig_parent_unsent(position);
	if (!wire_is_intact(&packet->header, bytes, &unsent)) {
		rig->counts.verdicts[TAKEN_CORRUPTED]++;
		return TAKEN_CORRUPTED;
	}
	if (from_parent)
		return result_take(rig, packet, payload);
	verdict = dense_take(&rig->twin, dense_cell(&rig->twin_pool, index),
	                     dense_packet(&rig->twin_pool, index) + WIRE_HEADER, &packet->header,
	                     packet->words, payload);
	if (verdict == DENSE_MISMATCH || verdict == DENSE_STRANGER ||
	    (verdict == DENSE_AHEAD && rig->has_parent)) {
		rig->aside = true;
		return TAKEN_NOT;
	}
	if (verdict == DENSE_SUMMED)
		return sum_take(rig, dense_cell(&rig->twin_pool, index), packet->header.child,
		                payload);
	/* A packet that only adds is counted when the sum is complete. */
	if (verdict != DENSE_ADDED)
		rig->counts.verdicts[verdict]++;
	if (verdict == DENSE_COMPLETE) {
		unsigned contributors = (unsigned)__builtin_popcountll(
			dense_expected(&rig->twin, packet->header.from));

		rig->counts.results++;
		rig->counts.sends += packet->header.to != WIRE_ALL ? 1 : rig->lane->entries;
		rig->twin_last[packet->header.child]++;
		rig->counts.added += contributors - 1;
		rig->counts.payload += (uint64_t)contributors * payload;
	}
	return (int)verdict;
}

int twin_take(struct rig *rig, const struct frame *frame)
{
	static _Thread_local struct packet packet;
	uint32_t bytes = datagram(frame, &packet);

	rig->aside = false;
	return bytes ? packet_take(rig, &packet, bytes, frame) : TAKEN_NOT;
}

/* A cell that is not needed any more: it may hold a copy that turned out to be corrupted. */
static bool is_unused(const struct dense_lane *lane, const struct dense_cell *cell)
{
	return cell->position == DENSE_EMPTY || cell->position < lane->low;
}

static void cells_compare(struct rig *rig, bool corrupted)
{
	for (uint32_t i = 0; i < rig->cells; i++) {
		struct dense_cell *cell = dense_cell(&rig->pool, i);
		struct dense_cell *twin = dense_cell(&rig->twin_pool, i);
		uint8_t *sum = dense_packet(&rig->pool, i) + WIRE_HEADER;
		uint8_t *twin_sum = dense_packet(&rig->twin_pool, i) + WIRE_HEADER;
		size_t room = rig->pool.cell_step - sizeof(struct xdp_cell);

		twin->sent_at = cell->sent_at; /* the twin sends nothing */
		twin->raised_at = cell->raised_at;
		demand(!memcmp(cell, twin, sizeof(*cell)));
		if (corrupted && is_unused(rig->dense, cell))
			memcpy(twin_sum, sum, room);
		demand(!memcmp(sum, twin_sum, room));
	}
}

static void compare(struct rig *rig, bool corrupted)
{
	struct xdp_counts counts;

	xdp_count(rig->plane, &counts);
	demand(!memcmp(&counts, &rig->counts, sizeof(counts)));
	demand(!memcmp(rig->dense, &rig->twin, sizeof(rig->twin)));
	demand(!memcmp(rig->lane->last, rig->twin_last, sizeof(rig->twin_last)));
	demand(rig->lane->parent.launched == rig->twin_parent.launched);
	demand(rig->lane->parent.sent == rig->twin_parent.sent);
	demand(rig->lane->parent.told == rig->twin_parent.told);
	demand(rig->lane->parent.heard == rig->twin_parent.heard);
	cells_compare(rig, corrupted);
}

void rig_compare(struct rig *rig)
{
	compare(rig, false);
}

/* Does the frame come on the route of a child that may use the queue? */
static bool comes_by(const struct frame *frame, const struct shape *way, unsigned child)
{
	static _Thread_local struct frame like;
	uint32_t addresses;

	frame_make(&like, way, child, "", 0);
	addresses = like.l3 == 20 ? 8 : 32;
	return frame->l2 == like.l2 && frame->l3 == like.l3 &&
	       !memcmp(frame->data, like.data, like.l2) &&
	       !memcmp(frame->data + frame->at - 8 - addresses, like.data + like.at - 8 - addresses,
	               addresses + 4);
}

static bool is_queued(const struct rig *rig, const struct frame *frame)
{
	uint8_t child = frame->data[frame->at + offsetof(struct wire_header, child)];
	const struct shape *way;

	if (!rig->aside || !rig->lane->active || child >= WIRE_CHILDREN_MAX)
		return false;
	way = rig->ways[child];
	return way && comes_by(frame, way, child);
}

int rig_agree(struct rig *rig, const struct frame *frame, struct frame *out)
{
	static struct frame own;
	uint32_t action;
	int taken;

	out = out ? out : &own;
	action = rig_run(rig, frame, out, 0);
	taken = twin_take(rig, frame);
	if (is_queued(rig, frame)) {
		demand(action == XDP_DROP);
		demand(queue_check(rig, frame, frame->data[frame->at + 10]));
		rig->counts.queued++;
	} else if (taken == TAKEN_NOT || taken == TAKEN_LEFT || taken == TAKEN_CORRUPTED) {
		demand(action == XDP_PASS);
		demand(out->bytes == frame->bytes);
		demand(!memcmp(out->data, frame->data, frame->bytes));
	} else if (taken == DENSE_COMPLETE || taken == DENSE_SUMMED) {
		demand(action == XDP_TX || action == XDP_REDIRECT || action == XDP_DROP);
	} else {
		demand(action == XDP_DROP);
	}
	demand(!queue_check(rig, frame, 0));
	compare(rig, taken == TAKEN_CORRUPTED);
	return taken;
}

int rig_give(struct rig *rig, struct rig_data data)
{
	static struct frame frame;

	frame_data(&frame, &shape_plain, &data);
	return rig_agree(rig, &frame, NULL);
}

int rig_lower(struct rig *rig, struct rig_data data)
{
	static struct packet packet;
	static struct frame frame;

	frame_make(&frame, &shape_plain, RIG_PARENT, &packet, packet_result(&packet, &data));
	return rig_agree(rig, &frame, NULL);
}
