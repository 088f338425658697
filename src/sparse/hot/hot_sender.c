/* SPDX-License-Identifier: Apache-2.0 */
#include "sparse/hot/hot_sender.h"

#include <stdlib.h>
#include <string.h>

#define MS 1000000ull
#define AGAIN_AFTER (1 * MS)  /* after a refusal that passes */
#define PROBE_FIRST (30 * MS) /* more than a flush takes */
#define PROBE_HURRY (10 * MS) /* if the caller waits */
#define PROBE_MAX (200 * MS)

enum packet_state { UNSENT, SENT, REFUSED, ADDED };

static struct hot_packet *packet_at(const struct hot_sender *sender, uint64_t sequence)
{
	return &sender->packets[sequence & (sender->options.kept - 1)];
}

static void *payload_at(const struct hot_sender *sender, uint64_t sequence)
{
	return sender->payloads + (sequence & (sender->options.kept - 1)) * sender->options.payload;
}

/* ---- opening ---- */

uint64_t hot_sender_bytes(const struct hot_sender_options *options)
{
	return (uint64_t)options->kept * (options->payload + sizeof(struct hot_packet));
}

bool hot_sender_open(struct hot_sender *sender, const struct hot_sender_options *options)
{
	*sender = (struct hot_sender){ .options = *options,
		                       .look_at = UINT64_MAX,
		                       .probe_at = UINT64_MAX };
	sender->per_packet = sparse_rows_fit(options->payload, options->width);
	hot_timer_init(&sender->timer, SPARSE_WINDOW);
	if (!sender->per_packet || options->payload % 8 || !options->kept ||
	    options->kept & (options->kept - 1))
		return false;
	sender->packets = calloc(options->kept, sizeof(*sender->packets));
	sender->payloads = malloc((size_t)options->kept * options->payload);
	if (sender->packets && sender->payloads)
		return true;
	hot_sender_close(sender);
	return false;
}

void hot_sender_close(struct hot_sender *sender)
{
	free(sender->packets);
	free(sender->payloads);
	sender->packets = NULL;
	sender->payloads = NULL;
}

/* ---- posting ---- */

/* Packets that may be posted. The last place is kept for a packet that only asks to hurry. */
static uint32_t packets_free(const struct hot_sender *sender)
{
	return sender->options.kept - (uint32_t)(sender->next - sender->durable);
}

uint32_t hot_sender_room(const struct hot_sender *sender)
{
	uint32_t free = packets_free(sender);

	return free > 1 ? (free - 1) * sender->per_packet : 0;
}

static void post_packet(struct hot_sender *sender, uint64_t tag, uint16_t generation,
                        const struct hot_rows *rows, uint32_t from, uint32_t n)
{
	uint32_t width = sender->options.width;
	uint8_t *payload = payload_at(sender, sender->next);
	struct hot_packet *packet = packet_at(sender, sender->next++);
	uint32_t bytes = sparse_rows_bytes(n, width, 1);

	*packet = (struct hot_packet){ .tag = tag, .bytes = bytes, .generation = generation };
	memset(payload, 0, sparse_values_at(n));
	memset(payload + bytes - 8, 0, 8);
	*(struct sparse_rows *)(void *)payload =
		(struct sparse_rows){ .n = (uint16_t)n, .width = (uint16_t)width };
	memcpy(sparse_numbers(payload), rows->numbers + from, n * sizeof(*rows->numbers));
	memcpy(sparse_values(payload, n), rows->values + (size_t)from * width,
	       (size_t)n * width * sizeof(*rows->values));
	sender->stats.rows += n;
}

static void post_void(struct hot_sender *sender)
{
	*packet_at(sender, sender->next++) =
		(struct hot_packet){ .generation = sender->generation, .is_void = true };
}

uint32_t hot_sender_post(struct hot_sender *sender, uint64_t tag, uint16_t generation,
                         const struct hot_rows *rows)
{
	uint32_t packets = 0;

	if (rows->n > hot_sender_room(sender))
		return 0;
	for (uint32_t from = 0; from < rows->n; packets++) {
		uint32_t left = rows->n - from;
		uint32_t n = left < sender->per_packet ? left : sender->per_packet;

		post_packet(sender, tag, generation, rows, from, n);
		from += n;
	}
	return packets;
}

/* If all is added already, a packet without rows carries the wish. */
void hot_sender_hurry(struct hot_sender *sender)
{
	if (hot_sender_is_idle(sender))
		return;
	if (sender->urged < sender->next && sender->unsent == sender->next && packets_free(sender))
		post_void(sender);
	sender->hurried = sender->next;
	if (sender->probe_gap > PROBE_HURRY)
		sender->probe_gap = PROBE_HURRY;
}

/* ---- handing back ---- */

static void hand_back(struct hot_sender *sender, uint64_t sequence, bool is_lost)
{
	struct hot_packet *packet = packet_at(sender, sequence);
	void *payload = payload_at(sender, sequence);
	uint32_t n = ((const struct sparse_rows *)payload)->n;
	struct hot_back back = { .tag = packet->tag,
		                 .sequence = sequence,
		                 .generation = packet->generation,
		                 .is_lost = is_lost,
		                 .rows = { .n = n,
		                           .numbers = sparse_numbers(payload),
		                           .values = sparse_values(payload, n) } };

	if (packet->is_void)
		return;
	packet->is_void = true;
	packet->bytes = 0;
	sender->stats.handed_back++;
	sender->options.calls.back(sender->options.calls.context, &back);
}

/*
 * What was never sent stays in order: a packet of the right generation may follow, so the places of
 * the others are filled with packets without rows.
 */
void hot_sender_remap(struct hot_sender *sender, uint16_t generation)
{
	uint64_t end = sender->next; /* what `back` posts is of the new map */

	sender->generation = generation;
	for (uint64_t s = sender->unsent; s < end; s++)
		if (packet_at(sender, s)->generation != generation)
			hand_back(sender, s, false);
}

/* ---- sending ---- */

/* Is the packet to be urged? The last one that the caller waits for, and repeats before it. */
static bool is_urgent(const struct hot_sender *sender, uint64_t sequence)
{
	return sequence < sender->hurried &&
	       (sequence + 1 == sender->hurried || packet_at(sender, sequence)->tries);
}

static uint32_t write_packet(struct hot_sender *sender, uint64_t sequence, uint64_t now, void *out)
{
	struct hot_packet *packet = packet_at(sender, sequence);
	struct wire_header *header = out;
	bool urgent = is_urgent(sender, sequence);

	*header = (struct wire_header){ .op = SPARSE_PUSH,
		                        .flags = packet->tries ? WIRE_RESENT : 0,
		                        .pos = (uint32_t)sequence,
		                        .scale = packet->is_void ? sender->generation
		                                                 : packet->generation,
		                        .from = (uint8_t)((urgent ? SPARSE_URGENT : 0) |
		                                          (packet->is_void ? SPARSE_VOID : 0)),
		                        .to = WIRE_ALL };
	memcpy(header + 1, payload_at(sender, sequence), packet->bytes);
	if (urgent && sender->urged < sequence + 1)
		sender->urged = sequence + 1;
	sender->stats.resent += packet->tries > 0;
	sender->stats.packets += packet->tries == 0;
	sender->in_flight += packet->state != SENT;
	packet->state = SENT;
	packet->sent_at = now;
	packet->tries += packet->tries < UINT8_MAX;
	if (hot_timer_due(&sender->timer, now) < sender->look_at)
		sender->look_at = hot_timer_due(&sender->timer, now);
	return WIRE_HEADER + packet->bytes;
}

/* When the packet has to be sent again; UINT64_MAX: not. */
static uint64_t due_at(const struct hot_sender *sender, uint64_t sequence)
{
	const struct hot_packet *packet = packet_at(sender, sequence);

	if (packet->state == REFUSED)
		return packet->sent_at;
	if (packet->state != SENT)
		return UINT64_MAX;
	return hot_timer_due(&sender->timer, packet->sent_at);
}

/* The first packet that has to be repeated; `unsent`: none. */
static uint64_t find_due(struct hot_sender *sender, uint64_t now)
{
	uint64_t look_at = UINT64_MAX;

	if (now < sender->look_at)
		return sender->unsent;
	for (uint64_t s = sender->low; s < sender->unsent; s++) {
		uint64_t due = due_at(sender, s);

		if (due <= now)
			return s;
		look_at = due < look_at ? due : look_at;
	}
	sender->look_at = look_at;
	return sender->unsent;
}

static bool may_send_new(const struct hot_sender *sender)
{
	return sender->unsent < sender->next && sender->unsent < sender->low + SPARSE_WINDOW &&
	       sender->in_flight < sender->timer.window;
}

/* Asks what is durable: the repeat of a packet that was added is only answered. */
static uint32_t write_probe(struct hot_sender *sender, uint64_t now, void *out)
{
	*(struct wire_header *)out = (struct wire_header){ .op = SPARSE_PUSH,
		                                           .flags = WIRE_RESENT,
		                                           .pos = (uint32_t)sender->durable,
		                                           .scale = sender->generation,
		                                           .from = SPARSE_VOID,
		                                           .to = WIRE_ALL };
	if (sender->durable < sender->hurried)
		((struct wire_header *)out)->from |= SPARSE_URGENT;
	sender->probe_at = now + sender->probe_gap;
	sender->probe_gap = 2 * sender->probe_gap < PROBE_MAX ? 2 * sender->probe_gap : PROBE_MAX;
	sender->stats.resent++;
	return WIRE_HEADER;
}

uint32_t hot_sender_next(struct hot_sender *sender, uint64_t now, void *packet, uint64_t *position)
{
	uint64_t due;

	if (now < sender->hold_until)
		return 0;
	due = find_due(sender, now);
	*position = due;
	if (due < sender->unsent) {
		if (packet_at(sender, due)->state == SENT)
			hot_timer_repeats(&sender->timer, packet_at(sender, due)->sent_at, now);
		return write_packet(sender, due, now, packet);
	}
	if (may_send_new(sender))
		return write_packet(sender, sender->unsent++, now, packet);
	*position = sender->durable;
	if (now >= sender->probe_at && sender->durable < sender->low)
		return write_probe(sender, now, packet);
	return 0;
}

uint64_t hot_sender_wake(const struct hot_sender *sender)
{
	uint64_t wake = sender->low < sender->unsent ? sender->look_at : UINT64_MAX;

	if (may_send_new(sender))
		wake = 0;
	if (sender->durable < sender->low && sender->probe_at < wake)
		wake = sender->probe_at;
	return wake < sender->hold_until ? sender->hold_until : wake;
}

/* ---- answers ---- */

uint64_t hot_sender_position(const struct hot_sender *sender, const struct wire_header *header)
{
	return sparse_position(header, sender->low);
}

/* The packet is in the sums of the aggregator. */
static void note_added(struct hot_sender *sender, uint64_t sequence, uint64_t now)
{
	struct hot_packet *packet = packet_at(sender, sequence);

	sender->in_flight -= packet->state == SENT;
	packet->state = ADDED;
	while (sender->low < sender->unsent && packet_at(sender, sender->low)->state == ADDED)
		sender->low++;
	if (sender->probe_at == UINT64_MAX) {
		sender->probe_gap = sender->hurried > sender->durable ? PROBE_HURRY : PROBE_FIRST;
		sender->probe_at = now + sender->probe_gap;
	}
}

/* Packets below this number, of which the low half is given, are durable. */
static void note_durable(struct hot_sender *sender, uint32_t half, uint64_t now)
{
	uint64_t durable = wire_widen(half, sender->durable);

	if (durable <= sender->durable || durable > sender->unsent)
		return; /* an old packet; or one that lies */
	while (sender->durable < durable) {
		uint64_t sequence = sender->durable;
		struct hot_packet *packet = packet_at(sender, sequence);

		if (packet->state != ADDED)
			note_added(sender, sequence, now); /* its answer is late, or lost */
		sender->durable++;
		if (!packet->is_void)
			sender->options.calls.done(sender->options.calls.context, packet->tag);
	}
	if (sender->urged < sender->durable)
		sender->urged = sender->durable;
	sender->probe_gap = sender->hurried > sender->durable ? PROBE_HURRY : PROBE_FIRST;
	sender->probe_at = sender->durable < sender->low ? now + sender->probe_gap : UINT64_MAX;
}

static void send_again(struct hot_sender *sender, struct hot_packet *packet, uint64_t at)
{
	packet->state = REFUSED;
	packet->sent_at = at;
	if (at < sender->look_at)
		sender->look_at = at;
}

/* Generations only go forward; an older one is in a packet that was delayed. */
static void note_generation(struct hot_sender *sender, uint16_t generation)
{
	if ((int16_t)(generation - sender->generation) > 0)
		sender->generation = generation;
}

/*
 * Can no copy of the packet be added later? A map that the aggregator does not have yet may come
 * with its next round, so a packet of such a map waits.
 */
static bool is_final(const struct hot_packet *packet, const struct wire_header *header)
{
	return header->to == SPARSE_BAD || (header->to == SPARSE_OTHER_MAP &&
	                                    (int16_t)(header->scale - packet->generation) > 0);
}

static void take_refusal(struct hot_sender *sender, uint64_t sequence,
                         const struct wire_header *header, uint64_t now)
{
	struct hot_packet *packet = packet_at(sender, sequence);

	if (packet->state != SENT)
		return; /* of an earlier copy */
	hot_timer_answered(&sender->timer, packet->sent_at, packet->tries, now);
	sender->look_at = 0;
	sender->in_flight--;
	if (header->to == SPARSE_OTHER_MAP)
		note_generation(sender, header->scale);
	if (header->to == SPARSE_UNREADY)
		sender->hold_until = now + AGAIN_AFTER;
	if (header->to == SPARSE_FULL && sender->hurried <= sequence)
		sender->hurried = sequence + 1; /* only a flush helps */
	if (!packet->is_void && is_final(packet, header)) {
		send_again(sender, packet, now);
		hand_back(sender, sequence, false);
	} else {
		send_again(sender, packet, now + AGAIN_AFTER);
	}
}

static void take_push(struct hot_sender *sender, const struct wire_header *header, uint64_t now)
{
	uint64_t sequence = hot_sender_position(sender, header);
	struct hot_packet *packet = packet_at(sender, sequence);

	if (sequence < sender->durable || sequence >= sender->unsent)
		return;
	if (header->from & SPARSE_REFUSED) {
		take_refusal(sender, sequence, header, now);
		return;
	}
	if (packet->state == SENT) {
		hot_timer_answered(&sender->timer, packet->sent_at, packet->tries, now);
		sender->look_at = 0; /* packets that were sent before may be lost */
	}
	if (packet->state != ADDED)
		note_added(sender, sequence, now);
	note_durable(sender, header->ack, now);
}

void hot_sender_take(struct hot_sender *sender, const struct wire_header *header, uint32_t bytes,
                     uint64_t now)
{
	const sparse_value *lows = (const void *)(header + 1);

	if (header->op == SPARSE_PUSH) {
		take_push(sender, header, now);
	} else if (header->op == SPARSE_NEWS &&
	           bytes >= WIRE_HEADER + 4 * (sender->options.child + 1)) {
		note_generation(sender, header->scale);
		note_durable(sender, lows[sender->options.child], now);
	}
}

/* ---- the end ---- */

void hot_sender_lost(struct hot_sender *sender, const struct sparse_record *record)
{
	const struct hot_calls *calls = &sender->options.calls;
	uint64_t end = sender->next;

	for (uint64_t s = sender->durable; s < end; s++) {
		const struct hot_packet *packet = packet_at(sender, s);

		if (packet->is_void)
			continue;
		if (record && sparse_record_has(record, s))
			calls->done(calls->context, packet->tag);
		else
			hand_back(sender, s, true);
	}
	sender->durable = sender->low = sender->unsent = sender->next;
	sender->in_flight = 0;
	sender->look_at = sender->probe_at = UINT64_MAX;
}
