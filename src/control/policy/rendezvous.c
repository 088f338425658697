/* SPDX-License-Identifier: Apache-2.0 */
#include "control/policy/rendezvous.h"

#include "base/clock.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define RANK_SILENT_NS NSEC_PER_SEC /* a waiting rank asks many times within 1 s */
/* 3 s: longest time that a sign of life takes through an aggregator */
#define LATE_NS (3 * NSEC_PER_SEC)
#define GRACE_MAX (600 * NSEC_PER_SEC)
/* 2 s: agents that start together with the ranks join within this time */
#define RING_AFTER_NS (2 * NSEC_PER_SEC)
#define GENERATION_MAX 0x7fffffffu

static const char *const policy_names[POLICIES_END] = {
	[POLICY_FAIL] = "fail", [POLICY_SHRINK] = "shrink", [POLICY_WAIT] = "wait"
};

const char *policy_name(enum policy policy)
{
	return policy_names[policy];
}

bool policy_parse(const char *name, enum policy *out)
{
	for (int i = 0; i < POLICIES_END; i++) {
		if (strcmp(policy_names[i], name))
			continue;
		*out = (enum policy)i;
		return true;
	}
	return false;
}

static uint64_t bit(unsigned seat)
{
	return 1ull << seat;
}

static unsigned count(uint64_t seats)
{
	return (unsigned)__builtin_popcountll(seats);
}

static void refuse(struct answer *answer, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void refuse(struct answer *answer, const char *format, ...)
{
	va_list args;

	answer->kind = ANSWER_REFUSE;
	va_start(args, format);
	vsnprintf(answer->sentence, sizeof(answer->sentence), format, args);
	va_end(args);
}

/* "rank 2 (host h3, pid 99)" */
static const char *seat_describe(const struct membership *membership, unsigned seat, char *out,
                                 size_t size)
{
	const struct seat *it = &membership->seats[seat];

	if (it->host[0])
		snprintf(out, size, "rank %u (host %s, pid %u)", seat, it->host, it->pid);
	else
		snprintf(out, size, "rank %u", seat);
	return out;
}

/* Names the first three, and counts the rest. */
const char *seats_describe(const struct membership *membership, uint64_t seats, char *out,
                           size_t size)
{
	size_t used = 0;
	unsigned told = 0;
	char one[128];

	out[0] = '\0';
	for (; seats && told < 3; seats &= seats - 1, told++) {
		unsigned seat = (unsigned)__builtin_ctzll(seats);

		used += (size_t)snprintf(out + used, size - used, "%s%s", told ? ", " : "",
		                         seat_describe(membership, seat, one, sizeof(one)));
		if (used >= size)
			return out;
	}
	if (seats)
		snprintf(out + used, size - used, " and %u more", count(seats));
	return out;
}

void membership_start(struct membership *membership, uint16_t job, uint64_t key, enum policy policy,
                      uint32_t size, uint32_t min)
{
	memset(membership, 0, sizeof(*membership));
	membership->job = job;
	membership->key = key;
	membership->policy = policy;
	membership->size = size;
	membership->min = min;
}

uint64_t membership_waiting(const struct membership *membership, uint64_t now)
{
	uint64_t seats = 0;

	for (unsigned i = 0; i < SEATS_MAX; i++)
		if (membership->seats[i].waits &&
		    now <= membership->seats[i].asked_at + RANK_SILENT_NS)
			seats |= bit(i);
	return seats;
}

const char *wire_setting_name(uint8_t wire)
{
	static const char *const names[] = { [1] = "auto", [9] = "8", [17] = "16", [33] = "32" };

	return wire < sizeof(names) / sizeof(names[0]) ? names[wire] : NULL;
}

const char *membership_wire(const struct membership *membership)
{
	const char *all = NULL;

	for (uint64_t seats = membership->members & ~membership->left; seats; seats &= seats - 1) {
		const char *one = wire_setting_name(membership->seats[__builtin_ctzll(seats)].wire);

		if (!one)
			return NULL;
		if (all && one != all)
			return "mixed";
		all = one;
	}
	return all;
}

/* Members whose process was replaced since the newest plan. */
static uint64_t restarted(const struct membership *membership)
{
	uint64_t seats = 0;

	for (unsigned i = 0; i < SEATS_MAX; i++)
		if (membership->seats[i].nonce &&
		    membership->seats[i].planned != membership->generation)
			seats |= bit(i);
	return membership->generation ? seats & membership->members & ~membership->left : 0;
}

bool membership_is_over(const struct membership *membership)
{
	uint64_t here = membership->members & ~membership->left;

	if (membership->policy == POLICY_FAIL && membership->left)
		here &= ~restarted(membership);
	return !here;
}

/* Seats that the next plan waits for. */
static uint64_t awaited(const struct membership *membership)
{
	if (membership->generation && !membership_is_over(membership))
		return membership->members & ~membership->left;
	return membership->size >= SEATS_MAX ? ~0ull : bit(membership->size) - 1;
}

/* ---- seats ---- */

/* A process keeps its seat, whatever its rank in a plan. */
static int seat_of(const struct membership *membership, const struct ask *ask)
{
	for (unsigned i = 0; i < SEATS_MAX; i++)
		if (membership->seats[i].nonce == ask->nonce)
			return (int)i;
	return -1;
}

/* May a new process have a seat at all? False: `answer` refuses it. */
static bool is_possible(struct membership *membership, const struct ask *ask, struct answer *answer)
{
	/* After the first plan, further ranks may join. */
	bool grows =
		membership->policy != POLICY_FAIL && membership->generation && !membership->key;

	if (!membership->size)
		membership->size = ask->size;
	if (ask->size != membership->size && !grows) {
		refuse(answer, "rank %u was started with %u ranks, but job %u has %u", ask->rank,
		       ask->size, membership->job, membership->size);
		return false;
	}
	return true;
}

/* True: it knows the plan that only this seat's process was told, so it is that process. */
static bool is_holder(const struct membership *membership, const struct seat *seat,
                      const struct ask *ask)
{
	return ask->generation && ask->generation == membership->generation &&
	       seat->planned == membership->generation && !seat->waits;
}

/*
 * Is the process in this seat alive, as far as is known? A process at work does not ask, but
 * aggregators hear it. If other ranks report it dead, that counts more.
 */
static bool is_held(const struct membership *membership, unsigned index, const struct world *world)
{
	const struct seat *seat = &membership->seats[index];

	if (!seat->nonce)
		return false;
	if (seat->asked_at && world->now <= seat->asked_at + RANK_SILENT_NS)
		return true;
	return seat->seen_at && world->now <= seat->seen_at + world->seen_ns &&
	       !(membership->lost & bit(index));
}

/* Takes the seat, unless a live process has it. False: wait, or `answer` refuses. */
static bool seat_take(struct membership *membership, const struct ask *ask,
                      const struct world *world, struct answer *answer)
{
	struct seat *seat = &membership->seats[ask->rank];
	char text[128];

	if (is_holder(membership, seat, ask)) {
		seat->nonce = ask->nonce;
		return true;
	}
	if (is_held(membership, ask->rank, world)) {
		if (seat->rival != ask->nonce) {
			seat->rival = ask->nonce;
			seat->rival_since = world->now;
		}
		if (seat->asked_at > seat->rival_since ||
		    seat->seen_at > seat->rival_since + LATE_NS)
			refuse(answer, "%s has joined job %u already, and is alive",
			       seat_describe(membership, ask->rank, text, sizeof(text)),
			       membership->job);
		return false;
	}
	memset(seat, 0, sizeof(*seat));
	seat->nonce = ask->nonce;
	return true;
}

static void seat_note(struct seat *seat, const struct ask *ask, uint64_t now)
{
	seat->asked_at = now;
	seat->timeout_ms = ask->timeout_ms;
	seat->pid = ask->pid;
	seat->pool_bytes = ask->pool_bytes;
	seat->tcp = ask->tcp;
	seat->wire = wire_setting_name(ask->wire) ? ask->wire : 0;
	seat->ring = ask->ring;
	snprintf(seat->host, sizeof(seat->host), "%.*s", HOST_MAX - 1, ask->host);
	snprintf(seat->where, sizeof(seat->where), "%.*s", WHERE_MAX - 1, ask->where);
}

/* ---- the next plan ---- */

/* Half of the shortest timeout: an answer given by then still reaches all ranks in time. */
static uint64_t grace(const struct membership *membership, uint64_t present)
{
	uint64_t least = GRACE_MAX;

	for (uint64_t seats = present; seats; seats &= seats - 1) {
		const struct seat *seat = &membership->seats[__builtin_ctzll(seats)];
		uint64_t half = (uint64_t)seat->timeout_ms * 1000000 / 2;

		least = half < least ? half : least;
	}
	return least;
}

/*
 * Missing ranks may be left out only if they are reported dead, or if those present are a majority.
 * Otherwise a single rank that is cut off would go on alone while the others work.
 */
static bool may_shrink(const struct membership *membership, uint64_t present, uint64_t missing)
{
	uint64_t before = awaited(membership);

	if (membership->policy != POLICY_SHRINK || count(present) < membership->min)
		return false;
	return !(missing & ~membership->lost) || 2 * count(present & before) > count(before);
}

/*
 * The seats of the next plan; 0: not yet, or `answer` refuses. A process that was restarted or
 * comes late is never refused: it waits for the others until its own timeout.
 */
static uint64_t next_members(const struct membership *membership, unsigned seat, uint64_t now,
                             struct answer *answer)
{
	uint64_t present = membership_waiting(membership, now), before = awaited(membership);
	uint64_t missing = before & ~present, fresh = restarted(membership);
	uint64_t waited =
		membership->since && now > membership->since ? now - membership->since : 0;
	bool may_refuse = !(fresh & bit(seat)) && before & bit(seat);
	char names[256];

	if (membership->policy == POLICY_FAIL && fresh && fresh != before &&
	    !membership_is_over(membership)) {
		/* A restarted process lacks the state that the others have. */
		if (may_refuse)
			refuse(answer,
			       "%s was restarted, and job %u fails if a rank is lost (policy fail)",
			       seats_describe(membership, fresh, names, sizeof(names)),
			       membership->job);
		return 0;
	}
	if (!missing)
		return present;
	if (waited > RANK_SILENT_NS && !(missing & ~membership->lost) &&
	    may_shrink(membership, present, missing))
		return present;
	if (waited <= grace(membership, present & before) || membership->policy == POLICY_WAIT)
		return 0;
	if (may_shrink(membership, present, missing))
		return present;
	if (may_refuse)
		refuse(answer, "%s of job %u %s within %.1f s (%u of %u have joined, policy %s)",
		       seats_describe(membership, missing, names, sizeof(names)), membership->job,
		       membership->generation ? "is lost: it did not come back" : "did not join",
		       (double)waited / 1e9, count(present & before), count(before),
		       policy_name(membership->policy));
	return 0;
}

void membership_wish(const struct membership *membership, uint64_t members, struct plan_wish *wish)
{
	*wish = (struct plan_wish){ .broken = membership->plan,
		                    .holds = membership->plan,
		                    .since = membership->since,
		                    .frugal = membership->frugal };
	for (uint64_t seats = members; seats; seats &= seats - 1) {
		const struct seat *seat = &membership->seats[__builtin_ctzll(seats)];

		wish->where[wish->ranks] = seat->where;
		wish->seats[wish->ranks] = seat->ring;
		wish->tcp |= seat->tcp ? bit(wish->ranks) : 0;
		wish->measured[wish->ranks] = seat->measured;
		wish->round[wish->ranks++] = seat->round;
		/* Aggregators grant the smallest pool that a rank asks for. */
		if (seat->pool_bytes && (!wish->pool_bytes || seat->pool_bytes < wish->pool_bytes))
			wish->pool_bytes = seat->pool_bytes;
	}
}

/* Is one of these processes not in the newest plan? */
static bool has_newcomers(const struct membership *membership, uint64_t members)
{
	for (uint64_t seats = members; seats; seats &= seats - 1)
		if (membership->seats[__builtin_ctzll(seats)].planned != membership->generation)
			return true;
	return members & ~membership->members;
}

/*
 * Do these members sum around a ring if no aggregator is available? They wait for one first, unless
 * there was none for the job's last plan either.
 */
static bool takes_ring(const struct membership *membership, const struct plan_wish *wish,
                       uint64_t patience, const struct world *world)
{
	for (unsigned r = 0; r < wish->ranks; r++)
		if (!wish->seats[r].family)
			return false;
	return world->rings ||
	       world->now >=
	               membership->since + (patience < RING_AFTER_NS ? patience : RING_AFTER_NS);
}

/* True: a new plan was made. */
static bool plan_next(struct membership *membership, uint64_t members, const struct world *world,
                      struct answer *answer)
{
	uint64_t patience = grace(membership, members);
	char plan[PLAN_TEXT_MAX];
	struct plan_wish wish;
	trib_status status;

	membership_wish(membership, members, &wish);
	wish.rings = takes_ring(membership, &wish, patience / 2, world);
	status = world->plan(world->context, &wish, plan);
	if (status != TRIB_OK) {
		if (status < 0 && world->now > membership->since + patience)
			refuse(answer, "%s", trib_last_error());
		return false;
	}
	snprintf(membership->plan, sizeof(membership->plan), "%s", plan);
	if (has_newcomers(membership, members))
		membership->same_since = membership->generation + 1;
	membership->generation++;
	membership->star = 0;
	membership->members = members;
	membership->since = 0;
	membership->lost = membership->left = 0;
	for (uint64_t seats = members; seats; seats &= seats - 1) {
		struct seat *seat = &membership->seats[__builtin_ctzll(seats)];

		seat->planned = membership->generation;
		seat->seen_at = world->now;
		seat->waits = false;
	}
	answer->changed = true;
	return true;
}

/*
 * A rank has a plan that this controller never made: the store is an old copy. Generations continue
 * from the rank's number. The ranks that ask are the members.
 */
static void catch_up(struct membership *membership, const struct ask *ask)
{
	membership->generation = 0;
	if (!membership->size)
		membership->size = ask->size;
	membership->members = awaited(membership);
	membership->generation = ask->generation;
	membership->star = 0;
	membership->same_since = 0;
	membership->since = 0;
	membership->plan[0] = '\0';
	memset(membership->seats, 0, sizeof(membership->seats));
}

void membership_leave(struct membership *membership, uint64_t nonce, uint64_t mask)
{
	for (unsigned i = 0; i < SEATS_MAX; i++) {
		struct seat *seat = &membership->seats[i];

		if (!seat->nonce || (seat->nonce & mask) != nonce)
			continue;
		membership->left |= membership->members & bit(i);
		memset(seat, 0, sizeof(*seat));
	}
}

void membership_see(struct membership *membership, unsigned rank, uint64_t then)
{
	uint64_t seats = membership->members;
	struct seat *seat;

	for (; rank && seats; rank--)
		seats &= seats - 1;
	if (!seats)
		return;
	seat = &membership->seats[__builtin_ctzll(seats)];
	/* A process that took the seat since the plan was not meant. */
	if (seat->planned == membership->generation && then > seat->seen_at)
		seat->seen_at = then;
}

/* A seat for a process without a rank: its own, or a free one. False: there is none. */
static bool seat_choose(const struct membership *membership, struct ask *ask)
{
	uint64_t awaits = awaited(membership);
	int own = seat_of(membership, ask);
	unsigned seat = 0;

	/* Before the first plan: an awaited seat. Later: a seat outside the plan. */
	while (seat < SEATS_MAX &&
	       (membership->seats[seat].nonce ||
	        (membership->generation ? awaits >> seat & 1 : !(awaits >> seat & 1))))
		seat++;
	ask->rank = own >= 0 ? (uint32_t)own : seat;
	ask->size = membership->size > ask->rank ? membership->size : ask->rank + 1;
	return ask->rank < SEATS_MAX;
}

/* Translates dead ranks, as numbered in the plan, to seats. */
static uint64_t lost_seats(const struct membership *membership, const struct ask *ask)
{
	uint64_t seats = 0, lost = ask->lost;

	if (!ask->generation || ask->generation != membership->generation)
		return 0;
	for (uint64_t left = membership->members; left; left &= left - 1, lost >>= 1)
		if (lost & 1)
			seats |= left & -left;
	return seats;
}

static void answer_plan(const struct membership *membership, unsigned seat, struct answer *answer)
{
	answer->kind = ANSWER_PLAN;
	answer->present = membership->members;
	answer->rank = count(membership->members & (bit(seat) - 1));
	answer->size = count(membership->members);
}

void membership_ask(struct membership *membership, const struct ask *asked,
                    const struct world *world, struct answer *answer)
{
	struct ask own = *asked, *ask = &own;
	uint64_t members;
	struct seat *seat;
	unsigned index;
	int found;

	memset(answer, 0, sizeof(*answer));
	if (ask->rank == SEAT_ANY && !seat_choose(membership, ask)) {
		refuse(answer, "job %u has no free seat for a process without a rank",
		       membership->job);
		return;
	}
	if (!ask->nonce || ask->rank >= ask->size || ask->size > SEATS_MAX ||
	    ask->generation >= GENERATION_MAX) {
		refuse(answer,
		       "invalid request: rank %u of %u, plan %u; a job has at most %u ranks",
		       ask->rank, ask->size, ask->generation, SEATS_MAX);
		return;
	}
	if (ask->generation > membership->generation)
		catch_up(membership, ask);
	found = seat_of(membership, ask);
	answer->present = membership_waiting(membership, world->now);
	if (found < 0 &&
	    (!is_possible(membership, ask, answer) || !seat_take(membership, ask, world, answer)))
		return;
	index = found < 0 ? ask->rank : (unsigned)found;
	seat = &membership->seats[index];
	seat_note(seat, ask, world->now);
	if (ask->generation == membership->generation && membership->members & bit(index))
		seat->planned = membership->generation;
	if (seat->planned && seat->planned == membership->generation &&
	    ask->generation < membership->generation) {
		answer_plan(membership, index, answer); /* the last answer was lost */
		return;
	}
	/* No awaited rank has asked lately: earlier ones gave up, and a new attempt begins. */
	if (!(answer->present & awaited(membership)))
		membership->since = membership->lost = 0;
	seat->waits = true;
	membership->lost |= lost_seats(membership, ask) & ~bit(index);
	if (!membership->since && (awaited(membership) & bit(index)))
		membership->since = world->now;
	answer->present = membership_waiting(membership, world->now);
	members = next_members(membership, index, world->now, answer);
	if (members && plan_next(membership, members, world, answer))
		answer_plan(membership, index, answer);
}
