/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/ring/direct.h"

#include "worker/ring/direct_sum.h"
#include "worker/ring/gather_steps.h"

#include <string.h>

#define STEPS_MOST 16384u /* bytes of the mean sum that a DIRECT_BACK sends in steps */
#define ONCE_LEAST 4096u  /* bytes of a vector that is written once for all ranks */

void direct_init(struct direct *direct, unsigned rank, unsigned size, uint32_t payload)
{
	*direct = (struct direct){ .rank = rank, .size = size, .payload = payload };
	direct->end = &direct->first;
	for (unsigned r = 0; r < size; r++)
		queue_init(&direct->early[r]);
}

void direct_clear(struct direct *direct)
{
	while (direct->first) {
		struct direct_call *call = direct->first;

		direct->first = call->next;
		direct_call_free(call);
	}
	direct->end = &direct->first;
	for (unsigned r = 0; r < direct->size; r++)
		queue_free(&direct->early[r]);
}

struct direct_call *direct_call_new(enum direct_what what, const struct round_spec *vectors,
                                    unsigned n, void *owner)
{
	struct direct_call *call = calloc(1, sizeof(*call) + n * sizeof(*vectors));

	if (!call)
		return NULL;
	call->what = what;
	call->owner = owner;
	call->n = n;
	call->behind = 1;
	memcpy(call->vectors, vectors, n * sizeof(*vectors));
	for (unsigned i = 0; i < n; i++)
		call->count += vectors[i].count;
	return call;
}

void direct_call_free(struct direct_call *call)
{
	for (unsigned r = 0; call && r < WIRE_CHILDREN_MAX; r++)
		message_free(call->came[r]);
	if (call)
		message_free(call->for_all);
	free(call);
}

static size_t element(const struct round_spec *vector)
{
	return vector->copy ? 1 : trib_type_size(vector->type);
}

/* Parts begin at blocks, so that a block has the same elements and scale as on other ways. */
void direct_cut(const struct round_spec *whole, unsigned size, uint32_t payload,
                struct round_spec share[], struct round_spec back[])
{
	size_t per = round_spec_block(whole, payload), blocks = (whole->count + per - 1) / per;

	for (unsigned r = 0; r < size; r++) {
		size_t first = blocks * r / size * per, end = blocks * (r + 1) / size * per;
		size_t at;

		first = first < whole->count ? first : whole->count;
		end = end < whole->count ? end : whole->count;
		at = first * element(whole);
		share[r] = *whole;
		share[r].count = end - first;
		share[r].first += first;
		if (whole->residual)
			share[r].residual += first;
		share[r].to = (uint8_t)r;
		if (whole->count) {
			share[r].source = (const uint8_t *)whole->source + at;
			share[r].target = (uint8_t *)whole->target + at;
		}
		back[r] = (struct round_spec){ .copy = true,
			                       .count = (end - first) * element(whole),
			                       .source = share[r].target,
			                       .target = share[r].target,
			                       .from = (uint8_t)r,
			                       .to = WIRE_ALL,
			                       .call = whole->call };
	}
}

/* ---- messages ---- */

/* The vectors in a message: the last one may be followed by vector 0. */
struct cargo {
	unsigned first, n;
};

static bool is_one_of(uint8_t ranks, unsigned rank)
{
	return ranks == WIRE_ALL || ranks == rank;
}

/* The vector that one rank sends to another; NULL: none. */
static const struct round_spec *vector_of(const struct direct_call *call, unsigned from,
                                          unsigned to)
{
	const struct round_spec *vector = &call->vectors[call->n == 1            ? 0
	                                                 : call->vectors[0].copy ? from
	                                                                         : to];

	return is_one_of(vector->from, from) && is_one_of(vector->to, to) ? vector : NULL;
}

/* What one rank sends directly to another. */
static struct cargo cargo_of_pair(const struct direct_call *call, unsigned from, unsigned to)
{
	const struct round_spec *vector = vector_of(call, from, to);

	return vector ? (struct cargo){ (unsigned)(vector - call->vectors), 1 }
	              : (struct cargo){ 0 };
}

/* What this rank gets from another one. A rank sends at most one message to this one. */
static struct cargo cargo_from(const struct direct *direct, const struct direct_call *call,
                               unsigned from)
{
	if (!call->steps)
		return cargo_of_pair(call, from, direct->rank);
	for (unsigned i = 0; i < gather_steps(direct->size); i++) {
		struct gather_step step = gather_step(direct->rank, direct->size, i);

		if (step.from == from)
			return (struct cargo){ step.takes, step.n };
	}
	return (struct cargo){ 0 };
}

static const struct round_spec *cargo_vector(const struct direct_call *call, struct cargo cargo,
                                             unsigned i)
{
	return &call->vectors[(cargo.first + i) % call->n];
}

static size_t vector_bytes(const struct round_spec *vector)
{
	return vector->count * element(vector);
}

static size_t cargo_bytes(const struct direct_call *call, struct cargo cargo)
{
	size_t bytes = 0;

	for (unsigned i = 0; i < cargo.n; i++)
		bytes += vector_bytes(cargo_vector(call, cargo, i));
	return bytes;
}

static uint8_t root_of(const struct direct_call *call)
{
	const struct round_spec *vector = &call->vectors[0];

	if (call->n > 1)
		return WIRE_ALL;
	return vector->from != WIRE_ALL ? vector->from : vector->to;
}

static struct direct_head head_of(const struct direct *direct, const struct direct_call *call)
{
	const struct round_spec *vector = &call->vectors[0];

	struct direct_head head = { .version = DIRECT_VERSION,
		                    .what = (uint8_t)call->what,
		                    .op = vector->copy ? 0 : (uint8_t)vector->op,
		                    .type = vector->copy ? 0 : (uint8_t)vector->type,
		                    .number = call->number,
		                    .around = call->around,
		                    .payload = (uint16_t)direct->payload,
		                    .root = root_of(call),
		                    .count = call->count,
		                    .call = vector->call };

	head.call.rank = 0;
	return head;
}

static struct message *new_message(const struct direct *direct, const struct direct_head *head,
                                   size_t bytes)
{
	struct message *message = message_new(direct->pool, (uint32_t)(sizeof(*head) + bytes));

	if (message)
		memcpy(message->data, head, sizeof(*head));
	return message;
}

/* In steps, a rank also sends vectors that it has got: these are where their results belong. */
static struct message *write_message(const struct direct *direct, const struct direct_call *call,
                                     struct cargo cargo)
{
	struct direct_head head = head_of(direct, call);
	struct message *message = new_message(direct, &head, cargo_bytes(call, cargo));
	uint8_t *at = message ? message->data + sizeof(head) : NULL;

	for (unsigned i = 0; message && i < cargo.n; i++) {
		const struct round_spec *vector = cargo_vector(call, cargo, i);
		bool got = call->steps && (unsigned)(vector - call->vectors) != direct->rank;

		if (vector->count)
			memcpy(at, got ? vector->target : vector->source, vector_bytes(vector));
		at += vector_bytes(vector);
		/* As in round.c: what 32 bits lack is not worth keeping. */
		if (vector->residual)
			memset(vector->residual, 0, vector->count * sizeof(*vector->residual));
	}
	return message;
}

struct message *direct_notice(const struct direct *direct)
{
	struct direct_head head = head_of(direct, direct->first);

	head.notice = 1;
	return new_message(direct, &head, 0);
}

/* Vectors that have come in steps go where their results belong, in the order of the steps. */
static void take_steps(const struct direct *direct, struct direct_call *call)
{
	while (call->taken < gather_steps(direct->size)) {
		struct gather_step step = gather_step(direct->rank, direct->size, call->taken);
		struct message *message = call->came[step.from];
		struct cargo cargo = { step.takes, step.n };
		const uint8_t *at;

		if (!message)
			return;
		at = message->data + sizeof(struct direct_head);
		for (unsigned i = 0; i < cargo.n; i++) {
			const struct round_spec *vector = cargo_vector(call, cargo, i);

			if (vector->count)
				memcpy(vector->target, at, vector->count);
			at += vector->count;
		}
		call->came[step.from] = NULL;
		message_free(message);
		call->taken++;
	}
}

bool direct_hears_few(const struct direct_call *call)
{
	return call->steps || call->few;
}

static bool is_root(const struct direct *direct, const struct direct_call *call)
{
	return root_of(call) == direct->rank;
}

/* The messages that a rank sends in a call. */
static unsigned messages_of(const struct direct *direct, const struct direct_call *call)
{
	if (call->few && is_root(direct, call) != (call->what == DIRECT_BROADCAST))
		return 0;
	if (call->few && call->what == DIRECT_REDUCE)
		return 1;
	return call->steps ? gather_steps(direct->size) : direct->size - 1;
}

/* The call's next message; the caller has seen that there is one. From the ring's order: each rank
 * begins with the one behind it, so that no rank gets all at once. */
static struct cargo next_cargo(const struct direct *direct, const struct direct_call *call,
                               unsigned *to)
{
	struct gather_step step;

	if (!call->steps) {
		*to = (direct->rank + 1 + call->sent) % direct->size;
		if (call->few && call->what == DIRECT_REDUCE)
			*to = root_of(call);
		return cargo_of_pair(call, direct->rank, *to);
	}
	step = gather_step(direct->rank, direct->size, call->sent);
	*to = step.to;
	return (struct cargo){ step.sends, step.n };
}

/* Does the call have a message that may leave now? Calls end in their order. */
static bool may_send(const struct direct *direct, struct direct_call *call)
{
	bool follows = call->what == DIRECT_BACK || (call->few && call->what == DIRECT_BROADCAST);

	if (call->sent == messages_of(direct, call) ||
	    (follows && call->number - direct->first->number >= call->behind))
		return false;
	if (call->steps)
		take_steps(direct, call);
	return !call->steps || call->sent <= call->taken;
}

/* Does every other rank get the same? */
static bool is_for_all(const struct direct_call *call)
{
	if (call->n > 1)
		return call->vectors[0].copy && !call->steps;
	return call->vectors[0].to == WIRE_ALL;
}

/* NULL: no memory. */
static struct message *next_message(const struct direct *direct, struct direct_call *call,
                                    struct cargo cargo)
{
	if (!is_for_all(call) || cargo_bytes(call, cargo) < ONCE_LEAST)
		return write_message(direct, call, cargo);
	if (!call->for_all)
		call->for_all = write_message(direct, call, cargo);
	return call->for_all ? message_again(call->for_all) : NULL;
}

struct message *direct_next(struct direct *direct, unsigned *to, trib_status *status)
{
	struct direct_call *call = direct->first;
	struct message *message;
	struct cargo cargo;
	size_t ahead = 0;

	for (; call && (!ahead || ahead + call->bytes <= DIRECT_AHEAD); call = call->next) {
		ahead += call->bytes;
		if (!may_send(direct, call))
			continue;
		cargo = next_cargo(direct, call, to);
		message = next_message(direct, call, cargo);
		if (message)
			call->sent++;
		else
			*status = status_fail(TRIB_ERR_NO_MEMORY, "no memory for messages");
		return message;
	}
	return NULL;
}

static trib_status mismatch(const struct direct *direct, unsigned from,
                            const struct wire_call *theirs, const struct wire_call *ours)
{
	char one[WIRE_CALL_TEXT], two[WIRE_CALL_TEXT];

	return status_fail(TRIB_ERR_MISMATCH,
	                   "ranks called different collectives: rank %u called %s where rank %u "
	                   "called %s%s",
	                   from, wire_call_text(theirs, one), direct->rank,
	                   wire_call_text(ours, two), wire_call_hint(theirs, ours));
}

/* Has this rank gone around the ring where the sender of this early message has not? */
static trib_status check_early(const struct direct *direct, unsigned from,
                               const struct message *message)
{
	struct direct_head head;

	memcpy(&head, message->data, sizeof(head));
	if ((int32_t)(direct->around - head.around) <= 0)
		return TRIB_OK;
	return mismatch(direct, from, &head.call, &direct->last_around);
}

/*
 * Do vectors of this call go where they belong as they come, while they are in the cache? A sum has
 * the vectors of all ranks in it. So the rank that sends it has got this rank's, which may be in
 * the same memory.
 */
static bool is_sum_of_row(const struct direct_call *call)
{
	return (call->what == DIRECT_BACK && !call->steps) ||
	       (call->what == DIRECT_BROADCAST && call->few);
}

static void put_sum(const struct direct *direct, const struct direct_call *call, unsigned from,
                    struct message *message)
{
	const struct round_spec *vector = vector_of(call, from, direct->rank);

	if (vector && vector->count)
		memcpy(vector->target, message->data + sizeof(struct direct_head), vector->count);
	message_free(message);
}

/* A message of a call that this rank has made. It is the call's from now on. */
static trib_status attach(const struct direct *direct, struct direct_call *call, unsigned from,
                          struct message *message)
{
	struct direct_head theirs, ours = head_of(direct, call);
	const uint64_t bit = 1ull << from;
	size_t bytes = sizeof(ours);
	bool same;

	memcpy(&theirs, message->data, sizeof(theirs));
	ours.notice = theirs.notice == 1 && direct_hears_few(call);
	if (!ours.notice)
		bytes += cargo_bytes(call, cargo_from(direct, call, from));
	same = !memcmp(&theirs, &ours, sizeof(ours)) && message->bytes == bytes;
	call->unheard &= ~(same ? bit : 0);
	if (same && !ours.notice && call->missing & bit) {
		call->missing &= ~bit;
		if (is_sum_of_row(call))
			put_sum(direct, call, from, message);
		else
			call->came[from] = message;
		return TRIB_OK;
	}
	message_free(message);
	if (!same)
		return mismatch(direct, from, &theirs.call, &ours.call);
	return ours.notice ? TRIB_OK
	                   : status_fail(TRIB_ERR_PEER, "rank %u sent a message twice", from);
}

/* The call gets its messages that came early. Messages of later calls may have overtaken them. */
static trib_status attach_early(struct direct *direct, struct direct_call *call, unsigned from)
{
	struct message *next = direct->early[from].first, *message;
	trib_status status = TRIB_OK;

	queue_init(&direct->early[from]);
	while ((message = next)) {
		struct direct_head head;

		next = message->next;
		memcpy(&head, message->data, sizeof(head));
		if (head.number == call->number && status == TRIB_OK)
			status = attach(direct, call, from, message);
		else
			queue_put(&direct->early[from], message);
	}
	return status;
}

static uint64_t others(const struct direct *direct)
{
	uint64_t all = (direct->size < 64 ? 1ull << direct->size : 0) - 1;

	return all & ~(1ull << direct->rank % 64);
}

/* The ranks that send this one a message. */
static uint64_t senders(const struct direct *direct, const struct direct_call *call)
{
	uint64_t some = 0;

	if (call->few && is_root(direct, call) != (call->what == DIRECT_REDUCE))
		return 0;
	if (call->few && call->what == DIRECT_BROADCAST)
		return 1ull << root_of(call) % 64; /* it has a root: a rank */
	if (!call->steps)
		return others(direct);
	for (unsigned i = 0; i < gather_steps(direct->size); i++)
		some |= 1ull << gather_step(direct->rank, direct->size, i).from;
	return some;
}

static size_t bytes_to_send(const struct direct *direct, const struct direct_call *call)
{
	size_t bytes = 0;

	for (unsigned r = 0; r < direct->size; r++)
		if (r != direct->rank)
			bytes += cargo_bytes(call, cargo_of_pair(call, direct->rank, r));
	return bytes;
}

/* Vectors that are passed on are copied once more. If sums are long, that costs more than messages.
 * It may depend only on what is the same on all ranks. */
static bool takes_steps(const struct direct *direct, const struct direct_call *call)
{
	bool is_long = call->what == DIRECT_BACK && call->count > (size_t)STEPS_MOST * direct->size;

	return call->n > 1 && call->vectors[0].copy && gather_takes_steps(direct->size) && !is_long;
}

trib_status direct_post(struct direct *direct, struct direct_call *call)
{
	trib_status status = TRIB_OK;

	call->number = direct->posted++;
	call->around = direct->around;
	call->unheard = others(direct);
	call->steps = takes_steps(direct, call);
	call->missing = senders(direct, call);
	call->bytes = bytes_to_send(direct, call);
	call->next = NULL;
	*direct->end = call;
	direct->end = &call->next;
	for (unsigned r = 0; r < direct->size && status == TRIB_OK; r++)
		status = attach_early(direct, call, r);
	return status;
}

trib_status direct_pass(struct direct *direct, const struct wire_call *call)
{
	trib_status status = TRIB_OK;

	direct->around++;
	direct->last_around = *call;
	for (unsigned r = 0; r < direct->size; r++)
		for (const struct message *early = direct->early[r].first;
		     early && status == TRIB_OK; early = early->next)
			status = check_early(direct, r, early);
	return status;
}

/* A rank has made the reduce of a row, which is over here. So it has made the broadcast, too. */
static void hear(struct direct *direct, unsigned from, uint32_t reduce)
{
	for (struct direct_call *call = direct->first; call; call = call->next)
		if (call->few && call->number - call->behind == reduce)
			call->unheard &= ~(1ull << from);
}

trib_status direct_take(struct direct *direct, unsigned from, struct message *message)
{
	struct direct_call *call = direct->first;
	struct direct_head head = { 0 };

	if (message->bytes >= sizeof(head))
		memcpy(&head, message->data, sizeof(head));
	if (head.version != DIRECT_VERSION) {
		message_free(message);
		return status_fail(TRIB_ERR_PEER,
		                   "rank %u sent a message of another version of Tributary", from);
	}
	if ((int32_t)(head.number - direct->posted) >= 0) {
		queue_put(&direct->early[from], message);
		return check_early(direct, from, message);
	}
	while (call && call->number != head.number)
		call = call->next;
	if (call)
		return attach(direct, call, from, message);
	message_free(message);
	if (head.notice) {
		hear(direct, from, head.number);
		return TRIB_OK; /* it crossed the messages that have ended the call */
	}
	return status_fail(
		TRIB_ERR_MISMATCH,
		"ranks called different collectives: direct call %u is over for rank %u, "
		"but not for rank %u",
		head.number, direct->rank, from);
}

/* ---- results ---- */

static void copy(const struct direct *direct, const struct direct_call *call)
{
	for (unsigned r = 0; r < direct->size; r++) {
		const struct round_spec *vector = vector_of(call, r, direct->rank);
		const void *from = r == direct->rank ? call->vectors[call->n == 1 ? 0 : r].source
		                   : call->came[r]
		                           ? call->came[r]->data + sizeof(struct direct_head)
		                           : NULL; /* it is there */

		if (from && vector && vector->count && vector->target && vector->target != from)
			memmove(vector->target, from, vector->count);
	}
}

struct direct_call *direct_finish(struct direct *direct, trib_status *status)
{
	struct direct_call *call = direct->first;
	const struct round_spec *vector;

	/* Its own messages have left, too: they are copies of what results may overwrite. */
	if (!call || call->missing || call->sent < messages_of(direct, call))
		return NULL;
	vector = vector_of(call, direct->rank, direct->rank);
	if (call->steps)
		take_steps(direct, call);
	if (call->vectors[0].copy)
		copy(direct, call);
	else if (vector && vector->count)
		*status = direct_sum(direct, call, vector);
	direct->first = call->next;
	if (!direct->first)
		direct->end = &direct->first;
	return call;
}

uint64_t direct_missing(const struct direct *direct)
{
	return direct->first ? direct->first->missing : 0;
}

uint64_t direct_late(const struct direct *direct)
{
	const struct direct_call *call = direct->first;

	return call && call->missing && call->unheard ? call->unheard : direct_missing(direct);
}
