/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/api/api.h"
#include "worker/ranks/ring_thread.h"

#include "base/random_bits.h"
#include "path/channel/channel_io.h"

#include <stdlib.h>

struct vote {
	int32_t color, key;
};

/* A key that all ranks of the new communicator compute alike, and no other communicator has. */
static uint64_t subset_key(uint64_t parent, uint64_t split, int32_t color)
{
	uint64_t key = parent ^ (split + 1) * RANDOM_STEP ^ (uint64_t)(uint32_t)color << 20;

	return bits_mix(key);
}

/* The parent's ranks that are in the new communicator, in its order. */
static unsigned members_of(const trib_comm *comm, const struct vote *votes, int color,
                           unsigned ranks[WIRE_CHILDREN_MAX])
{
	unsigned n = 0;

	for (int r = 0; r < comm->config.size; r++) {
		unsigned at = n;

		if (votes[r].color != color)
			continue;
		for (; at && votes[ranks[at - 1]].key > votes[r].key; at--)
			ranks[at] = ranks[at - 1];
		ranks[at] = (unsigned)r;
		n++;
	}
	return n;
}

/* The parent's trees, with only the ranks of the new communicator, renumbered. */
static trib_status subset_trees(const trib_comm *comm, const struct vote *votes, int color,
                                struct forest **out)
{
	unsigned ranks[WIRE_CHILDREN_MAX], n = members_of(comm, votes, color, ranks);

	*out = NULL;
	if (!comm->config.trees || comm->config.controller.length)
		return TRIB_OK; /* one star, or the controller gives a plan */
	*out = malloc(sizeof(**out));
	if (!*out)
		return status_fail(TRIB_ERR_NO_MEMORY, "trib_split: no memory");
	forest_subset(comm->config.trees, ranks, n, *out);
	return TRIB_OK;
}

/*
 * Without an aggregator, the ranks of the new communicator tell each other where they listen. All
 * ranks of the parent take part.
 */
static trib_status exchange_seats(trib_comm *comm, const struct vote *votes, int color,
                                  struct comm_config *config)
{
	struct ring_seat all[WIRE_CHILDREN_MAX] = { 0 }, mine = { 0 };
	unsigned ranks[WIRE_CHILDREN_MAX], n = members_of(comm, votes, color, ranks);
	trib_status status = TRIB_OK, listens = TRIB_OK;

	if (color >= 0 && n > 1)
		listens = ring_listen(config, &config->rendezvous, &config->ring_listener, &mine);
	status = collective_split(comm, &mine, all, sizeof(mine));
	if (status == TRIB_OK)
		status = listens;
	config->ring_seats = calloc(n + 1, sizeof(mine));
	for (unsigned i = 0; config->ring_seats && i < n; i++)
		config->ring_seats[i] = all[ranks[i]];
	if (status == TRIB_OK && !config->ring_seats)
		status = status_fail(TRIB_ERR_NO_MEMORY, "trib_split: no memory");
	if (status != TRIB_OK)
		channel_listener_free(config->ring_listener);
	return status;
}

trib_status trib_split(trib_comm *comm, int color, int key, trib_comm **out)
{
	struct vote mine = { color, key }, *votes;
	struct comm_config config;
	trib_status status;

	if (!comm || !out)
		return status_fail(TRIB_ERR_ARGUMENT, "trib_split: no communicator");
	*out = NULL;
	status = forked_check(comm, "trib_split");
	if (status != TRIB_OK)
		return status;
	votes = calloc((size_t)comm->config.size, sizeof(*votes));
	if (!votes)
		return status_fail(TRIB_ERR_NO_MEMORY, "trib_split: no memory");
	status = collective_split(comm, &mine, votes, sizeof(mine));
	pthread_mutex_lock(&comm->lock);
	config = comm->config;
	config.key = subset_key(comm_key(&config), comm->splits++, color);
	config.generation = config.epoch = 0;
	pthread_mutex_unlock(&comm->lock);
	config.rank = config.size = 0;
	config.asks = false;
	for (int r = 0; status == TRIB_OK && r < comm->config.size; r++) {
		if (votes[r].color != color)
			continue;
		config.size++;
		if (votes[r].key < key || (votes[r].key == key && r < comm->config.rank))
			config.rank++;
	}
	config.trees = NULL;
	config.ring_listener = NULL;
	config.ring_seats = NULL;
	if (status == TRIB_OK && config.rendezvous.length && comm->config.size > 1)
		status = exchange_seats(comm, votes, color, &config);
	if (status == TRIB_OK && color >= 0)
		status = subset_trees(comm, votes, color, &config.trees);
	free(votes);
	if (status != TRIB_OK || color < 0) {
		free(config.ring_seats);
		return status;
	}
	config.seat = config.rank;
	config.seats = config.size;
	return comm_open(&config, NULL, out);
}
