/* SPDX-License-Identifier: Apache-2.0 */
/* Which rows are hot: ranking, Principle 1 of Libra, counts that decay, and maps that change. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "short.h"
#include "sparse/heat/heat_map.h"
#include "sparse/heat/heat_set.h"
#include "sparse/heat/heat_watch.h"
#include "sparse/heat/key_index.h"

#include <string.h>

static uint64_t seed = 1;

static uint32_t draw(uint32_t below)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)((seed >> 33) % below);
}

static void ranks_have_one_order(void **state)
{
	struct heat_key keys[] = { { 7, 2 }, { 9, 5 }, { 4, 7 }, { 1, 2 } };
	const struct heat_key expected[] = { { 4, 7 }, { 9, 5 }, { 1, 2 }, { 7, 2 } };
	const struct heat_key large[] = { { 1, UINT64_MAX }, { 2, 5 } };

	(void)state;
	heat_rank(keys, 4);
	assert_memory_equal(keys, expected, sizeof(expected));
	assert_int_equal(heat_total(keys, 4), 16);
	assert_true(heat_total(large, 2) == UINT64_MAX);
	heat_rank(NULL, 0);
}

/* 10, 9, 8 ... 1 updates: 55 in all. */
static void hot_keys_are_picked(void **state)
{
	struct heat_key keys[10];
	struct heat_limits limits = { .share = 1, .rows_max = 100, .step = 1 };
	struct heat_pick pick;

	(void)state;
	for (unsigned i = 0; i < 10; i++)
		keys[i] = (struct heat_key){ i, 10 - i };
	pick = heat_pick(keys, 10, 55, &limits);
	assert_int_equal(pick.n, 10);
	assert_int_equal(pick.reason, HEAT_ALL_KEYS);
	assert_true(pick.share == 1);
	limits.rows_max = 3;
	pick = heat_pick(keys, 10, 55, &limits);
	assert_int_equal(pick.n, 3);
	assert_int_equal(pick.reason, HEAT_NO_ROOM);
	assert_true(pick.share == 27.0 / 55);
	limits.share = 19.0 / 55;
	pick = heat_pick(keys, 10, 55, &limits);
	assert_int_equal(pick.n, 2);
	assert_int_equal(pick.reason, HEAT_ENOUGH);
	/* Steps of two: the third one adds 11 of 55, the fourth one 7. */
	limits = (struct heat_limits){ .share = 1, .rows_max = 100, .step = 2, .growth = 0.2 };
	pick = heat_pick(keys, 10, 55, &limits);
	assert_int_equal(pick.n, 6);
	assert_int_equal(pick.reason, HEAT_TRADE_OFF);
	/* Steps of four: the last one has two keys and 3 of 55, as 6 of 55 in a whole step. */
	limits.step = 4;
	limits.growth = 5.9 / 55;
	assert_int_equal(heat_pick(keys, 10, 55, &limits).n, 10);
	limits.growth = 6.1 / 55;
	assert_int_equal(heat_pick(keys, 10, 55, &limits).n, 8);
	/* The first step is taken even if it adds little. */
	limits.growth = 1;
	assert_int_equal(heat_pick(keys, 10, 55, &limits).n, 4);
	assert_int_equal(heat_pick(keys, 0, 0, &limits).n, 0);
	limits.rows_max = 0;
	assert_int_equal(heat_pick(keys, 10, 55, &limits).n, 0);
}

/* The border is 10: 14 is above it by more than its deviation, 13 is not. */
static void sure_keys_are_above_chance(void **state)
{
	const struct heat_key keys[] = { { 1, 900 }, { 2, 14 }, { 3, 13 }, { 4, 10 }, { 5, 9 } };

	(void)state;
	assert_int_equal(heat_sure(keys, 4, 0), 2);
	/* The larger the sample, the less is left to chance. */
	assert_int_equal(heat_sure(keys, 4, 0.5), 3);
	assert_int_equal(heat_sure(keys, 4, 1), 4);
	assert_int_equal(heat_sure(keys, 1, 0.04), 0);
	assert_int_equal(heat_sure(keys, 0, 0.04), 0);
}

/* ---- counts in bounded memory ---- */

static void set_open(struct heat_set *set, uint32_t room)
{
	void *memory = malloc(heat_set_bytes(room));

	assert_non_null(memory);
	heat_set_init(set, memory, room);
}

/* The count of a key in units; 0 if it is not among the kept ones. */
static uint64_t count_of(const struct heat_set *set, uint64_t key)
{
	for (uint32_t i = 0; i < set->n; i++)
		if (set->heap[i].key == key)
			return set->heap[i].count;
	return 0;
}

/* With room for all keys the counts are exact, and decay alike. */
static void exact_counts(uint32_t keys, uint32_t updates)
{
	struct heat_key listed[256];
	uint64_t count[256] = { 0 }, total = 0;
	struct heat_set set;

	set_open(&set, keys);
	for (uint32_t i = 0; i < updates; i++) {
		uint32_t key = draw(1 + draw(keys)), n = draw(4);

		heat_set_add(&set, key, n);
		count[key] += (uint64_t)n * HEAT_UNIT;
		total += (uint64_t)n * HEAT_UNIT;
		if (draw(50) == 0) {
			uint32_t keep = draw(257);

			heat_set_decay(&set, keep);
			total = total * keep / 256;
			for (uint32_t k = 0; k < keys; k++)
				count[k] = count[k] * keep / 256;
		}
		assert_true(count_of(&set, key) == count[key]);
	}
	assert_true(set.total == total);
	assert_int_equal(heat_set_list(&set, listed), set.n);
	for (uint32_t k = 0; k < keys; k++)
		assert_true(count_of(&set, k) == count[k]);
	for (uint32_t i = 0; i < set.n; i++) {
		assert_true(listed[i].count == count[listed[i].key] && listed[i].count > 0);
		assert_true(i == 0 || listed[i - 1].count > listed[i].count ||
		            (listed[i - 1].count == listed[i].count &&
		             listed[i - 1].key < listed[i].key));
	}
	free(set.heap);
}

static void counts_are_exact_with_room(void **state)
{
	uint64_t cases = test_cases("sets", 3000);

	(void)state;
	printf("seed %llu\n", (unsigned long long)seed);
	for (uint64_t i = 0; i < cases; i++)
		exact_counts(1 + draw(256), draw(600));
}

/* Without room: never too low, too high by at most total / room, and frequent keys are there. */
static void bounded_counts(uint32_t room, uint32_t keys, uint32_t updates)
{
	uint64_t *count = calloc(keys, sizeof(*count)), sum = 0;
	struct heat_set set;

	set_open(&set, room);
	for (uint32_t i = 0; i < updates; i++) {
		uint32_t key = draw(1 + draw(1 + draw(keys)));

		heat_set_add(&set, key, 1);
		count[key] += HEAT_UNIT;
	}
	assert_true(set.total == (uint64_t)updates * HEAT_UNIT);
	for (uint32_t k = 0; k < keys; k++) {
		uint64_t estimate = count_of(&set, k);

		sum += estimate;
		if (estimate)
			assert_true(estimate >= count[k] &&
			            estimate <= count[k] + set.total / room);
		else
			assert_true(count[k] <= set.total / room);
	}
	assert_true(sum == set.total);
	free(set.heap);
	free(count);
}

static void counts_are_bounded_without_room(void **state)
{
	uint64_t cases = test_cases("sets", 600);

	(void)state;
	for (uint64_t i = 0; i < cases; i++)
		bounded_counts(1 + draw(100), 1 + draw(2000), draw(5000));
}

static void counts_do_not_overflow(void **state)
{
	struct heat_set set;

	(void)state;
	set_open(&set, 2);
	for (unsigned i = 0; i < 10; i++)
		heat_set_add(&set, 1, UINT64_MAX);
	heat_set_add(&set, 2, 1);
	heat_set_decay(&set, 256);
	assert_true(count_of(&set, 1) == 1ull << 54 && set.total == 1ull << 54);
	heat_set_add(&set, 3, 5);
	assert_true(count_of(&set, 3) == 6ull * HEAT_UNIT && !count_of(&set, 2));
	for (unsigned i = 0; i < 70; i++)
		heat_set_decay(&set, 128);
	assert_int_equal(set.n, 0);
	free(set.heap);
}

/* Of keys with the same count, the lower one stays: the same pushes leave the same keys. */
static void ties_go_to_the_lower_key(void **state)
{
	static const uint64_t orders[][3] = { { 5, 9, 7 }, { 9, 7, 5 }, { 7, 5, 9 } };
	struct heat_set set;

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		set_open(&set, 3);
		for (unsigned j = 0; j < 3; j++)
			heat_set_add(&set, orders[i][j], orders[i][j]);
		heat_set_decay(&set, 1);  /* 5, 7 and 9 units are left */
		heat_set_decay(&set, 52); /* and now 1 of each */
		heat_set_add(&set, 20, 1);
		assert_true(count_of(&set, 5) == 1 && count_of(&set, 7) == 1);
		assert_true(count_of(&set, 9) == 0);
		assert_true(count_of(&set, 20) == 1 + HEAT_UNIT);
		free(set.heap);
	}
}

static void keys_get_numbers(void **state)
{
	struct key_index index = { 0 };
	uint32_t number;

	(void)state;
	assert_true(key_index_find(&index, 5) == KEY_INDEX_NONE);
	for (unsigned round = 0; round < 2; round++) {
		for (uint32_t i = 0; i < 5000; i++) {
			assert_int_equal(key_index_add(&index, ~(uint64_t)i << 20, &number),
			                 TRIB_OK);
			assert_int_equal(number, i);
		}
	}
	assert_int_equal(index.n, 5000);
	assert_int_equal(key_index_find(&index, ~(uint64_t)77 << 20), 77);
	assert_true(key_index_find(&index, 1) == KEY_INDEX_NONE);
	key_index_free(&index);
}

/* ---- maps ---- */

static void bands_double(void **state)
{
	(void)state;
	assert_int_equal(heat_band(0), 0);
	assert_int_equal(heat_band(63), 0);
	assert_int_equal(heat_band(64), 1);
	assert_int_equal(heat_band(191), 1);
	assert_int_equal(heat_band(192), 2);
	assert_int_equal(heat_band(447), 2);
	assert_int_equal(heat_band(448), 3);
	assert_int_equal(heat_band(UINT32_MAX), 26);
}

#define KEYS_MAX 2000u

/* A ranking of at most n random keys below KEYS_MAX; those drawn more often are hotter. */
static size_t ranking_draw(struct heat_key *ranked, uint32_t n, uint32_t noise)
{
	uint64_t count[KEYS_MAX] = { 0 };
	size_t kept = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t key = draw(KEYS_MAX);

		count[key] += 100000 / (1 + key) + draw(1 + noise);
	}
	for (uint32_t key = 0; key < KEYS_MAX; key++)
		if (count[key])
			ranked[kept++] = (struct heat_key){ key, count[key] };
	heat_rank(ranked, kept);
	return kept;
}

static void ranking_shake(struct heat_key *ranked, size_t n, uint32_t noise)
{
	for (size_t i = 0; i < n; i++)
		ranked[i].count += draw(1 + noise);
	heat_rank(ranked, n);
}

static uint32_t row_of(const uint64_t *keys, uint32_t n, uint64_t key)
{
	for (uint32_t row = 0; row < n; row++)
		if (keys[row] == key)
			return row;
	return UINT32_MAX;
}

/* Each hot key has one row, in the band of its rank, and its old row if that is in the band. */
static void map_check(const struct heat_choice *choice)
{
	uint32_t kept = 0, came = 0;

	for (uint32_t rank = 0; rank < choice->n; rank++) {
		uint64_t key = choice->ranked[rank].key;
		uint32_t row = row_of(choice->keys, choice->n, key);
		uint32_t old = row_of(choice->old_keys, choice->old_rows, key);

		assert_true(row < choice->n);
		assert_int_equal(heat_band(row), heat_band(rank));
		if (old < choice->n && heat_band(old) == heat_band(rank))
			assert_int_equal(row, old);
		kept += row == old;
		came += old == UINT32_MAX;
	}
	assert_int_equal(choice->kept, kept);
	assert_int_equal(choice->came, came);
	assert_int_equal(choice->moved, choice->n - kept - came);
}

static void maps_follow_the_heat(void **state)
{
	static struct heat_key ranked[KEYS_MAX];
	static uint64_t keys[2][KEYS_MAX];
	uint64_t cases = test_cases("maps", 600);
	struct heat_choice choice = { .ranked = ranked };
	unsigned now = 0;

	(void)state;
	for (uint64_t i = 0; i < cases; i++) {
		/* The same keys get other counts, or there are other keys. */
		uint32_t n = draw(KEYS_MAX), noise = draw(200);

		if (draw(2))
			choice.ranked_n = ranking_draw(ranked, n, noise);
		else
			ranking_shake(ranked, choice.ranked_n, noise);
		choice.total = heat_total(ranked, choice.ranked_n);
		choice.rows = 1 + draw(KEYS_MAX);
		choice.gain = 0;
		choice.old_keys = keys[now];
		choice.old_rows = choice.n;
		choice.keys = keys[!now];
		assert_int_equal(heat_choose(&choice), TRIB_OK);
		assert_true(choice.n <= choice.rows);
		if (choice.is_new)
			map_check(&choice);
		else
			assert_memory_equal(keys[0], keys[1], choice.n * sizeof(uint64_t));
		/* The same again: nothing changes, even if any gain is enough. */
		now = !now;
		choice.old_keys = keys[now];
		choice.old_rows = choice.n;
		choice.keys = keys[!now];
		assert_int_equal(heat_choose(&choice), TRIB_OK);
		assert_false(choice.is_new);
		assert_true(choice.share == choice.old_share);
	}
}

static void small_gains_change_nothing(void **state)
{
	const uint64_t old[] = { 10, 20, HEAT_NO_KEY };
	const struct heat_key ranked[] = { { 10, 30 }, { 30, 25 }, { 20, 20 } };
	uint64_t keys[3];
	struct heat_choice choice = { .old_keys = old,
		                      .old_rows = 3,
		                      .ranked = ranked,
		                      .ranked_n = 3,
		                      .total = 200,
		                      .rows = 3,
		                      .gain = 0.5,
		                      .keys = keys };

	(void)state;
	assert_int_equal(heat_choose(&choice), TRIB_OK);
	assert_false(choice.is_new);
	assert_true(choice.old_share == 0.25 && choice.share == 0.25);
	assert_memory_equal(keys, old, sizeof(old));
	/* 75 of 200 updates instead of 50: half as many more. */
	choice.gain = 0.49;
	assert_int_equal(heat_choose(&choice), TRIB_OK);
	assert_true(choice.is_new && choice.share == 0.375);
	assert_true(keys[0] == 10 && keys[1] == 20 && keys[2] == 30);
	/* A map that has become too large changes in any case. */
	choice.rows = 1;
	choice.gain = 1;
	assert_int_equal(heat_choose(&choice), TRIB_OK);
	assert_true(choice.is_new && choice.n == 1 && keys[0] == 10);
}

/* ---- has the heat moved? ---- */

/* Pushes of 100 rows. Says after how many of them the heat has moved; 0: it has not. */
static unsigned watch(struct heat_watch *watch, unsigned pushes, uint32_t hot)
{
	unsigned moved_after = 0;

	for (unsigned i = 1; i <= pushes; i++) {
		if (!heat_watch_add(watch, 100, hot))
			continue;
		assert_int_equal(moved_after, 0); /* it is said once */
		moved_after = i;
	}
	return moved_after;
}

static void rare_rows_have_moved(void **state)
{
	struct heat_watch w = { 0 };

	(void)state;
	assert_int_equal(watch(&w, 1000, 30), 0);
	assert_int_equal(watch(&w, 10, 3), 0);  /* chance */
	assert_int_equal(watch(&w, 30, 20), 0); /* fewer, but not half as many */
	assert_int_equal(watch(&w, 1000, 3), 20);
	assert_int_equal(watch(&w, 10, 30), 0);
	assert_int_equal(watch(&w, 1000, 0), 20);
	w = (struct heat_watch){ 0 };
	assert_int_equal(watch(&w, 1000, 0), 0); /* never were any hot */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranks_have_one_order),
		cmocka_unit_test(hot_keys_are_picked),
		cmocka_unit_test(sure_keys_are_above_chance),
		cmocka_unit_test(counts_are_exact_with_room),
		cmocka_unit_test(counts_are_bounded_without_room),
		cmocka_unit_test(counts_do_not_overflow),
		cmocka_unit_test(ties_go_to_the_lower_key),
		cmocka_unit_test(keys_get_numbers),
		cmocka_unit_test(bands_double),
		cmocka_unit_test(maps_follow_the_heat),
		cmocka_unit_test(small_gains_change_nothing),
		cmocka_unit_test(rare_rows_have_moved),
	};
	const char *given = getenv("TRIB_TEST_SEED");

	if (given)
		seed = strtoull(given, NULL, 10);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
