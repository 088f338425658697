/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NCCL's ring over a plugin's connections. Each channel sums its own part of the vector, in loops:
 * a loop is a chunk for each rank. In step s a rank sends chunk rank - s and receives chunk
 * rank - s - 1. In the first size - 1 steps it adds what it receives, in the others it stores it.
 */
#include "nccl_driver.h"

#include <stdlib.h>

#define RANKS_MAX 64

/* ---- connections ---- */

/* Polls connect and accept of a channel until both are there, as NCCL does. */
static int channel_connect(struct nccl_ring *ring, unsigned c, void *listener, char *next)
{
	double end = nccl_now_s() + ring->patience_s;
	int result = NCCL_SUCCESS;

	while (result == NCCL_SUCCESS && (!ring->send[c] || !ring->receive[c])) {
		void *offload = NULL;

		if (!ring->send[c])
			result = ring->net->connect(ring->context, 0, next, &ring->send[c],
			                            &offload);
		if (result == NCCL_SUCCESS && !ring->receive[c])
			result = ring->net->accept(listener, &ring->receive[c], &offload);
		if (nccl_now_s() > end)
			return NCCL_IN_PROGRESS;
		if (!ring->send[c] || !ring->receive[c])
			nccl_poll_pause();
	}
	return result;
}

static int channels_open(struct nccl_ring *ring, const struct nccl_ranks *ranks)
{
	int next = (ring->rank + 1) % ring->size, result = NCCL_SUCCESS;

	for (unsigned c = 0; c < ring->channels && result == NCCL_SUCCESS; c++) {
		char mine[NCCL_HANDLE_BYTES] = { 0 }, all[RANKS_MAX][NCCL_HANDLE_BYTES];
		void *listener = NULL;

		result = ring->net->listen(ring->context, 0, mine, &listener);
		if (result == NCCL_SUCCESS &&
		    ranks->gather(ranks->context, mine, all, sizeof(mine)))
			result = NCCL_SYSTEM_ERROR;
		if (result == NCCL_SUCCESS)
			result = channel_connect(ring, c, listener, all[next]);
		if (listener)
			ring->net->close_listen(listener);
	}
	return result;
}

int nccl_ring_open(struct nccl_ring *ring, const struct nccl_plugin *plugin,
                   const struct nccl_ranks *ranks, unsigned channels, size_t chunk)
{
	struct nccl_comm_config config = { .traffic_class = -1 };
	struct nccl_properties_v11 properties;
	int devices = 0, result;

	*ring = (struct nccl_ring){ .net = plugin->net,
		                    .channels = channels,
		                    .rank = ranks->rank,
		                    .size = ranks->size,
		                    .chunk = chunk,
		                    .patience_s = ranks->patience_s };
	result = ring->net->init(&ring->context, 1, &config, nccl_log_print, NULL);
	if (result == NCCL_SUCCESS)
		result = ring->net->devices(&devices);
	if (result == NCCL_SUCCESS && devices < 1)
		result = NCCL_INTERNAL_ERROR;
	if (result == NCCL_SUCCESS)
		result = ring->net->get_properties(0, &properties);
	if (result == NCCL_SUCCESS)
		result = channels_open(ring, ranks);
	ring->slots = malloc(channels * NCCL_STEPS * chunk);
	if (result == NCCL_SUCCESS && !ring->slots)
		result = NCCL_SYSTEM_ERROR;
	if (result != NCCL_SUCCESS)
		nccl_ring_close(ring);
	return result;
}

int nccl_ring_close(struct nccl_ring *ring)
{
	int result = NCCL_SUCCESS;

	for (unsigned c = 0; c < ring->channels; c++) {
		if (ring->send[c])
			result |= ring->net->close_send(ring->send[c]);
		if (ring->receive[c])
			result |= ring->net->close_recv(ring->receive[c]);
	}
	if (ring->context)
		result |= ring->net->finalize(ring->context);
	free(ring->slots);
	ring->slots = NULL;
	ring->context = NULL;
	ring->channels = 0;
	return result;
}

/* ---- the sum ---- */

/* What a channel does in one sum. Steps are counted over all loops. */
struct channel {
	struct nccl_ring *ring;
	char *data;
	size_t bytes, loop_bytes; /* of this channel's part; of a loop */
	unsigned number, steps;   /* of the channel; in all */
	unsigned sent, sending;   /* steps that are complete, and that are posted */
	unsigned received, receiving;
	void *sends[NCCL_STEPS], *receives[NCCL_STEPS];
};

/* The chunk that a rank sends in a step. In a short loop it may be empty. */
static size_t chunk_find(const struct channel *ch, unsigned step, int rank, char **at)
{
	const struct nccl_ring *ring = ch->ring;
	unsigned per_loop = 2 * ((unsigned)ring->size - 1), s = step % per_loop;
	size_t start = step / per_loop * ch->loop_bytes, left = ch->bytes - start, each, from;
	size_t n = (size_t)ring->size, i = (size_t)(rank + 2 * ring->size - (int)s) % n;

	if (left > ch->loop_bytes)
		left = ch->loop_bytes;
	each = ((left + n - 1) / n + 7) / 8 * 8; /* whole elements of every type */
	from = i * each < left ? i * each : left;
	*at = ch->data + start + from;
	return left - from < each ? left - from : each;
}

static bool is_added(const struct channel *ch, unsigned step)
{
	unsigned s = step % (2 * ((unsigned)ch->ring->size - 1));

	return s < (unsigned)ch->ring->size - 1;
}

static char *slot_of(const struct channel *ch, unsigned step)
{
	return ch->ring->slots + (ch->number * NCCL_STEPS + step % NCCL_STEPS) * ch->ring->chunk;
}

/* A step sends what the step before has received; the first of a loop sends the rank's own. */
static int channel_send(struct channel *ch, bool *moved)
{
	const struct nccl_net_v11 *net = ch->ring->net;
	unsigned per_loop = 2 * ((unsigned)ch->ring->size - 1);
	int result = NCCL_SUCCESS, done = 0, size;

	if (ch->sending < ch->steps && ch->sending - ch->sent < NCCL_STEPS &&
	    (ch->sending % per_loop == 0 || ch->received >= ch->sending)) {
		void **request = &ch->sends[ch->sending % NCCL_STEPS];
		char *at;
		size_t n = chunk_find(ch, ch->sending, ch->ring->rank, &at);

		*request = NULL;
		result = net->isend(ch->ring->send[ch->number], at, n, (int)ch->number, NULL, NULL,
		                    request);
		ch->sending += *request != NULL;
		*moved |= *request != NULL;
	}
	if (result == NCCL_SUCCESS && ch->sent < ch->sending)
		result = net->test(ch->sends[ch->sent % NCCL_STEPS], &done, &size);
	ch->sent += done != 0;
	*moved |= done != 0;
	return result;
}

/*
 * What is only stored arrives in its place. The rank has sent its own share of that chunk before,
 * or the sum would lack it.
 */
static int channel_post_receive(struct channel *ch, bool *moved)
{
	void **request = &ch->receives[ch->receiving % NCCL_STEPS];
	void *to, *registration = NULL, *profile = NULL;
	int tag = (int)ch->number, result;
	char *at;
	size_t n = chunk_find(ch, ch->receiving, ch->ring->rank - 1, &at);

	to = is_added(ch, ch->receiving) ? slot_of(ch, ch->receiving) : at;
	*request = NULL;
	result = ch->ring->net->irecv(ch->ring->receive[ch->number], 1, &to, &n, &tag,
	                              &registration, &profile, request);
	ch->receiving += *request != NULL;
	*moved |= *request != NULL;
	return result;
}

static int channel_receive(struct channel *ch, size_t type_size,
                           void (*add)(void *to, const void *from, size_t n), bool *moved)
{
	int result = NCCL_SUCCESS, done = 0, size = 0;

	if (ch->receiving < ch->steps && ch->receiving - ch->received < NCCL_STEPS)
		result = channel_post_receive(ch, moved);
	if (result == NCCL_SUCCESS && ch->received < ch->receiving)
		result = ch->ring->net->test(ch->receives[ch->received % NCCL_STEPS], &done, &size);
	if (!done)
		return result;
	if (is_added(ch, ch->received)) {
		char *at;

		chunk_find(ch, ch->received, ch->ring->rank - 1, &at);
		add(at, slot_of(ch, ch->received), (size_t)size / type_size);
	}
	ch->received++;
	*moved = true;
	return result;
}

/* Each channel has a part of whole loops, the last one what is left. */
static unsigned channels_lay_out(struct nccl_ring *ring, struct channel *channels, char *data,
                                 size_t bytes)
{
	size_t loop = ring->chunk * (size_t)ring->size, loops = (bytes + loop - 1) / loop, from = 0;
	unsigned n = loops < ring->channels ? (unsigned)loops : ring->channels;

	for (unsigned c = 0; c < n; c++) {
		size_t mine = loops * (c + 1) / n * loop;

		if (mine > bytes)
			mine = bytes;
		channels[c] = (struct channel){ .ring = ring,
			                        .number = c,
			                        .data = data + from,
			                        .bytes = mine - from,
			                        .loop_bytes = loop };
		channels[c].steps = (unsigned)((mine - from + loop - 1) / loop) * 2 *
		                    ((unsigned)ring->size - 1);
		from = mine;
	}
	return n;
}

int nccl_ring_allreduce(struct nccl_ring *ring, void *data, size_t count, size_t type_size,
                        void (*add)(void *to, const void *from, size_t n))
{
	struct channel channels[NCCL_CHANNELS_MAX];
	unsigned n = channels_lay_out(ring, channels, data, count * type_size), ended = 0;
	double end = nccl_now_s() + ring->patience_s;
	int result = NCCL_SUCCESS;

	if (ring->size == 1)
		return NCCL_SUCCESS;
	while (ended < n && result == NCCL_SUCCESS) {
		bool moved = false;

		ended = 0;
		for (unsigned c = 0; c < n && result == NCCL_SUCCESS; c++) {
			struct channel *ch = &channels[c];

			result = channel_send(ch, &moved);
			if (result == NCCL_SUCCESS)
				result = channel_receive(ch, type_size, add, &moved);
			ended += ch->sent == ch->steps && ch->received == ch->steps;
		}
		if (moved)
			end = nccl_now_s() + ring->patience_s;
		else if (nccl_now_s() > end)
			return NCCL_IN_PROGRESS;
		else
			nccl_poll_pause();
	}
	return result;
}
