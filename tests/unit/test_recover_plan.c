/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recovery after the loss of an aggregator, compared with a model that knows everything. Random
 * possible states of ranks, the rows that they would exchange, the steps, and then: does every rank
 * have the right result, from bytes that really existed? Also if the new trees are lost too, and
 * ranks have different knowledge.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/clock.h"
#include "short.h"
#include "worker/failover/recover_plan.h"

#include <stdlib.h>
#include <string.h>

#define RANKS_MAX 5
#define BLOCKS_MAX 12
#define RESULT 1000 /* a result is RESULT + block; inputs are lower; 0: must not be read */

enum kind { ALLREDUCE, REDUCE, BROADCAST, GATHERED, KINDS };

struct model_rank {
	struct holding holding;
	bool have[BLOCKS_MAX];
	int buffer[BLOCKS_MAX]; /* in place: an input until the result overwrites it */
	int copy[BLOCKS_MAX];   /* kept by a rank that has finished; 0: none */
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

/* The final value of a block, at every rank that wants it. */
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

/* A possible state: any rank may have any result, and may then have finished. */
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
	/* All ranks have acknowledged everything below `low`, and may know less. */
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
		/* Like worth_keeping() in ledger.c: results that all ranks want, else inputs. */
		for (unsigned b = 0; b < model->blocks; b++) {
			bool keeps = model->kind == ALLREDUCE ||
			             (model->kind == REDUCE && r != model->root) ||
			             (is_copied(model->kind) && r == model->root);

			rank->copy[b] = keeps && b >= model->low ? rank->buffer[b] : 0;
			rank->buffer[b] = 0; /* belongs to the user again */
		}
	}
}

static int bytes_of(const struct model_rank *rank, unsigned block)
{
	return rank->holding.finished ? rank->copy[block] : rank->buffer[block];
}

/* The value that the step gives a block. */
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

/* Like worth_keeping() in ledger.c, for a block in a step. */
static bool keeps(const struct model *model, const struct repair *repair, unsigned r)
{
	if (!repair->again && repair->from == r)
		return true;
	if (is_copied(model->kind))
		return false;
	return wants(model, r) ? model->kind == ALLREDUCE : repair->again;
}

/* The new trees are lost too: some ranks know the steps, and some results have arrived. */
static void step_lose(struct model *model, const struct repair *repair, unsigned knows)
{
	bool all_know = knows == (1u << model->ranks) - 1;

	if (repair->again ? !all_know : !(knows >> repair->from & 1))
		return;
	for (unsigned b = (unsigned)repair->first; b < repair->first + repair->count; b++) {
		int value = any(2) ? step_value(model, repair, b) : 0;

		for (unsigned r = 0; value && r < model->ranks; r++) {
			struct model_rank *rank = &model->rank[r];

			if (!wants(model, r) || rank->holding.finished || !(knows >> r & 1) ||
			    any(3) == 0)
				continue;
			rank->buffer[b] = value;
			rank->have[b] = true;
		}
	}
}

/* A rank that knows the steps and has all results may finish. It keeps the blocks in the steps. */
static void finish_some(struct model *model, const struct repair *repairs, unsigned n,
                        unsigned knows)
{
	for (unsigned r = 0; r < model->ranks; r++) {
		struct model_rank *rank = &model->rank[r];

		if (rank->holding.finished || !(knows >> r & 1) || any(2) ||
		    (wants(model, r) && !has_all(model, r)))
			continue;
		rank->holding.finished = true;
		for (unsigned i = 0; i < n; i++)
			for (size_t b = repairs[i].first; b < repairs[i].first + repairs[i].count;
			     b++)
				if (keeps(model, &repairs[i], r))
					rank->copy[b] = rank->buffer[b];
		memset(rank->buffer, 0, sizeof(rank->buffer));
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

/* The steps from the ranks' present reports. No step sends a block that no rank lacks. */
static unsigned find_steps(const struct model *model, struct repair *steps)
{
	uint8_t owner[BLOCKS_MAX] = { 0 }, lacks[BLOCKS_MAX] = { 0 };
	size_t at = 0, covered = 0, lacking = 0;
	unsigned n = 0;

	fill_rows(model, owner, lacks);
	for (unsigned b = 0; b < model->blocks; b++)
		lacking += lacks[b];
	for (; repair_next(owner, lacks, model->blocks, at, &steps[n]); n++) {
		assert_true(steps[n].first >= at && steps[n].count > 0);
		at = steps[n].first + steps[n].count;
		assert_true(at <= model->blocks);
		covered += steps[n].count;
	}
	assert_int_equal(covered, lacking);
	return n;
}

static void test_against_model(void **state)
{
	const char *given = getenv("TRIB_TEST_SEED");
	uint64_t seed = given ? strtoull(given, NULL, 0) : clock_now();
	uint64_t models = test_cases("models", 200000);
	unsigned repairs = 0, again = 0;

	(void)state;
	print_message("seed %llu\n", (unsigned long long)seed);
	seed_state = seed;
	for (unsigned i = 0; i < models; i++) {
		unsigned losses = any(4);
		struct model model;

		model_make(&model);
		for (;; losses--) {
			struct repair steps[BLOCKS_MAX];
			unsigned n = find_steps(&model, steps), knows = any(1u << model.ranks);

			for (unsigned k = 0; k < n; k++) {
				if (losses)
					step_lose(&model, &steps[k], knows);
				else
					step_apply(&model, &steps[k]);
				again += steps[k].again;
			}
			repairs += n;
			if (!losses)
				break;
			finish_some(&model, steps, n, knows);
		}
		model_check(&model);
	}
	assert_true(again > 1000 && repairs > again + 1000);
}

/* An empty vector only needs a meeting: if one rank has passed, all have arrived. */
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
