/* SPDX-License-Identifier: Apache-2.0 */
/* A stream alone: when packets leave, what it reports, and what it takes for lost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/bitmap.h"
#include "wire/brief.h"
#include "worker/dense/stream_internal.h"

#include <stdlib.h>

#define SECOND 1000000000ull

#define FEW 3u

struct fragment {
	struct wire_header header;
	uint8_t payload[256];
};

static struct round_spec sum_of(const void *in, void *out, size_t count, trib_type type)
{
	return (struct round_spec){ .source = in,
		                    .target = out,
		                    .count = count,
		                    .type = type,
		                    .op = TRIB_SUM,
		                    .from = WIRE_ALL,
		                    .to = WIRE_ALL };
}

static void finished(void *context, struct round *round)
{
	(void)context;
	(void)round;
}

/* A few fragments have been sent. */
static void few_sent(struct stream *stream, const struct round_spec *spec,
                     struct fragment data[FEW])
{
	stream_init(stream, 0, 0, 1, 16, 256);
	stream->on_finished = finished;
	assert_true(stream_post(stream, round_new(spec, 0, 256), SECOND));
	for (unsigned i = 0; i < FEW; i++)
		assert_int_equal(stream_next(stream, SECOND, &data[i]), WIRE_HEADER + 256);
}

/* Three results are requested again. For two, the first copy arrives after all: one was lost. */
static void test_late_is_not_lost(void **state)
{
	uint32_t in[FEW * 64] = { 0 }, out[FEW * 64];
	struct round_spec spec = sum_of(in, out, FEW * 64, TRIB_U32);
	struct fragment data[FEW];
	struct wire_whole packet;
	struct stream stream;

	(void)state;
	few_sent(&stream, &spec, data);
	while (stream_next_report(&stream, SECOND + 1000000, &packet))
		;
	packet.header = (struct wire_control){ .type = WIRE_STATUS };
	packet.status = (struct wire_status){ .bits = FEW,
		                              .stamp = (uint32_t)(SECOND / 1000) + 1000,
		                              .complete = { (1 << FEW) - 1 } };
	stream_on_status(&stream, &packet.header, SECOND + 2000000);
	assert_true(stream_next_report(&stream, SECOND + 2000000, &packet));
	assert_int_equal(packet.report.missing[0], (1 << FEW) - 1);
	assert_int_equal(packet.report.again, 0);
	for (unsigned i = 0; i < FEW; i++) { /* with one worker, its input is the sum */
		data[i].header.type = WIRE_RESULT;
		data[i].header.flags |= i == 1 ? WIRE_RESENT : 0;
		assert_true(stream_on_result(&stream, &data[i].header, 256, SECOND + 3000000));
	}
	data[1].header.flags &= (uint8_t)~WIRE_RESENT; /* a duplicate does not count twice */
	assert_true(stream_on_result(&stream, &data[1].header, 256, SECOND + 3000000));
	assert_true(stream_heartbeat(&stream, SECOND + 4000000, &packet));
	assert_int_equal(packet.report.again, 1);
	stream_clear(&stream);
}

/* What had left when the rate fell is sent again if it was lost, but says nothing of the new rate.
 */
static void test_rate_fell(void **state)
{
	uint32_t in[FEW * 64] = { 0 }, out[FEW * 64];
	struct round_spec spec = sum_of(in, out, FEW * 64, TRIB_U32);
	struct wire_whole packet;
	struct fragment data[FEW];
	struct stream stream;

	(void)state;
	few_sent(&stream, &spec, data);
	stream_rate_fell(&stream, SECOND + 1000000);
	assert_int_equal(stream.rate_fell_after, FEW);
	for (unsigned turn = 0; turn < 2; turn++) { /* all are lost, and their repeats too */
		uint64_t now = SECOND + (turn + 1) * 2000000;

		stream_report_sent(&stream, now);
		assert_true(stream_next_report(&stream, now, &packet));
		packet.header = (struct wire_control){ .type = WIRE_STATUS };
		packet.status = (struct wire_status){ .bits = FEW,
			                              .stamp = (uint32_t)(now / 1000) | 1,
			                              .missing = { (1 << FEW) - 1 } };
		stream_on_status(&stream, &packet.header, now);
		assert_int_equal(stream.stats.judged, turn * FEW);
		assert_int_equal(stream.stats.lost, turn * FEW);
		for (unsigned i = 0; i < FEW; i++)
			assert_true(stream_next(&stream, now, &data[i]));
		assert_int_equal(stream.stats.resent, (turn + 1) * FEW);
		/* A rate that falls all the time does not put it off for ever. */
		stream_rate_fell(&stream, now);
		assert_int_equal(stream.rate_fell_after, FEW);
	}
	stream_rate_fell(&stream, SECOND + 200000000);
	assert_int_equal(stream.rate_fell_after, 3 * FEW);
	stream_clear(&stream);
}

/* A result that arrived before its round started here was not lost. The next one was. */
static void test_early_is_not_lost(void **state)
{
	uint32_t in[2 * 64] = { 0 }, out[2 * 64];
	struct round_spec spec = { .source = in,
		                   .target = out,
		                   .count = sizeof(in),
		                   .type = TRIB_U32,
		                   .op = TRIB_SUM,
		                   .copy = true,
		                   .from = 0,
		                   .to = WIRE_ALL };
	struct fragment data[2];
	struct stream sender, receiver;

	(void)state;
	stream_init(&sender, 0, 0, 2, 16, 256);
	stream_init(&receiver, 0, 1, 2, 16, 256);
	sender.on_finished = receiver.on_finished = finished;
	assert_true(stream_post(&sender, round_new(&spec, 0, 256), SECOND));
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(stream_next(&sender, SECOND, &data[i]), WIRE_HEADER + 256);
		data[i].header.type = WIRE_RESULT;
	}
	assert_true(stream_on_result(&receiver, &data[0].header, 256, SECOND));
	assert_true(stream_post(&receiver, round_new(&spec, 1, 256), SECOND));
	for (unsigned i = 0; i < 2; i++) {
		data[i].header.flags |= WIRE_RESENT;
		assert_true(stream_on_result(&receiver, &data[i].header, 256, SECOND));
	}
	assert_int_equal(receiver.done, 2);
	assert_int_equal(receiver.stats.again, 1);
	stream_clear(&sender);
	stream_clear(&receiver);
}

#define SLOW 4096u

/*
 * One worker, a fragment each millisecond. `lost`: the fragment that the aggregator misses. Returns
 * the number of reports.
 */
static unsigned reports_of_slow(uint64_t cells, unsigned lost)
{
	static uint32_t in[SLOW * 64], out[SLOW * 64];
	struct round_spec spec = sum_of(in, out, SLOW * 64, TRIB_U32);
	struct fragment data;
	struct wire_whole packet;
	struct stream stream;
	uint64_t now = SECOND;
	unsigned reports = 0;

	stream_init(&stream, 0, 0, 1, (uint32_t)cells, 256);
	stream.on_finished = finished;
	assert_true(stream_post(&stream, round_new(&spec, 0, 256), now));
	while (stream_next(&stream, now, &data)) {
		bool drops = data.header.pos == lost && !stream.stats.resent;

		now += 1000000;
		data.header.type = WIRE_RESULT;
		if (!drops)
			assert_true(stream_on_result(&stream, &data.header, 256, now));
		stream_on_low(&stream, stream.done);
		while (stream_next_report(&stream, now, &packet)) {
			struct wire_report report = packet.report;

			reports++;
			packet.status = (struct wire_status){ .low = stream.done,
				                              .base = report.base,
				                              .bits = report.bits,
				                              .stamp = report.stamp };
			if (lost - report.base < report.bits && !stream.stats.resent)
				bitmap_set(packet.status.missing, lost - report.base);
			stream_on_status(&stream, &packet.header, now);
		}
	}
	assert_int_equal(stream.done, SLOW);
	stream_clear(&stream);
	return reports;
}

/* Without loss reports are rare. After a loss, or with a small window, there are more. */
static void test_calm_reports_seldom(void **state)
{
	unsigned calm = reports_of_slow(SLOW, SLOW), shaken = reports_of_slow(SLOW, SLOW / 2);
	unsigned window_probe = reports_of_slow(128, SLOW);

	(void)state;
	/*
	 * At first, and after a loss, one report for 16 fragments, the fewest that are worth one.
	 */
	assert_in_range(calm, SLOW / 40, SLOW / 40 + 100 / 16 + 2);
	assert_in_range(shaken, calm + 2, calm + 100 / 16 + 2);
	assert_in_range(window_probe, SLOW / 17, SLOW / 16 + 8);
}

#define MANY 300u

/* A report covers what this worker has sent and what others send. There is no news of the rest. */
static void test_report_ends_where_sent(void **state)
{
	static uint32_t in[MANY * 64], out[MANY * 64];
	struct round_spec spec = sum_of(in, out, MANY * 64, TRIB_U32);
	struct wire_whole packet;
	uint8_t data[WIRE_HEADER + 256] __attribute__((aligned(8)));
	struct stream stream;

	(void)state;
	stream_init(&stream, 0, 0, 2, 1024, 256);
	stream.on_finished = finished;
	assert_true(stream_post(&stream, round_new(&spec, 0, 256), SECOND));
	assert_true(stream_heartbeat(&stream, SECOND, &packet));
	assert_int_equal(packet.report.bits, 0);
	for (unsigned i = 0; i < FEW; i++)
		assert_int_equal(stream_next(&stream, SECOND, data), sizeof(data));
	assert_true(stream_heartbeat(&stream, SECOND, &packet));
	assert_int_equal(packet.report.bits, FEW);
	spec.copy = true;
	spec.count = FEW * 256;
	spec.from = 1;
	assert_true(stream_post(&stream, round_new(&spec, 0, 256), SECOND));
	assert_true(stream_heartbeat(&stream, SECOND, &packet));
	assert_int_equal(packet.report.bits, MANY + FEW);
	spec.from = 0;
	assert_true(stream_post(&stream, round_new(&spec, 0, 256), SECOND));
	assert_true(stream_heartbeat(&stream, SECOND, &packet));
	assert_int_equal(packet.report.bits, MANY + FEW);
	stream_clear(&stream);
}

/*
 * Special values come before all data and are settled with the last exponents, so they are the
 * first unfinished fragments. But no result will come for them. So a report begins behind them, and
 * a question after silence is about data. The answer tells whether data is lost or late. Only if no
 * answer comes, the stream treats data as lost.
 */
static void test_report_begins_at_gap(void **state)
{
	static float in[MANY * 64], out[MANY * 64];
	struct round_spec spec = sum_of(in, out, MANY * 64, TRIB_F32);
	struct round *round = round_new(&spec, 0, 256);
	struct fragment packet;
	struct wire_whole report;
	struct stream stream;
	uint32_t data, sent = 0;

	(void)state;
	stream_init(&stream, 0, 0, 1, 1024, 256);
	stream.on_finished = finished;
	data = round->exponents + round->specials;
	assert_true(round->exponents > 1 && round->specials > 1);
	assert_true(stream_post(&stream, round, SECOND));
	while (sent < 5) { /* exponents and the first three data fragments */
		assert_true(stream_next(&stream, SECOND, &packet));
		sent += packet.header.pos >= data;
		packet.header.type = WIRE_RESULT;
		if (sent < 4)
			assert_true(stream_on_result(&stream, &packet.header,
			                             round_bytes(round, packet.header.pos),
			                             SECOND));
	}
	assert_true(stream.done < data);
	while (stream_next_report(&stream, SECOND, &report))
		;
	for (uint64_t i = 1; i <= 4; i++) {
		const struct wire_whole status = { .status = { .stamp = 1, .base = data + 3 } };

		assert_true(stream_next_report(&stream, SECOND + i * SECOND / 10, &report));
		assert_int_equal(report.report.base, data + 3);
		assert_int_equal(report.report.bits, 2);
		assert_int_equal(report.report.missing[0], i == 4 ? 3 : 0);
		if (i < 3) /* the first two reports are answered: nothing is complete */
			stream_on_status(&stream, &status.header, SECOND + i * SECOND / 10);
	}
	stream_clear(&stream);
}

/*
 * Links must not be idle while blocks are read, and workers should not guess. So the first data
 * follows one small fragment of exponents. Other exponents leave one by one, some time before their
 * data.
 */
static void exponents_lead(unsigned payload, size_t blocks)
{
	size_t count = blocks * (payload / 4);
	float *in = calloc(count, sizeof(*in)), *out = malloc(count * sizeof(*out));
	struct round_spec spec = sum_of(in, out, count, TRIB_F32);
	struct round *round = round_new(&spec, 0, payload);
	uint64_t packet[(WIRE_HEADER + WIRE_PAYLOAD_MAX) / 8];
	uint32_t exponents = 0, data = 0, since = 1;
	struct stream stream;

	assert_true(in && out && round && round->exponents > 3);
	stream_init(&stream, 0, 0, 1, 1 << 20, payload);
	stream.on_finished = finished;
	stream.reliable = true; /* so that everything leaves without answers */
	assert_true(stream_post(&stream, round, SECOND));
	while (stream_next(&stream, SECOND, packet)) {
		if (((struct wire_header *)packet)->pos < round->exponents) {
			uint64_t read = round_scanned(round);

			assert_true(since > 0); /* data has left between them */
			if (!exponents)
				assert_true(read * payload < 300 << 10);
			else if (exponents == 1)
				assert_true(data <= round->first_exponents / 2 + 1);
			else
				assert_true(read - round->per_exponents >= data + data / 2 ||
				            read - round->per_exponents >= data + 500);
			exponents++;
			since = 0;
		} else {
			assert_true(data < round_scanned(round));
			data++;
			since++;
		}
	}
	assert_int_equal(exponents, round->exponents);
	assert_int_equal(data, blocks);
	stream_clear(&stream);
	free(in);
	free(out);
}

static void test_exponents_lead(void **state)
{
	(void)state;
	exponents_lead(256, 1000);
	exponents_lead(1448, 4000);
	exponents_lead(8944, 1000);
}

/* If data waits for classes, the first ones of a round leave before the round ahead of it ends. */
static void test_exponents_of_next_round(void **state)
{
	enum { PAYLOAD = 1448, BLOCKS = 4000 };
	size_t count = (size_t)BLOCKS * (PAYLOAD / 4);
	float *in = calloc(count, sizeof(*in)), *out = malloc(count * sizeof(*out));
	struct round_spec spec = sum_of(in, out, count, TRIB_F32);
	struct round *rounds[2] = { round_new(&spec, 0, PAYLOAD), round_new(&spec, 0, PAYLOAD) };
	uint64_t packet[(WIRE_HEADER + WIRE_PAYLOAD_MAX) / 8];
	struct wire_header *header = (void *)packet;
	uint32_t before = 0, bytes;
	struct stream stream;

	(void)state;
	assert_true(in && out && rounds[0] && rounds[1]);
	stream_init(&stream, 0, 0, 1, 1 << 20, PAYLOAD);
	stream.on_finished = finished;
	stream.reliable = true;
	stream.guesses_fail = true;
	assert_true(stream_post(&stream, rounds[0], SECOND));
	assert_true(stream_post(&stream, rounds[1], SECOND));
	while ((bytes = stream_next(&stream, SECOND, packet)) && header->pos < rounds[1]->base) {
		before = rounds[0]->next_data;
		if (header->pos < rounds[0]->exponents) /* all ranks agree at once */
			assert_true(stream_on_result(&stream, header, bytes - WIRE_HEADER, SECOND));
	}
	assert_int_equal(header->pos, rounds[1]->base);
	assert_in_range(before, BLOCKS / 3, BLOCKS - 1000);
	stream_clear(&stream);
	free(in);
	free(out);
}

/*
 * Data of short integers has many classes. Once data flows, their packets leave eight at a time,
 * and in between is data only.
 */
static void test_exponents_together(void **state)
{
	enum { PAYLOAD = 1448, BLOCKS = 8000, TOGETHER = 8 };
	size_t count = (size_t)BLOCKS * (PAYLOAD / 2);
	uint16_t *in = calloc(count, sizeof(*in)), *out = malloc(count * sizeof(*out));
	struct round_spec spec = sum_of(in, out, count, TRIB_BF16);
	uint64_t packet[(WIRE_HEADER + WIRE_PAYLOAD_MAX) / 8];
	uint32_t exponents = 0, data = 0, checked = 0, bytes;
	struct wire_header *header = (void *)packet;
	struct stream stream;
	struct round *round;

	(void)state;
	spec.per_word = 4;
	round = round_new(&spec, 0, PAYLOAD);
	assert_true(in && out && round && round->exponents > 10 * TOGETHER);
	stream_init(&stream, 0, 0, 1, 1 << 20, PAYLOAD);
	stream.on_finished = finished;
	stream.reliable = true;
	assert_true(stream_post(&stream, round, SECOND));
	while (data < BLOCKS && (bytes = stream_next(&stream, SECOND, packet))) {
		if (header->pos < round->exponents) { /* all ranks agree at once */
			assert_int_equal(header->pos, exponents);
			exponents++;
			assert_true(stream_on_result(&stream, header, bytes - WIRE_HEADER, SECOND));
			continue;
		}
		assert_true(data < round_scanned(round));
		data++;
		if (data <= TOGETHER * round->per_exponents || exponents == round->exponents)
			continue;
		assert_int_equal(exponents % TOGETHER, 0);
		assert_true(round_scanned(round) >= data + (data < 2048 ? data : 2048) - 1);
		checked++;
	}
	assert_int_equal(exponents, round->exponents);
	assert_int_equal(data, BLOCKS);
	assert_true(checked > BLOCKS / 2);
	stream_clear(&stream);
	free(in);
	free(out);
}

#define MOST 1024u

/* Sends what may leave, and answers each report `rtt` later. Gives the packets that have left. */
static unsigned send_and_answer(struct stream *stream, uint64_t *now, uint64_t rtt)
{
	uint32_t stamps[64];
	struct fragment data;
	struct wire_whole packet;
	unsigned n = 0, reports = 0;

	do {
		while (reports < 64 && stream_next_report(stream, *now, &packet))
			stamps[reports++] = packet.report.stamp;
	} while (stream_next(stream, *now, &data) && ++n);
	*now += rtt;
	for (unsigned i = 0; i < reports; i++) {
		packet.header = (struct wire_control){ .type = WIRE_STATUS };
		packet.status = (struct wire_status){ .stamp = stamps[i] };
		stream_on_status(stream, &packet.header, *now);
	}
	return n;
}

/* Where routers are on the way, the round trips of reports bound what is in flight. */
static void test_delay_bounds_flight(void **state)
{
	static uint32_t in[MOST * 64], out[MOST * 64];
	struct round_spec spec = sum_of(in, out, MOST * 64, TRIB_U32);
	struct stream stream, free;
	uint64_t now = SECOND, later = SECOND;
	unsigned wide = 0, narrow = 0;

	(void)state;
	stream_init(&stream, 0, 0, 1, 2 * MOST, 256);
	stream_init(&free, 0, 0, 1, 2 * MOST, 256);
	stream.on_finished = free.on_finished = finished;
	stream_new_path(&stream, true);
	assert_true(stream_post(&stream, round_new(&spec, 0, 256), now));
	assert_true(stream_post(&free, round_new(&spec, 0, 256), now));
	assert_int_equal(send_and_answer(&free, &later, 100000), MOST);
	assert_int_equal(send_and_answer(&stream, &now, 100000), (unsigned)WINDOW_START);
	for (unsigned i = 0; i < 4; i++)
		wide = send_and_answer(&stream, &now, 100000);
	assert_true(wide > 2 * WINDOW_START);
	for (unsigned i = 0; i < 4; i++) /* packets wait 20 ms in a queue */
		narrow = send_and_answer(&stream, &now, 20000000);
	assert_true(narrow < wide / 2);
	stream_new_path(&stream, true);
	assert_int_equal(flight_limit(&stream.flight), (unsigned)WINDOW_START);
	stream_clear(&stream);
	stream_clear(&free);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_late_is_not_lost),
		cmocka_unit_test(test_rate_fell),
		cmocka_unit_test(test_early_is_not_lost),
		cmocka_unit_test(test_calm_reports_seldom),
		cmocka_unit_test(test_report_ends_where_sent),
		cmocka_unit_test(test_report_begins_at_gap),
		cmocka_unit_test(test_exponents_lead),
		cmocka_unit_test(test_exponents_of_next_round),
		cmocka_unit_test(test_exponents_together),
		cmocka_unit_test(test_delay_bounds_flight),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
