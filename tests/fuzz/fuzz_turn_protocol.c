/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The protocol of turns with ranks that say anything: no more shares are held than the capacity,
 * and messages to a rank are about an existing change. And a rank that is told anything: it uses no
 * request that it was not asked about, and requests that it has begun stay as they were.
 */
#include "control/policy/turn_protocol.h"
#include "fuzz.h"
#include "worker/turns/star.h"

#define SHARES 3u
#define RANKS 2u

static struct wire_turn read_word(struct fuzz_input *input)
{
	struct wire_turn word = { .serial = fuzz_byte(input),
		                  .session = fuzz_byte(input) % 4,
		                  .change = fuzz_byte(input) % 16,
		                  .from = fuzz_byte(input),
		                  .next = fuzz_byte(input),
		                  .word = fuzz_byte(input) % WIRE_TURN_WORDS_END,
		                  .phase = fuzz_byte(input) % WIRE_TURN_PHASES_END,
		                  .flags = fuzz_byte(input) };

	word.star = word.flags >> 6;

	word.to = word.from + fuzz_byte(input) % 8;
	return word;
}

static void try_controller(struct fuzz_input *input)
{
	struct turns turns = { .capacity = 1 + fuzz_byte(input) % 2 };
	struct turns_share shares[SHARES];
	uint64_t now = 1;

	for (unsigned i = 0; i < SHARES; i++)
		turns_add(&turns, &shares[i], RANKS, 1, false, now);
	while (input->at < input->end) {
		uint8_t what = fuzz_byte(input);
		struct turns_share *share = &shares[what % SHARES];
		struct wire_turn word = read_word(input), said;

		now += (uint64_t)(what >> 5) * 40000000;
		switch (what / SHARES % 7) {
		case 0:
			if (turns_may_give(&turns, share))
				turns_give(share, word.from, word.to, now);
			break;
		case 1:
			if (share->held && share->step == TURNS_IDLE && !share->lost)
				turns_cut(share, word.from, now);
			break;
		case 2:
			turns_tick(share, now, TURNS_LEASE_NS);
			break;
		case 3:
			turns_fenced(share);
			break;
		case 4:
			turns_release(share, what & 1, now);
			demand(!turns_may_give(&turns, share));
			break;
		default:
			turns_hear(share, what % RANKS, &word, now);
		}
		demand(turns_holders(&turns) <= turns.capacity);
		for (unsigned r = 0; r < RANKS; r++)
			if (turns_say(share, r, &said))
				demand(!share->lost && (said.change <= share->change ||
				                        said.change == share->rank[r].change));
	}
}

static void try_rank(struct fuzz_input *input)
{
	struct star star = { .step = STAR_JOINED };
	struct turn turn = { 0 };
	bool asked[512] = { false };
	uint64_t next = 0;

	while (input->at < input->end) {
		struct wire_turn word = read_word(input);
		struct turn before = turn;
		uint32_t number = star.number;

		if (fuzz_byte(input) & 1 && !turn_waits(&turn, next) && next < 256) {
			demand(!turn_uses(&turn, next) || asked[next]);
			next++;
		}
		for (uint64_t i = word.from; i < word.to && word.word == WIRE_TURN_PREPARE; i++)
			asked[i] = true;
		star_hear(&star, &turn, &word, next);
		demand(turn.session >= before.session && star.number >= number);
		demand(turn.change >= before.change || star.number > number);
		if (star.number > number) { /* no hold is left, and nothing waits */
			demand(star.step == STAR_LEAVING && !turn_waits(&turn, next));
			for (uint64_t i = next; i < 512; i++)
				demand(!turn_uses(&turn, i));
			star.step = (enum star_step)(word.next % (STAR_ASTRAY + 1));
			continue;
		}
		for (uint64_t i = next > 16 ? next - 16 : 0; i < next; i++)
			demand(!turn_uses(&turn, i) || turn_uses(&before, i));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input controller = { data, data + size }, rank = { data, data + size };

	try_controller(&controller);
	try_rank(&rank);
	return 0;
}
