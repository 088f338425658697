/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An aggregator that lies to the hot path: any answers reach a worker's sender and puller, and the
 * server's flusher. Nothing outside the buffers may be touched. Each packet ends at most once, and
 * a round has no row twice.
 */
#include "fuzz.h"
#include "sparse/hot/hot_flusher.h"
#include "sparse/hot/hot_puller.h"
#include "sparse/hot/hot_sender.h"

#include <stdlib.h>
#include <string.h>

#define PAYLOAD 256u
#define WIDTH 3u
#define ROWS 70u
#define KEPT 16u
#define WORKERS 2u

struct liar {
	struct hot_sender sender;
	struct hot_puller puller;
	struct hot_flusher flusher;
	uint64_t posted, ended, asked, heard, now;
};

static void on_done(void *context, uint64_t tag)
{
	struct liar *liar = context;

	(void)tag;
	demand(++liar->ended <= liar->posted);
}

static void on_back(void *context, const struct hot_back *back)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < back->rows.n; i++)
		sum += back->rows.numbers[i] + back->rows.values[i * WIDTH];
	demand(back->rows.n <= ROWS && sum < UINT64_MAX);
	if (!back->goes_on)
		on_done(context, back->tag);
}

static uint32_t on_renumber(void *context, uint16_t generation, uint32_t number)
{
	(void)context;
	demand(number < ROWS);
	return number % 3 ? (number + generation) % ROWS : HOT_NO_ROW;
}

static void on_values(void *context, uint64_t tag, const struct hot_rows *rows)
{
	struct liar *liar = context;

	demand(++liar->heard <= liar->asked);
	for (uint32_t i = 0; i < rows->n; i++)
		demand(rows->numbers[i] < ROWS && tag == 7);
}

static const float *value(void *context, uint32_t row)
{
	static const float zeros[WIDTH];

	(void)context;
	demand(row < ROWS);
	return zeros;
}

static void open_all(struct liar *liar, bool caches)
{
	struct hot_sender_options sender = { .child = 1,
		                             .width = WIDTH,
		                             .payload = PAYLOAD,
		                             .kept = KEPT,
		                             .calls = { liar, on_done, on_back, on_renumber } };
	struct hot_flusher_options flusher = {
		.workers = WORKERS,
		.payload = PAYLOAD,
		.setup = { .width = WIDTH, .rows = ROWS, .layout = caches },
		.every_ns = 1000,
		.idle_ns = 2000,
		.value = value
	};

	demand(hot_sender_open(&liar->sender, &sender));
	demand(hot_puller_open(&liar->puller, WIDTH, PAYLOAD));
	demand(hot_flusher_open(&liar->flusher, &flusher, 0));
	liar->puller.context = liar;
	liar->puller.values = on_values;
}

static void post(struct liar *liar, struct fuzz_input *input)
{
	uint16_t numbers[ROWS];
	uint32_t values[ROWS * WIDTH] = { 0 }, packets, n = 1 + fuzz_byte(input) % ROWS;
	struct hot_rows rows = { n, numbers, values };

	for (uint32_t i = 0; i < ROWS; i++)
		numbers[i] = (uint16_t)i;
	packets = (n + liar->sender.per_packet - 1) / liar->sender.per_packet;
	if (hot_sender_room(&liar->sender) < n)
		packets = 0;
	liar->posted += packets;
	demand(hot_sender_post(&liar->sender, 0, fuzz_byte(input) & 1, &rows) == packets);
	if (n <= liar->puller.per_packet)
		liar->asked += hot_puller_ask(&liar->puller, 7, 0, numbers, n);
}

static void send_all(struct liar *liar)
{
	_Alignas(8) uint8_t packet[WIRE_PACKET_MAX];
	uint64_t position;
	uint32_t bytes;

	while ((bytes = hot_sender_next(&liar->sender, liar->now, packet, &position)))
		demand(bytes <= WIRE_HEADER + PAYLOAD && bytes % 8 == 0);
	while ((bytes = hot_puller_next(&liar->puller, liar->now, packet)))
		demand(bytes <= WIRE_HEADER + PAYLOAD && bytes % 8 == 0);
	while ((bytes = hot_flusher_next(&liar->flusher, liar->now, packet)))
		demand(bytes <= WIRE_HEADER + PAYLOAD && bytes % 8 == 0);
}

static void check_flush(struct liar *liar)
{
	uint8_t seen[ROWS] = { 0 };
	struct hot_flush flush;

	if (!hot_flusher_flush(&liar->flusher, &flush))
		return;
	for (uint32_t i = 0; i < flush.n; i++)
		demand(flush.numbers[i] < ROWS && !seen[flush.numbers[i]]++);
	hot_flusher_logged(&liar->flusher);
}

/* An answer: near what is expected, so that it passes the first checks. */
static void answer(struct liar *liar, struct fuzz_input *input)
{
	uint32_t bytes = 8 * (fuzz_byte(input) % (PAYLOAD / 8 + 1));
	uint8_t *packet = calloc(1, WIRE_HEADER + bytes);
	struct wire_header *header = (void *)packet;
	uint8_t which = fuzz_byte(input);

	demand(packet);
	header->op = which % 9;
	header->type = WIRE_RESULT;
	header->pos = which & 64 ? liar->flusher.epoch : fuzz_byte(input);
	header->ack = fuzz_byte(input);
	header->scale = fuzz_byte(input) & 1;
	header->from = fuzz_byte(input) & 7;
	header->to = fuzz_byte(input) & 7;
	for (uint32_t i = 0; i < bytes; i++)
		packet[WIRE_HEADER + i] = fuzz_byte(input);
	hot_sender_take(&liar->sender, header, WIRE_HEADER + bytes, liar->now);
	hot_puller_take(&liar->puller, header, WIRE_HEADER + bytes, liar->now);
	hot_flusher_take(&liar->flusher, header, WIRE_HEADER + bytes, liar->now);
	free(packet);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input input = { data, data + size };
	struct liar liar = { .now = 1 };
	struct sparse_record record = { 0 };

	open_all(&liar, size & 1);
	while (input.at < input.end) {
		uint8_t what = fuzz_byte(&input);

		liar.now += (uint64_t)(what >> 3) << 16;
		if (what % 8 == 0)
			post(&liar, &input);
		else if (what % 8 == 1)
			hot_sender_hurry(&liar.sender);
		else if (what % 8 == 2)
			hot_sender_remap(&liar.sender, what >> 7);
		else
			answer(&liar, &input);
		check_flush(&liar);
		send_all(&liar);
		demand(liar.sender.durable <= liar.sender.low &&
		       liar.sender.low <= liar.sender.unsent &&
		       liar.sender.unsent <= liar.sender.next &&
		       liar.sender.next - liar.sender.durable <= KEPT);
	}
	record.low = liar.sender.durable + 2;
	hot_sender_lost(&liar.sender, &record);
	hot_puller_lost(&liar.puller);
	demand(liar.ended == liar.posted && liar.heard == liar.asked);
	hot_sender_close(&liar.sender);
	hot_puller_close(&liar.puller);
	hot_flusher_close(&liar.flusher);
	return 0;
}
