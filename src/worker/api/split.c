/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/api/api.h"
#include "base/random_bits.h"

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

/* The parent's trees, with only the ranks of the new communicator, renumbered. */
static trib_status subset_trees(const trib_comm *comm, const struct vote *votes, int color,
                                struct forest **out)
{
	unsigned ranks[WIRE_CHILDREN_MAX], n = 0;

	*out = NULL;
	if (!comm->config.trees || comm->config.controller.length)
		return TRIB_OK; /* one star, or the controller gives a plan */
	for (int r = 0; r < comm->config.size; r++) {
		unsigned at = n;

		if (votes[r].color != color)
			continue;
		for (; at && votes[ranks[at - 1]].key > votes[r].key; at--)
			ranks[at] = ranks[at - 1];
		ranks[at] = (unsigned)r;
		n++;
	}
	*out = malloc(sizeof(**out));
	if (!*out)
		return status_fail(TRIB_ERR_NO_MEMORY, "trib_split: no memory");
	forest_subset(comm->config.trees, ranks, n, *out);
	return TRIB_OK;
}

trib_status trib_split(trib_comm *comm, int color, int key, trib_comm **out)
{
	struct vote mine = { color, key }, *votes;
	struct comm_config config;
	trib_status status;

	if (!comm || !out)
		return status_fail(TRIB_ERR_ARGUMENT, "trib_split: no communicator");
	*out = NULL;
	votes = calloc((size_t)comm->config.size, sizeof(*votes));
	if (!votes)
		return status_fail(TRIB_ERR_NO_MEMORY, "trib_split: no memory");
	status = trib_allgather(comm, &mine, votes, 2, TRIB_I32);
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
	if (status == TRIB_OK && color >= 0)
		status = subset_trees(comm, votes, color, &config.trees);
	free(votes);
	if (status != TRIB_OK || color < 0)
		return status;
	config.seat = config.rank;
	config.seats = config.size;
	return comm_open(&config, NULL, out);
}
