/* SPDX-License-Identifier: Apache-2.0 */
#include "plane/stream/child_rates.h"

#include "base/log.h"
#include "plane/lane/link_share.h"
#include "plane/stream/parent_lane.h"

#include <math.h>

#define IDLE_AFTER_NS 4000000ull /* 4 ms: a child that has said "idle" and nothing else since */
#define SILENT_AFTER_NS 1200000000ull /* 1.2 s, two heartbeats: a lane that says nothing at all */

/* The lane becomes active or idle. The parent may have rates to share anew. */
static void work(struct thread *thread, struct agg_lane *lane, bool works, uint64_t active)
{
	struct lane_rates *own = &lane->rates;
	bool news = own->works != works;

	pthread_mutex_lock(&thread->aggregator->rates.lock);
	own->works = works;
	own->active = active;
	link_share_update_lane(thread, lane);
	if (news && own->has_parent)
		parent_lane_report_now(thread, lane);
}

void child_rates_wake(struct thread *thread, struct agg_lane *lane)
{
	lane->rates.idle = 0;
	work(thread, lane, true, 0);
}

/* A child that is an aggregator has waited itself before it said "idle". */
static void child_is_idle(struct thread *thread, struct agg_lane *lane, unsigned child)
{
	struct lane_rates *own = &lane->rates;
	uint64_t bit = child_bit(child);
	uint64_t at = thread->now + (lane->comm->children[child].join.height ? 0 : IDLE_AFTER_NS);

	if (!own->works || own->idle & bit)
		return;
	own->idle |= bit;
	own->idle_at[child] = at;
	if (at < thread->rates_at)
		thread->rates_at = at;
}

/*
 * When the first child sends, all others are expected to. Those that do not follow
 * soon are idle.
 */
static void child_sends(struct thread *thread, struct agg_lane *lane, unsigned child)
{
	struct lane_rates *own = &lane->rates;
	uint64_t bit = child_bit(child);

	own->idle &= ~bit;
	if (own->works && (own->active & bit))
		return;
	if (own->works) {
		work(thread, lane, true, own->active | bit);
		return;
	}
	own->idle = own->members & ~bit;
	for (unsigned i = 0; i < WIRE_CHILDREN_MAX; i++)
		own->idle_at[i] = thread->now + IDLE_AFTER_NS;
	if (thread->now + IDLE_AFTER_NS < thread->rates_at)
		thread->rates_at = thread->now + IDLE_AFTER_NS;
	work(thread, lane, true, own->members);
}

void child_rates_take_report(struct thread *thread, struct agg_lane *lane,
                             const struct wire_control *header)
{
	const struct wire_report *report = wire_payload(header);
	struct lane_rates *own = &lane->rates;
	unsigned child = header->child & 63;
	double want = report->want * RATE_UNIT;
	bool changed = losses_hear(&own->losses, child, thread->now, report->judged, report->lost);

	if (report->bits || !(header->flags & WIRE_AT_REST))
		own->seen_at = thread->now;
	if (header->flags & WIRE_AT_REST)
		child_is_idle(thread, lane, child);
	else
		child_sends(thread, lane, child);
	/* A change below 5 % is not shared. */
	changed |= fabs(want - own->want[child]) > 0.05 * own->want[child];
	if (!changed)
		return;
	pthread_mutex_lock(&thread->aggregator->rates.lock);
	own->want[child] = want;
	/* An aggregator's wish is what its own link can carry, which says nothing about shares. */
	if (want > 0 && !lane->comm->children[child].join.height)
		own->said |= child_bit(child);
	else
		own->said &= ~child_bit(child);
	if (own->losses.factor != own->factor)
		log_debug("job %u, lane %u: after losses, rates are %.0f %% of their share",
		          lane->comm->job, lane->index, own->losses.factor * 100);
	own->factor = own->losses.factor;
	link_share_update(thread->aggregator, thread->index);
}

/* Children that have said "idle" count as idle if they have not begun again since. */
static void look_at_idle(struct thread *thread, struct agg_lane *lane)
{
	struct lane_rates *own = &lane->rates;
	uint64_t idle = 0, active;

	for (uint64_t left = own->works ? own->idle : 0; left; left &= left - 1) {
		unsigned child = (unsigned)__builtin_ctzll(left);

		if (thread->now >= own->idle_at[child])
			idle |= child_bit(child);
		else if (own->idle_at[child] < thread->rates_at)
			thread->rates_at = own->idle_at[child];
	}
	active = own->active & ~idle;
	if (!idle || active == own->active)
		return;
	/* Small vectors are not announced: as long as packets arrive, the lane is active. */
	if (!active && thread->now < own->seen_at + IDLE_AFTER_NS) {
		if (own->seen_at + IDLE_AFTER_NS < thread->rates_at)
			thread->rates_at = own->seen_at + IDLE_AFTER_NS;
		return;
	}
	work(thread, lane, active != 0, active ? active : own->members);
}

void child_rates_look(struct thread *thread)
{
	struct link_rates *rates = &thread->aggregator->rates;

	if (thread->now >= thread->rates_at) {
		thread->rates_at = UINT64_MAX;
		for (unsigned id = 1; id < thread->ids; id++)
			if (thread->lanes[id])
				look_at_idle(thread, thread->lanes[id]);
	}
	if (thread->rates_seen == rates->serial)
		return;
	thread->rates_seen = rates->serial;
	for (unsigned id = 1; id < thread->ids; id++)
		if (thread->lanes[id] && thread->lanes[id]->rates.works)
			link_share_tell(thread, thread->lanes[id]);
}

void child_rates_tick(struct thread *thread)
{
	if (thread->index == 0)
		link_share_check_device(thread->aggregator, thread->now);
	for (unsigned id = 1; id < thread->ids; id++) {
		struct agg_lane *lane = thread->lanes[id];

		if (lane && lane->rates.works &&
		    thread->now > lane->rates.seen_at + SILENT_AFTER_NS)
			work(thread, lane, false, lane->rates.members);
	}
	thread->rates_at = thread->now; /* children that never report are looked at too */
	child_rates_look(thread);
}
