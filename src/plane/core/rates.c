/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How fast children may send (XAgg §IV-C). All lanes that are at work share
 * the aggregator's link: what those children bring that send, and the results
 * that come from a parent. A parent's answer bounds what is given on. Looked
 * at when a child begins or ends to send or loses much, when a lane comes or
 * goes, and when a parent has answered; never per packet.
 *
 * Who begins or ends says so in its REPORT. A child that rests is believed only
 * a moment later, as the next vector may follow at once; so a stream of vectors
 * changes nothing. Whose rate is another one then is told at once, by the
 * thread that has its lane, and nobody else is told anything.
 */
#include "plane/core/internal.h"

#include "base/clock.h"
#include "base/log.h"
#include "plan/rates.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define USED 0.96             /* of a link: frames have headers, and reports want through */
#define UNIT 1024.0           /* of rates on the wire, bit/s */
#define REST_NS 4000000ull    /* a child that says nothing else for so long is at rest */
#define IDLE_NS 1200000000ull /* and so is one that says nothing at all: two heartbeats */
#define BEGIN_NS 300000000ull /* who has joined is about to send */
#define LOOK_NS NSEC_PER_SEC  /* between two looks at the device's speed */
#define SMALL 0.01            /* of a rate: not worth a word */

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

static uint32_t on_wire(double rate)
{
	return rate > 0 && rate < UINT32_MAX * UNIT ? (uint32_t)fmax(rate / UNIT, 1) : 0;
}

/* Those whose share counts: who sends, or all where nobody has said so. */
static uint64_t senders(const struct lane_rates *lane)
{
	uint64_t there = lane->members & ~lane->gone;

	if (!lane->works)
		return 0;
	return lane->active & there ? lane->active & there : there;
}

/* Streams of the lane that come by the link; `all`: once everyone has begun. */
static unsigned streams(const struct lane_rates *lane, bool all)
{
	uint64_t who = all ? lane->members & ~lane->gone : senders(lane);

	return all || lane->works ? (unsigned)__builtin_popcountll(who) + lane->has_parent : 0;
}

/* Lanes of one communicator, be they of the same tree or not. */
static bool are_one(const struct lane_rates *a, const struct lane_rates *b)
{
	return a->comm->job == b->comm->job && a->comm->key == b->comm->key &&
	       a->comm->generation == b->comm->generation;
}

/*
 * A vector is done when its last part is, so trees of unlike shares have to have unlike rates. No
 * packet says a tree's share, but what a rank could send by each of its trees is in proportion to
 * them. So a rank that is in all trees here tells them all, whatever its own limit is. A
 * communicator weighs as many as it has streams: others get neither more nor less by it.
 */
static double lane_weight(const struct rates *rates, const struct lane_rates *lane, bool all)
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

/* By its own limit, and by what the sums go on at. */
static double child_most(const struct lane_rates *lane, unsigned child)
{
	double most = lane->want[child] > 0 ? lane->want[child] : INFINITY;

	return lane->above > 0 ? fmin(most, lane->above) : most;
}

/* The share of each child that sends, and of each parent's results. */
static unsigned list_children(const struct rates *rates, struct rate_child *children)
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

/* Streams of its communicator that do not share the link now, and would if all began. */
static unsigned streams_at_rest(const struct rates *rates, const struct lane_rates *lane)
{
	unsigned n = 0;

	for (const struct lane_rates *other = rates->lanes; other; other = other->next)
		if (are_one(lane, other))
			n += streams(other, true) - streams(other, false);
	return n;
}

/*
 * One that rests gets what would be left for it were all of them to begin, as they do when a sum is
 * done that all have waited for: with more, they would overflow the link until the word of less has
 * come to everyone. `n` streams share it now.
 */
static void give_at_rest(const struct rates *rates, struct lane_rates *lane, unsigned n)
{
	uint64_t left = lane->members & ~lane->gone & ~senders(lane);
	double share;

	if (!left)
		return;
	share = rates->capacity * USED * lane_weight(rates, lane, true) /
	        (n + streams_at_rest(rates, lane));
	for (; left; left &= left - 1) {
		unsigned child = (unsigned)__builtin_ctzll(left);

		lane->given[child] = fmin(share, child_most(lane, child)) * lane->factor;
	}
}

/* With the lock. `resting`: a lane that rests, but is to know what it would get; NULL: none. */
static void share(struct aggregator *aggregator, struct lane_rates *resting)
{
	struct rates *rates = &aggregator->rates;
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
		give_at_rest(rates, lane, n);
		at += streams(lane, false);
	}
	if (resting)
		give_at_rest(rates, resting, n);
}

/* Without the lock: the others' children are told by their own threads. */
static void wake_others(struct aggregator *aggregator, unsigned but)
{
	for (unsigned i = 0; i < aggregator->n_threads; i++)
		if (i != but)
			thread_wake(&aggregator->threads[i]);
}

/* With the lock held, which is given back: something has changed. */
static void update(struct aggregator *aggregator, unsigned by)
{
	share(aggregator, NULL);
	pthread_mutex_unlock(&aggregator->rates.lock);
	wake_others(aggregator, by);
}

/* From the device that leads to the children, unless we were told. */
static void find_capacity(struct rates *rates, const struct comm *comm)
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

void rates_open(struct aggregator *aggregator, struct lane *lane)
{
	struct rates *rates = &aggregator->rates;
	struct lane_rates *own = &lane->rates;
	const struct comm *comm = lane->comm;

	own->comm = comm;
	own->members = own->active = own->resting = lane->dense->members;
	own->has_parent = lane->dense->has_parent;
	own->above = comm->parent.rate * UNIT;
	losses_init(&own->losses);
	own->factor = 1;
	own->works = true; /* soon: it is told before it begins */
	own->seen_at = comm->created_at;
	for (unsigned child = 0; child < WIRE_CHILDREN_MAX; child++)
		own->rest_at[child] = comm->created_at + BEGIN_NS;
	pthread_mutex_lock(&rates->lock);
	find_capacity(rates, comm);
	own->next = rates->lanes;
	rates->lanes = own;
	own->listed = true;
	share(aggregator, NULL);
	/* The WELCOME says so. */
	for (unsigned child = 0; child < WIRE_CHILDREN_MAX && rates->capacity > 0; child++)
		own->told[child] = on_wire(own->given[child]);
	pthread_mutex_unlock(&rates->lock);
	wake_others(aggregator, 0);
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
	update(aggregator, THREADS_MAX);
}

void rates_leave(struct aggregator *aggregator, const struct comm *comm, unsigned child)
{
	struct rates *rates = &aggregator->rates;
	bool news = false;

	pthread_mutex_lock(&rates->lock);
	for (struct lane_rates *lane = rates->lanes; lane; lane = lane->next)
		if (lane->comm == comm && !(lane->gone & dense_bit(child))) {
			lane->gone |= dense_bit(child);
			news = true;
		}
	if (news)
		update(aggregator, 0);
	else
		pthread_mutex_unlock(&rates->lock);
}

/* What the child is given, as on the wire; not with every packet under the lock. */
static uint32_t rate_of(struct thread *thread, struct lane *lane, unsigned child)
{
	struct rates *rates = &thread->aggregator->rates;
	struct lane_rates *own = &lane->rates;

	if (own->copied != rates->serial) {
		pthread_mutex_lock(&rates->lock);
		own->copied = rates->serial;
		memcpy(own->copy, own->given, sizeof(own->copy));
		pthread_mutex_unlock(&rates->lock);
	}
	return on_wire(rates->capacity > 0 ? own->copy[child] : own->above);
}

void rates_fill(struct thread *thread, struct lane *lane, unsigned child,
                struct wire_status *status)
{
	if (!(thread->aggregator->rates.capacity > 0) && !(lane->rates.above > 0))
		return;
	status->rate = lane->rates.told[child] = rate_of(thread, lane, child);
	status->serial = lane->rates.copied;
}

uint32_t rates_first(struct aggregator *aggregator, const struct comm *comm, unsigned child)
{
	struct rates *rates = &aggregator->rates;
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

/* Those children of the lane who know another rate. */
static void tell(struct thread *thread, struct lane *lane)
{
	struct lane_rates *own = &lane->rates;

	for (uint64_t to = lane->known & ~lane->dense->left; to; to &= to - 1) {
		unsigned child = (unsigned)__builtin_ctzll(to);
		struct {
			struct wire_control header;
			struct wire_status status;
		} packet = { .header = wire_answer(lane->comm, lane, WIRE_STATUS, (uint8_t)child) };

		if (is_small(rate_of(thread, lane, child), own->told[child]))
			continue;
		packet.header.pos = wire_pos(lane->index, lane->dense->ack[child]);
		packet.status.low = lane->dense->low;
		rates_fill(thread, lane, child, &packet.status);
		thread_send(thread, &packet, wire_cut(&packet), &lane->addresses[child]);
	}
}

/* As update(). Those of a lane at rest hear now what they will begin with: nobody looks after it.
 */
static void lane_update(struct thread *thread, struct lane *lane)
{
	bool rests = !lane->rates.works;

	share(thread->aggregator, rests ? &lane->rates : NULL);
	pthread_mutex_unlock(&thread->aggregator->rates.lock);
	wake_others(thread->aggregator, thread->index);
	if (rests)
		tell(thread, lane);
}

/* The lane begins or ends: the parent may have something to share out again. */
static void work(struct thread *thread, struct lane *lane, bool works, uint64_t active)
{
	struct lane_rates *own = &lane->rates;
	bool news = own->works != works;

	pthread_mutex_lock(&thread->aggregator->rates.lock);
	own->works = works;
	own->active = active;
	lane_update(thread, lane);
	if (news && own->has_parent)
		uplink_speak(thread, lane);
}

void rates_wake(struct thread *thread, struct lane *lane)
{
	lane->rates.resting = 0;
	work(thread, lane, true, 0);
}

/* A child that is an aggregator has waited itself before it said so. */
static void child_rests(struct thread *thread, struct lane *lane, unsigned child)
{
	struct lane_rates *own = &lane->rates;
	uint64_t bit = dense_bit(child);
	uint64_t at = thread->now + (lane->comm->children[child].join.height ? 0 : REST_NS);

	if (!own->works || own->resting & bit)
		return;
	own->resting |= bit;
	own->rest_at[child] = at;
	if (at < thread->rates_at)
		thread->rates_at = at;
}

/* With the first one all are about to; who does not follow soon rests. */
static void child_sends(struct thread *thread, struct lane *lane, unsigned child)
{
	struct lane_rates *own = &lane->rates;
	uint64_t bit = dense_bit(child);

	own->resting &= ~bit;
	if (own->works && (own->active & bit))
		return;
	if (own->works) {
		work(thread, lane, true, own->active | bit);
		return;
	}
	own->resting = own->members & ~bit;
	for (unsigned i = 0; i < WIRE_CHILDREN_MAX; i++)
		own->rest_at[i] = thread->now + REST_NS;
	if (thread->now + REST_NS < thread->rates_at)
		thread->rates_at = thread->now + REST_NS;
	work(thread, lane, true, own->members);
}

void rates_hear(struct thread *thread, struct lane *lane, const struct wire_control *header)
{
	const struct wire_report *report = wire_payload(header);
	struct lane_rates *own = &lane->rates;
	unsigned child = header->child & 63;
	double want = report->want * UNIT;
	bool changed = losses_hear(&own->losses, child, thread->now, report->judged, report->lost);

	if (report->bits || !(header->flags & WIRE_AT_REST))
		own->seen_at = thread->now;
	if (header->flags & WIRE_AT_REST)
		child_rests(thread, lane, child);
	else
		child_sends(thread, lane, child);
	/* Small changes are not worth everybody's attention. */
	changed |= fabs(want - own->want[child]) > 0.05 * own->want[child];
	if (!changed)
		return;
	pthread_mutex_lock(&thread->aggregator->rates.lock);
	own->want[child] = want;
	/* An aggregator's is what its own link bears, which says nothing of shares. */
	if (want > 0 && !lane->comm->children[child].join.height)
		own->said |= dense_bit(child);
	else
		own->said &= ~dense_bit(child);
	if (own->losses.factor != own->factor)
		log_debug("job %u, lane %u: after losses, rates are %.0f %% of their share",
		          lane->comm->job, lane->index, own->losses.factor * 100);
	own->factor = own->losses.factor;
	update(thread->aggregator, thread->index);
}

void rates_from_parent(struct thread *thread, struct lane *lane, const struct wire_status *status)
{
	struct lane_rates *own = &lane->rates;

	if (!status->serial || !rates_is_newer(status->serial, own->above_serial))
		return;
	own->above_serial = status->serial;
	if (fabs(status->rate * UNIT - own->above) <= 0.01 * own->above)
		return;
	if (status->rate && (!(own->above > 0) || status->rate * UNIT < own->above))
		uplink_judge_anew(&lane->up, (uint32_t)(thread->now / 1000));
	pthread_mutex_lock(&thread->aggregator->rates.lock);
	own->above = status->rate * UNIT;
	lane_update(thread, lane);
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

/* Who has said that he rests, and has not begun again since. */
static void look_at_resting(struct thread *thread, struct lane *lane)
{
	struct lane_rates *own = &lane->rates;
	uint64_t rest = 0, active;

	for (uint64_t left = own->works ? own->resting : 0; left; left &= left - 1) {
		unsigned child = (unsigned)__builtin_ctzll(left);

		if (thread->now >= own->rest_at[child])
			rest |= dense_bit(child);
		else if (own->rest_at[child] < thread->rates_at)
			thread->rates_at = own->rest_at[child];
	}
	active = own->active & ~rest;
	if (!rest || active == own->active)
		return;
	/* Small vectors are not announced: as long as some come, the lane is at work. */
	if (!active && thread->now < own->seen_at + REST_NS) {
		if (own->seen_at + REST_NS < thread->rates_at)
			thread->rates_at = own->seen_at + REST_NS;
		return;
	}
	work(thread, lane, active != 0, active ? active : own->members);
}

void rates_look(struct thread *thread)
{
	struct rates *rates = &thread->aggregator->rates;

	if (thread->now >= thread->rates_at) {
		thread->rates_at = UINT64_MAX;
		for (unsigned id = 1; id < thread->ids; id++)
			if (thread->lanes[id])
				look_at_resting(thread, thread->lanes[id]);
	}
	if (thread->rates_seen == rates->serial)
		return;
	thread->rates_seen = rates->serial;
	for (unsigned id = 1; id < thread->ids; id++)
		if (thread->lanes[id] && thread->lanes[id]->rates.works)
			tell(thread, thread->lanes[id]);
}

/* A device that negotiates another speed says so. */
static void look_at_device(struct aggregator *aggregator, uint64_t now)
{
	struct rates *rates = &aggregator->rates;
	double capacity;

	if (!rates->interface[0] || now < rates->look_at)
		return;
	rates->look_at = now + LOOK_NS;
	capacity = device_rate(rates->interface);
	if (!(capacity > 0) || capacity == rates->capacity)
		return;
	log_notice("%s has %.0f Mbit/s now, and had %.0f", rates->interface, capacity / 1e6,
	           rates->capacity / 1e6);
	pthread_mutex_lock(&rates->lock);
	rates->capacity = capacity;
	update(aggregator, 0);
}

void rates_tick(struct thread *thread)
{
	if (thread->index == 0)
		look_at_device(thread->aggregator, thread->now);
	for (unsigned id = 1; id < thread->ids; id++) {
		struct lane *lane = thread->lanes[id];

		if (lane && lane->rates.works && thread->now > lane->rates.seen_at + IDLE_NS)
			work(thread, lane, false, lane->rates.members);
	}
	thread->rates_at = thread->now; /* also who has never said anything is looked at */
	rates_look(thread);
}
