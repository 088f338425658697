/* SPDX-License-Identifier: Apache-2.0 */
#include "sparse/hot/hot_puller.h"

#include <stdlib.h>
#include <string.h>

bool hot_puller_open(struct hot_puller *puller, uint32_t width, uint32_t payload)
{
	*puller = (struct hot_puller){ .width = width,
		                       .payload = payload,
		                       .per_packet = sparse_rows_fit(payload, width) };
	hot_timer_init(&puller->timer, HOT_PULLS, 0);
	if (!puller->per_packet)
		return false;
	puller->payloads = malloc((size_t)HOT_PULLS * payload);
	return puller->payloads;
}

void hot_puller_close(struct hot_puller *puller)
{
	free(puller->payloads);
	puller->payloads = NULL;
}

static uint8_t *payload_at(const struct hot_puller *puller, uint32_t number)
{
	return puller->payloads + (size_t)(number % HOT_PULLS) * puller->payload;
}

bool hot_puller_ask(struct hot_puller *puller, uint64_t tag, uint16_t generation,
                    const uint16_t *numbers, uint32_t n)
{
	struct hot_pull *pull = &puller->pulls[puller->number % HOT_PULLS];
	uint8_t *payload = payload_at(puller, puller->number);
	uint32_t bytes = sparse_rows_bytes(n, puller->width, 0);

	if (pull->bytes || !n || n > puller->per_packet)
		return false;
	memset(payload, 0, bytes);
	*(struct sparse_rows *)(void *)payload =
		(struct sparse_rows){ .n = (uint16_t)n, .width = (uint16_t)puller->width };
	memcpy(sparse_numbers(payload), numbers, n * sizeof(*numbers));
	*pull = (struct hot_pull){
		.tag = tag, .number = puller->number++, .bytes = bytes, .generation = generation
	};
	puller->used++;
	return true;
}

static uint64_t due_at(const struct hot_puller *puller, const struct hot_pull *pull)
{
	if (!pull->bytes)
		return UINT64_MAX;
	return pull->tries ? hot_timer_due(&puller->timer, pull->sent_at) : 0;
}

uint32_t hot_puller_next(struct hot_puller *puller, uint64_t now, void *packet)
{
	struct wire_header *header = packet;

	for (unsigned i = 0; puller->used && i < HOT_PULLS; i++) {
		struct hot_pull *pull = &puller->pulls[i];

		if (due_at(puller, pull) > now)
			continue;
		*header = (struct wire_header){ .op = SPARSE_PULL,
			                        .flags = pull->tries ? WIRE_RESENT : 0,
			                        .pos = pull->number,
			                        .scale = pull->generation,
			                        .to = WIRE_ALL };
		memcpy(header + 1, payload_at(puller, pull->number), pull->bytes);
		if (pull->tries)
			hot_timer_repeats(&puller->timer, pull->sent_at, now);
		pull->sent_at = now;
		pull->tries += pull->tries < UINT8_MAX;
		return WIRE_HEADER + pull->bytes;
	}
	return 0;
}

uint64_t hot_puller_wake(const struct hot_puller *puller)
{
	uint64_t wake = UINT64_MAX;

	for (unsigned i = 0; puller->used && i < HOT_PULLS; i++)
		if (due_at(puller, &puller->pulls[i]) < wake)
			wake = due_at(puller, &puller->pulls[i]);
	return wake;
}

static void end(struct hot_puller *puller, struct hot_pull *pull, const struct hot_rows *rows)
{
	pull->bytes = 0;
	puller->used--;
	puller->values(puller->context, pull->tag, rows);
}

/* Are these rows some of those that were asked for, in the form of an answer? */
static bool is_sound(const struct hot_puller *puller, const struct hot_pull *pull, void *payload,
                     uint32_t bytes)
{
	const struct sparse_rows *head = payload;
	uint8_t *asked = payload_at(puller, pull->number);
	uint32_t asked_n = ((const struct sparse_rows *)(void *)asked)->n, k = 0;

	if (bytes < sizeof(*head) || head->width != puller->width || head->n > asked_n ||
	    bytes != sparse_rows_bytes(head->n, head->width, 1))
		return false;
	for (uint32_t i = 0; i < head->n; i++, k++) {
		while (k < asked_n && sparse_numbers(asked)[k] != sparse_numbers(payload)[i])
			k++;
		if (k == asked_n)
			return false;
	}
	return true;
}

void hot_puller_take(struct hot_puller *puller, const struct wire_header *header, uint32_t bytes,
                     uint64_t now)
{
	struct hot_pull *pull = &puller->pulls[header->pos % HOT_PULLS];
	void *payload = (void *)(uintptr_t)(header + 1);
	struct hot_rows rows = { 0 };

	if (header->op != SPARSE_PULL || !pull->bytes || pull->number != header->pos ||
	    !pull->tries)
		return;
	hot_timer_answered(&puller->timer, pull->sent_at, pull->tries, header->flags & WIRE_RESENT,
	                   now);
	if (!(header->from & SPARSE_REFUSED) &&
	    is_sound(puller, pull, payload, bytes - WIRE_HEADER)) {
		rows.n = ((const struct sparse_rows *)payload)->n;
		rows.numbers = sparse_numbers(payload);
		rows.values = sparse_values(payload, rows.n);
	}
	end(puller, pull, &rows);
}

void hot_puller_lost(struct hot_puller *puller)
{
	const struct hot_rows none = { 0 };

	for (unsigned i = 0; i < HOT_PULLS; i++)
		if (puller->pulls[i].bytes)
			end(puller, &puller->pulls[i], &none);
}
