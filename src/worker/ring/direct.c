/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/ring/direct.h"

#include "engine/combine.h"

#include <string.h>

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
	memcpy(call->vectors, vectors, n * sizeof(*vectors));
	for (unsigned i = 0; i < n; i++)
		call->count += vectors[i].count;
	return call;
}

void direct_call_free(struct direct_call *call)
{
	for (unsigned r = 0; call && r < WIRE_CHILDREN_MAX; r++)
		free(call->came[r]);
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
			                       .to = WIRE_ALL };
	}
}

/* ---- messages ---- */

static bool is_one_of(uint8_t ranks, unsigned rank)
{
	return ranks == WIRE_ALL || ranks == rank;
}

/* The vector in a message from one rank to another; NULL: the message is empty. */
static const struct round_spec *vector_of(const struct direct_call *call, unsigned from,
                                          unsigned to)
{
	const struct round_spec *vector = &call->vectors[call->n == 1            ? 0
	                                                 : call->vectors[0].copy ? from
	                                                                         : to];

	return is_one_of(vector->from, from) && is_one_of(vector->to, to) ? vector : NULL;
}

static size_t vector_bytes(const struct round_spec *vector)
{
	return vector ? vector->count * element(vector) : 0;
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

struct direct_call *direct_unwritten(const struct direct *direct)
{
	struct direct_call *call = direct->first;

	while (call && call->written)
		call = call->next;
	return call && call->what == DIRECT_BACK && call != direct->first ? NULL : call;
}

struct message *direct_write(const struct direct *direct, const struct direct_call *call,
                             unsigned to)
{
	const struct round_spec *vector = vector_of(call, direct->rank, to);
	struct direct_head head = head_of(direct, call);
	size_t bytes = vector_bytes(vector);
	struct message *message = malloc(sizeof(*message) + sizeof(head) + bytes);

	if (!message)
		return NULL;
	message->bytes = (uint32_t)(sizeof(head) + bytes);
	memcpy(message->data, &head, sizeof(head));
	if (bytes)
		memcpy(message->data + sizeof(head), vector->source, bytes);
	if (vector && vector->residual) /* as in round.c: what 32 bits lack is not worth keeping */
		memset(vector->residual, 0, vector->count * sizeof(*vector->residual));
	return message;
}

static trib_status mismatch(const struct direct *direct, unsigned from,
                            const struct wire_call *theirs, const struct wire_call *ours)
{
	char one[WIRE_CALL_TEXT], two[WIRE_CALL_TEXT];

	return status_fail(TRIB_ERR_MISMATCH,
	                   "ranks called different collectives: rank %u called %s where rank %u "
	                   "called %s%s",
	                   from, wire_call_text(theirs, one), direct->rank,
	                   wire_call_text(ours, two),
	                   wire_call_is_same(theirs, ours)
	                           ? ", with other packets: set the same TRIB_MTU on all ranks"
	                           : "");
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

/* A message of a call that this rank has made. It is the call's from now on. */
static trib_status attach(const struct direct *direct, struct direct_call *call, unsigned from,
                          struct message *message)
{
	struct direct_head theirs, ours = head_of(direct, call);
	bool came = call->came[from];

	memcpy(&theirs, message->data, sizeof(theirs));
	if (came || memcmp(&theirs, &ours, sizeof(ours)) ||
	    message->bytes != sizeof(ours) + vector_bytes(vector_of(call, from, direct->rank))) {
		free(message);
		return came ? status_fail(TRIB_ERR_PEER, "rank %u sent a message twice", from)
		            : mismatch(direct, from, &theirs.call, &ours.call);
	}
	call->came[from] = message;
	call->missing &= ~(1ull << from);
	return TRIB_OK;
}

trib_status direct_post(struct direct *direct, struct direct_call *call)
{
	trib_status status = TRIB_OK;

	call->number = direct->posted++;
	call->around = direct->around;
	*direct->end = call;
	direct->end = &call->next;
	for (unsigned r = 0; r < direct->size; r++) {
		struct message_queue *early = &direct->early[r];

		call->missing |= (uint64_t)(r != direct->rank) << r;
		if (early->first && status == TRIB_OK)
			status = attach(direct, call, r, queue_get(early));
	}
	return status;
}

trib_status direct_pass(struct direct *direct, const struct wire_call *call)
{
	trib_status status = TRIB_OK;

	direct->around++;
	direct->last_around = *call;
	for (unsigned r = 0; r < direct->size && status == TRIB_OK; r++)
		if (direct->early[r].first)
			status = check_early(direct, r, direct->early[r].first);
	return status;
}

trib_status direct_take(struct direct *direct, unsigned from, struct message *message)
{
	struct direct_call *call = direct->first;
	struct direct_head head = { 0 };

	if (message->bytes >= sizeof(head))
		memcpy(&head, message->data, sizeof(head));
	if (head.version != DIRECT_VERSION) {
		free(message);
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
	free(message);
	return status_fail(
		TRIB_ERR_MISMATCH,
		"ranks called different collectives: direct call %u is over for rank %u, "
		"but not for rank %u",
		head.number, direct->rank, from);
}

/* ---- results ---- */

/* The rounds of all ranks for a vector, as if the ranks were here. False: no memory. */
static bool make_rounds(const struct direct *direct, const struct direct_call *call,
                        const struct round_spec *vector, struct round *rounds[])
{
	bool made = true;

	for (unsigned r = 0; r < direct->size; r++) {
		struct round_spec spec = *vector;

		spec.ring = true;
		if (r != direct->rank) {
			spec.source = call->came[r]->data + sizeof(struct direct_head);
			spec.target = NULL;
			spec.residual = NULL;
		}
		rounds[r] = round_new(&spec, r, direct->payload);
		made &= rounds[r] != NULL;
	}
	return made;
}

/* One fragment of all ranks. Data and special values of the sum go to this rank, classes to all.
 * False: no memory. */
static bool sum_fragment(const struct direct *direct, struct round *rounds[], uint32_t index)
{
	_Alignas(8) uint8_t sum[WIRE_PAYLOAD_MAX], part[WIRE_PAYLOAD_MAX];
	const struct round *own = rounds[direct->rank];
	uint32_t bytes = round_bytes(own, index);
	struct wire_header header;
	bool taken = true;

	round_build(rounds[0], index, direct->size, &header, sum);
	for (unsigned r = 1; r < direct->size; r++) {
		round_build(rounds[r], index, direct->size, &header, part);
		combine(header.op, sum, part, bytes);
	}
	for (unsigned r = 0; r < direct->size; r++)
		if (r == direct->rank || index < own->exponents)
			taken &= round_take(rounds[r], index, direct->size, header.scale, sum);
	return taken;
}

static bool sum_rounds(const struct direct *direct, struct round *rounds[])
{
	const struct round *own = rounds[direct->rank];
	uint32_t data = own->exponents + own->specials;

	for (uint32_t index = 0; index < round_fragments(own); index++) {
		bool skipped = index >= own->exponents && index < data &&
		               !bitmap_get(own->any_special, index - own->exponents);

		if (!skipped && !sum_fragment(direct, rounds, index))
			return false;
	}
	return true;
}

static trib_status sum(const struct direct *direct, const struct direct_call *call,
                       const struct round_spec *vector)
{
	struct round *rounds[WIRE_CHILDREN_MAX] = { 0 };
	bool done = make_rounds(direct, call, vector, rounds) && sum_rounds(direct, rounds);

	for (unsigned r = 0; r < direct->size; r++)
		round_free(rounds[r]);
	return done ? TRIB_OK : status_fail(TRIB_ERR_NO_MEMORY, "no memory for a sum");
}

static void copy(const struct direct *direct, const struct direct_call *call)
{
	for (unsigned r = 0; r < direct->size; r++) {
		const struct round_spec *vector = vector_of(call, r, direct->rank);
		const void *from = r == direct->rank
		                           ? call->vectors[call->n == 1 ? 0 : r].source
		                           : call->came[r]->data + sizeof(struct direct_head);

		if (vector && vector->count && vector->target && vector->target != from)
			memmove(vector->target, from, vector->count);
	}
}

struct direct_call *direct_finish(struct direct *direct, trib_status *status)
{
	struct direct_call *call = direct->first;
	const struct round_spec *vector;

	/* Its own messages have left, too: they are copies of what results may overwrite. */
	if (!call || call->missing || !call->written)
		return NULL;
	vector = vector_of(call, direct->rank, direct->rank);
	if (call->vectors[0].copy)
		copy(direct, call);
	else if (vector && vector->count)
		*status = sum(direct, call, vector);
	direct->first = call->next;
	if (!direct->first)
		direct->end = &direct->first;
	return call;
}

uint64_t direct_missing(const struct direct *direct)
{
	return direct->first ? direct->first->missing : 0;
}
