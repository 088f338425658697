/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How fast children may send (XAgg §IV-C). All lanes that are at work share
 * the aggregator's link: what children bring, and the results that come from
 * a parent. A parent's answer bounds what is given on. Looked at when a lane
 * begins or ends to work, at each tick, and when a parent has answered; never
 * per packet.
 */
#include "plane/core/internal.h"

#include "base/clock.h"
#include "plan/rates.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define USED 0.96            /* of a link: frames have headers, and reports want through */
#define UNIT 1024.0          /* of rates on the wire, bit/s */
#define PERIOD_NS 100000000u /* over which losses are counted */
#define IDLE_NS 300000000u   /* a lane without packets for so long is at rest */
#define ENOUGH 200u          /* packets to judge by */
#define LEAST 0.05           /* of its share, whatever a child loses */
#define GROWTH 1.05          /* after a period without losses */

static double device_rate(const char *interface)
{
	char path[128];
	double mbit = 0;
	FILE *file;

	/* What has no device behind it says any speed. */
	snprintf(path, sizeof(path), "/sys/class/net/%.32s/device/uevent", interface);
	file = fopen(path, "re");
	if (!file)
		return 0;
	fclose(file);
	snprintf(path, sizeof(path), "/sys/class/net/%.32s/speed", interface);
	file = fopen(path, "re");
	if (!file)
		return 0;
	if (fscanf(file, "%lf", &mbit) != 1 || mbit < 1)
		mbit = 0;
	fclose(file);
	return mbit * 1e6;
}

/* The share of each child of each lane that works, and of each parent's results. */
static unsigned list_children(const struct rates *rates, struct rate_child *children)
{
	unsigned n = 0;

	for (const struct lane_rates *lane = rates->lanes; lane; lane = lane->next) {
		if (!lane->works || n + WIRE_CHILDREN_MAX + 1 > RATES_CHILDREN_MAX)
			continue;
		for (uint64_t left = lane->members; left; left &= left - 1) {
			unsigned child = (unsigned)__builtin_ctzll(left);
			double most = lane->want[child] > 0 ? lane->want[child] : INFINITY;

			if (lane->above > 0)
				most = fmin(most, lane->above);
			children[n++] = (struct rate_child){ .max = most, .active = true };
		}
		if (lane->has_parent)
			children[n++] = (struct rate_child){ .max = lane->above > 0 ? lane->above
				                                                    : INFINITY,
				                             .active = true };
	}
	return n;
}

/* With the lock. */
static void share(struct rates *rates)
{
	unsigned n = list_children(rates, rates->children), at = 0;

	rates->serial++;
	rates_share(rates->capacity * USED, INFINITY, rates->children, n, rates->given);
	for (struct lane_rates *lane = rates->lanes; lane; lane = lane->next) {
		if (!lane->works || at + WIRE_CHILDREN_MAX + 1 > RATES_CHILDREN_MAX)
			continue;
		for (uint64_t left = lane->members; left; left &= left - 1) {
			unsigned child = (unsigned)__builtin_ctzll(left);

			lane->given[child] = rates->given[at++] * lane->factor[child];
		}
		at += lane->has_parent;
	}
}

void rates_open(struct aggregator *aggregator, struct lane *lane)
{
	struct rates *rates = &aggregator->rates;
	struct lane_rates *own = &lane->rates;
	char interface[64];
	struct udp_address local;
	const struct comm *comm = lane->comm;

	own->members = lane->dense->members;
	own->has_parent = lane->dense->has_parent;
	own->works = true; /* soon: it is told before it begins */
	own->seen_at = comm->created_at;
	for (unsigned child = 0; child < WIRE_CHILDREN_MAX; child++)
		own->factor[child] = 1;
	pthread_mutex_lock(&rates->lock);
	if (!(rates->capacity > 0) && !rates->looked) {
		rates->looked = true;
		if (udp_route(&comm->children[__builtin_ctzll(comm->present)].address, &local,
		              interface, sizeof(interface)) == TRIB_OK)
			rates->capacity = device_rate(interface);
	}
	own->next = rates->lanes;
	rates->lanes = own;
	own->listed = true;
	if (rates->capacity > 0)
		share(rates);
	pthread_mutex_unlock(&rates->lock);
}

void rates_close(struct aggregator *aggregator, struct lane *lane)
{
	struct rates *rates = &aggregator->rates;

	if (!lane->rates.listed)
		return;
	pthread_mutex_lock(&rates->lock);
	for (struct lane_rates **at = &rates->lanes; *at; at = &(*at)->next)
		if (*at == &lane->rates) {
			*at = lane->rates.next;
			break;
		}
	if (rates->capacity > 0)
		share(rates);
	pthread_mutex_unlock(&rates->lock);
}

static uint32_t on_wire(double rate)
{
	return rate > 0 && rate < UINT32_MAX * UNIT ? (uint32_t)fmax(rate / UNIT, 1) : 0;
}

void rates_fill(struct thread *thread, struct lane *lane, unsigned child,
                struct wire_status *status)
{
	struct rates *rates = &thread->aggregator->rates;

	struct lane_rates *own = &lane->rates;

	if (!(rates->capacity > 0) && !(own->above > 0))
		return;
	if (own->copied != rates->serial) { /* not with every packet */
		pthread_mutex_lock(&rates->lock);
		own->copied = rates->serial;
		memcpy(own->copy, own->given, sizeof(own->copy));
		pthread_mutex_unlock(&rates->lock);
	}
	status->rate = on_wire(rates->capacity > 0 ? own->copy[child] : own->above);
	status->serial = own->copied;
}

/* To every child of the lane: its rate, at once. */
static void tell(struct thread *thread, struct lane *lane)
{
	lane->rates.told = thread->aggregator->rates.serial;
	for (uint64_t to = lane->known & ~lane->dense->left; to; to &= to - 1) {
		unsigned child = (unsigned)__builtin_ctzll(to);
		struct {
			struct wire_header header;
			struct wire_status status;
		} packet = { .header = wire_answer(lane->comm, lane, WIRE_STATUS, (uint8_t)child) };

		packet.header.pos = wire_pos(lane->index, lane->dense->ack[child]);
		packet.status.low = lane->dense->low;
		rates_fill(thread, lane, child, &packet.status);
		thread_send(thread, &packet, sizeof(packet), &lane->addresses[child]);
	}
}

/* With the lock held, which is given back: something has changed. */
static void update(struct thread *thread, struct lane *lane)
{
	struct rates *rates = &thread->aggregator->rates;

	if (rates->capacity > 0)
		share(rates);
	pthread_mutex_unlock(&rates->lock);
	if (rates->capacity > 0 || lane->rates.above > 0)
		tell(thread, lane);
}

void rates_wake(struct thread *thread, struct lane *lane)
{
	pthread_mutex_lock(&thread->aggregator->rates.lock);
	lane->rates.works = true;
	update(thread, lane);
}

void rates_hear(struct thread *thread, struct lane *lane, unsigned child,
                const struct wire_report *report)
{
	double want = report->want * UNIT;
	struct lane_rates *own = &lane->rates;

	if (report->bits)
		own->seen_at = thread->now;
	if (!(thread->aggregator->rates.capacity > 0))
		return;
	if (report->bits && !own->works)
		rates_wake(thread, lane);
	/* Small changes are not worth everybody's attention. */
	if (fabs(want - own->want[child]) <= 0.05 * own->want[child])
		return;
	pthread_mutex_lock(&thread->aggregator->rates.lock);
	own->want[child] = want;
	update(thread, lane);
}

void rates_from_parent(struct thread *thread, struct lane *lane, const struct wire_status *status)
{
	struct lane_rates *own = &lane->rates;

	if (!status->serial || !rates_is_newer(status->serial, own->above_serial))
		return;
	own->above_serial = status->serial;
	if (fabs(status->rate * UNIT - own->above) <= 0.01 * own->above)
		return;
	pthread_mutex_lock(&thread->aggregator->rates.lock);
	own->above = status->rate * UNIT;
	if (!(thread->aggregator->rates.capacity > 0))
		thread->aggregator->rates.serial++;
	update(thread, lane);
}

double rates_given(struct aggregator *aggregator, const struct lane *lane, unsigned child)
{
	double given;

	pthread_mutex_lock(&aggregator->rates.lock);
	given = aggregator->rates.capacity > 0 ? lane->rates.given[child] : lane->rates.above;
	pthread_mutex_unlock(&aggregator->rates.lock);
	return given;
}

uint32_t rates_want(const struct thread *thread, const struct lane *lane)
{
	const struct lane_rates *own = &lane->rates;
	double capacity = thread->aggregator->rates.capacity;
	double slowest = INFINITY;

	/* What this one could pass on, were the parent no bound. */
	for (uint64_t left = own->members; left; left &= left - 1) {
		double want = own->want[__builtin_ctzll(left)];

		slowest = want > 0 ? fmin(slowest, want) : slowest;
	}
	if (capacity > 0)
		slowest = fmin(slowest, capacity * USED / (__builtin_popcountll(own->members) + 1));
	return on_wire(slowest);
}

/* Who lost much in the last period slows down; who lost nothing grows back to its share. */
static double judge_losses(struct lane_rates *own, unsigned child)
{
	bool enough = own->packets[child] >= ENOUGH;
	double loss = enough ? (double)own->again[child] / own->packets[child] : 0;
	double factor = rates_after_loss(own->factor[child], loss);

	own->packets[child] = own->again[child] = 0;
	if (enough && factor == own->factor[child])
		factor = fmin(factor * GROWTH, 1);
	return fmax(factor, LEAST);
}

void rates_tick(struct thread *thread, struct lane *lane)
{
	struct rates *rates = &thread->aggregator->rates;
	struct lane_rates *own = &lane->rates;
	bool rests = own->works && thread->now > own->seen_at + IDLE_NS, changed = rests;

	if (!(rates->capacity > 0))
		return;
	pthread_mutex_lock(&rates->lock);
	if (rests)
		own->works = false;
	for (uint64_t left = own->members; left && thread->now > own->period_at + PERIOD_NS;
	     left &= left - 1) {
		unsigned child = (unsigned)__builtin_ctzll(left);
		double factor = judge_losses(own, child);

		changed |= fabs(factor - own->factor[child]) > 0.01;
		own->factor[child] = factor;
	}
	if (thread->now > own->period_at + PERIOD_NS)
		own->period_at = thread->now;
	if (changed) {
		update(thread, lane);
		return;
	}
	pthread_mutex_unlock(&rates->lock);
	if (own->works && own->told != rates->serial)
		tell(thread, lane); /* another lane has changed what is left for this one */
}
