/* SPDX-License-Identifier: Apache-2.0 */
/* Splits a vector over a set of lanes: each part is a round. */
#include "worker/requests/requests.h"

/* Fragments of a lane: vectors with fewer in all lanes are not split. One thread sends and receives
 * what is in slots, so that a lane more has to be worth a message more. */
#define LEAST 2u
#define SLOT_LEAST 8u

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

unsigned rounds_make(const struct trib_comm *comm, const struct lane_set *set,
                     const struct round_spec *spec, const struct round_place *place,
                     struct posting *postings)
{
	size_t size = spec->copy ? 1 : trib_type_size(spec->type);
	/* A block's data fragments stay together. */
	size_t per = round_spec_block(spec, comm->payload) * (place ? place->split : 1);
	bool is_small =
		striping_is_small(&set->striping, spec->count, per, set->slot ? SLOT_LEAST : LEAST);
	struct part parts[LANES_MAX] = { { .count = spec->count } };
	unsigned n = is_small ? 1 : striping_split(&set->striping, spec->count, per, parts);

	for (unsigned i = 0; i < n; i++) {
		struct round_spec own = *spec;
		struct round *round;

		own.count = parts[i].count;
		own.first += parts[i].first;
		if (spec->residual)
			own.residual = spec->residual + parts[i].first;
		if (spec->source)
			own.source = (const uint8_t *)spec->source + parts[i].first * size;
		if (spec->target)
			own.target = (uint8_t *)spec->target + parts[i].first * size;
		round = round_new(&own, (unsigned)comm->config.rank, comm->payload);
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
