/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/slot/slot_flow.h"

#include <string.h>

#define US 1000ull
#define TIMEOUT_FIRST (2000 * US) /* 2 ms while the round-trip time is unknown */
#define TIMEOUT_MIN (200 * US)
#define TIMEOUT_MAX (100000 * US)
#define TRIES_EACH 4u /* times that the timer runs out before it doubles */
#define DOUBLED_MOST 10u
#define WINDOW_FIRST 64u
#define WINDOW_MIN 4u
#define OVERTAKEN 8u     /* results of later operations: more than the network swaps */
#define LONG_PACKET 256u /* bytes of a vector that a slow link takes longer for */
#define SHORT_TIMES 8u   /* a timeout is at most so many of the shortest answers to short packets */
#define LONG_TIMES 4u    /* ... or of those to long ones, if that is more */
#define LEAST_OF 64u     /* answers of which the shortest counts, and as many before */
#define REPEATS_LEAST 4u /* operations that are repeated at once, while no result comes */
#define REPEATS_MORE 8u  /* ... at least, once later results came; the window may have more */
#define QUEUE_TIMES 4u   /* a queue makes a timeout at most this many times as long */
#define QUEUE_MOST (2000 * US) /* time that a slow link may need for all that is in flight */
#define SILENT_LOSS 16u        /* a timer that runs out more often was too short for the path */
#define ACK_DELAY (1000 * US)  /* 1 ms: results that no vector has acknowledged until then */

void slot_flow_init(struct slot_flow *flow, struct slot_entry *entries, uint32_t slots,
                    unsigned child)
{
	*flow = (struct slot_flow){
		.entries = entries,
		.slots = slots,
		.child = child,
		.window = slots < WINDOW_FIRST ? slots : WINDOW_FIRST,
		.timeout = TIMEOUT_FIRST,
	};
	memset(entries, 0, slots * sizeof(*entries));
}

static uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* The shortest round-trip time of short packets, or of long ones; 0: unknown. */
static uint64_t rtt_least(const struct slot_flow *flow, bool is_long)
{
	const uint64_t *least = flow->rtt_least[is_long];

	return least[1] && (!least[0] || least[1] < least[0]) ? least[1] : least[0];
}

/*
 * Operations that may be in flight at once. On a slow link, more of them would only wait in a
 * queue, and packets are lost when the queue is full.
 */
static uint32_t window_of(const struct slot_flow *flow)
{
	uint64_t longest = QUEUE_MOST + 2 * rtt_least(flow, true);
	uint64_t most = flow->gap ? longest / flow->gap : flow->window;

	if (most < WINDOW_MIN)
		most = WINDOW_MIN;
	return flow->window < most ? flow->window : (uint32_t)most;
}

/*
 * The longest timeout, as a multiple of the shortest round-trip time. Long packets take longer on a
 * slow link. Short ones take no longer than they, so a longer time was measured when ranks began.
 */
static uint64_t answer_most(const struct slot_flow *flow)
{
	uint64_t to_short = rtt_least(flow, false), to_long = rtt_least(flow, true);

	if (to_long && (!to_short || to_short > to_long))
		to_short = to_long;
	return later(SHORT_TIMES * to_short, LONG_TIMES * to_long);
}

/*
 * The timeout of the first packet, by the answers that were measured. A round trip ends when the
 * last child has sent, so it has the timeouts of others in it. Without an upper limit these would
 * add up, each child waiting longer than the others.
 */
static uint64_t first_timeout(const struct slot_flow *flow)
{
	uint64_t timeout = flow->rtt ? flow->rtt + 4 * flow->rtt_spread : TIMEOUT_FIRST;
	uint64_t most = answer_most(flow);

	if (most && timeout > most)
		timeout = most;
	if (timeout < TIMEOUT_MIN)
		timeout = TIMEOUT_MIN;
	return timeout < TIMEOUT_MAX ? timeout : TIMEOUT_MAX;
}

/*
 * A sum needs the packets of all children and the result at each of them, so with loss it often
 * takes several tries. If each one doubled the timeout, the last one would wait for most of the
 * time. On a slow link, an operation waits until those before it have crossed.
 */
static uint64_t timeout_of(const struct slot_flow *flow, unsigned tries)
{
	unsigned doubled = tries ? (tries - 1) / TRIES_EACH : 0;
	uint64_t queue = (flow->unsent - flow->done) * flow->gap,
		 most = QUEUE_TIMES * flow->timeout;
	uint64_t timeout = later(flow->timeout, queue < most ? queue : most)
	                   << (doubled < DOUBLED_MOST ? doubled : DOUBLED_MOST);

	return timeout < TIMEOUT_MAX ? timeout : TIMEOUT_MAX;
}

/* Do results of later operations show that it was lost, before the timer does? */
static bool was_overtaken(const struct slot_flow *flow, const struct slot_entry *entry)
{
	return entry->tries == 1 && entry->position + OVERTAKEN < flow->top;
}

/*
 * When the operation has to be sent; 0: now. The timer counts from the last packet or result, as
 * operations queue behind each other.
 */
static uint64_t due_at(const struct slot_flow *flow, const struct slot_entry *entry)
{
	uint64_t last = later(flow->heard_at, flow->expired_at);

	if (!entry->sent_at || was_overtaken(flow, entry))
		return 0;
	return later(entry->sent_at, last) + timeout_of(flow, flow->silent + 1);
}

void slot_flow_ask(struct slot_flow *flow, uint64_t now)
{
	if (!flow->ask_at && flow->low < flow->done)
		flow->ask_at = now;
}

void slot_flow_encoded(struct slot_flow *flow, uint64_t position, uint16_t scale,
                       const void *payload, uint16_t bytes)
{
	struct slot_entry *entry = slot_entry_of(flow, position);

	entry->scale = scale;
	entry->payload = payload;
	entry->bytes = bytes;
	entry->sent_at = 0;
	flow->look_at = 0;
}

/* ---- packets ---- */

static struct wire_header header_of(const struct slot_flow *flow, uint64_t position)
{
	return (struct wire_header){ .child = (uint8_t)flow->child,
		                     .pos = (uint32_t)position,
		                     .to = WIRE_ALL };
}

/* The next result to acknowledge goes along, if there is one. */
static void add_ack(struct slot_flow *flow, struct wire_header *header)
{
	if (flow->unacked >= flow->done)
		return;
	header->from |= SLOT_ACKS;
	header->ack = (uint32_t)flow->unacked;
	slot_entry_of(flow, flow->unacked)->state = SLOT_ACKED;
	flow->unacked++;
}

/* A timer has run out: too much may be on its way. Once for all that was sent before. */
static void shrink_window(struct slot_flow *flow, uint64_t sent_at)
{
	if (sent_at < flow->shrunk_at)
		return;
	flow->shrunk_at = sent_at;
	flow->window = flow->window / 2 > WINDOW_MIN ? flow->window / 2 : WINDOW_MIN;
	if (flow->window > flow->slots)
		flow->window = flow->slots;
}

static uint32_t send_vector(struct slot_flow *flow, struct slot_entry *entry, uint64_t now,
                            struct wire_header *header, const void **payload)
{
	uint64_t due;

	if (entry->sent_at)
		shrink_window(flow, entry->sent_at);
	*header = header_of(flow, entry->position);
	header->op = entry->op;
	header->to = entry->kind;
	header->scale = entry->scale;
	header->flags = entry->shape | (entry->tries ? WIRE_RESENT : 0);
	add_ack(flow, header);
	*payload = entry->payload;
	entry->first_at = entry->tries ? entry->first_at : now;
	entry->sent_at = now;
	entry->tries += entry->tries < UINT8_MAX;
	due = due_at(flow, entry);
	if (due < flow->look_at)
		flow->look_at = due;
	return entry->bytes;
}

/* An acknowledgement alone, of the oldest operation that has none, or again of one in the way. */
static uint32_t send_bare(struct slot_flow *flow, uint64_t position, bool wants,
                          struct wire_header *header, const void **payload)
{
	*header = header_of(flow, position);
	header->from = SLOT_ACKS | SLOT_BARE | (wants ? SLOT_WANTS : 0);
	if (wants && flow->asks > 1)
		header->flags = WIRE_RESENT;
	header->ack = (uint32_t)position;
	slot_entry_of(flow, position)->state = SLOT_ACKED;
	if (position == flow->unacked)
		flow->unacked++;
	*payload = NULL;
	return 0;
}

/*
 * The timer has run out, and `oldest` waits. If results of later ones came, it was lost, and others
 * with it. Else all may be in a queue, which repeats would only make longer.
 */
static void expire(struct slot_flow *flow, const struct slot_entry *oldest, uint64_t now)
{
	flow->credit = REPEATS_LEAST;
	if (flow->heard_at > oldest->first_at)
		flow->credit = flow->window > REPEATS_MORE ? flow->window : REPEATS_MORE;
	flow->silent += flow->silent < UINT8_MAX;
	flow->expired_at = now;
}

static bool may_send_new(const struct slot_flow *flow)
{
	return flow->unsent < flow->next && flow->unsent - flow->done < window_of(flow);
}

/* The first operation that is due: a new one, or one whose timer has run out. NULL: none. */
static struct slot_entry *find_due(struct slot_flow *flow, uint64_t now)
{
	uint64_t look_at = UINT64_MAX;

	if (may_send_new(flow))
		return slot_entry_of(flow, flow->unsent++);
	if (now < flow->look_at || flow->holds)
		return NULL;
	for (uint64_t p = flow->done; p < flow->unsent; p++) {
		struct slot_entry *entry = slot_entry_of(flow, p);
		uint64_t due = due_at(flow, entry);

		if (entry->state != SLOT_WAITS)
			continue;
		if (!due)
			return entry;
		if (due <= now)
			expire(flow, entry, now);
		if (flow->credit && entry->sent_at < flow->expired_at) {
			flow->credit--;
			flow->look_at = 0; /* others may follow */
			return entry;
		}
		due = due_at(flow, entry); /* the timer may have begun anew */
		look_at = due < look_at ? due : look_at;
	}
	flow->credit = 0;
	flow->look_at = look_at;
	return NULL;
}

/* Is an acknowledgement due that no vector has carried? */
static bool ack_is_due(const struct slot_flow *flow, uint64_t now)
{
	return flow->unacked < flow->done &&
	       (now >= flow->heard_at + ACK_DELAY || flow->done - flow->unacked > flow->slots / 4);
}

uint32_t slot_flow_next(struct slot_flow *flow, uint64_t now, struct wire_header *header,
                        const void **payload)
{
	struct slot_entry *entry = find_due(flow, now);

	*payload = NULL;
	if (entry)
		return WIRE_HEADER + send_vector(flow, entry, now, header, payload);
	if (flow->holds)
		return 0;
	if (ack_is_due(flow, now))
		return WIRE_HEADER + send_bare(flow, flow->unacked, false, header, payload);
	if (!flow->ask_at || now < flow->ask_at || flow->low >= flow->unacked)
		return 0;
	flow->asks += flow->asks < UINT8_MAX;
	flow->ask_at = now + timeout_of(flow, flow->asks);
	return WIRE_HEADER + send_bare(flow, flow->low, true, header, payload);
}

/* ---- answers ---- */

static void take_low(struct slot_flow *flow, uint32_t half)
{
	uint64_t low = wire_widen(half, flow->low);

	if (low <= flow->low || low > flow->unacked)
		return; /* an old packet; or one that lies */
	for (; flow->low < low; flow->low++)
		slot_entry_of(flow, flow->low)->state = SLOT_UNUSED;
	if (flow->next < flow->low + flow->slots)
		flow->ask_at = flow->asks = 0;
}

static void note_answer(struct slot_flow *flow, bool is_long, uint64_t took)
{
	uint64_t *least = flow->rtt_least[is_long];
	unsigned *answers = &flow->rtt_answers[is_long];

	if ((*answers)++ == LEAST_OF) { /* paths change: old answers are forgotten */
		least[1] = least[0];
		least[0] = 0;
		*answers = 1;
	}
	if (!least[0] || took < least[0])
		least[0] = took;
}

/*
 * The time of a packet that was repeated tells nothing, as the answer may be to either; unless it
 * comes sooner than any answer did. Then it is that of the first packet, and the timeout was too
 * short.
 */
static void measure(struct slot_flow *flow, const struct slot_entry *entry, uint64_t now)
{
	bool is_long = entry->bytes >= LONG_PACKET;
	uint64_t took = now - entry->sent_at, least = rtt_least(flow, is_long), off;

	if (entry->tries != 1 && (!least || took >= least))
		return;
	if (entry->tries != 1)
		took = now - entry->first_at;
	else
		note_answer(flow, is_long, took);
	if (!flow->rtt) {
		flow->rtt = took;
		flow->rtt_spread = took / 2;
	} else {
		off = took > flow->rtt ? took - flow->rtt : flow->rtt - took;
		flow->rtt_spread += off / 4 - flow->rtt_spread / 4;
		flow->rtt += took / 8 - flow->rtt / 8;
	}
	flow->timeout = first_timeout(flow);
}

/*
 * The time between two results that were waited for. Losses make many of them long, and batches of
 * packets make some short: the estimate moves to where a quarter is shorter.
 */
static void note_gap(struct slot_flow *flow, const struct slot_entry *entry, uint64_t now)
{
	uint64_t gap = now - flow->heard_at;

	if (entry->first_at >= flow->heard_at)
		return;
	if (!flow->gap)
		flow->gap = gap;
	else if (gap > flow->gap)
		flow->gap += flow->gap / 16 + 1;
	else
		flow->gap -= flow->gap / 16 * 3;
}

static struct slot_event take_result(struct slot_flow *flow, struct slot_entry *entry,
                                     const struct wire_header *header, uint32_t bytes, uint64_t now)
{
	struct slot_event event = { SLOT_RESULT, entry->position, header->scale };

	if (header->op != entry->op || (header->flags & (uint8_t)~WIRE_RESENT) != entry->shape ||
	    (header->scale == entry->scale && bytes != entry->bytes)) {
		event.kind = SLOT_DISAGREE;
		return event;
	}
	measure(flow, entry, now);
	entry->state = SLOT_HAS;
	note_gap(flow, entry, now);
	flow->heard_at = now;
	flow->credit = 0;
	if (entry->tries == 1 || (flow->rtt && flow->silent < SILENT_LOSS))
		flow->silent = 0;
	if (now + timeout_of(flow, 1) < flow->look_at) /* timers that had doubled end sooner */
		flow->look_at = now + timeout_of(flow, 1);
	if (entry->position > flow->top) {
		flow->top = entry->position;
		if (flow->done + OVERTAKEN < flow->top)
			flow->look_at = 0;
	}
	if (++flow->grown >= flow->window && flow->window < flow->slots) {
		flow->window++;
		flow->grown = 0;
	}
	while (flow->done < flow->next && slot_entry_of(flow, flow->done)->state != SLOT_WAITS)
		flow->done++;
	return event;
}

struct slot_event slot_flow_take(struct slot_flow *flow, const struct wire_header *header,
                                 uint32_t bytes, uint64_t now)
{
	uint64_t position = wire_widen(header->pos, flow->next);
	struct slot_event event = { SLOT_NOTHING, position, header->scale };
	struct slot_entry *entry = slot_entry_of(flow, position);

	take_low(flow, header->ack);
	if (position >= flow->next || entry->position != position || entry->state != SLOT_WAITS ||
	    header->from & SLOT_CLEAR)
		return event;
	if (!(header->from & SLOT_RAISE))
		return take_result(flow, entry, header, bytes, now);
	if (header->scale > entry->scale) {
		entry->tries = 0; /* the aggregator is there, and the next packet is another one */
		event.kind = SLOT_ENCODE;
	}
	return event;
}

uint64_t slot_flow_wake(const struct slot_flow *flow)
{
	uint64_t wake = flow->ask_at ? flow->ask_at : UINT64_MAX;

	if (may_send_new(flow))
		return 0;
	if (flow->done < flow->unsent && flow->look_at < wake)
		wake = flow->look_at;
	if (flow->unacked < flow->done && flow->heard_at + ACK_DELAY < wake)
		wake = flow->heard_at + ACK_DELAY;
	return wake;
}
