/* SPDX-License-Identifier: Apache-2.0 */
#include "plane/lane/link_share.h"
#include "plane/lane/lane_kind.h"

#include "base/clock.h"
#include "base/log.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define USED 0.96             /* usable part of a link: the rest is for headers and reports */
#define BEGIN_NS 300000000ull /* 300 ms: a child that has joined is about to send */
#define LOOK_NS NSEC_PER_SEC  /* between two looks at the device's speed */
#define SMALL 0.01            /* part of a rate: a smaller change is not told */

static double device_rate(const char *interface)
{
	char path[128];
	double mbit = 0;
	FILE *file;

	/* Virtual interfaces report arbitrary speeds. */
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

static uint32_t on_wire(double rate)
{
	return rate > 0 && rate < UINT32_MAX * RATE_UNIT ? (uint32_t)fmax(rate / RATE_UNIT, 1) : 0;
}

/* Children that count: those that send, or all if none has said so. */
static uint64_t senders(const struct lane_rates *lane)
{
	uint64_t there = lane->members & ~lane->gone;

	if (!lane->works)
		return 0;
	return lane->active & there ? lane->active & there : there;
}

/* Streams of the lane on the link. `all`: as if every child were active. */
static unsigned streams(const struct lane_rates *lane, bool all)
{
	uint64_t who = all ? lane->members & ~lane->gone : senders(lane);

	return all || lane->works ? (unsigned)__builtin_popcountll(who) + lane->has_parent : 0;
}

/* Do both lanes belong to one communicator, in the same tree or in two? */
static bool are_one(const struct lane_rates *a, const struct lane_rates *b)
{
	return a->comm->job == b->comm->job && a->comm->key == b->comm->key &&
	       a->comm->generation == b->comm->generation;
}

/*
 * A vector is done when its last stripe is, so trees of different shares need
 * different rates. No packet carries a tree's share, but the rates a rank wants in
 * its trees are in proportion to the shares. So a rank that is in all trees here
 * tells the weights of all. A communicator weighs as much as it has streams, so
 * others get neither more nor less.
 */
static double lane_weight(const struct link_rates *rates, const struct lane_rates *lane, bool all)
{
	uint64_t both = lane->said;
	double wants = 0, n = 0;
	unsigned rank;

	for (const struct lane_rates *other = rates->lanes; other && both; other = other->next)
		if ((all || other->works) && are_one(lane, other))
			both &= other->said;
	if (!both)
		return 1;
	rank = (unsigned)__builtin_ctzll(both);
	for (const struct lane_rates *other = rates->lanes; other; other = other->next) {
		if (!are_one(lane, other))
			continue;
		n += streams(other, all);
		wants += streams(other, all) * other->want[rank];
	}
	return lane->want[rank] * n / wants;
}

/* Bounded by the child's own limit, and by the rate at which sums go on to the parent. */
static double child_most(const struct lane_rates *lane, unsigned child)
{
	double most = lane->want[child] > 0 ? lane->want[child] : INFINITY;

	return lane->above > 0 ? fmin(most, lane->above) : most;
}

/* Lists each child that sends, and each parent's results, as sharers of the link. */
static unsigned list_children(const struct link_rates *rates, struct rate_child *children)
{
	unsigned n = 0;

	for (const struct lane_rates *lane = rates->lanes; lane; lane = lane->next) {
		uint64_t left = senders(lane);
		double weight;

		if (!left || n + WIRE_CHILDREN_MAX + 1 > RATES_CHILDREN_MAX)
			continue;
		weight = lane_weight(rates, lane, false);
		for (; left; left &= left - 1) {
			unsigned child = (unsigned)__builtin_ctzll(left);

			children[n++] = (struct rate_child){ .max = child_most(lane, child),
				                             .weight = weight,
				                             .active = true };
		}
		if (lane->has_parent)
			children[n++] = (struct rate_child){ .max = lane->above > 0 ? lane->above
				                                                    : INFINITY,
				                             .weight = weight,
				                             .active = true };
	}
	return n;
}

static void give(struct lane_rates *lane, const double *given)
{
	for (uint64_t left = senders(lane); left; left &= left - 1)
		lane->given[__builtin_ctzll(left)] = *given++ * lane->factor;
}

/* Streams of the lane's communicator that are idle now. */
static unsigned streams_idle(const struct link_rates *rates, const struct lane_rates *lane)
{
	unsigned n = 0;

	for (const struct lane_rates *other = rates->lanes; other; other = other->next)
		if (are_one(lane, other))
			n += streams(other, true) - streams(other, false);
	return n;
}

/*
 * An idle child is given what would be left for it if all idle streams began. They
 * do so together, when a sum is done that all of them waited for. With more, they
 * would overflow the link until every child has been told less. `n` streams share
 * the link now.
 */
static void give_idle(const struct link_rates *rates, struct lane_rates *lane, unsigned n)
{
	uint64_t left = lane->members & ~lane->gone & ~senders(lane);
	double share;

	if (!left)
		return;
	share = rates->capacity * USED * lane_weight(rates, lane, true) /
	        (n + streams_idle(rates, lane));
	for (; left; left &= left - 1) {
		unsigned child = (unsigned)__builtin_ctzll(left);

		lane->given[child] = fmin(share, child_most(lane, child)) * lane->factor;
	}
}

/* Called with the lock. `idle`: an idle lane whose children are to know their rate; NULL: none. */
static void share(struct aggregator *aggregator, struct lane_rates *idle)
{
	struct link_rates *rates = &aggregator->rates;
	unsigned n, at = 0;

	rates->serial++;
	if (!(rates->capacity > 0))
		return;
	n = list_children(rates, rates->children);
	rates_share(rates->capacity * USED, INFINITY, rates->children, n, rates->given);
	for (struct lane_rates *lane = rates->lanes; lane; lane = lane->next) {
		if (!senders(lane) || at + WIRE_CHILDREN_MAX + 1 > RATES_CHILDREN_MAX)
			continue;
		give(lane, rates->given + at);
		give_idle(rates, lane, n);
		at += streams(lane, false);
	}
	if (idle)
		give_idle(rates, idle, n);
}

/* Called without the lock: the other threads tell their own children. */
static void wake_others(struct aggregator *aggregator, unsigned but)
{
	for (unsigned i = 0; i < aggregator->n_threads; i++)
		if (i != but)
			thread_wake(&aggregator->threads[i]);
}

void link_share_update(struct aggregator *aggregator, unsigned by)
{
	share(aggregator, NULL);
	pthread_mutex_unlock(&aggregator->rates.lock);
	wake_others(aggregator, by);
}

/* If no rate was configured, reads the speed of the device that leads to the children. */
static void find_capacity(struct link_rates *rates, const struct comm *comm)
{
	struct udp_address local;

	if (rates->capacity > 0 || rates->looked)
		return;
	rates->looked = true;
	if (udp_route(&comm->children[__builtin_ctzll(comm->present)].address, &local,
	              rates->interface, sizeof(rates->interface)) == TRIB_OK)
		rates->capacity = device_rate(rates->interface);
	if (!(rates->capacity > 0))
		rates->interface[0] = '\0';
}

void link_share_open(struct aggregator *aggregator, struct agg_lane *lane)
{
	struct link_rates *rates = &aggregator->rates;
	struct lane_rates *own = &lane->rates;
	const struct comm *comm = lane->comm;

	own->comm = comm;
	own->members = own->active = own->idle = lane->comm->present;
	own->has_parent = lane->comm->has_parent;
	own->above = comm->parent.rate * RATE_UNIT;
	losses_init(&own->losses);
	own->factor = 1;
	own->works = true; /* children know their rate before they begin */
	own->seen_at = comm->created_at;
	for (unsigned child = 0; child < WIRE_CHILDREN_MAX; child++)
		own->idle_at[child] = comm->created_at + BEGIN_NS;
	pthread_mutex_lock(&rates->lock);
	find_capacity(rates, comm);
	own->next = rates->lanes;
	rates->lanes = own;
	own->listed = true;
	share(aggregator, NULL);
	/* Children learn this rate from the WELCOME. */
	for (unsigned child = 0; child < WIRE_CHILDREN_MAX && rates->capacity > 0; child++)
		own->told[child] = on_wire(own->given[child]);
	pthread_mutex_unlock(&rates->lock);
	wake_others(aggregator, 0);
}

void link_share_close(struct aggregator *aggregator, struct agg_lane *lane)
{
	struct link_rates *rates = &aggregator->rates;

	if (!lane->rates.listed)
		return;
	pthread_mutex_lock(&rates->lock);
	for (struct lane_rates **at = &rates->lanes; *at; at = &(*at)->next)
		if (*at == &lane->rates) {
			*at = lane->rates.next;
			break;
		}
	link_share_update(aggregator, THREADS_MAX);
}

void link_share_leave(struct aggregator *aggregator, const struct comm *comm, unsigned child)
{
	struct link_rates *rates = &aggregator->rates;
	bool news = false;

	pthread_mutex_lock(&rates->lock);
	for (struct lane_rates *lane = rates->lanes; lane; lane = lane->next)
		if (lane->comm == comm && !(lane->gone & child_bit(child))) {
			lane->gone |= child_bit(child);
			news = true;
		}
	if (news)
		link_share_update(aggregator, 0);
	else
		pthread_mutex_unlock(&rates->lock);
}

/* The child's rate, as on the wire. The lock is taken only after a new sharing. */
static uint32_t rate_of(struct thread *thread, struct agg_lane *lane, unsigned child)
{
	struct link_rates *rates = &thread->aggregator->rates;
	struct lane_rates *own = &lane->rates;

	if (own->copied != rates->serial) {
		pthread_mutex_lock(&rates->lock);
		own->copied = rates->serial;
		memcpy(own->copy, own->given, sizeof(own->copy));
		pthread_mutex_unlock(&rates->lock);
	}
	return on_wire(rates->capacity > 0 ? own->copy[child] : own->above);
}

void link_share_fill(struct thread *thread, struct agg_lane *lane, unsigned child,
                     struct wire_status *status)
{
	if (!(thread->aggregator->rates.capacity > 0) && !(lane->rates.above > 0))
		return;
	status->rate = lane->rates.told[child] = rate_of(thread, lane, child);
	status->serial = lane->rates.copied;
}

uint32_t link_share_first(struct aggregator *aggregator, const struct comm *comm, unsigned child)
{
	struct link_rates *rates = &aggregator->rates;
	double least = INFINITY;

	pthread_mutex_lock(&rates->lock);
	for (const struct lane_rates *lane = rates->lanes; lane; lane = lane->next)
		if (lane->comm == comm && rates->capacity > 0)
			least = fmin(least, lane->given[child]);
	pthread_mutex_unlock(&rates->lock);
	return isfinite(least) ? on_wire(least) : comm->parent.rate;
}

static bool is_small(uint32_t a, uint32_t b)
{
	return fabs((double)a - b) <= SMALL * b;
}

void link_share_tell(struct thread *thread, struct agg_lane *lane)
{
	struct lane_rates *own = &lane->rates;

	for (uint64_t to = lane->known & ~lane->left; to; to &= to - 1) {
		unsigned child = (unsigned)__builtin_ctzll(to);
		struct status_packet packet = { .header = wire_answer(lane->comm, lane, WIRE_STATUS,
			                                              (uint8_t)child) };

		if (is_small(rate_of(thread, lane, child), own->told[child]))
			continue;
		packet.header.pos = wire_pos(lane->index, lane->does->done(lane, child));
		packet.status.low = lane->does->low(lane);
		packet.header.ack = (uint32_t)packet.status.low;
		link_share_fill(thread, lane, child, &packet.status);
		thread_send(thread, &packet, wire_cut(&packet), &lane->addresses[child]);
	}
}

void link_share_update_lane(struct thread *thread, struct agg_lane *lane)
{
	bool idle = !lane->rates.works;

	share(thread->aggregator, idle ? &lane->rates : NULL);
	pthread_mutex_unlock(&thread->aggregator->rates.lock);
	wake_others(thread->aggregator, thread->index);
	if (idle)
		link_share_tell(thread, lane);
}

bool link_share_from_parent(struct thread *thread, struct agg_lane *lane,
                            const struct wire_status *status)
{
	struct lane_rates *own = &lane->rates;
	bool fell;

	if (!status->serial || !rates_is_newer(status->serial, own->above_serial))
		return false;
	own->above_serial = status->serial;
	if (fabs(status->rate * RATE_UNIT - own->above) <= 0.01 * own->above)
		return false;
	fell = status->rate && (!(own->above > 0) || status->rate * RATE_UNIT < own->above);
	pthread_mutex_lock(&thread->aggregator->rates.lock);
	own->above = status->rate * RATE_UNIT;
	link_share_update_lane(thread, lane);
	return fell;
}

double link_share_given(struct aggregator *aggregator, const struct agg_lane *lane, unsigned child)
{
	double given;

	pthread_mutex_lock(&aggregator->rates.lock);
	given = aggregator->rates.capacity > 0 ? lane->rates.given[child] : lane->rates.above;
	pthread_mutex_unlock(&aggregator->rates.lock);
	return given;
}

uint32_t link_share_want(const struct thread *thread, const struct agg_lane *lane)
{
	const struct lane_rates *own = &lane->rates;
	double capacity = thread->aggregator->rates.capacity;
	double slowest = INFINITY;

	/* What this aggregator could pass on if the parent set no limit. */
	for (uint64_t left = own->members; left; left &= left - 1) {
		double want = own->want[__builtin_ctzll(left)];

		slowest = want > 0 ? fmin(slowest, want) : slowest;
	}
	if (capacity > 0)
		slowest = fmin(slowest, capacity * USED / (__builtin_popcountll(own->members) + 1));
	return on_wire(slowest);
}

/* A device may negotiate another speed. */
void link_share_check_device(struct aggregator *aggregator, uint64_t now)
{
	struct link_rates *rates = &aggregator->rates;
	double capacity;

	if (!rates->interface[0] || now < rates->look_at)
		return;
	rates->look_at = now + LOOK_NS;
	capacity = device_rate(rates->interface);
	if (!(capacity > 0) || capacity == rates->capacity)
		return;
	log_notice("the speed of %s is now %.0f Mb/s; it was %.0f Mb/s", rates->interface,
	           capacity / 1e6, rates->capacity / 1e6);
	pthread_mutex_lock(&rates->lock);
	rates->capacity = capacity;
	link_share_update(aggregator, 0);
}
