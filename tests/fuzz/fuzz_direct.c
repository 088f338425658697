/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rank 0 of four makes direct calls, and takes messages of the other ranks: right ones, damaged
 * ones, and any bytes. Every message is taken, kept, or refused with a sentence. Allgathers take
 * steps.
 */
#include "fuzz.h"
#include "worker/ring/direct.h"

#include <string.h>

#define RANKS 4u
#define COUNT_MAX 64u

static void post(struct direct *direct, uint8_t what, size_t count, int32_t *memory)
{
	struct round_spec vectors[RANKS];
	enum direct_what kind = DIRECT_ALLREDUCE + what % 3;
	unsigned n = kind == DIRECT_ALLREDUCE ? 1 : RANKS;
	struct direct_call *call;

	for (unsigned r = 0; r < n; r++)
		vectors[r] = (struct round_spec){
			.type = what & 8 ? TRIB_F32 : TRIB_I32,
			.op = TRIB_SUM,
			.count = count,
			.copy = kind == DIRECT_GATHER,
			.source = memory,
			.target = kind == DIRECT_SCATTER && r ? NULL : memory + r * COUNT_MAX,
			.from = kind == DIRECT_GATHER ? (uint8_t)r : WIRE_ALL,
			.to = kind == DIRECT_SCATTER ? (uint8_t)r : WIRE_ALL,
			.small = RANKS,
		};
	call = direct_call_new(kind, vectors, n, NULL);
	demand(call);
	if (direct_post(direct, call) != TRIB_OK)
		demand(*trib_last_error());
}

/* Keeps the newest message to each rank. */
static void write_messages(struct direct *direct, struct message *newest[])
{
	trib_status status = TRIB_OK;
	struct message *message;
	unsigned to;

	while ((message = direct_next(direct, &to, &status))) {
		free(newest[to]);
		newest[to] = message;
	}
	demand(status == TRIB_OK);
}

/* A message as the other rank would send it, with one byte changed: ranks make the same calls. */
static void take_damaged(struct direct *direct, unsigned from, const struct message *newest,
                         uint8_t at, uint8_t mask)
{
	struct message *message;

	if (!newest)
		return;
	message = message_new(NULL, newest->bytes);
	demand(message);
	memcpy(message->data, newest->data, newest->bytes);
	message->data[at % message->bytes] ^= mask;
	if (direct_take(direct, from, message) != TRIB_OK)
		demand(*trib_last_error());
}

static void take_any(struct direct *direct, unsigned from, struct fuzz_input *input)
{
	uint32_t bytes = fuzz_byte(input);
	struct message *message = message_new(NULL, bytes);

	demand(message);
	for (uint32_t i = 0; i < bytes; i++)
		message->data[i] = fuzz_byte(input);
	if (direct_take(direct, from, message) != TRIB_OK)
		demand(*trib_last_error());
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct wire_call around = { .kind = WIRE_CALL_ALLREDUCE, .count = 1 << 20 };
	struct fuzz_input input = { data, data + size };
	int32_t memory[RANKS * COUNT_MAX] = { 0 };
	struct message *newest[RANKS] = { 0 };
	struct direct direct;

	direct_init(&direct, 0, RANKS, 256);
	while (input.at < input.end) {
		uint8_t step = fuzz_byte(&input);
		unsigned from = 1 + (step >> 3) % (RANKS - 1);
		trib_status status = TRIB_OK;

		switch (step % 5) {
		case 0:
			post(&direct, step >> 3, fuzz_byte(&input) % COUNT_MAX, memory);
			break;
		case 1:
			(void)direct_pass(&direct, &around);
			break;
		case 2:
			take_damaged(&direct, from, newest[from], fuzz_byte(&input),
			             fuzz_byte(&input));
			break;
		case 3:
			take_any(&direct, from, &input);
			break;
		default:
			direct_call_free(direct_finish(&direct, &status));
			demand(status == TRIB_OK);
		}
		write_messages(&direct, newest);
	}
	for (unsigned r = 0; r < RANKS; r++)
		free(newest[r]);
	direct_clear(&direct);
	return 0;
}
