/* SPDX-License-Identifier: Apache-2.0 */
/* Splits a vector over a set of lanes: each part is a round. */
#include "worker/requests/requests.h"

/* Fragments of a lane. One thread sends and receives what is in slots, so that a lane more has to
 * be worth a message more. */
#define LEAST 2u
#define SLOT_LEAST 8u

/* The lanes of a vector. Lanes of streams are threads of their own: all work, or one does. */
static unsigned lanes_of(const struct lane_set *set, size_t count, size_t per)
{
	if (set->slot)
		return striping_some(&set->striping, count, per, SLOT_LEAST);
	return striping_is_small(&set->striping, count, per, LEAST) ? 1 : set->striping.n;
}

/* The place, in the ledger, of one part of a vector whose place is `whole`. */
static struct round_place part_place(const struct round_place *whole, const struct round_spec *spec,
                                     const struct part *part, size_t per)
{
	const struct vector *vector = &whole->ledger->vectors[whole->vector];
	struct round_place place = *whole;
	/* Recovery copies results as bytes; the ledger counts elements. */
	size_t unit = spec->copy ? vector_element(vector) : 1;

	place.block += part->first / per * place.step;
	place.elements = part->count / unit;
	return place;
}

static struct round_spec part_spec(const struct round_spec *whole, const struct part *part)
{
	size_t size = whole->copy ? 1 : number_size(whole->type);
	struct round_spec spec = *whole;

	spec.count = part->count;
	spec.first += part->first;
	if (whole->residual)
		spec.residual = whole->residual + part->first;
	if (whole->source)
		spec.source = (const uint8_t *)whole->source + part->first * size;
	if (whole->target)
		spec.target = (uint8_t *)whole->target + part->first * size;
	return spec;
}

unsigned rounds_make(struct trib_comm *comm, const struct lane_set *set, struct round_spec *spec,
                     const struct round_place *place, struct posting *postings)
{
	size_t block = round_spec_block(spec, comm->payload);
	/* A block's data fragments stay together. */
	size_t per = place ? block * place->split : block;
	unsigned lanes = lanes_of(set, spec->count, per), n = 1;
	bool is_small = lanes == 1;
	struct part parts[LANES_MAX];

	spec->block = (uint32_t)block;
	if (is_small)
		parts[0] = (struct part){ .count = spec->count };
	else
		n = striping_split(&set->striping, lanes, spec->count, per, parts);
	for (unsigned i = 0; i < n; i++) {
		struct round *old =
			atomic_exchange_explicit(&comm->spare_round, NULL, memory_order_acquire);
		struct round_spec part;
		struct round *round;

		if (!is_small)
			part = part_spec(spec, &parts[i]);
		round = round_renew(old, is_small ? spec : &part, (unsigned)comm->config.rank,
		                    comm->payload);
		if (!round) {
			rounds_free(postings, i);
			return 0;
		}
		if (place && place->ledger) {
			round->place = part_place(place, spec, &parts[i], per);
			round->whole = true;
		}
		postings[i] = (struct posting){ set, round, parts[i].lane, is_small };
	}
	return n;
}

void rounds_post(struct trib_comm *comm, const struct posting *postings, size_t n,
                 uint64_t rotation)
{
	for (size_t i = 0; i < n; i++) {
		const struct lane_set *set = postings[i].set;
		unsigned lane = postings[i].lane;

		/* Slots: neighbours share packets, so all are in the first lane. */
		if (postings[i].is_small && !set->slot)
			lane = striping_rotate(&set->striping, rotation + i);
		lane_post(comm->lanes[set->first + lane], postings[i].round);
	}
}

void rounds_free(const struct posting *postings, size_t n)
{
	for (size_t i = 0; i < n; i++)
		round_free(postings[i].round);
}
