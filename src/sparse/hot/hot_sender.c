/* SPDX-License-Identifier: Apache-2.0 */
#include "sparse/hot/hot_sender.h"

#include "sparse/hot/hot_order.h"

#include <stdlib.h>
#include <string.h>

#define MS 1000000ull
#define AGAIN_AFTER (1 * MS)  /* after a refusal that passes */
#define HELD_FOR (20 * MS)    /* NEWS says earlier that the bank is released */
#define PROBE_FIRST (30 * MS) /* more than a flush takes */
#define PROBE_HURRY (10 * MS) /* if the caller waits */
#define PROBE_MAX (200 * MS)

enum packet_state { UNSENT, SENT, REFUSED, MAPLESS, ADDED };

static struct hot_packet *packet_at(const struct hot_sender *sender, uint64_t sequence)
{
	return &sender->packets[sequence & (sender->options.kept - 1)];
}

static void *payload_at(const struct hot_sender *sender, uint64_t sequence)
{
	return sender->payloads + (sequence & (sender->options.kept - 1)) * sender->options.payload;
}

/* Room for a payload that belongs to no packet: 0 or 1. */
static void *spare_at(const struct hot_sender *sender, size_t i)
{
	return sender->payloads + (sender->options.kept + i) * sender->options.payload;
}

/* ---- opening ---- */

bool hot_sender_open(struct hot_sender *sender, const struct hot_sender_options *options)
{
	*sender = (struct hot_sender){ .options = *options,
		                       .look_at = UINT64_MAX,
		                       .probe_at = UINT64_MAX };
	sender->per_packet = sparse_rows_fit(options->payload, options->width);
	hot_timer_init(&sender->timer, SPARSE_WINDOW, HOT_DELAY_MAX);
	if (!sender->per_packet || options->payload % 8 || !options->kept ||
	    options->kept & (options->kept - 1))
		return false;
	sender->packets = calloc(options->kept, sizeof(*sender->packets));
	sender->payloads = malloc(((size_t)options->kept + 2) * options->payload);
	sender->order = malloc(sender->per_packet * sizeof(*sender->order));
	if (sender->packets && sender->payloads && sender->order)
		return true;
	hot_sender_close(sender);
	return false;
}

void hot_sender_close(struct hot_sender *sender)
{
	free(sender->packets);
	free(sender->payloads);
	free(sender->order);
	sender->packets = NULL;
	sender->payloads = NULL;
	sender->order = NULL;
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

/* ---- another map ---- */

/* Rows of a payload, which were numbered by the packet's map. */
static void give_back(struct hot_sender *sender, uint64_t sequence, void *payload,
                      struct hot_back back)
{
	const struct hot_packet *packet = packet_at(sender, sequence);
	uint32_t n = ((const struct sparse_rows *)payload)->n;

	back.tag = packet->tag;
	back.sequence = sequence;
	back.generation = packet->generation;
	back.rows = (struct hot_rows){ .n = n,
		                       .numbers = sparse_numbers(payload),
		                       .values = sparse_values(payload, n) };
	sender->stats.handed_back += n;
	sender->options.calls.back(sender->options.calls.context, &back);
}

static void hand_back(struct hot_sender *sender, uint64_t sequence, bool is_lost)
{
	struct hot_packet *packet = packet_at(sender, sequence);

	if (packet->is_void)
		return;
	packet->is_void = true;
	packet->bytes = 0;
	give_back(sender, sequence, payload_at(sender, sequence),
	          (struct hot_back){ .is_lost = is_lost });
}

/* Rows of a payload into another one. `order`: as in hot_order.h. Gives the bytes. */
static uint32_t pick_rows(void *to, void *from, const uint32_t *order, uint32_t n)
{
	const struct sparse_rows *head = from;
	uint32_t width = head->width, bytes = sparse_rows_bytes(n, width, 1);
	const sparse_value *values = sparse_values(from, head->n);

	memset(to, 0, sparse_values_at(n));
	memset((uint8_t *)to + bytes - 8, 0, 8);
	*(struct sparse_rows *)to =
		(struct sparse_rows){ .n = (uint16_t)n, .width = (uint16_t)width };
	for (uint32_t i = 0; i < n; i++) {
		sparse_numbers(to)[i] = hot_order_row(order[i]);
		memcpy(sparse_values(to, n) + (size_t)i * width,
		       values + (size_t)hot_order_place(order[i]) * width, (size_t)width * 4);
	}
	return bytes;
}

/* Gives a packet that no sum has, and never will have, the numbers of the newest map. */
static void renumber(struct hot_sender *sender, uint64_t sequence)
{
	const struct hot_calls *calls = &sender->options.calls;
	struct hot_packet *packet = packet_at(sender, sequence);
	void *payload = payload_at(sender, sequence), *gone = spare_at(sender, 0);
	uint32_t n = ((const struct sparse_rows *)payload)->n, kept = 0, lacks = 0;
	const sparse_number *numbers = sparse_numbers(payload);

	for (uint32_t i = 0; i < n; i++) {
		uint32_t row = calls->renumber(calls->context, packet->generation, numbers[i]);

		if (row != HOT_NO_ROW)
			sender->order[kept++] = hot_order_entry(row, i);
		else
			sender->order[n - ++lacks] = hot_order_entry(numbers[i], i);
	}
	if (!kept) {
		hand_back(sender, sequence, false);
		return;
	}
	hot_order_sort(sender->order, kept);
	pick_rows(gone, payload, sender->order + kept, lacks);
	memcpy(spare_at(sender, 1), payload, packet->bytes);
	packet->bytes = pick_rows(payload, spare_at(sender, 1), sender->order, kept);
	if (lacks)
		give_back(sender, sequence, gone, (struct hot_back){ .goes_on = true });
	packet->generation = sender->mapped;
}

/* Generations only go forward; an older one is in a packet that was delayed. */
static void note_generation(struct hot_sender *sender, uint16_t generation)
{
	if ((int16_t)(generation - sender->generation) > 0)
		sender->generation = generation;
}

static void send_again(struct hot_sender *sender, struct hot_packet *packet, uint64_t at)
{
	packet->state = REFUSED;
	packet->sent_at = at;
	if (at < sender->look_at)
		sender->look_at = at;
}

void hot_sender_remap(struct hot_sender *sender, uint16_t generation)
{
	uint64_t end = sender->next; /* what `back` posts is of the new map */

	sender->mapped = generation;
	if (!end)
		sender->generation = generation;
	note_generation(sender, generation);
	for (uint64_t s = sender->low; s < end; s++) {
		struct hot_packet *packet = packet_at(sender, s);

		if (packet->is_void || packet->generation == generation ||
		    (packet->state != UNSENT && packet->state != MAPLESS))
			continue;
		if (packet->state == MAPLESS)
			send_again(sender, packet, 0);
		renumber(sender, s);
	}
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
	/* A packet without rows takes the place of one that was handed back. */
	sender->stats.resent += packet->tries > 0 && !packet->is_void;
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

/* Would the aggregator refuse the packet for its map? The newer one is on its way. */
static bool is_outdated(const struct hot_sender *sender, const struct hot_packet *packet)
{
	return !packet->is_void && (int16_t)(sender->generation - packet->generation) > 0;
}

static bool may_send_new(const struct hot_sender *sender)
{
	return sender->unsent < sender->next && sender->unsent < sender->low + SPARSE_WINDOW &&
	       sender->in_flight < sender->timer.window &&
	       !is_outdated(sender, packet_at(sender, sender->unsent));
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
	return WIRE_HEADER;
}

uint32_t hot_sender_next(struct hot_sender *sender, uint64_t now, void *packet, uint64_t *position)
{
	uint64_t due;

	if (now < sender->hold_until)
		return 0;
	if (sender->is_held)
		sender->hold_until = now + HELD_FOR;
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

/* The bank is open, as far as known: what was refused may be sent. */
static void let_go(struct hot_sender *sender)
{
	if (!sender->is_held)
		return;
	sender->is_held = false;
	sender->hold_until = sender->look_at = 0;
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

static void note_heard(struct hot_sender *sender, const struct hot_packet *packet,
                       const struct wire_header *header, uint64_t now)
{
	hot_timer_answered(&sender->timer, packet->sent_at, packet->tries,
	                   header->flags & WIRE_RESENT, now);
	sender->look_at = 0; /* packets that were sent before may be lost */
}

static void take_refusal(struct hot_sender *sender, uint64_t sequence,
                         const struct wire_header *header, uint64_t now)
{
	struct hot_packet *packet = packet_at(sender, sequence);

	if (packet->state != SENT)
		return; /* of an earlier copy */
	note_heard(sender, packet, header, now);
	sender->in_flight--;
	if (header->to == SPARSE_OTHER_MAP)
		note_generation(sender, header->scale);
	if (header->to == SPARSE_UNREADY)
		sender->hold_until = now + AGAIN_AFTER;
	if (header->to == SPARSE_FROZEN) {
		sender->hold_until = now + HELD_FOR;
		sender->is_held = true;
		/* It counts as never sent: nothing was lost, and nobody hurries because of it. */
		sender->stats.packets -= packet->tries > 0;
		packet->tries = 0;
		send_again(sender, packet, now);
		return;
	}
	if (header->to == SPARSE_FULL && sender->hurried <= sequence)
		sender->hurried = sequence + 1; /* only a flush helps */
	if (packet->is_void || !is_final(packet, header)) {
		send_again(sender, packet, now + AGAIN_AFTER);
		return;
	}
	send_again(sender, packet, now);
	if (header->to == SPARSE_BAD)
		hand_back(sender, sequence, false);
	else if ((int16_t)(sender->mapped - header->scale) >= 0)
		renumber(sender, sequence);
	else
		packet->state = MAPLESS;
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
		note_heard(sender, packet, header, now);
		if (!packet->is_void)
			let_go(sender);
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
		let_go(sender);
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
