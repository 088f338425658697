/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/comm/comm.h"

#include <stdlib.h>
#include <string.h>

struct ledger *ledger_new(const struct round_spec *specs, size_t n, uint32_t payload)
{
	struct ledger *ledger = calloc(1, sizeof(*ledger) + n * sizeof(ledger->vectors[0]));
	size_t words = 0;
	uint64_t *have;

	if (!ledger)
		return NULL;
	ledger->n = (unsigned)n;
	for (size_t i = 0; i < n; i++) {
		struct vector *vector = &ledger->vectors[i];

		vector->spec = specs[i];
		vector->per = round_spec_block(&specs[i], payload);
		vector->blocks = specs[i].count ? (specs[i].count - 1) / vector->per + 1 : 1;
		words += bitmap_words(vector->blocks);
	}
	have = ledger->have = calloc(words + 1, sizeof(*have));
	if (!have) {
		free(ledger);
		return NULL;
	}
	for (size_t i = 0; i < n; i++) {
		ledger->vectors[i].have = have;
		have += bitmap_words(ledger->vectors[i].blocks);
	}
	return ledger;
}

static void copy_free(struct copy *copy)
{
	if (!copy)
		return;
	*copy->link = copy->next;
	if (copy->next)
		copy->next->link = copy->link;
	free(copy->bytes);
	free(copy);
}

void ledger_free(struct ledger *ledger)
{
	if (!ledger)
		return;
	for (struct copy *copy = ledger->copies, *next; copy; copy = next) {
		next = copy->next;
		free(copy->bytes);
		free(copy);
	}
	free(ledger->have);
	free(ledger);
}

void ledger_append(struct trib_comm *comm, struct ledger *ledger)
{
	ledger->link = comm->ledgers_end;
	ledger->next = NULL;
	*comm->ledgers_end = ledger;
	comm->ledgers_end = &ledger->next;
}

void ledger_drop(struct trib_comm *comm, struct ledger *ledger)
{
	*ledger->link = ledger->next;
	if (ledger->next)
		ledger->next->link = ledger->link;
	else
		comm->ledgers_end = ledger->link;
	ledger_free(ledger);
	pthread_cond_broadcast(&comm->changed);
}

struct ledger *ledger_find(const struct trib_comm *comm, uint64_t number)
{
	struct ledger *ledger = comm->ledgers;

	while (ledger && ledger->number < number)
		ledger = ledger->next;
	return ledger && ledger->number == number ? ledger : NULL;
}

uint64_t ledger_first_open(const struct trib_comm *comm)
{
	for (const struct ledger *ledger = comm->ledgers; ledger; ledger = ledger->next)
		if (ledger->request)
			return ledger->number;
	return comm->posts;
}

/* Have all data fragments of a block come? The last block may have fewer. */
static bool has_pieces(const struct round *round, uint32_t first)
{
	uint32_t end = first + round->place.split;

	if (end > round_fragments(round))
		end = round_fragments(round);
	return bitmap_find(round->have, end, first, false) >= end;
}

void ledger_note(struct round *round)
{
	const struct round_place *place = &round->place;
	uint32_t data = round->exponents + round->specials;
	struct vector *vector;
	size_t end;

	if (!place->ledger)
		return;
	vector = &place->ledger->vectors[place->vector];
	/* The last fragment may have room for a block that is not in this part. */
	end = place->block + (place->elements ? (place->elements - 1) / vector->per + 1 : 1);
	for (uint32_t i = 0; i < round->data; i += place->split) {
		size_t block = place->block + (size_t)(i / place->split) * place->step;

		for (unsigned k = 0; k < place->step && has_pieces(round, data + i); k++)
			if (block + k < end)
				bitmap_set(vector->have, block + k);
	}
}

static struct copy *copy_new(struct ledger *ledger, unsigned vector, size_t first, size_t count)
{
	struct copy *copy = calloc(1, sizeof(*copy));

	if (!copy)
		return NULL;
	copy->bytes = malloc(count * vector_element(&ledger->vectors[vector]));
	if (!copy->bytes) {
		free(copy);
		return NULL;
	}
	copy->vector = vector;
	copy->first = first;
	copy->count = count;
	return copy;
}

static void copy_attach(struct ledger *ledger, struct copy *copy)
{
	copy->next = ledger->copies;
	copy->link = &ledger->copies;
	if (copy->next)
		copy->next->link = &copy->next;
	ledger->copies = copy;
}

const uint8_t *ledger_bytes(struct ledger *ledger, unsigned vector, size_t first, size_t count,
                            bool result)
{
	const struct vector *from = &ledger->vectors[vector];
	size_t size = vector_element(from);
	struct copy *joined;

	if (ledger->request)
		return (result ? (const uint8_t *)from->spec.target : from->spec.source) +
		       first * size;
	joined = copy_new(ledger, vector, first, count);
	if (!joined)
		return NULL;
	for (const struct copy *copy = ledger->copies; copy; copy = copy->next) {
		size_t start = copy->first > first ? copy->first : first;
		size_t end = copy->first + copy->count < first + count ? copy->first + copy->count
		                                                       : first + count;

		if (copy->vector == vector && start < end)
			memcpy(joined->bytes + (start - first) * size,
			       copy->bytes + (start - copy->first) * size, (end - start) * size);
	}
	copy_attach(ledger, joined);
	return joined->bytes;
}

/*
 * What other ranks may ask this one for. If all ranks want the result: the result, even if another
 * rank sent it, because every rank that has finished counts as its owner. Else: what this rank
 * contributed. NULL: nothing.
 */
static const uint8_t *worth_keeping(const struct round *round, unsigned rank)
{
	const struct vector *vector = &round->place.ledger->vectors[round->place.vector];

	if (!round->count || !round->owner) /* no owner: the source is a copy already */
		return NULL;
	if (round->from == rank)
		return round->source;
	if (vector->spec.from != WIRE_ALL)
		return NULL;
	if (!round->target)
		return round->from == WIRE_ALL ? round->source : NULL;
	return vector->spec.to == WIRE_ALL ? round->target : NULL;
}

/* Elements at the start of the round's part that all ranks have: their fragments are below `low`.
 */
static size_t count_below(const struct lane *lane, const struct round *round)
{
	const struct round_place *place = &round->place;
	uint64_t data = round->base + round->exponents + round->specials;
	uint64_t below = lane->stream.low > data ? lane->stream.low - data : 0;
	size_t blocks = below / place->split * place->step;
	size_t elements = blocks * place->ledger->vectors[place->vector].per;

	return elements < place->elements ? elements : place->elements;
}

size_t ledger_unsure(const struct lane *lane, const struct round *round)
{
	const struct round_place *place = &round->place;

	if (!worth_keeping(round, (unsigned)lane->comm->config.rank))
		return 0;
	return (place->elements - count_below(lane, round)) *
	       vector_element(&place->ledger->vectors[place->vector]);
}

/* Copies the elements whose fragments are not below `low`. False: no memory. */
static bool copy_aside(const struct lane *lane, const struct round *round, struct copy **out)
{
	const struct round_place *place = &round->place;
	const struct vector *vector = &place->ledger->vectors[place->vector];
	const uint8_t *bytes = worth_keeping(round, (unsigned)lane->comm->config.rank);
	size_t skip = count_below(lane, round), size = vector_element(vector);

	*out = NULL;
	if (!bytes || skip == place->elements)
		return true;
	*out = copy_new(place->ledger, place->vector, place->block * vector->per + skip,
	                place->elements - skip);
	if (!*out)
		return false;
	memcpy((*out)->bytes, bytes + skip * size, (*out)->count * size);
	return true;
}

bool ledger_keep(struct lane *lane, struct round *round)
{
	struct trib_comm *comm = lane->comm;
	struct kept_round *kept = calloc(1, sizeof(*kept));

	if (!kept || !copy_aside(lane, round, &kept->copy)) {
		free(kept);
		return false;
	}
	kept->ledger = round->place.ledger;
	kept->end = round->base + round_fragments(round);
	*lane->kept_end = kept;
	lane->kept_end = &kept->next;
	pthread_mutex_lock(&comm->lock);
	if (kept->copy)
		copy_attach(kept->ledger, kept->copy);
	ledger_note(round);
	pthread_mutex_unlock(&comm->lock);
	return true;
}

void ledger_forget(struct lane *lane, uint64_t low)
{
	struct trib_comm *comm = lane->comm;
	struct kept_round *kept;

	pthread_mutex_lock(&comm->lock);
	while ((kept = lane->kept) && kept->end <= low) {
		copy_free(kept->copy);
		if (!--kept->ledger->pending)
			ledger_drop(comm, kept->ledger);
		lane->kept = kept->next;
		free(kept);
	}
	if (!lane->kept)
		lane->kept_end = &lane->kept;
	pthread_mutex_unlock(&comm->lock);
}

void ledger_let_go(struct lane *lane)
{
	while (lane->kept) {
		struct kept_round *kept = lane->kept;

		lane->kept = kept->next;
		free(kept);
	}
	lane->kept_end = &lane->kept;
}
