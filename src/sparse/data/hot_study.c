/* SPDX-License-Identifier: Apache-2.0 */
#include "sparse/data/hot_study.h"

#include "sparse/heat/key_hash.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define RECORDS_DRAWN 2000000u /* about so many in a study of random batches */
#define STEPS_MAX 100u

void hot_study_close(struct hot_study *study)
{
	free(study->ranked);
	free(study->rank_of);
	free(study->cumulative);
	*study = (struct hot_study){ 0 };
}

trib_status hot_study_open(struct hot_study *study, const struct update_data *data, uint64_t seed)
{
	*study = (struct hot_study){ .data = data, .seed = key_hash(seed) };
	study->ranked = update_data_rank(data, data->counts, &study->n);
	study->rank_of = calloc((size_t)data->index.n + 1, sizeof(*study->rank_of));
	study->cumulative = calloc(study->n + 1, sizeof(*study->cumulative));
	if (!study->ranked || !study->rank_of || !study->cumulative) {
		hot_study_close(study);
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for %u keys", data->index.n);
	}
	for (uint32_t i = 0; i < data->index.n; i++)
		study->rank_of[i] = UINT32_MAX; /* a key with the count 0 has no rank */
	for (size_t i = 0; i < study->n; i++) {
		uint64_t before = i ? study->cumulative[i - 1] : 0;

		study->rank_of[key_index_find(&data->index, study->ranked[i].key)] = (uint32_t)i;
		study->cumulative[i] = before + study->ranked[i].count;
	}
	return TRIB_OK;
}

double hot_study_share(const struct hot_study *study, size_t n)
{
	n = n < study->n ? n : study->n;
	return n ? (double)study->cumulative[n - 1] / (double)study->data->total : 0;
}

/* ---- random choices ---- */

static double random_share(uint64_t *state)
{
	return (double)(key_hash((*state)++) >> 11) * 0x1p-53;
}

static uint64_t random_below(uint64_t *state, uint64_t below)
{
	uint64_t drawn = (uint64_t)(random_share(state) * (double)below);

	return drawn < below ? drawn : below - 1;
}

/* A random state that others do not use. */
static uint64_t random_start(const struct hot_study *study, uint64_t purpose)
{
	return key_hash(study->seed + purpose);
}

/*
 * How many of `count` updates are in a sample of less than all: binomial, for large counts its
 * normal limit.
 */
static uint64_t count_sample(uint64_t count, double share, uint64_t *state)
{
	double mean = (double)count * share, wide, radius, drawn;
	uint64_t taken = 0;

	if (mean < 100) { /* from one update of the sample to the next */
		double at = 0;

		while ((at += 1 + floor(log(1 - random_share(state)) / log1p(-share))) <=
		       (double)count)
			taken++;
		return taken;
	}
	wide = sqrt(mean * (1 - share));
	radius = sqrt(-2 * log(1 - random_share(state)));
	drawn = round(mean + wide * radius * cos(2 * 3.141592653589793 * random_share(state)));
	return drawn <= 0 ? 0 : drawn >= (double)count ? count : (uint64_t)drawn;
}

/* ---- samples ---- */

static void record_count(const struct update_data *data, size_t record, uint64_t *counts)
{
	for (unsigned j = 0; j < data->per_record; j++)
		counts[data->updates[record * data->per_record + j]]++;
}

/* Each record has the same chance. */
static void records_sample(const struct update_data *data, double share, uint64_t state,
                           uint64_t *counts)
{
	for (uint64_t run = 0; (double)run < (double)data->records * share; run++) {
		double at = ((double)run + random_share(&state)) / share;

		if (at < (double)data->records)
			record_count(data, (size_t)at, counts);
	}
}

/* Each group has the same chance. */
static void groups_sample(const struct update_data *data, double share, uint64_t start,
                          uint64_t *counts)
{
	for (size_t i = 0; i < data->records; i++) {
		uint64_t state = start ^ key_hash(data->groups[i]);

		if (random_share(&state) < share)
			record_count(data, i, counts);
	}
}

/* Counts of the sample, by number of the key. */
static void sample_count(const struct hot_study *study, const struct hot_sample *sample,
                         uint64_t state, uint64_t *counts)
{
	const struct update_data *data = study->data;

	if (sample->share >= 1)
		memcpy(counts, data->counts, data->index.n * sizeof(*counts));
	else if (data->format == UPDATES_COUNTS)
		for (uint32_t i = 0; i < data->index.n; i++)
			counts[i] = count_sample(data->counts[i], sample->share, &state);
	else if (sample->by_group)
		groups_sample(data, sample->share, state, counts);
	else
		records_sample(data, sample->share, state, counts);
}

static size_t hot_count(const struct heat_key *ranked, size_t n, const struct hot_sample *sample)
{
	return heat_pick(ranked, n, heat_total(ranked, n), &sample->limits).n;
}

/*
 * Adds what the first n keys of a sample's ranking are worth. Keys with as many updates as the last
 * of the hot keys are as hot as that one, but not more of them than are among the hot ones.
 */
static void list_add(const struct hot_study *study, size_t hot, const struct heat_key *ranked,
                     size_t n, struct hot_found *found)
{
	uint64_t border = hot ? study->ranked[hot - 1].count : UINT64_MAX, updates = 0;
	size_t above = 0, equal = 0, equal_max = 0;

	while (equal_max < hot && study->ranked[hot - 1 - equal_max].count == border)
		equal_max++;
	for (size_t i = 0; i < n; i++) {
		uint32_t number = key_index_find(&study->data->index, ranked[i].key);
		uint64_t count = study->data->counts[number];

		updates += count;
		above += count > border;
		equal += count == border;
	}
	found->n += (double)n / HOT_DRAWS;
	found->right += (double)(above + (equal < equal_max ? equal : equal_max)) / HOT_DRAWS;
	found->share += (double)updates / (double)study->data->total / HOT_DRAWS;
	found->best += hot_study_share(study, n) / HOT_DRAWS;
}

/* Draws one sample. `counts` has a place for each key. */
static bool sample_draw(const struct hot_study *study, struct hot_sample *sample, unsigned draw,
                        uint64_t *counts)
{
	struct heat_key *ranked;
	size_t n, called;

	memset(counts, 0, study->data->index.n * sizeof(*counts));
	sample_count(study, sample, random_start(study, 16 + draw), counts);
	if (!(ranked = update_data_rank(study->data, counts, &n)))
		return false;
	called = hot_count(ranked, n, sample);
	list_add(study, sample->hot, ranked, called, &sample->found);
	list_add(study, sample->hot, ranked, heat_sure(ranked, called, sample->share),
	         &sample->sure);
	free(ranked);
	return true;
}

trib_status hot_study_sample(const struct hot_study *study, struct hot_sample *sample)
{
	uint64_t *counts = calloc((size_t)study->data->index.n + 1, sizeof(*counts));
	bool has_memory = counts;

	sample->hot = hot_count(study->ranked, study->n, sample);
	sample->found = sample->sure = (struct hot_found){ 0 };
	for (unsigned i = 0; i < HOT_DRAWS && has_memory; i++)
		has_memory = sample_draw(study, sample, i, counts);
	free(counts);
	return has_memory ? TRIB_OK : status_fail(TRIB_ERR_NO_MEMORY, "no memory for a sample");
}

/* ---- random batches ---- */

/* The ranks that a random record updates. */
static unsigned record_draw(const struct hot_study *study, uint64_t *state, uint32_t *ranks)
{
	const struct update_data *data = study->data;
	size_t low = 0, high = study->n - 1, record;
	uint64_t drawn;

	if (data->format != UPDATES_COUNTS) {
		record = random_below(state, data->records);
		for (unsigned i = 0; i < data->per_record; i++)
			ranks[i] = study->rank_of[data->updates[record * data->per_record + i]];
		return data->per_record;
	}
	drawn = random_below(state, data->total);
	while (low < high) {
		size_t middle = (low + high) / 2;

		if (study->cumulative[middle] > drawn)
			high = middle;
		else
			low = middle + 1;
	}
	ranks[0] = (uint32_t)low;
	return 1;
}

static unsigned steps_of(uint64_t records_a_step)
{
	uint64_t steps = RECORDS_DRAWN / (records_a_step + 1);

	return steps < 1 ? 1 : steps > STEPS_MAX ? STEPS_MAX : (unsigned)steps;
}

/* The first case in which the row of this rank is hot; link->n: none. */
static unsigned case_of(const struct hot_link *link, uint32_t rank)
{
	unsigned i = 0;

	while (i < link->n && rank >= link->rows[i])
		i++;
	return i;
}

/* Rows by case: pushed by workers, and different ones in a step. [link->n]: those that are cold. */
struct link_counts {
	uint64_t pushed[HOT_SIZES_MAX + 1], summed[HOT_SIZES_MAX + 1];
	uint32_t *in_push, *in_step; /* [rank]: the last push and the last step, from 1, with it */
	uint32_t push, step;
};

/* One worker pushes the rows of a batch. */
static void push_count(const struct hot_study *study, const struct hot_link *link,
                       struct link_counts *counts, uint64_t *state)
{
	uint32_t ranks[2];

	counts->push++;
	for (uint32_t i = 0; i < link->batch; i++) {
		for (unsigned j = record_draw(study, state, ranks); j-- > 0;) {
			unsigned c = case_of(link, ranks[j]);

			counts->pushed[c] += counts->in_push[ranks[j]] != counts->push;
			counts->summed[c] += counts->in_step[ranks[j]] != counts->step;
			counts->in_push[ranks[j]] = counts->push;
			counts->in_step[ranks[j]] = counts->step;
		}
	}
}

trib_status hot_study_link(const struct hot_study *study, struct hot_link *link)
{
	unsigned steps = steps_of((uint64_t)link->workers * link->batch);
	uint64_t state = random_start(study, 2);
	struct link_counts counts = { 0 };
	uint32_t *last = calloc(2 * (study->n + 1), sizeof(*last));

	if (!last)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for %zu keys", study->n);
	counts.in_push = last;
	counts.in_step = last + study->n + 1;
	while (study->n && counts.step++ < steps)
		for (unsigned w = 0; w < link->workers; w++)
			push_count(study, link, &counts, &state);
	link->all = 0;
	for (unsigned c = 0; c <= link->n; c++)
		link->all += counts.pushed[c];
	for (unsigned i = 0; i < link->n; i++) {
		link->with[i] = 0;
		for (unsigned c = 0; c <= link->n; c++)
			link->with[i] += c <= i ? counts.summed[c] : counts.pushed[c];
	}
	free(last);
	return TRIB_OK;
}

/* ---- recirculations ---- */

/* One batch: the ranks of its hot rows, and room for packing them. */
struct batch {
	uint32_t *ranks, *registers, *packet_of, *scratch, *last_batch;
	uint32_t n;
};

static void batch_draw(const struct hot_study *study, const struct hot_layout *about,
                       struct batch *batch, uint64_t *state, uint32_t number)
{
	uint32_t ranks[2];

	batch->n = 0;
	for (uint32_t i = 0; i < about->batch; i++) {
		for (unsigned j = record_draw(study, state, ranks); j-- > 0;) {
			if (ranks[j] >= about->rows || batch->last_batch[ranks[j]] == number)
				continue;
			batch->last_batch[ranks[j]] = number;
			batch->ranks[batch->n++] = ranks[j];
		}
	}
}

static void batch_pack(const struct hot_layout *about, struct batch *batch,
                       struct hot_packing *packed, struct hot_packing *in_order)
{
	const struct layout *layout = &about->layout;
	uint32_t packets =
		layout_pack(layout, batch->registers, batch->n, batch->packet_of, batch->scratch);

	packed->packets += packets;
	packed->recirculations += layout_recirculations(layout, batch->registers, batch->n,
	                                                batch->packet_of, packets, batch->scratch);
	packets = layout_pack_in_order(layout, batch->n, batch->packet_of);
	in_order->packets += packets;
	in_order->recirculations += layout_recirculations(
		layout, batch->registers, batch->n, batch->packet_of, packets, batch->scratch);
}

static void batches_pack(const struct hot_study *study, struct hot_layout *about,
                         struct batch *batch)
{
	uint64_t state = random_start(study, 3);
	unsigned batches = steps_of(about->batch);

	for (unsigned b = 1; study->n && b <= batches; b++) {
		batch_draw(study, about, batch, &state, b);
		for (uint32_t i = 0; i < batch->n; i++)
			batch->registers[i] = layout_register(&about->layout, batch->ranks[i]);
		batch_pack(about, batch, &about->heat, &about->heat_in_order);
		for (uint32_t i = 0; i < batch->n; i++)
			batch->registers[i] = layout_register_random(&about->layout,
			                                             batch->ranks[i], study->seed);
		batch_pack(about, batch, &about->random, &about->random_in_order);
	}
}

trib_status hot_study_layout(const struct hot_study *study, struct hot_layout *about)
{
	uint32_t most = 2 * about->batch < about->rows ? 2 * about->batch : about->rows;
	size_t scratch = layout_scratch(&about->layout, most);
	uint32_t *numbers = calloc(3ull * most + about->rows + scratch + 1, sizeof(*numbers));
	struct batch batch = { .ranks = numbers };

	if (!numbers)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for a batch of %u records",
		                   about->batch);
	batch.registers = batch.ranks + most;
	batch.packet_of = batch.registers + most;
	batch.last_batch = batch.packet_of + most;
	batch.scratch = batch.last_batch + about->rows;
	about->heat = about->heat_in_order = (struct hot_packing){ 0 };
	about->random = about->random_in_order = (struct hot_packing){ 0 };
	batches_pack(study, about, &batch);
	free(numbers);
	return TRIB_OK;
}
