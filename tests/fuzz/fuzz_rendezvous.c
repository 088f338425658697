/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rendezvous: whatever ranks ask, in any order and at any time, generations only grow, a plan
 * stays as it was given, and each of its ranks is one process. With policy `fail`, restarted
 * processes are never mixed with others. No plan leaves out half of the ranks or more, unless they
 * were reported dead.
 */
#include "control/policy/rendezvous.h"
#include "fuzz.h"

#include <string.h>

#define RANKS 6u
#define PLANS 64u
#define LATE_NS 900000000ull /* maximum delay of a packet */

struct given {
	uint64_t nonces[RANKS + 1]; /* by rank in the plan */
	char plan[64];
};

static trib_status plan(void *context, const struct plan_wish *wish, char out[PLAN_TEXT_MAX])
{
	uint8_t mood = *(const uint8_t *)context;

	demand(wish->ranks >= 1 && wish->ranks <= SEATS_MAX);
	if (mood % 8 == 1)
		return TRIB_IN_PROGRESS;
	if (mood % 8 == 2)
		return status_fail(TRIB_ERR_AGGREGATOR, "none");
	snprintf(out, PLAN_TEXT_MAX, "a%u:1(0-%u)", mood, wish->ranks - 1);
	return TRIB_OK;
}

static unsigned count(uint64_t bits)
{
	return (unsigned)__builtin_popcountll(bits);
}

/* Members that have had the plan before. */
static unsigned old_members(const struct membership *after, const uint32_t *told)
{
	unsigned old = 0;

	for (unsigned i = 0; i < SEATS_MAX; i++)
		old += after->members >> i & 1 &&
		       told[after->seats[i].nonce] == after->generation - 1;
	return old;
}

/* A plan is its members' as soon as it is made: they are told without being asked. */
static void note_members(const struct membership *membership, struct given *given)
{
	unsigned rank = 0;

	for (unsigned i = 0; i < SEATS_MAX; i++)
		if (membership->members >> i & 1 && rank < RANKS + 1)
			given->nonces[rank++] = membership->seats[i].nonce;
	snprintf(given->plan, sizeof(given->plan), "%.63s", membership->plan);
}

static void new_plan_check(const struct membership *before, const struct membership *after,
                           const struct ask *ask, const uint32_t *told, struct given *given)
{
	uint64_t missing = before->members & ~after->members;
	uint64_t left = after->members & before->members;
	unsigned old;

	demand(after->generation == before->generation + 1);
	demand(after->members);
	if (after->generation < PLANS)
		note_members(after, &given[after->generation]);
	if (!before->generation || before->generation >= PLANS)
		return;
	if (after->policy != POLICY_SHRINK)
		demand(!missing);
	else if (missing)
		demand(2 * count(left) > count(before->members) || before->lost || ask->lost);
	old = old_members(after, told);
	if (after->policy == POLICY_FAIL)
		demand(after->members == before->members && (!old || old == count(after->members)));
}

static void answer_check(const struct membership *membership, const struct ask *ask,
                         const struct answer *answer, const struct given *given)
{
	const struct given *it;

	if (answer->kind == ANSWER_REFUSE)
		demand(*answer->sentence);
	if (answer->kind != ANSWER_PLAN || membership->generation >= PLANS)
		return;
	demand(answer->rank < answer->size && answer->size == count(membership->members));
	it = &given[membership->generation];
	demand(!strcmp(it->plan, membership->plan));
	demand(answer->rank < RANKS + 1 && it->nonces[answer->rank] == ask->nonce);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input input = { data, data + size };
	struct given given[PLANS] = { 0 };
	uint32_t told[64] = { 0 };
	uint64_t told_at[64] = { 0 };
	struct membership membership;
	uint64_t now = 1000000000;

	membership_start(&membership, 1, fuzz_byte(&input) & 1, fuzz_byte(&input) % POLICIES_END,
	                 fuzz_byte(&input) % (RANKS + 1), 1 + fuzz_byte(&input) % 3);
	while (input.at < input.end) {
		uint8_t who = fuzz_byte(&input), how = fuzz_byte(&input);
		uint8_t mood = fuzz_byte(&input);
		struct ask ask = { .rank = who % (RANKS + 1),
			           .size = how & 0x80        ? how % 80
			                   : membership.size ? membership.size
			                                     : 3,
			           .nonce = 1 + who % (RANKS + 1) + 16 * (who / 64),
			           .timeout_ms = 4000,
			           .wire = mood,
			           .lost = how & 0x40 ? fuzz_byte(&input) : 0 };
		struct membership before = membership;
		const struct world world = {
			.now = now, .seen_ns = 2 * LATE_NS, .plan = plan, .context = &mood
		};
		struct answer answer;

		/* The generation that the process heard last, or an older one in a late packet. */
		ask.generation = told[ask.nonce];
		if (how & 1 && now < told_at[ask.nonce] + LATE_NS)
			ask.generation = how & 2 ? 0 : ask.generation / 2;
		if (mood & 0x40)
			membership_see(&membership, mood % 8, now);
		now += (uint64_t)(how >> 2 & 7) * (how >> 2 & 7) * 30000000;
		membership_ask(&membership, &ask, &world, &answer);
		demand(membership.generation >= before.generation);
		if (answer.changed)
			new_plan_check(&before, &membership, &ask, told, given);
		else
			demand(membership.generation == before.generation &&
			       !strcmp(membership.plan, before.plan) &&
			       membership.members == before.members);
		answer_check(&membership, &ask, &answer, given);
		if (answer.kind == ANSWER_PLAN)
			told[ask.nonce] = membership.generation, told_at[ask.nonce] = world.now;
	}
	return 0;
}
