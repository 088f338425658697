/* SPDX-License-Identifier: Apache-2.0 */
#include "control/sharing/star_migration.h"

#include "base/clock.h"
#include "base/log.h"
#include "control/sharing/share_table.h"
#include "control/sharing/star_choice.h"
#include "control/sharing/turn_packet.h"
#include "control/state/plan_history.h"
#include "wire/parse.h"

#include <stdio.h>
#include <string.h>

#define REST (3 * NSEC_PER_SEC) /* 3 s before another star is tried */
#define REST_DOUBLES 4u         /* doubled each time that ranks cannot join, up to 48 s */

static uint64_t all_ranks(const struct membership *membership)
{
	unsigned n = (unsigned)__builtin_popcountll(membership->members);

	return n < 64 ? (1ull << n) - 1 : ~0ull;
}

void star_migration_begin(struct controller *controller, struct membership_entry *entry,
                          const char *to, const char *why, uint64_t now)
{
	struct sharer *sharer = share_table_newest(controller, entry);

	/* Ranks must have joined the present star: they cannot join two at once. */
	if (!sharer || *sharer->to || now < entry->next_star_at || !turns_is_joined(&sharer->share))
		return;
	snprintf(sharer->to, sizeof(sharer->to), "%s", to);
	snprintf(sharer->why, sizeof(sharer->why), "%s", why);
	controller->counts[COUNT_MIGRATIONS]++;
	log_notice("job %u takes its turns at %s from now on: %s", sharer->job, to, why);
}

/* Replaces the star of the plan and stores that. False: it does not fit, or is not stored. */
static bool store_star(struct controller *controller, struct membership_entry *entry,
                       const char *to)
{
	struct membership *membership = &entry->membership;
	const char *bar = strchr(membership->plan, '|'), *ranks = bar ? strchr(bar, '(') : NULL;
	struct membership before = *membership;
	int length;

	if (!ranks)
		return false;
	length = snprintf(membership->plan, sizeof(membership->plan), "%.*s|%s%s",
	                  (int)(bar - membership->plan), before.plan, to,
	                  before.plan + (ranks - membership->plan));
	membership->star++;
	if (length < (int)sizeof(membership->plan) &&
	    store_put_membership(controller->store, membership, &entry->verdict) == TRIB_OK)
		return true;
	log_error("job %u cannot migrate to %s: %s", membership->job, to,
	          length < (int)sizeof(membership->plan) ? trib_last_error()
	                                                 : "its plan is too long");
	*membership = before;
	return false;
}

/* The address of the plan's shared star, for a packet. */
static bool hop_of(const struct membership *membership, struct wire_hop *hop)
{
	char address[TREE_NAME_MAX];
	struct udp_address to;

	/* This is an address, not a name: there is no lookup. */
	if (!plan_shared(membership->plan, address) ||
	    udp_resolve(address, UDP_DEFAULT_PORT, &to) != TRIB_OK)
		return false;
	*hop = (struct wire_hop){ .ranks = all_ranks(membership), .port = udp_port(&to) };
	if (to.storage.ss_family == AF_INET6) {
		hop->family = 6;
		memcpy(hop->address, &((struct sockaddr_in6 *)&to.storage)->sin6_addr, 16);
	} else {
		hop->family = 4;
		memcpy(hop->address, &((struct sockaddr_in *)&to.storage)->sin_addr, 4);
	}
	return true;
}

/* Tells a rank about the plan's newest star. */
static void say_move(struct controller *controller, const struct membership *membership,
                     const struct udp_address *to)
{
	const struct wire_turn turn = { .word = WIRE_TURN_MOVE,
		                        .key = membership->key,
		                        .session = controller->session,
		                        .generation = membership->generation,
		                        .star = membership->star };
	const struct job_entry *job = controller->jobs[membership->job];
	struct wire_hop hop;

	if (to->length && job && hop_of(membership, &hop))
		turn_packet_send(controller, job->job.id, job->cookie, &turn, &hop, to);
}

/* Changes the star. *out: the share there; NULL: no memory. False: nothing has changed. */
static bool change_star(struct controller *controller, struct membership_entry *entry,
                        const char *to, const char *why, uint64_t now, struct sharer **out)
{
	const struct job_entry *job = controller->jobs[entry->membership.job];

	if (!store_star(controller, entry, to))
		return false;
	entry->planned_at = now; /* migration leaves it alone for a while */
	entry->without_star = entry->next_star_at = 0;
	snprintf(entry->star_wanted, sizeof(entry->star_wanted), "%s", to);
	entry->star_wanted_after = entry->membership.generation;
	plan_history_note(entry, "its turns are at %s now: %s", to, why);
	*out = share_table_add(controller, job, &entry->membership, false);
	if (*out)
		turns_await(&(*out)->share);
	return true;
}

bool star_migration_end(struct controller *controller, struct sharer *sharer, uint64_t now)
{
	struct membership_entry *entry = membership_find(controller, sharer->job, sharer->key);
	struct sharer *next;

	if (!turns_is_free(&sharer->share) || !entry ||
	    sharer != share_table_newest(controller, entry))
		return false;
	if (!change_star(controller, entry, sharer->to, sharer->why, now, &next)) {
		*sharer->to = '\0'; /* it stays, and gets turns again */
		sharer->share.leaving = false;
		entry->next_star_at = now + REST;
		return false;
	}
	for (unsigned i = 0; i < sharer->share.ranks; i++)
		say_move(controller, &entry->membership, &sharer->from[i]);
	if (!next)
		return true;
	memcpy(next->from, sharer->from, sizeof(next->from));
	next->peer_key = sharer->peer_key;
	next->told = sharer->told;
	next->told.held = false;
	next->moved_at = sharer->moved_at;
	return true;
}

void star_migration_joined(struct controller *controller, struct sharer *sharer)
{
	struct membership_entry *entry = membership_find(controller, sharer->job, sharer->key);

	sharer->is_in = true;
	if (entry)
		entry->failed_joins = 0;
	if (sharer->star)
		log_info("job %u: all ranks have joined the new shared star", sharer->job);
}

void star_migration_lost(struct controller *controller, const struct sharer *sharer, uint64_t now)
{
	struct membership_entry *entry = membership_find(controller, sharer->job, sharer->key);
	char address[TREE_NAME_MAX];

	if (!entry || entry->membership.generation != sharer->generation ||
	    entry->membership.star != sharer->star)
		return;
	for (unsigned i = 0; i < sharer->share.ranks; i++)
		entry->serials[i] = sharer->share.rank[i].serial;
	entry->without_star = 0;
	entry->next_star_at = now + (REST << entry->failed_joins);
	if (!sharer->share.joining)
		return;
	entry->failed_joins += entry->failed_joins < REST_DOUBLES;
	plan_shared(entry->membership.plan, address);
	log_warn("job %u takes no turns for now: not all of its ranks have joined %s", sharer->job,
	         address);
	plan_history_note(entry, "no turns for now: not all ranks have joined %s", address);
}

/* The nonce of the process with this rank. */
static uint64_t nonce_of(const struct membership *membership, unsigned rank)
{
	uint64_t seats = membership->members;

	while (rank-- && seats)
		seats &= seats - 1;
	return seats ? membership->seats[__builtin_ctzll(seats)].nonce : 0;
}

/* No rank uses a star: the communicator may get another one. */
static void try_again(struct controller *controller, struct membership_entry *entry, uint64_t now)
{
	char root[TREE_NAME_MAX];
	struct sharer *next;

	entry->next_star_at = now + REST;
	if (!star_choice_after_loss(controller, entry, now, root))
		return;
	if (change_star(controller, entry, root, "its last shared star was lost", now, &next))
		log_notice(
			"job %u takes its turns at %s from now on: its last shared star was lost",
			entry->membership.job, root);
}

void star_migration_hear(struct controller *controller, const struct wire_control *header,
                         const struct udp_address *from, uint64_t now)
{
	const struct wire_turn *turn = wire_payload(header);
	struct membership_entry *entry = membership_find(controller, header->job, turn->key);
	const struct membership *membership = entry ? &entry->membership : NULL;
	uint64_t bit = 1ull << turn->rank % SEATS_MAX;

	if (!membership || turn->generation != membership->generation || turn->rank >= SEATS_MAX ||
	    turn->nonce != nonce_of(membership, turn->rank))
		return;
	if (turn->star < membership->star) /* the rank does not know the newest star yet */
		say_move(controller, membership, from);
	if (turn->star != membership->star || turn->flags & WIRE_TURN_FAILED)
		return;
	if (turn->serial <= entry->serials[turn->rank])
		return;
	entry->serials[turn->rank] = turn->serial;
	entry->without_star =
		turns_is_off(turn) ? entry->without_star | bit : entry->without_star & ~bit;
	if (entry->without_star == all_ranks(membership) && now >= entry->next_star_at)
		try_again(controller, entry, now);
}
