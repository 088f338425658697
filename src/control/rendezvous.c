/* SPDX-License-Identifier: Apache-2.0 */
#include "control/rendezvous.h"

#include "base/clock.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define SILENT_NS NSEC_PER_SEC     /* who waits asks many times within it */
#define LATE_NS (3 * NSEC_PER_SEC) /* so long may the word of an aggregator take to come */
#define GRACE_MAX (600 * NSEC_PER_SEC)
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

const char *seat_describe(const struct gathering *gathering, unsigned seat, char *out, size_t size)
{
	const struct seat *it = &gathering->seats[seat];

	if (it->host[0])
		snprintf(out, size, "rank %u (host %s, pid %u)", seat, it->host, it->pid);
	else
		snprintf(out, size, "rank %u", seat);
	return out;
}

/* The first few by name, and how many more. */
static const char *seats_describe(const struct gathering *gathering, uint64_t seats, char *out,
                                  size_t size)
{
	size_t used = 0;
	unsigned told = 0;
	char one[128];

	out[0] = '\0';
	for (; seats && told < 3; seats &= seats - 1, told++) {
		unsigned seat = (unsigned)__builtin_ctzll(seats);

		used += (size_t)snprintf(out + used, size - used, "%s%s", told ? ", " : "",
		                         seat_describe(gathering, seat, one, sizeof(one)));
		if (used >= size)
			return out;
	}
	if (seats)
		snprintf(out + used, size - used, " and %u more", count(seats));
	return out;
}

void gathering_start(struct gathering *gathering, uint16_t job, uint64_t key, enum policy policy,
                     uint32_t size, uint32_t min)
{
	memset(gathering, 0, sizeof(*gathering));
	gathering->job = job;
	gathering->key = key;
	gathering->policy = policy;
	gathering->size = size;
	gathering->min = min;
}

uint64_t gathering_waiting(const struct gathering *gathering, uint64_t now)
{
	uint64_t seats = 0;

	for (unsigned i = 0; i < SEATS_MAX; i++)
		if (gathering->seats[i].waits && now <= gathering->seats[i].asked_at + SILENT_NS)
			seats |= bit(i);
	return seats;
}

/* Members whose process is another one than that which got the newest plan. */
static uint64_t restarted(const struct gathering *gathering)
{
	uint64_t seats = 0;

	for (unsigned i = 0; i < SEATS_MAX; i++)
		if (gathering->seats[i].nonce &&
		    gathering->seats[i].planned != gathering->generation)
			seats |= bit(i);
	return gathering->generation ? seats & gathering->members & ~gathering->left : 0;
}

/*
 * Have all left, or, in a job that is to have the same processes from the first
 * to the last, some and the others died? Then who comes is another run of the job.
 */
static bool is_over(const struct gathering *gathering)
{
	uint64_t here = gathering->members & ~gathering->left;

	if (gathering->policy == POLICY_FAIL && gathering->left)
		here &= ~restarted(gathering);
	return !here;
}

/* Seats that the next plan waits for. */
static uint64_t awaited(const struct gathering *gathering)
{
	if (gathering->generation && !is_over(gathering))
		return gathering->members & ~gathering->left;
	return gathering->size >= SEATS_MAX ? ~0ull : bit(gathering->size) - 1;
}

/* ---- who asks ---- */

/* A process keeps its seat, whatever rank it has in a plan. */
static int seat_of(const struct gathering *gathering, const struct ask *ask)
{
	for (unsigned i = 0; i < SEATS_MAX; i++)
		if (gathering->seats[i].nonce == ask->nonce)
			return (int)i;
	return -1;
}

/* May a process that is new here have the seat that it asks for? False: it is answered. */
static bool is_possible(struct gathering *gathering, const struct ask *ask, struct answer *answer)
{
	/* Between the first plan and the end of the job, ranks may come that nobody waited for. */
	bool grows = gathering->policy != POLICY_FAIL && gathering->generation && !gathering->key;

	if (!gathering->size)
		gathering->size = ask->size;
	if (ask->size != gathering->size && !grows) {
		refuse(answer, "rank %u says that there are %u ranks, but job %u has %u", ask->rank,
		       ask->size, gathering->job, gathering->size);
		return false;
	}
	return true;
}

/* Does it know what only the process in this seat was told? Then it asks anew, that is all. */
static bool is_holder(const struct gathering *gathering, const struct seat *seat,
                      const struct ask *ask)
{
	return ask->generation && ask->generation == gathering->generation &&
	       seat->planned == gathering->generation && !seat->waits;
}

/*
 * Is the process that has it alive, for all that is known? One at work does not
 * ask; but aggregators hear of it, until others say that it is dead.
 */
static bool is_held(const struct gathering *gathering, unsigned index, const struct world *world)
{
	const struct seat *seat = &gathering->seats[index];

	if (!seat->nonce)
		return false;
	if (seat->asked_at && world->now <= seat->asked_at + SILENT_NS)
		return true;
	return seat->seen_at && world->now <= seat->seen_at + world->seen_ns &&
	       !(gathering->lost & bit(index));
}

/* A seat that another process has is given away when that one is silent. False: answered. */
static bool seat_take(struct gathering *gathering, const struct ask *ask, const struct world *world,
                      struct answer *answer)
{
	struct seat *seat = &gathering->seats[ask->rank];
	char text[128];

	if (is_holder(gathering, seat, ask)) {
		seat->nonce = ask->nonce;
		return true;
	}
	if (is_held(gathering, ask->rank, world)) {
		if (seat->rival != ask->nonce) {
			seat->rival = ask->nonce;
			seat->rival_since = world->now;
		}
		if (seat->asked_at > seat->rival_since ||
		    seat->seen_at > seat->rival_since + LATE_NS)
			refuse(answer, "%s is here already; job %u is not free",
			       seat_describe(gathering, ask->rank, text, sizeof(text)),
			       gathering->job);
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
	snprintf(seat->host, sizeof(seat->host), "%.*s", HOST_MAX - 1, ask->host);
	snprintf(seat->where, sizeof(seat->where), "%.*s", WHERE_MAX - 1, ask->where);
}

/* ---- the next plan ---- */

/* Half of the shortest deadline: what is said then still reaches everyone in time. */
static uint64_t grace(const struct gathering *gathering, uint64_t present)
{
	uint64_t least = GRACE_MAX;

	for (uint64_t seats = present; seats; seats &= seats - 1) {
		const struct seat *seat = &gathering->seats[__builtin_ctzll(seats)];
		uint64_t half = (uint64_t)seat->timeout_ms * 1000000 / 2;

		least = half < least ? half : least;
	}
	return least;
}

/*
 * Those who are not here may be left out only if they are known to be dead, or
 * are the fewer. Otherwise a single rank that has lost its way would go on
 * alone while the others work.
 */
static bool may_shrink(const struct gathering *gathering, uint64_t present, uint64_t missing)
{
	uint64_t before = awaited(gathering);

	if (gathering->policy != POLICY_SHRINK || count(present) < gathering->min)
		return false;
	return !(missing & ~gathering->lost) || 2 * count(present & before) > count(before);
}

/*
 * Who will be in the next plan; 0: not yet, or never, and then the answer says
 * why. A process that was started again, or that comes late, is never refused:
 * it waits for the others until its own deadline.
 */
static uint64_t next_members(const struct gathering *gathering, unsigned seat, uint64_t now,
                             struct answer *answer)
{
	uint64_t present = gathering_waiting(gathering, now), before = awaited(gathering);
	uint64_t missing = before & ~present, fresh = restarted(gathering);
	uint64_t waited = gathering->since && now > gathering->since ? now - gathering->since : 0;
	bool may_refuse = !(fresh & bit(seat)) && before & bit(seat);
	char names[256];

	if (gathering->policy == POLICY_FAIL && fresh && fresh != before && !is_over(gathering)) {
		/* A process that was started again does not have what the others have. */
		if (may_refuse)
			refuse(answer,
			       "%s has been started again, and job %u is to fail when a rank is "
			       "lost (policy fail)",
			       seats_describe(gathering, fresh, names, sizeof(names)),
			       gathering->job);
		return 0;
	}
	if (!missing)
		return present;
	if (waited > SILENT_NS && !(missing & ~gathering->lost) &&
	    may_shrink(gathering, present, missing))
		return present;
	if (waited <= grace(gathering, present & before) || gathering->policy == POLICY_WAIT)
		return 0;
	if (may_shrink(gathering, present, missing))
		return present;
	if (may_refuse)
		refuse(answer, "%s of job %u %s within %.1f s (%u of %u are here, policy %s)",
		       seats_describe(gathering, missing, names, sizeof(names)), gathering->job,
		       gathering->generation ? "is lost: it has not come back" : "has not come",
		       (double)waited / 1e9, count(present & before), count(before),
		       policy_name(gathering->policy));
	return 0;
}

void gathering_wish(const struct gathering *gathering, uint64_t members, struct plan_wish *wish)
{
	*wish = (struct plan_wish){ .broken = gathering->plan,
		                    .holds = gathering->plan,
		                    .since = gathering->since,
		                    .frugal = gathering->frugal };
	for (uint64_t seats = members; seats; seats &= seats - 1) {
		const struct seat *seat = &gathering->seats[__builtin_ctzll(seats)];

		wish->where[wish->ranks] = seat->where;
		wish->tcp |= seat->tcp ? bit(wish->ranks) : 0;
		wish->measured[wish->ranks] = seat->measured;
		wish->round[wish->ranks++] = seat->round;
		/* Aggregators give what the most modest one asks for. */
		if (seat->pool_bytes && (!wish->pool_bytes || seat->pool_bytes < wish->pool_bytes))
			wish->pool_bytes = seat->pool_bytes;
	}
}

/* Is a process among them that the newest plan was not given to? */
static bool has_newcomers(const struct gathering *gathering, uint64_t members)
{
	for (uint64_t seats = members; seats; seats &= seats - 1)
		if (gathering->seats[__builtin_ctzll(seats)].planned != gathering->generation)
			return true;
	return members & ~gathering->members;
}

/* True: there is a new plan. */
static bool plan_next(struct gathering *gathering, uint64_t members, const struct world *world,
                      struct answer *answer)
{
	char plan[PLAN_TEXT_MAX];
	struct plan_wish wish;
	trib_status status;

	gathering_wish(gathering, members, &wish);
	status = world->plan(world->context, &wish, plan);
	if (status != TRIB_OK) {
		if (status < 0 && world->now > gathering->since + grace(gathering, members))
			refuse(answer, "%s", trib_last_error());
		return false;
	}
	snprintf(gathering->plan, sizeof(gathering->plan), "%s", plan);
	if (has_newcomers(gathering, members))
		gathering->same_since = gathering->generation + 1;
	gathering->generation++;
	gathering->star = 0;
	gathering->members = members;
	gathering->since = 0;
	gathering->lost = gathering->left = 0;
	for (uint64_t seats = members; seats; seats &= seats - 1) {
		struct seat *seat = &gathering->seats[__builtin_ctzll(seats)];

		seat->planned = gathering->generation;
		seat->seen_at = world->now;
		seat->waits = false;
	}
	answer->changed = true;
	return true;
}

/*
 * A rank has had a plan that this controller never made: its store is an old
 * copy. Numbers go on from what ranks have seen, and who is in will be seen.
 */
static void catch_up(struct gathering *gathering, const struct ask *ask)
{
	gathering->generation = 0;
	if (!gathering->size)
		gathering->size = ask->size;
	gathering->members = awaited(gathering);
	gathering->generation = ask->generation;
	gathering->star = 0;
	gathering->same_since = 0;
	gathering->since = 0;
	gathering->plan[0] = '\0';
	memset(gathering->seats, 0, sizeof(gathering->seats));
}

void gathering_leave(struct gathering *gathering, uint64_t nonce, uint64_t mask)
{
	for (unsigned i = 0; i < SEATS_MAX; i++) {
		struct seat *seat = &gathering->seats[i];

		if (!seat->nonce || (seat->nonce & mask) != nonce)
			continue;
		gathering->left |= gathering->members & bit(i);
		memset(seat, 0, sizeof(*seat));
	}
}

void gathering_see(struct gathering *gathering, unsigned rank, uint64_t then)
{
	uint64_t seats = gathering->members;
	struct seat *seat;

	for (; rank && seats; rank--)
		seats &= seats - 1;
	if (!seats)
		return;
	seat = &gathering->seats[__builtin_ctzll(seats)];
	/* Another process that has the seat by now is not the one in the plan. */
	if (seat->planned == gathering->generation && then > seat->seen_at)
		seat->seen_at = then;
}

/* The seat of a process that asks for none: its own, or a free one. False: there is none. */
static bool seat_choose(const struct gathering *gathering, struct ask *ask)
{
	uint64_t awaits = awaited(gathering);
	int own = seat_of(gathering, ask);
	unsigned seat = 0;

	/* Before the first plan, one that is waited for; then, one that nobody has. */
	while (seat < SEATS_MAX &&
	       (gathering->seats[seat].nonce ||
	        (gathering->generation ? awaits >> seat & 1 : !(awaits >> seat & 1))))
		seat++;
	ask->rank = own >= 0 ? (uint32_t)own : seat;
	ask->size = gathering->size > ask->rank ? gathering->size : ask->rank + 1;
	return ask->rank < SEATS_MAX;
}

/* Who asks counts ranks as its plan does. */
static uint64_t lost_seats(const struct gathering *gathering, const struct ask *ask)
{
	uint64_t seats = 0, lost = ask->lost;

	if (!ask->generation || ask->generation != gathering->generation)
		return 0;
	for (uint64_t left = gathering->members; left; left &= left - 1, lost >>= 1)
		if (lost & 1)
			seats |= left & -left;
	return seats;
}

static void answer_plan(const struct gathering *gathering, unsigned seat, struct answer *answer)
{
	answer->kind = ANSWER_PLAN;
	answer->present = gathering->members;
	answer->rank = count(gathering->members & (bit(seat) - 1));
	answer->size = count(gathering->members);
}

void gathering_ask(struct gathering *gathering, const struct ask *asked, const struct world *world,
                   struct answer *answer)
{
	struct ask own = *asked, *ask = &own;
	uint64_t members;
	struct seat *seat;
	unsigned index;
	int found;

	memset(answer, 0, sizeof(*answer));
	if (ask->rank == SEAT_ANY && !seat_choose(gathering, ask)) {
		refuse(answer, "job %u has no seat for a process without a rank", gathering->job);
		return;
	}
	if (!ask->nonce || ask->rank >= ask->size || ask->size > SEATS_MAX ||
	    ask->generation >= GENERATION_MAX) {
		refuse(answer,
		       "rank %u of %u is no rank, or %u no plan; a job has at most %u ranks",
		       ask->rank, ask->size, ask->generation, SEATS_MAX);
		return;
	}
	if (ask->generation > gathering->generation)
		catch_up(gathering, ask);
	found = seat_of(gathering, ask);
	answer->present = gathering_waiting(gathering, world->now);
	if (found < 0 &&
	    (!is_possible(gathering, ask, answer) || !seat_take(gathering, ask, world, answer)))
		return;
	index = found < 0 ? ask->rank : (unsigned)found;
	seat = &gathering->seats[index];
	seat_note(seat, ask, world->now);
	if (ask->generation == gathering->generation && gathering->members & bit(index))
		seat->planned = gathering->generation;
	if (seat->planned && seat->planned == gathering->generation &&
	    ask->generation < gathering->generation) {
		answer_plan(gathering, index, answer); /* again: the last answer was lost */
		return;
	}
	/* Nobody has waited lately: who did has given up, and this is another attempt. */
	if (!(answer->present & awaited(gathering)))
		gathering->since = gathering->lost = 0;
	seat->waits = true;
	gathering->lost |= lost_seats(gathering, ask) & ~bit(index);
	if (!gathering->since && (awaited(gathering) & bit(index)))
		gathering->since = world->now;
	answer->present = gathering_waiting(gathering, world->now);
	members = next_members(gathering, index, world->now, answer);
	if (members && plan_next(gathering, members, world, answer))
		answer_plan(gathering, index, answer);
}
