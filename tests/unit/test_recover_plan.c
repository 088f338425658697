/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is done after the loss of an aggregator, against a model that knows
 * everything: random states that ranks can be in, the rows that they would
 * exchange, the steps, and then whether everyone has what is right, from bytes
 * that were really there.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/clock.h"
#include "worker/recover_plan.h"

#include <stdlib.h>
#include <string.h>

#define RANKS_MAX 5
#define BLOCKS_MAX 12
#define RESULT 1000 /* plus the block; inputs are below, and 0 is what nobody may read */

enum kind { ALLREDUCE, REDUCE, BROADCAST, GATHERED, KINDS };

struct model_rank {
	struct holding holding;
	bool have[BLOCKS_MAX];
	int buffer[BLOCKS_MAX]; /* in place: an input until the result overwrites it */
	int copy[BLOCKS_MAX];   /* of a rank that has finished; 0: none */
};

struct model {
	unsigned ranks, blocks, root, low;
	enum kind kind;
	struct model_rank rank[RANKS_MAX];
};

static uint64_t seed_state;

static unsigned any(unsigned below)
{
	seed_state = seed_state * 6364136223846793005ull + 1442695040888963407ull;
	return (unsigned)(seed_state >> 33) % below;
}

static bool is_copied(enum kind kind)
{
	return kind == BROADCAST || kind == GATHERED;
}

/* What a block ends as, in whoever wants it. */
static int right(const struct model *model, unsigned block)
{
	return is_copied(model->kind) ? (int)(1 + model->root * 100 + block)
	                              : (int)(RESULT + block);
}

static bool wants(const struct model *model, unsigned r)
{
	switch (model->kind) {
	case REDUCE:
		return r == model->root;
	case BROADCAST:
		return r != model->root;
	default:
		return true;
	}
}

static bool has_all(const struct model *model, unsigned r)
{
	for (unsigned b = 0; b < model->blocks; b++)
		if (!model->rank[r].have[b])
			return false;
	return true;
}

/* A state that ranks can get into: anyone may have any result, and may have finished then. */
static void model_make(struct model *model)
{
	unsigned lucky = any(4);

	memset(model, 0, sizeof(*model));
	model->ranks = 2 + any(RANKS_MAX - 1);
	model->blocks = 1 + any(BLOCKS_MAX);
	model->kind = (enum kind)any(KINDS);
	model->root = any(model->ranks);
	model->low = model->blocks;
	for (unsigned r = 0; r < model->ranks; r++) {
		struct model_rank *rank = &model->rank[r];
		unsigned luck = lucky == 3 ? 0 : 1 + any(3);

		for (unsigned b = 0; b < model->blocks; b++) {
			bool result = wants(model, r) && (luck == 0 || any(luck + 1) == 0);

			rank->have[b] = result || (!wants(model, r) && any(2));
			rank->buffer[b] = result ? right(model, b) : (int)(1 + r * 100 + b);
		}
		rank->holding = (struct holding){ .wants = wants(model, r),
			                          .copies = is_copied(model->kind),
			                          .gives = r == model->root };
	}
	/* Everyone has acknowledged what is below `low`, and may know less. */
	for (unsigned r = 0; r < model->ranks; r++) {
		unsigned done = 0;

		while (done < model->blocks && model->rank[r].have[done])
			done++;
		model->low = done < model->low ? done : model->low;
	}
	model->low = any(model->low + 1);
	for (unsigned r = 0; r < model->ranks; r++) {
		struct model_rank *rank = &model->rank[r];

		if (!has_all(model, r) || any(2))
			continue;
		rank->holding.finished = true;
		/* As worth_keeping() in ledger.c: results that all want, else what was given. */
		for (unsigned b = 0; b < model->blocks; b++) {
			bool keeps = model->kind == ALLREDUCE ||
			             (model->kind == REDUCE && r != model->root) ||
			             (is_copied(model->kind) && r == model->root);

			rank->copy[b] = keeps && b >= model->low ? rank->buffer[b] : 0;
			rank->buffer[b] = 0; /* the user's again */
		}
	}
}

static int bytes_of(const struct model_rank *rank, unsigned block)
{
	return rank->holding.finished ? rank->copy[block] : rank->buffer[block];
}

/* The value that the step makes of a block. */
static int step_value(const struct model *model, const struct repair *repair, unsigned block)
{
	if (!repair->again)
		return bytes_of(&model->rank[repair->from], block);
	for (unsigned r = 0; r < model->ranks; r++)
		assert_int_equal(bytes_of(&model->rank[r], block), 1 + r * 100 + block);
	return right(model, block);
}

static void step_apply(struct model *model, const struct repair *repair)
{
	for (unsigned b = (unsigned)repair->first; b < repair->first + repair->count; b++) {
		int value = step_value(model, repair, b);

		assert_int_equal(value, right(model, b));
		for (unsigned r = 0; r < model->ranks; r++) {
			struct model_rank *rank = &model->rank[r];

			if (!wants(model, r) || rank->holding.finished)
				continue;
			rank->buffer[b] = value;
			rank->have[b] = true;
		}
	}
}

static void fill_rows(const struct model *model, uint8_t *owner, uint8_t *lacks)
{
	for (unsigned r = 0; r < model->ranks; r++) {
		const struct model_rank *rank = &model->rank[r];

		for (unsigned b = 0; b < model->blocks; b++) {
			if (holding_owns(&rank->holding, rank->have[b]))
				owner[b] = (uint8_t)(r + 1);
			lacks[b] |= holding_lacks(&rank->holding, rank->have[b]);
		}
	}
}

static void model_check(const struct model *model)
{
	for (unsigned r = 0; r < model->ranks; r++)
		for (unsigned b = 0; b < model->blocks; b++)
			if (!model->rank[r].holding.finished && wants(model, r))
				assert_int_equal(model->rank[r].buffer[b], right(model, b));
}

static void test_against_model(void **state)
{
	const char *given = getenv("TRIB_TEST_SEED");
	uint64_t seed = given ? strtoull(given, NULL, 0) : clock_now();
	unsigned repairs = 0, again = 0;

	(void)state;
	print_message("seed %llu\n", (unsigned long long)seed);
	seed_state = seed;
	for (unsigned i = 0; i < (getenv("TRIB_TEST_SHORT") ? 20000u : 200000u); i++) {
		uint8_t owner[BLOCKS_MAX] = { 0 }, lacks[BLOCKS_MAX] = { 0 };
		struct repair repair;
		struct model model;
		size_t at = 0, covered = 0, lacking = 0;

		model_make(&model);
		fill_rows(&model, owner, lacks);
		for (unsigned b = 0; b < model.blocks; b++)
			lacking += lacks[b];
		while (repair_next(owner, lacks, model.blocks, at, &repair)) {
			assert_true(repair.first >= at && repair.count > 0);
			at = repair.first + repair.count;
			assert_true(at <= model.blocks);
			step_apply(&model, &repair);
			covered += repair.count;
			repairs++;
			again += repair.again;
		}
		/* Nothing is moved that nobody lacks. */
		assert_int_equal(covered, lacking);
		model_check(&model);
	}
	assert_true(again > 1000 && repairs > again + 1000);
}

/* Of nothing, to have met is enough: if one has, all have come. */
static void test_empty(void **state)
{
	struct holding holding = { .empty = true };

	(void)state;
	assert_true(holding_lacks(&holding, false) && !holding_owns(&holding, false));
	assert_true(!holding_lacks(&holding, true) && holding_owns(&holding, true));
	holding.finished = true;
	assert_true(!holding_lacks(&holding, false) && holding_owns(&holding, false));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_against_model),
		cmocka_unit_test(test_empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
