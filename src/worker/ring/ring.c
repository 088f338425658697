/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/ring/ring.h"

#include "engine/combine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Exponents fragments under way: more would make ranks read the vector before any data leaves. */
#define EXPONENTS_AHEAD 3u
/* Fragments of a piece that starts at the same rank as all others: it costs more to handle smaller
 * ones than to send them. */
#define ROOTED_LEAST 12u

void ring_init(struct ring *ring, unsigned rank, unsigned size, uint32_t payload)
{
	*ring = (struct ring){ .rank = rank, .size = size, .payload = payload };
	ring->end = &ring->first;
}

void ring_clear(struct ring *ring)
{
	while (ring->first) {
		struct ring_round *entry = ring->first;

		ring->first = entry->next;
		round_free(entry->round);
		free(entry);
	}
	ring->end = &ring->first;
}

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* A piece is a full message, or less if each rank would not start one otherwise. */
static uint32_t per_piece(const struct ring *ring, const struct round *round)
{
	uint32_t fit = (RING_MESSAGE_MAX - (uint32_t)sizeof(struct ring_head)) / ring->payload;
	uint32_t even = (round->data + ring->size - 1) / ring->size;
	uint32_t rooted = round->from != WIRE_ALL || round->to != WIRE_ALL ? ROOTED_LEAST : 1;

	return least(fit, even > rooted ? even : rooted);
}

/* Do ranks have to be told that all have posted the round? */
static bool needs_token(const struct ring *ring, const struct round *round)
{
	return !round->exponents && (uint64_t)round->data * ring->payload > RING_EAGER;
}

bool ring_post(struct ring *ring, struct round *round)
{
	struct ring_round *entry = calloc(1, sizeof(*entry));

	if (!entry)
		return false;
	entry->round = round;
	entry->number = ring->posted++;
	ring->past[round->call.number % RING_PAST] = round->call;
	entry->all_posted = !needs_token(ring, round);
	entry->per_piece = per_piece(ring, round);
	*ring->end = entry;
	ring->end = &entry->next;
	return true;
}

static void finish(struct ring *ring, struct ring_round *entry)
{
	struct round *round = entry->round;
	struct ring_round **link = &ring->first;

	if (round->finished < round_fragments(round) || !entry->all_posted)
		return;
	while (*link != entry)
		link = &(*link)->next;
	*link = entry->next;
	if (ring->end == &entry->next)
		ring->end = link;
	free(entry);
	ring->late = 0;
	ring->on_finished(ring->context, round);
}

/* ---- what starts here ---- */

static bool goes_to_all(const struct round *round, uint32_t index)
{
	return round->to == WIRE_ALL || index < round->exponents;
}

/* The rank at which a piece of data starts. */
static unsigned start_of_piece(const struct ring *ring, const struct round *round, uint32_t piece)
{
	if (round->from != WIRE_ALL)
		return round->from;
	if (round->to != WIRE_ALL)
		return (round->to + 1u) % ring->size;
	return piece % ring->size;
}

/* The same for specials. */
static unsigned start_of_specials(const struct ring *ring, const struct round *round)
{
	return start_of_piece(ring, round, 0);
}

static void fill_head(const struct ring *ring, const struct ring_round *entry, uint8_t phase,
                      struct ring_head *head)
{
	const struct round *round = entry->round;

	*head = (struct ring_head){ .version = RING_VERSION,
		                    .phase = phase,
		                    .hops = 1,
		                    .number = entry->number,
		                    .op = round->op,
		                    .kind = round->kind,
		                    .to = round->to,
		                    .type = (uint8_t)round->type,
		                    .per_word = round->per_word,
		                    .shape = round->shape,
		                    .payload = ring->payload,
		                    .count = round->count,
		                    .call = round->call };
}

/* This rank's own fragment. Classes are found in the order of fragments. */
static uint8_t build(const struct ring *ring, struct round *round, uint32_t index, void *payload)
{
	struct wire_header header;

	round_build(round, index, ring->size, &header, payload);
	if (index < round->exponents && index >= round->next_exponents)
		round->next_exponents = index + 1;
	return header.op;
}

static bool take(const struct ring *ring, struct round *round, uint32_t index, const void *payload)
{
	uint32_t data = round->exponents + round->specials;
	uint16_t scale = round->coding == ROUND_SCALED && index >= data && round->exponents
	                         ? round->top_class[index - data]
	                         : 0;

	return round_take(round, index, ring->size, scale, payload);
}

/* A message of the fragments from `first` on. */
static uint32_t start_fragments(struct ring *ring, struct ring_round *entry, uint32_t first,
                                uint32_t n, struct ring_head *head)
{
	struct round *round = entry->round;
	uint8_t *payload = (uint8_t *)(head + 1);
	bool is_copy = round->from != WIRE_ALL;

	fill_head(ring, entry, is_copy ? RING_RESULT : RING_SUM, head);
	head->first = first;
	head->fragments = (uint16_t)n;
	for (uint32_t index = first; index < first + n; index++) {
		build(ring, round, index, payload);
		if (is_copy)
			take(ring, round, index, payload); /* raw bytes: it cannot fail */
		else if (!goes_to_all(round, index))
			round_finish(round, index);
		payload += round_bytes(round, index);
	}
	return (uint32_t)(payload - (uint8_t *)head);
}

/* The next specials fragment that some rank needs. */
static uint32_t start_specials(struct ring *ring, struct ring_round *entry, struct ring_head *head)
{
	struct round *round = entry->round;
	uint32_t known = (uint32_t)(round_covered(round, round->agreed) / round->per_specials);

	if (round->agreed == round->exponents)
		known = round->specials;
	while (entry->next_special < least(known, round->specials)) {
		uint32_t index = entry->next_special++;

		if (bitmap_get(round->any_special, index))
			return start_fragments(ring, entry, round->exponents + index, 1, head);
	}
	return 0;
}

/* May data of these blocks leave? Their scale is known; special values are read before results
 * overwrite them. */
static bool may_start(const struct round *round, uint32_t block, uint32_t n)
{
	uint32_t data = round->exponents + round->specials;

	if (!round->exponents)
		return true;
	if (!round_is_settled(round, data + block + n - 1))
		return false;
	if (round->to != WIRE_ALL)
		return true;
	for (uint32_t i = block / round->per_specials; i <= (block + n - 1) / round->per_specials;
	     i++)
		if (bitmap_get(round->any_special, i) &&
		    !bitmap_get(round->have, round->exponents + i))
			return false;
	return true;
}

static uint32_t start_data(struct ring *ring, struct ring_round *entry, struct ring_head *head)
{
	struct round *round = entry->round;
	uint32_t per = entry->per_piece, pieces = (round->data + per - 1) / per, block, n;

	while (entry->next_piece < pieces &&
	       start_of_piece(ring, round, entry->next_piece) != ring->rank)
		entry->next_piece++;
	if (entry->next_piece == pieces || !entry->all_posted)
		return 0;
	block = entry->next_piece * per;
	n = least(per, round->data - block);
	if (!may_start(round, block, n))
		return 0;
	entry->next_piece++;
	return start_fragments(ring, entry, round->exponents + round->specials + block, n, head);
}

/* Asks whether all ranks have posted the round, and for its next classes. */
static uint32_t start_classes(struct ring *ring, struct ring_round *entry, struct ring_head *head)
{
	struct round *round = entry->round;

	if (ring->rank != 0)
		return 0;
	if (!entry->all_posted && !entry->token_sent) {
		entry->token_sent = true;
		fill_head(ring, entry, RING_POSTED, head);
		return sizeof(*head);
	}
	if (round->next_exponents < least(round->exponents, round->agreed + EXPONENTS_AHEAD))
		return start_fragments(ring, entry, round->next_exponents, 1, head);
	return 0;
}

static uint32_t start_data_or_specials(struct ring *ring, struct ring_round *entry,
                                       struct ring_head *head)
{
	const struct round *round = entry->round;
	uint32_t bytes = 0;

	if (round->specials && start_of_specials(ring, round) == ring->rank)
		bytes = start_specials(ring, entry, head);
	return bytes ? bytes : start_data(ring, entry, head);
}

/* Classes of the next round leave before data of this one: they have a long way. */
uint32_t ring_start(struct ring *ring, void *message)
{
	struct ring_round *entry = ring->first;
	uint32_t bytes = entry ? start_classes(ring, entry, message) : 0;

	while (entry && !bytes) {
		struct ring_round *next = entry->next;

		bytes = next ? start_classes(ring, next, message) : 0;
		if (bytes) {
			entry = next;
			break;
		}
		bytes = start_data_or_specials(ring, entry, message);
		if (!bytes)
			entry = next;
	}
	if (bytes)
		finish(ring, entry);
	return bytes;
}

/* ---- what the previous rank sends ---- */

static unsigned previous(const struct ring *ring)
{
	return (ring->rank + ring->size - 1) % ring->size;
}

static enum ring_verdict wrong(const struct ring *ring, const char *what, trib_status *status)
{
	*status = status_fail(TRIB_ERR_PEER, "rank %u sent a message of the ring that %s",
	                      previous(ring), what);
	return RING_WRONG;
}

/* What this rank has called at the number of that call; NULL: nothing yet, or long ago. */
static const struct wire_call *call_at(const struct ring *ring, const struct wire_call *call)
{
	const struct wire_call *ours = &ring->past[call->number % RING_PAST];

	return ours->kind && ours->number == call->number ? ours : NULL;
}

static bool differs(const struct ring *ring, const struct ring_head *head)
{
	const struct wire_call *ours = call_at(ring, &head->call);

	return ours && head->call.kind && !wire_call_is_same(&head->call, ours);
}

static enum ring_verdict mismatch(const struct ring *ring, unsigned rank,
                                  const struct ring_head *head, const struct wire_call *here,
                                  trib_status *status)
{
	const struct wire_call *ours = differs(ring, head) ? call_at(ring, &head->call) : here;
	char theirs[WIRE_CALL_TEXT], text[WIRE_CALL_TEXT];

	*status = status_fail(TRIB_ERR_MISMATCH,
	                      "ranks called different collectives: rank %u called %s where rank %u "
	                      "called %s%s",
	                      rank, wire_call_text(&head->call, theirs), ring->rank,
	                      wire_call_text(ours, text), wire_call_hint(&head->call, ours));
	return RING_WRONG;
}

static bool is_same_call(const struct ring *ring, const struct ring_head *head,
                         const struct round *round)
{
	return wire_call_is_same(&head->call, &round->call) &&
	       head->call.before == round->call.before && head->op == round->op &&
	       head->kind == round->kind && head->to == round->to &&
	       head->type == (uint8_t)round->type && head->per_word == round->per_word &&
	       head->shape == round->shape && head->count == round->count &&
	       head->payload == ring->payload;
}

/* Are these fragments of one kind, with their right lengths, and not finished yet? */
static bool is_piece(const struct ring_round *entry, const struct ring_head *head, uint32_t bytes)
{
	const struct round *round = entry->round;
	uint32_t end = head->first + head->fragments, data = round->exponents + round->specials;
	uint32_t sum = sizeof(*head);

	if (!head->fragments || end < head->first || end > round_fragments(round) ||
	    head->fragments > entry->per_piece || (head->first < data && head->fragments != 1))
		return false;
	for (uint32_t index = head->first; index < end; index++) {
		if (bitmap_get(round->have, index))
			return false;
		sum += round_bytes(round, index);
	}
	return sum == bytes;
}

static enum ring_verdict no_memory(trib_status *status)
{
	*status = status_fail(TRIB_ERR_NO_MEMORY, "no memory for NaN and infinities");
	return RING_WRONG;
}

/* The fragments are final: to the user's buffer. */
static bool take_all(const struct ring *ring, struct round *round, const struct ring_head *head)
{
	const uint8_t *payload = (const uint8_t *)(head + 1);

	for (uint32_t i = 0; i < head->fragments; i++) {
		uint32_t index = head->first + i;

		if (!take(ring, round, index, payload))
			return false;
		payload += round_bytes(round, index);
	}
	return true;
}

/* A result, or a token: passed on until all ranks have had it. */
static enum ring_verdict pass_on(const struct ring *ring, struct ring_head *head)
{
	return ++head->hops == ring->size ? RING_USED : RING_PASS_ON;
}

static enum ring_verdict take_result(struct ring *ring, struct round *round, struct ring_head *head,
                                     trib_status *status)
{
	if (!goes_to_all(round, head->first))
		return wrong(ring, "is a result for another rank", status);
	if (!take_all(ring, round, head))
		return no_memory(status);
	return pass_on(ring, head);
}

/* Can this rank add its part? Its own classes and those of all ranks have come before. */
static bool is_in_order(const struct round *round, const struct ring_head *head)
{
	uint32_t data = round->exponents + round->specials;

	if (head->first < round->exponents)
		return head->first == round->next_exponents;
	if (head->first < data)
		return bitmap_get(round->any_special, head->first - round->exponents);
	return round_is_settled(round, head->first + head->fragments - 1);
}

static enum ring_verdict take_sum(struct ring *ring, struct round *round, struct ring_head *head,
                                  trib_status *status)
{
	_Alignas(8) uint8_t own[WIRE_PAYLOAD_MAX];
	uint8_t *payload = (uint8_t *)(head + 1);
	bool is_last = head->hops + 1u == ring->size, to_all = goes_to_all(round, head->first);

	if (round->from != WIRE_ALL || !is_in_order(round, head) ||
	    (!to_all && is_last != (round->to == ring->rank)))
		return wrong(ring, "has come too early, or to the wrong rank", status);
	for (uint32_t i = 0; i < head->fragments; i++) {
		uint32_t index = head->first + i, bytes = round_bytes(round, index);

		combine(build(ring, round, index, own), payload, own, bytes);
		if (!to_all && !is_last)
			round_finish(round, index);
		payload += bytes;
	}
	head->hops++;
	if (!is_last)
		return RING_PASS_ON;
	if (!take_all(ring, round, head))
		return no_memory(status);
	head->phase = RING_RESULT;
	head->hops = 1;
	return to_all ? RING_PASS_ON : RING_USED;
}

static enum ring_verdict take_token(struct ring *ring, struct ring_round *entry,
                                    struct ring_head *head)
{
	if (head->phase == RING_POSTED && ++head->hops < ring->size)
		return RING_PASS_ON;
	if (head->phase == RING_POSTED) {
		head->phase = RING_ALL_POSTED;
		head->hops = 0;
	}
	entry->all_posted = true;
	return pass_on(ring, head);
}

/* Behind the head: for each rank, how many rounds it has posted. */
uint32_t ring_ask(const struct ring *ring, void *message)
{
	struct ring_head *head = message;
	uint32_t *posted = (uint32_t *)(head + 1), bytes = ring->size * 4;

	*head = (struct ring_head){ .version = RING_VERSION, .phase = RING_STATE, .hops = 1 };
	if (ring->first) {
		head->number = ring->first->number;
		head->call = ring->first->round->call;
	}
	memset(posted, 0, bytes);
	posted[ring->rank] = ring->posted;
	return (uint32_t)sizeof(*head) + bytes;
}

static enum ring_verdict take_state(struct ring *ring, struct ring_head *head, uint32_t bytes,
                                    trib_status *status)
{
	uint32_t *posted = (uint32_t *)(head + 1);

	if (bytes != sizeof(*head) + ring->size * 4)
		return wrong(ring, "does not name all ranks", status);
	if (differs(ring, head))
		return mismatch(ring, head->call.rank, head, NULL, status);
	if (head->hops++ < ring->size) {
		posted[ring->rank] = ring->posted;
		return RING_PASS_ON;
	}
	ring->late = 0;
	for (unsigned r = 0; ring->first && r < ring->size && r < 64; r++)
		if ((int32_t)(posted[r] - ring->first->number) <= 0)
			ring->late |= 1ull << r;
	return RING_USED;
}

static struct ring_round *find(const struct ring *ring, uint32_t number)
{
	for (struct ring_round *entry = ring->first; entry; entry = entry->next)
		if (entry->number == number)
			return entry;
	return NULL;
}

enum ring_verdict ring_take(struct ring *ring, void *message, uint32_t bytes, trib_status *status)
{
	struct ring_head *head = message;
	struct ring_round *entry;
	enum ring_verdict verdict;

	if (bytes < sizeof(*head) || head->version != RING_VERSION)
		return wrong(ring, "is of another version of Tributary", status);
	if (!head->hops || head->hops > ring->size - (head->phase != RING_STATE))
		return wrong(ring, "has been at too many ranks", status);
	if (head->phase == RING_STATE)
		return take_state(ring, head, bytes, status);
	if ((int32_t)(head->number - ring->posted) >= 0)
		return RING_LATER;
	entry = find(ring, head->number);
	if (!entry && differs(ring, head))
		return mismatch(ring, previous(ring), head, NULL, status);
	if (!entry) {
		*status = status_fail(TRIB_ERR_MISMATCH,
		                      "ranks called different collectives: call %u of the ring is "
		                      "over for rank %u, but not for rank %u",
		                      head->number, ring->rank, previous(ring));
		return RING_WRONG;
	}
	if (!is_same_call(ring, head, entry->round))
		return mismatch(ring, previous(ring), head, &entry->round->call, status);
	if (head->phase == RING_POSTED || head->phase == RING_ALL_POSTED) {
		if (entry->all_posted || bytes != sizeof(*head))
			return wrong(ring, "is a token that no rank waits for", status);
		verdict = take_token(ring, entry, head);
	} else if (!is_piece(entry, head, bytes))
		return wrong(ring, "has other fragments than the vector", status);
	else if (head->phase == RING_SUM)
		verdict = take_sum(ring, entry->round, head, status);
	else if (head->phase == RING_RESULT)
		verdict = take_result(ring, entry->round, head, status);
	else
		return wrong(ring, "is of an unknown kind", status);
	if (verdict != RING_WRONG)
		finish(ring, entry);
	return verdict;
}
