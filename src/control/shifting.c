/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobs that go to another shared aggregator while they run. Release, then
 * acquire: the turn at the one before comes to its end (turns_release), the new
 * star is stored, and ranks are told of it. They join it in the background
 * (worker/star.h), their requests go by the job's own trees meanwhile, and the
 * first turn is given when all of them are in.
 *
 * A star is lost where ranks could not join it, or where it ended while nothing
 * was under way there. Ranks go their own way then, and get another one after a
 * rest; not before each of them has said that nothing is left of the turns that
 * it had: another rank may have begun a request there which this one, told of
 * another star, would take elsewhere.
 */
#include "control/controller_internal.h"

#include "base/clock.h"
#include "base/log.h"
#include "wire/parse.h"

#include <stdio.h>
#include <string.h>

#define REST (3 * NSEC_PER_SEC) /* before another one is tried */
#define REST_DOUBLES 4u         /* each time that ranks cannot join, up to 48 s */

static struct gathering_entry *entry_find(const struct controller *controller, uint16_t job,
                                          uint64_t key)
{
	struct gathering_entry *entry =
		controller->jobs[job] ? controller->jobs[job]->gatherings : NULL;

	while (entry && entry->gathering.key != key)
		entry = entry->next;
	return entry;
}

static uint64_t all_ranks(const struct gathering *gathering)
{
	unsigned n = (unsigned)__builtin_popcountll(gathering->members);

	return n < 64 ? (1ull << n) - 1 : ~0ull;
}

void shifting_begin(struct controller *controller, struct gathering_entry *entry, const char *to,
                    const char *why, uint64_t now)
{
	struct sharer *sharer = sharing_of(controller, entry);

	/* Who has not joined what the plan has would join something else. */
	if (!sharer || *sharer->to || now < entry->star_at || !turns_is_joined(&sharer->share))
		return;
	snprintf(sharer->to, sizeof(sharer->to), "%s", to);
	snprintf(sharer->why, sizeof(sharer->why), "%s", why);
	controller->counts[DESK_MOVES]++;
	log_notice("job %u takes its turns at %s from now on: %s", sharer->job, to, why);
}

/* The same trees, with another star behind the bar. False: it does not fit, or is not stored. */
static bool store_star(struct controller *controller, struct gathering_entry *entry, const char *to)
{
	struct gathering *gathering = &entry->gathering;
	const char *bar = strchr(gathering->plan, '|'), *ranks = bar ? strchr(bar, '(') : NULL;
	struct gathering before = *gathering;
	int length;

	if (!ranks)
		return false;
	length = snprintf(gathering->plan, sizeof(gathering->plan), "%.*s|%s%s",
	                  (int)(bar - gathering->plan), before.plan, to,
	                  before.plan + (ranks - gathering->plan));
	gathering->star++;
	if (length < (int)sizeof(gathering->plan) &&
	    store_put_gathering(controller->store, gathering, &entry->verdict) == TRIB_OK)
		return true;
	log_error("job %u does not go to %s: %s", gathering->job, to,
	          length < (int)sizeof(gathering->plan) ? trib_last_error()
	                                                : "its plan is too long");
	*gathering = before;
	return false;
}

/* Of the aggregator at which the sharer takes its turns. */
static bool hop_of(const struct gathering *gathering, struct wire_hop *hop)
{
	char address[TREE_NAME_MAX];
	struct udp_address to;

	/* It is an address, not a name: nothing is looked up here. */
	if (!plan_shared(gathering->plan, address) ||
	    udp_resolve(address, UDP_DEFAULT_PORT, &to) != TRIB_OK)
		return false;
	*hop = (struct wire_hop){ .ranks = all_ranks(gathering), .port = udp_port(&to) };
	if (to.storage.ss_family == AF_INET6) {
		hop->family = 6;
		memcpy(hop->address, &((struct sockaddr_in6 *)&to.storage)->sin6_addr, 16);
	} else {
		hop->family = 4;
		memcpy(hop->address, &((struct sockaddr_in *)&to.storage)->sin_addr, 4);
	}
	return true;
}

/* To a rank that is not at the plan's newest star. */
static void say_move(struct controller *controller, const struct gathering *gathering,
                     const struct udp_address *to)
{
	const struct wire_turn turn = { .word = WIRE_TURN_MOVE,
		                        .key = gathering->key,
		                        .session = controller->session,
		                        .generation = gathering->generation,
		                        .star = gathering->star };
	const struct job_entry *job = controller->jobs[gathering->job];
	struct wire_hop hop;

	if (to->length && job && hop_of(gathering, &hop))
		sharing_send(controller, job->job.id, job->cookie, &turn, &hop, to);
}

/* Its share is at the new star from now on; NULL: there is no memory. False: all is as it was. */
static bool shift(struct controller *controller, struct gathering_entry *entry, const char *to,
                  const char *why, uint64_t now, struct sharer **out)
{
	const struct job_entry *job = controller->jobs[entry->gathering.job];

	if (!store_star(controller, entry, to))
		return false;
	entry->planned_at = now; /* it is left in peace for a while */
	entry->starless = entry->star_at = 0;
	snprintf(entry->wanted, sizeof(entry->wanted), "%s", to);
	entry->wanted_after = entry->gathering.generation;
	moves_note(entry, "its turns are at %s: %s", to, why);
	*out = sharing_make(controller, job, &entry->gathering, false);
	if (*out)
		turns_await(&(*out)->share);
	return true;
}

bool shifting_end(struct controller *controller, struct sharer *sharer, uint64_t now)
{
	struct gathering_entry *entry = entry_find(controller, sharer->job, sharer->key);
	struct sharer *next;

	if (!turns_is_free(&sharer->share) || !entry || sharer != sharing_of(controller, entry))
		return false;
	if (!shift(controller, entry, sharer->to, sharer->why, now, &next)) {
		*sharer->to = '\0'; /* it stays, and is given turns again */
		sharer->share.leaving = false;
		entry->star_at = now + REST;
		return false;
	}
	for (unsigned i = 0; i < sharer->share.ranks; i++)
		say_move(controller, &entry->gathering, &sharer->from[i]);
	if (!next)
		return true;
	memcpy(next->from, sharer->from, sizeof(next->from));
	next->peer_key = sharer->peer_key;
	next->told = sharer->told;
	next->told.held = false;
	next->moved_at = sharer->moved_at;
	return true;
}

void shifting_joined(struct controller *controller, struct sharer *sharer)
{
	struct gathering_entry *entry = entry_find(controller, sharer->job, sharer->key);

	sharer->is_in = true;
	if (entry)
		entry->astray = 0;
	if (sharer->star)
		log_info("job %u: all ranks have joined the star where its turns are now",
		         sharer->job);
}

void shifting_lost(struct controller *controller, const struct sharer *sharer, uint64_t now)
{
	struct gathering_entry *entry = entry_find(controller, sharer->job, sharer->key);
	char address[TREE_NAME_MAX];

	if (!entry || entry->gathering.generation != sharer->generation ||
	    entry->gathering.star != sharer->star)
		return;
	for (unsigned i = 0; i < sharer->share.ranks; i++)
		entry->serials[i] = sharer->share.rank[i].serial;
	entry->starless = 0;
	entry->star_at = now + (REST << entry->astray);
	if (!sharer->share.joining)
		return;
	entry->astray += entry->astray < REST_DOUBLES;
	plan_shared(entry->gathering.plan, address);
	log_warn("job %u takes no turns for now: not all of its ranks are at %s", sharer->job,
	         address);
	moves_note(entry, "it takes no turns for now: not all ranks are at %s", address);
}

/* Of the process that has this rank in the plan. */
static uint64_t nonce_of(const struct gathering *gathering, unsigned rank)
{
	uint64_t seats = gathering->members;

	while (rank-- && seats)
		seats &= seats - 1;
	return seats ? gathering->seats[__builtin_ctzll(seats)].nonce : 0;
}

/* All ranks are without a star, and may have another one. */
static void try_again(struct controller *controller, struct gathering_entry *entry, uint64_t now)
{
	char root[TREE_NAME_MAX];
	struct sharer *next;

	entry->star_at = now + REST;
	if (!rooting_again(controller, entry, now, root))
		return;
	if (shift(controller, entry, root, "the one before was lost", now, &next))
		log_notice("job %u takes its turns at %s from now on: the one before was lost",
		           entry->gathering.job, root);
}

void shifting_hear(struct controller *controller, const struct wire_control *header,
                   const struct udp_address *from, uint64_t now)
{
	const struct wire_turn *turn = wire_payload(header);
	struct gathering_entry *entry = entry_find(controller, header->job, turn->key);
	const struct gathering *gathering = entry ? &entry->gathering : NULL;
	uint64_t bit = 1ull << turn->rank % SEATS_MAX;

	if (!gathering || turn->generation != gathering->generation || turn->rank >= SEATS_MAX ||
	    turn->nonce != nonce_of(gathering, turn->rank))
		return;
	if (turn->star < gathering->star) /* it has not heard */
		say_move(controller, gathering, from);
	if (turn->star != gathering->star || turn->flags & WIRE_TURN_FAILED)
		return;
	if (turn->serial <= entry->serials[turn->rank])
		return;
	entry->serials[turn->rank] = turn->serial;
	entry->starless = turns_is_off(turn) ? entry->starless | bit : entry->starless & ~bit;
	if (entry->starless == all_ranks(gathering) && now >= entry->star_at)
		try_again(controller, entry, now);
}
