/* SPDX-License-Identifier: Apache-2.0 */
/* The sparse engine's entry in the table: what each child may send, and which ones get answers. */
#include "engine/cell_lock.h"
#include "engine/sparse_bank.h"

#include <string.h>

/* A packet, and room for its answers. */
struct job {
	const struct engine_pool *pool;
	struct sparse_lane *lane;
	const struct wire_header *packet;
	const void *payload;
	uint32_t bytes; /* of the payload */
	struct engine_packet *out;
};

static struct sparse_cell *live_record(const struct job *job, unsigned child)
{
	return sparse_state(engine_cell(job->pool, child));
}

static struct sparse_cell *frozen_record(const struct job *job, unsigned child)
{
	return sparse_state(engine_cell(job->pool, sparse_frozen_record(job->lane, child)));
}

static unsigned server_of(const struct sparse_lane *lane)
{
	return 63 - (unsigned)__builtin_clzll(lane->members | 1);
}

/* Everything below `durable` of the child was released. Needs the child's lock. */
static uint64_t durable_of(const struct job *job, unsigned child)
{
	return wire_widen(frozen_record(job, child)->more, frozen_record(job, child)->low);
}

/* ---- answers ---- */

static struct wire_header *packet_to(const struct job *job, struct engine_packet *out, uint64_t to,
                                     enum sparse_kind kind, uint64_t position)
{
	struct wire_header *header = (void *)out->data;

	*header = (struct wire_header){ .type = WIRE_RESULT,
		                        .child = WIRE_ALL,
		                        .op = (uint8_t)kind,
		                        .pos = (uint32_t)position,
		                        .scale = (uint16_t)job->lane->generation,
		                        .to = WIRE_ALL };
	out->to = to & ~job->lane->left;
	out->bytes = out->to ? WIRE_HEADER : 0;
	out->position = position;
	return header;
}

/* The answer to the sender, about `position`; its payload can follow. */
static struct wire_header *answer(const struct job *job, uint64_t position)
{
	struct wire_header *header = packet_to(job, &job->out[0], child_bit(job->packet->child),
	                                       job->packet->op, position);

	header->flags = job->packet->flags & WIRE_RESENT;
	header->child = job->packet->child;
	header->ack = job->packet->ack;
	return header;
}

static void *answer_payload(const struct job *job)
{
	return job->out[0].data + WIRE_HEADER;
}

static void answer_bytes(const struct job *job, uint32_t bytes)
{
	if (job->out[0].bytes)
		job->out[0].bytes += bytes;
}

static enum engine_verdict refuse(const struct job *job, uint64_t position, enum sparse_refusal why)
{
	struct wire_header *header = answer(job, position);

	header->from = SPARSE_REFUSED;
	header->to = (uint8_t)why;
	return ENGINE_ACK;
}

static enum engine_verdict refuse_epoch(const struct job *job)
{
	return refuse(job, job->lane->epoch, SPARSE_OTHER_EPOCH);
}

/*
 * Asks the server to freeze. `again`: also if it was asked in this epoch, as that NEWS may be lost.
 * Needs the child's lock.
 */
static void tell_server(const struct job *job, bool again)
{
	unsigned server = server_of(job->lane);

	if (__atomic_exchange_n(&job->lane->told, 1, __ATOMIC_RELAXED) && !again)
		return;
	packet_to(job, &job->out[1], child_bit(server), SPARSE_NEWS, job->lane->epoch)->from =
		SPARSE_URGENT;
}

/* ---- the server ---- */

static void lock_all(const struct job *job)
{
	for (unsigned child = 0; child <= server_of(job->lane); child++)
		cell_lock(&live_record(job, child)->more);
}

static void unlock_all(const struct job *job)
{
	for (unsigned child = 0; child <= server_of(job->lane); child++)
		cell_unlock(&live_record(job, child)->more);
}

static bool setup_is_sound(const struct sparse_lane *lane, const struct sparse_setup *setup)
{
	uint32_t per_block = sparse_per_block(lane->payload, setup->width);
	uint32_t limit = sparse_blocks_max(lane->cells, setup->layout);

	return per_block && setup->rows && setup->rows <= SPARSE_ROWS_MAX &&
	       sparse_bank_has(setup->kind) && setup->layout <= (SPARSE_VALUES | SPARSE_ONE_BANK) &&
	       setup->generation <= UINT16_MAX && !setup->unused[0] && !setup->unused[1] &&
	       !setup->unused[2] && sparse_blocks(setup->rows, per_block) <= limit &&
	       server_of(lane) < limit / (3 - sparse_banks(setup->layout));
}

static void set_up(const struct job *job, const struct sparse_setup *setup)
{
	struct sparse_lane *lane = job->lane;

	lock_all(job);
	lane->setup = *setup;
	lane->per_block = sparse_per_block(lane->payload, setup->width);
	lane->blocks = sparse_blocks(setup->rows, lane->per_block);
	lane->limit = sparse_blocks_max(lane->cells, setup->layout);
	lane->generation = setup->generation;
	unlock_all(job);
}

static enum engine_verdict take_setup(const struct job *job)
{
	const struct sparse_setup *setup = job->payload;
	struct sparse_lane *lane = job->lane;

	if (job->bytes != sizeof(*setup) || !setup_is_sound(lane, setup))
		return refuse(job, job->packet->pos, SPARSE_BAD);
	if (!lane->setup.width)
		set_up(job, setup);
	else if (memcmp(&lane->setup, setup, sizeof(*setup)) != 0)
		return refuse(job, job->packet->pos, SPARSE_BAD);
	answer(job, job->packet->pos);
	return ENGINE_ACK;
}

/* The banks change places, or the only one is closed. All children's locks are held. */
static void freeze(const struct job *job)
{
	struct sparse_lane *lane = job->lane;

	for (unsigned child = 0; child < server_of(lane); child++) {
		const struct sparse_cell *live = live_record(job, child);
		struct sparse_cell *frozen = frozen_record(job, child);

		frozen->low = live->low;
		memcpy(frozen->seen, live->seen, sizeof(frozen->seen));
	}
	lane->bank = sparse_frozen_bank(lane);
	lane->epoch++;
	lane->generation = job->packet->scale;
	lane->is_frozen = 1;
	__atomic_store_n(&lane->told, 0, __ATOMIC_RELAXED);
}

static enum engine_verdict take_freeze(const struct job *job)
{
	const struct sparse_lane *lane = job->lane;

	if (job->packet->pos != lane->epoch) {
		if (job->packet->pos != lane->epoch + 1 || lane->is_frozen)
			return refuse_epoch(job);
		if ((int16_t)(job->packet->scale - (uint16_t)lane->generation) < 0)
			return refuse(job, lane->epoch, SPARSE_BAD);
		lock_all(job);
		freeze(job);
		unlock_all(job);
	}
	answer(job, lane->epoch);
	return ENGINE_ACK;
}

/* Records of the children from `first` on, as many as fit. */
static uint32_t read_records(const struct job *job, unsigned first, struct sparse_record *out)
{
	unsigned end = first + sparse_page_records(job->lane->payload);

	if (end > WIRE_CHILDREN_MAX)
		end = WIRE_CHILDREN_MAX;
	for (unsigned child = first; child < end; child++, out++) {
		const struct sparse_cell *frozen;

		*out = (struct sparse_record){ .low = 0 };
		if (child >= server_of(job->lane)) /* no worker */
			continue;
		frozen = frozen_record(job, child);
		out->low = frozen->low;
		memcpy(out->seen, frozen->seen, sizeof(out->seen));
		out->durable = durable_of(job, child);
	}
	return (end - first) * (uint32_t)sizeof(*out);
}

static enum engine_verdict take_read(const struct job *job)
{
	const struct sparse_lane *lane = job->lane;
	uint32_t page = job->packet->ack, records = sparse_record_pages(lane->payload), bytes;

	if (job->packet->pos != lane->epoch || !lane->is_frozen)
		return refuse_epoch(job);
	if (page >= sparse_pages(lane->payload, lane->blocks))
		return refuse(job, lane->epoch, SPARSE_BAD);
	answer(job, lane->epoch);
	if (page < lane->blocks)
		bytes = sparse_bank_read(job->pool, page, answer_payload(job));
	else if (page < lane->blocks + records)
		bytes = read_records(job,
		                     (page - lane->blocks) * sparse_page_records(lane->payload),
		                     answer_payload(job));
	else
		bytes = sparse_bank_read_bits(job->pool, page - lane->blocks - records,
		                              answer_payload(job));
	answer_bytes(job, bytes);
	return ENGINE_ACK;
}

/* What is frozen is durable. Tells the workers. */
static void release(const struct job *job)
{
	unsigned server = server_of(job->lane);
	struct engine_packet *news = &job->out[1];
	sparse_value *halves = (sparse_value *)(void *)(news->data + WIRE_HEADER);

	packet_to(job, news, job->lane->members & ~child_bit(server), SPARSE_NEWS,
	          job->lane->epoch);
	memset(halves, 0, sparse_pad(4 * server));
	for (unsigned child = 0; child < server; child++) {
		cell_lock(&live_record(job, child)->more);
		frozen_record(job, child)->more = (uint32_t)frozen_record(job, child)->low;
		halves[child] = frozen_record(job, child)->more;
		cell_unlock(&live_record(job, child)->more);
	}
	if (news->bytes)
		news->bytes += sparse_pad(4 * server);
	sparse_bank_clear(job->pool);
	lock_all(job); /* workers may add to the same bank from now on */
	job->lane->is_frozen = 0;
	unlock_all(job);
}

static enum engine_verdict take_release(const struct job *job)
{
	if (job->packet->pos != job->lane->epoch || !job->lane->epoch)
		return refuse_epoch(job);
	if (job->lane->is_frozen)
		release(job);
	answer(job, job->lane->epoch);
	return ENGINE_ACK;
}

static enum engine_verdict take_write(const struct job *job)
{
	const struct wire_header *packet = job->packet;

	if (!sparse_is_current(job->lane, packet))
		return refuse(job, packet->pos, SPARSE_OTHER_MAP);
	if (!sparse_bank_write(job->pool, packet->ack, packet->pos, job->payload, job->bytes))
		return refuse(job, packet->pos, SPARSE_BAD);
	answer(job, packet->pos);
	return ENGINE_ACK;
}

/* ---- workers ---- */

/* Says also what is durable of the child. */
static void answer_push(const struct job *job, uint64_t sequence)
{
	answer(job, sequence)->ack = (uint32_t)durable_of(job, job->packet->child);
}

static enum engine_verdict refuse_push(const struct job *job, uint64_t sequence,
                                       enum sparse_refusal why)
{
	refuse(job, sequence, why);
	((struct wire_header *)(void *)job->out[0].data)->ack =
		(uint32_t)durable_of(job, job->packet->child);
	if (why == SPARSE_FULL)
		tell_server(job, false);
	if (why == SPARSE_OTHER_MAP)
		return ENGINE_STALE;
	return why == SPARSE_BAD ? ENGINE_ACK : ENGINE_AHEAD;
}

/* Why the rows cannot be added; 0: they can. *many: the server should freeze soon. */
static enum sparse_refusal judge_rows(const struct job *job, bool *many)
{
	uint32_t addends;

	if (!sparse_is_current(job->lane, job->packet))
		return SPARSE_OTHER_MAP;
	if (!sparse_bank_is_sound(job->lane, job->payload, job->bytes, true))
		return SPARSE_BAD;
	if (sparse_is_closed(job->lane))
		return SPARSE_FROZEN;
	addends = sparse_bank_addends(job->pool, job->payload);
	*many = addends + 1 >= SPARSE_ADDENDS_MANY;
	return addends >= SPARSE_ADDENDS ? SPARSE_FULL : 0;
}

/* Adds a packet that is not in the sums. */
static enum engine_verdict add_push(const struct job *job, uint64_t sequence)
{
	bool is_void = job->packet->from & SPARSE_VOID, many = false;
	enum sparse_refusal why = 0;

	if (!is_void)
		why = judge_rows(job, &many);
	else if (job->bytes)
		why = SPARSE_BAD;
	if (why)
		return refuse_push(job, sequence, why);
	if (!is_void)
		sparse_bank_add(job->pool, job->payload);
	sparse_enter(live_record(job, job->packet->child), sequence);
	engine_cell(job->pool, job->packet->child)->sent_at = 0; /* we send the answer */
	answer_push(job, sequence);
	if (many || job->packet->from & SPARSE_URGENT)
		tell_server(job, false);
	return ENGINE_ADDED;
}

static enum engine_verdict repeat_push(const struct job *job, uint64_t sequence)
{
	answer_push(job, sequence);
	if (job->packet->from & SPARSE_URGENT &&
	    sparse_needs_freeze(job->lane, frozen_record(job, job->packet->child), sequence))
		tell_server(job, job->packet->flags & WIRE_RESENT);
	return sparse_repeat(job->packet);
}

static enum engine_verdict take_push(const struct job *job)
{
	const struct sparse_cell *record = live_record(job, job->packet->child);
	uint64_t sequence = wire_widen(job->packet->pos, record->low);

	switch (sparse_find(record, sequence)) {
	case SPARSE_SEEN:
		return repeat_push(job, sequence);
	case SPARSE_BEYOND:
		return refuse_push(job, sequence, SPARSE_TOO_FAR);
	default:
		return add_push(job, sequence);
	}
}

static enum engine_verdict take_pull(const struct job *job)
{
	const struct sparse_lane *lane = job->lane;
	const struct sparse_rows *head = job->payload;
	uint32_t pos = job->packet->pos;

	if (!sparse_is_current(lane, job->packet))
		return refuse(job, pos, SPARSE_OTHER_MAP);
	if (!sparse_bank_is_sound(lane, job->payload, job->bytes, false) ||
	    sparse_rows_bytes(head->n, head->width, 1) > lane->payload)
		return refuse(job, pos, SPARSE_BAD);
	answer(job, pos);
	answer_bytes(job, sparse_bank_pull(job->pool, job->payload, answer_payload(job)));
	return ENGINE_ACK;
}

/* A worker's packet, under its lock. */
static enum engine_verdict take_worker(const struct job *job)
{
	uint32_t *lock = &live_record(job, job->packet->child)->more;
	enum engine_verdict verdict;

	cell_lock(lock);
	if (!job->lane->setup.width)
		verdict = refuse(job, sparse_position(job->packet, 0), SPARSE_UNREADY);
	else if (job->packet->op == SPARSE_PUSH)
		verdict = take_push(job);
	else
		verdict = take_pull(job);
	cell_unlock(lock);
	return verdict;
}

static enum engine_verdict take_server(const struct job *job)
{
	if (job->packet->op == SPARSE_SETUP)
		return take_setup(job);
	if (!job->lane->setup.width)
		return refuse(job, job->packet->pos, SPARSE_UNREADY);
	switch (job->packet->op) {
	case SPARSE_FREEZE:
		return take_freeze(job);
	case SPARSE_READ:
		return take_read(job);
	case SPARSE_RELEASE:
		return take_release(job);
	default:
		return take_write(job);
	}
}

/* ---- the table ---- */

static int open_lane(const struct engine_pool *pool)
{
	return pool->lane->payload >= WIRE_PAYLOAD_MIN && pool->lane->payload % 8 == 0;
}

static uint64_t position_of(const struct engine_pool *pool, const struct wire_header *packet)
{
	uint64_t low = 0;

	if (packet->child < pool->lane->cells)
		low = sparse_state(engine_cell(pool, packet->child))->low;
	return sparse_position(packet, low);
}

static enum engine_verdict take(const struct engine_pool *pool, const struct wire_header *packet,
                                uint32_t bytes, struct engine_packet out[2])
{
	struct sparse_lane *lane = sparse_lane_of(pool);
	const struct job job = { pool, lane, packet, packet + 1, bytes, out };
	bool of_worker = packet->op == SPARSE_PUSH || packet->op == SPARSE_PULL;

	out[0].bytes = out[1].bytes = 0;
	if (!sparse_knows(lane, packet->child) || packet->op >= SPARSE_NEWS ||
	    of_worker == sparse_is_server(lane, packet->child))
		return ENGINE_STRANGER;
	if (packet->child >= lane->cells) /* no SETUP succeeds in so few cells */
		return refuse(&job, sparse_position(packet, 0), SPARSE_UNREADY);
	return of_worker ? take_worker(&job) : take_server(&job);
}

/* There is no cell that children have to agree on: the child's own one. */
static struct engine_view view(const struct engine_pool *pool, const struct wire_header *packet)
{
	return (struct engine_view){ .cell = packet->child % pool->lane->cells,
		                     .position = packet->pos,
		                     .op = packet->op,
		                     .from = WIRE_ALL };
}

/* Nobody waits for another child. */
static uint64_t waiting(const struct engine_pool *pool)
{
	(void)pool;
	return 0;
}

const struct engine engine_sparse = {
	.name = "sparse",
	.number = ENGINE_SPARSE,
	.any_cells = 1,
	.layouts = SPARSE_VALUES | SPARSE_ONE_BANK,
	.replies = 1,
	.open = open_lane,
	.position = position_of,
	.take = take,
	.view = view,
	.waiting = waiting,
	.sums = sparse_bank_sums,
};
