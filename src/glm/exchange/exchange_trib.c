/* SPDX-License-Identifier: Apache-2.0 */
#include "glm/exchange/exchange.h"

#include <stdio.h>
#include <stdlib.h>

struct slot {
	trib_request *request;
};

struct trib_state {
	trib_comm *comm;
	struct slot slots[]; /* exchange.slots */
};

static trib_status sentence_keep(struct exchange *x, trib_status status)
{
	if (status < 0)
		snprintf(x->error, sizeof(x->error), "%s", trib_last_error());
	return status;
}

static trib_status trib_state_open(struct exchange *x, trib_comm *comm)
{
	struct trib_state *state;

	if (!comm) {
		snprintf(x->error, sizeof(x->error), "the exchange tributary needs a communicator");
		return TRIB_ERR_ARGUMENT;
	}
	state = calloc(1, sizeof(*state) + x->slots * sizeof(struct slot));
	if (!state) {
		snprintf(x->error, sizeof(x->error), "no memory for %u requests", x->slots);
		return TRIB_ERR_NO_MEMORY;
	}
	state->comm = comm;
	x->state = state;
	x->rank = trib_rank(comm);
	x->size = trib_size(comm);
	return TRIB_OK;
}

/* The blocking call is faster than a request: this thread itself sends and receives. */
static trib_status trib_state_sum(struct exchange *x, int64_t *data, size_t n)
{
	struct trib_state *state = x->state;

	if (x->size == 1)
		return TRIB_OK;
	return sentence_keep(
		x, trib_allreduce(state->comm, TRIB_IN_PLACE, data, n, TRIB_I64, TRIB_SUM));
}

static trib_status trib_state_sum32(struct exchange *x, int32_t *data, size_t n)
{
	struct trib_state *state = x->state;

	return sentence_keep(
		x, trib_allreduce(state->comm, TRIB_IN_PLACE, data, n, TRIB_I32, TRIB_SUM));
}

static trib_status trib_state_post(struct exchange *x, uint32_t slot, int64_t *data, size_t n)
{
	struct trib_state *state = x->state;
	trib_status status;

	if (x->size == 1)
		return TRIB_OK;
	status = trib_iallreduce(state->comm, TRIB_IN_PLACE, data, n, TRIB_I64, TRIB_SUM,
	                         &state->slots[slot].request);
	return status == TRIB_OK ? TRIB_IN_PROGRESS : sentence_keep(x, status);
}

static trib_status trib_state_test(struct exchange *x, uint32_t slot)
{
	struct trib_state *state = x->state;

	return sentence_keep(x, trib_test(&state->slots[slot].request));
}

static trib_status trib_state_wait(struct exchange *x, uint32_t slot)
{
	struct trib_state *state = x->state;

	return sentence_keep(x, trib_wait(&state->slots[slot].request, -1));
}

static void trib_state_close(struct exchange *x)
{
	free(x->state);
	x->state = NULL;
}

const struct glm_exchange exchange_tributary = {
	.name = "tributary",
	.open = trib_state_open,
	.sum = trib_state_sum,
	.sum32 = trib_state_sum32,
	.post = trib_state_post,
	.test = trib_state_test,
	.wait = trib_state_wait,
	.close = trib_state_close,
};
