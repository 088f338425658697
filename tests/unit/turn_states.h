/* SPDX-License-Identifier: Apache-2.0 */
/*
 * turn_states: for tests that explore the protocol of turns. Hashes of its parts, and a timeout.
 * Every field that can change what happens next is part of a hash.
 */
#ifndef TRIB_TESTS_TURN_STATES_H
#define TRIB_TESTS_TURN_STATES_H

#include "control/policy/turn_protocol.h"
#include "seen.h"
#include "worker/turns/turn.h"

static inline uint64_t hash_word(uint64_t hash, const struct wire_turn *word)
{
	hash = hash_more(hash, word->serial << 40 | word->session << 32 | word->change << 24 |
	                               (uint64_t)word->word << 16 | (uint64_t)word->phase << 12 |
	                               (uint64_t)word->flags << 8 | word->star);
	return hash_more(hash, word->from << 16 | word->to << 8 | word->next);
}

static inline uint64_t hash_turn(uint64_t hash, const struct turn *turn)
{
	hash = hash_more(hash, turn->session << 32 | turn->change << 8 | (uint64_t)turn->phase);
	return hash_more(hash, turn->asked.from << 40 | turn->asked.to << 32 |
	                               turn->now.from << 24 | turn->now.to << 16 |
	                               turn->last.from << 8 | turn->last.to);
}

static inline uint64_t hash_share(uint64_t hash, const struct turns_share *share, unsigned ranks)
{
	hash = hash_more(hash, share->change << 32 | share->from << 24 | share->to << 16 |
	                               share->held_change << 8 | (uint64_t)share->step << 5 |
	                               (uint64_t)share->known << 4 | (uint64_t)share->held << 3 |
	                               (uint64_t)share->was_held << 2 | (uint64_t)share->lost << 1 |
	                               share->leaving);
	hash = hash_more(hash, share->session << 24 | share->held_to << 16 | share->refused << 8 |
	                               share->joining);
	for (unsigned r = 0; r < ranks; r++) {
		const struct turns_rank *rank = &share->rank[r];

		hash = hash_more(hash, rank->to << 48 | rank->serial << 32 | rank->change << 24 |
		                               rank->next << 16 | (uint64_t)rank->phase << 3 |
		                               (uint64_t)rank->silent << 2 |
		                               (uint64_t)rank->done << 1 | rank->heard);
	}
	return hash;
}

/* The ranks did not answer in time. False: the controller does not ask now. */
static inline bool share_time_out(struct turns_share *share, unsigned ranks)
{
	if (share->step != TURNS_ASKING)
		return false;
	for (unsigned r = 0; r < ranks; r++)
		share->rank[r].heard_at = TURNS_ASK_NS + 1;
	turns_tick(share, TURNS_ASK_NS + 1, TURNS_LEASE_NS);
	for (unsigned r = 0; r < ranks; r++)
		share->rank[r].heard_at = 0;
	return true;
}

#endif
