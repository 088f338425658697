/* SPDX-License-Identifier: Apache-2.0 */
/* From a request to the rounds of lanes. */
#include "worker/comm.h"

#include "base/clock.h"

#include <stdlib.h>
#include <string.h>

/* One rank alone: the result is the input. */
static trib_status finish_alone(struct trib_request *request, const struct round_spec *specs,
                                size_t n, trib_request **out)
{
	for (size_t i = 0; i < n; i++) {
		size_t bytes = specs[i].count * (specs[i].copy ? 1 : trib_type_size(specs[i].type));

		if (bytes && specs[i].target && specs[i].target != specs[i].source)
			memmove(specs[i].target, specs[i].source, bytes);
	}
	pthread_mutex_lock(&request->comm->lock);
	request->comm->rounds++;
	pthread_mutex_unlock(&request->comm->lock);
	request->done = true;
	*out = request;
	return TRIB_OK;
}

/* The place of a part of what has the place `whole`. */
static struct round_place part_place(const struct round_place *whole, const struct round_spec *spec,
                                     const struct part *part, size_t per)
{
	const struct vector *vector = &whole->ledger->vectors[whole->vector];
	struct round_place place = *whole;
	/* Bytes of a result are not counted in its elements. */
	size_t unit = spec->copy ? vector_element(vector) : 1;

	place.block += part->first / per * place.step;
	place.elements = part->count / unit;
	return place;
}

unsigned rounds_make(const struct trib_comm *comm, const struct round_spec *spec,
                     const struct round_place *place, struct posting *postings)
{
	return rounds_make_by(comm, &comm->own, spec, place, postings);
}

unsigned rounds_make_by(const struct trib_comm *comm, const struct way *way,
                        const struct round_spec *spec, const struct round_place *place,
                        struct posting *postings)
{
	size_t size = spec->copy ? 1 : trib_type_size(spec->type);
	size_t per = comm->payload / (spec->copy ? 1 : number_wire_size(spec->type));
	bool in_turn = shares_is_small(&way->shares, spec->count, per);
	struct part parts[LANES_MAX] = { { .count = spec->count } };
	unsigned n = in_turn ? 1 : shares_split(&way->shares, spec->count, per, parts);

	for (unsigned i = 0; i < n; i++) {
		struct round_spec own = *spec;
		struct round *round;

		own.count = parts[i].count;
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
		postings[i] = (struct posting){ way, round, parts[i].lane, in_turn };
	}
	return n;
}

void rounds_post(struct trib_comm *comm, const struct posting *postings, size_t n, uint64_t turn)
{
	for (size_t i = 0; i < n; i++) {
		const struct way *way = postings[i].way;
		unsigned lane = postings[i].in_turn ? shares_turn(&way->shares, turn + i)
		                                    : postings[i].lane;

		lane_post(comm->lanes[way->first + lane], postings[i].round);
	}
}

void rounds_free(const struct posting *postings, size_t n)
{
	for (size_t i = 0; i < n; i++)
		round_free(postings[i].round);
}

static trib_status make_all(struct trib_request *request, const struct round_spec *specs, size_t n,
                            struct posting **out, size_t *made)
{
	const struct trib_comm *comm = request->comm;
	struct posting *postings = calloc(n * comm->n_lanes + 1, sizeof(*postings));

	*made = 0;
	*out = postings;
	for (size_t i = 0; postings && i < n; i++) {
		struct round_place place = { .ledger = request->ledger,
			                     .vector = (unsigned)i,
			                     .step = 1 };
		struct round_spec spec = specs[i];
		unsigned k;

		spec.owner = request;
		k = rounds_make(comm, &spec, &place, postings + *made);
		if (!k) {
			rounds_free(postings, *made);
			free(postings);
			postings = NULL;
		}
		*made += k;
	}
	if (postings)
		return TRIB_OK;
	*made = 0;
	*out = NULL;
	return status_fail(TRIB_ERR_NO_MEMORY, "%s: no memory for %zu elements", request->what,
	                   request->count);
}

/* It gets its number and is posted; while trees are replaced, that is for the keeper. */
static trib_status enter(struct trib_request *request, const struct posting *postings, size_t n)
{
	struct trib_comm *comm = request->comm;
	trib_status status = TRIB_OK;

	pthread_mutex_lock(&comm->lock);
	if (comm->failed != TRIB_OK) {
		status = status_fail(comm->failed, "%s: the communicator has failed: %s",
		                     request->what, comm->failure);
	} else {
		if (comm->turner)
			rhythm_post(&comm->rhythm, comm->posts, request->bytes, !comm->in_flight,
			            clock_now());
		request->number = comm->posts++;
		atomic_store(&request->rounds_left, (unsigned)n);
		comm->in_flight++;
		if (request->ledger) {
			request->ledger->number = request->number;
			request->ledger->request = request;
			request->ledger->pending = (unsigned)n;
			ledger_append(comm, request->ledger);
		}
		rounds_post(comm, postings, n, request->number);
	}
	pthread_mutex_unlock(&comm->lock);
	return status;
}

trib_status request_post(struct trib_request *request, const struct round_spec *specs, size_t n,
                         trib_request **out)
{
	struct trib_comm *comm = request->comm;
	struct posting *postings = NULL;
	trib_status status = TRIB_OK;
	size_t made = 0;

	if (comm->config.size == 1)
		return finish_alone(request, specs, n, out);
	if (comm->keeps && !(request->ledger = ledger_new(specs, n, comm->payload))) {
		status = status_fail(TRIB_ERR_NO_MEMORY, "%s: no memory", request->what);
		request_free(request);
		return status;
	}
	for (size_t i = 0; i < n; i++)
		request->bytes +=
			specs[i].count * (specs[i].copy ? 1 : trib_type_size(specs[i].type));
	pthread_mutex_lock(&comm->posting);
	if (!comm->recovering && !comm->turner)
		status = make_all(request, specs, n, &postings, &made);
	if (status == TRIB_OK && (status = enter(request, postings, made)) != TRIB_OK)
		rounds_free(postings, made);
	if (comm->turner && status == TRIB_OK)
		dispatch(comm);
	pthread_mutex_unlock(&comm->posting);
	free(postings);
	if (status != TRIB_OK) {
		ledger_free(request->ledger);
		request->ledger = NULL;
		request_free(request);
		return status;
	}
	*out = request;
	return TRIB_OK;
}
