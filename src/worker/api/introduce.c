/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/api/introduce.h"
#include "worker/ranks/ring_thread.h"

#include "base/peer_text.h"
#include "path/channel/channel_io.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define NETWORKS 8u

/* An IPv4 address of a rank's host, in network order. */
struct own_address {
	uint32_t address, mask;
};

/* What a rank tells the others. Little-endian; ranks of one job are alike. */
struct introduction {
	char version[16];
	int32_t status;    /* trib_status of this rank so far */
	uint32_t is_found; /* the rank knows an aggregator, trees or a controller */
	uint64_t cookie;   /* rank 0 draws one for ranks that have none */
	struct own_address own[NETWORKS];
	struct ring_seat seat;
	char sentence[256]; /* of an error */
};

static void say_status(struct introduction *mine, trib_status status)
{
	mine->status = status;
	snprintf(mine->version, sizeof(mine->version), "%s", TRIB_VERSION);
	if (status != TRIB_OK)
		snprintf(mine->sentence, sizeof(mine->sentence), "%s", trib_last_error());
}

static trib_status exchange(const trib_options *options, const struct introduction *mine,
                            struct introduction *all)
{
	if (options->exchange(options->exchange_context, mine, all, sizeof(*mine)) == 0)
		return TRIB_OK;
	return status_fail(TRIB_ERR_PEER, "the ranks could not exchange what trib_init needs");
}

/* This rank's own error, else that of the first rank that has one. */
static trib_status first_error(const struct introduction *all, const struct comm_config *config)
{
	const struct introduction *own = &all[config->rank];
	char sentence[sizeof(own->sentence) + 1];

	if (own->status != TRIB_OK)
		return status_fail((trib_status)own->status, "%s", own->sentence);
	for (int r = 0; r < config->size; r++)
		if (all[r].status != TRIB_OK)
			return status_fail(TRIB_ERR_PEER, "rank %d: %s", r,
			                   peer_text(sentence, sizeof(sentence), all[r].sentence,
			                             sizeof(all[r].sentence)));
	return TRIB_OK;
}

static trib_status check_all(const struct introduction *all, const struct comm_config *config)
{
	char version[sizeof(all->version) + 1];

	for (int r = 0; r < config->size; r++) {
		peer_text(version, sizeof(version), all[r].version, sizeof(all[r].version));
		if (strcmp(version, TRIB_VERSION) != 0)
			return status_fail(
				TRIB_ERR_CONFIG,
				"rank %d has version %s of Tributary, rank %d has " TRIB_VERSION, r,
				version, config->rank);
	}
	for (int r = 1; r < config->size; r++)
		if (!all[r].is_found != !all[0].is_found)
			return status_fail(TRIB_ERR_CONFIG,
			                   "rank %d knows an aggregator, rank %d does not: give "
			                   "TRIB_AGGREGATOR or TRIB_CONTROLLER to all ranks",
			                   all[r].is_found ? r : 0, all[r].is_found ? 0 : r);
	return first_error(all, config);
}

/* ---- where ranks reach each other ---- */

static void list_own(struct own_address *own)
{
	struct ifaddrs *all = NULL;
	unsigned n = 0;

	if (getifaddrs(&all))
		return;
	for (struct ifaddrs *i = all; i && n < NETWORKS; i = i->ifa_next) {
		const struct sockaddr_in *address = (const void *)i->ifa_addr;
		const struct sockaddr_in *mask = (const void *)i->ifa_netmask;

		if (!address || !mask || address->sin_family != AF_INET ||
		    !(i->ifa_flags & IFF_UP) || i->ifa_flags & IFF_LOOPBACK)
			continue;
		own[n++] = (struct own_address){ address->sin_addr.s_addr, mask->sin_addr.s_addr };
	}
	freeifaddrs(all);
}

static bool is_same_host(const struct introduction *a, const struct introduction *b)
{
	return memcmp(a->own, b->own, sizeof(a->own)) == 0;
}

/* Has the rank's host an address of its own in that network of rank 0's? */
static bool is_in(const struct introduction *rank, const struct introduction *first,
                  const struct own_address *network)
{
	if (is_same_host(rank, first))
		return true;
	for (unsigned i = 0; i < NETWORKS; i++)
		if (rank->own[i].mask == network->mask &&
		    !((rank->own[i].address ^ network->address) & network->mask) &&
		    rank->own[i].address != network->address)
			return true;
	return false;
}

/*
 * An address of rank 0 that all ranks reach: in a network that all hosts are in; else its first
 * one, by routers. Bridges that have the same address on every host do not count.
 */
static void choose_address(const struct introduction *all, int size, struct udp_address *out)
{
	uint32_t loopback = htonl(INADDR_LOOPBACK), chosen = all[0].own[0].address;
	bool one_host = true;

	for (int r = 1; r < size; r++)
		one_host = one_host && is_same_host(&all[r], &all[0]);
	for (unsigned i = 0; !one_host && i < NETWORKS && all[0].own[i].address; i++) {
		int in = 0;

		for (int r = 0; r < size; r++)
			in += is_in(&all[r], &all[0], &all[0].own[i]);
		if (in == size) {
			chosen = all[0].own[i].address;
			break;
		}
	}
	if (one_host || !chosen)
		chosen = loopback;
	udp_from_raw(&chosen, sizeof(chosen), 0, out);
}

static trib_status take_seats(const struct introduction *all, struct comm_config *config)
{
	config->ring_seats = calloc((size_t)config->size, sizeof(*config->ring_seats));
	if (!config->ring_seats)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for the addresses of ranks");
	for (int r = 0; r < config->size; r++)
		config->ring_seats[r] = all[r].seat;
	return TRIB_OK;
}

/* No aggregator: each rank listens and tells the others where. */
static trib_status meet(const trib_options *options, struct introduction *all,
                        struct comm_config *config)
{
	struct introduction mine = all[config->rank];
	trib_status status;

	if (!config->cookie)
		config->cookie = all[0].cookie;
	if (!config->rendezvous.length)
		choose_address(all, config->size, &config->rendezvous);
	status = ring_listen(config, &config->rendezvous, &config->ring_listener, &mine.seat);
	say_status(&mine, status);
	status = exchange(options, &mine, all);
	if (status == TRIB_OK)
		status = first_error(all, config);
	if (status == TRIB_OK)
		status = take_seats(all, config);
	if (status != TRIB_OK) {
		channel_listener_free(config->ring_listener);
		config->ring_listener = NULL;
	}
	return status;
}

trib_status introduce(const trib_options *options, trib_status status, struct comm_config *config)
{
	struct introduction mine = { 0 }, all[WIRE_CHILDREN_MAX];

	mine.is_found = config->aggregator.length || config->controller.length || config->trees;
	list_own(mine.own);
	if (getrandom(&mine.cookie, sizeof(mine.cookie), 0) < 0 && status == TRIB_OK)
		status = status_fail_errno("cannot draw a random cookie");
	say_status(&mine, status);
	status = exchange(options, &mine, all);
	if (status == TRIB_OK)
		status = check_all(all, config);
	if (status == TRIB_OK && !mine.is_found && config->size > 1)
		status = meet(options, all, config);
	return status;
}

trib_status introduce_agree(const trib_options *options, trib_status status,
                            const struct comm_config *config)
{
	struct introduction mine = { 0 }, all[WIRE_CHILDREN_MAX];

	say_status(&mine, status);
	status = exchange(options, &mine, all);
	return status == TRIB_OK ? first_error(all, config) : status;
}
