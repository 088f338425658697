/* SPDX-License-Identifier: Apache-2.0 */
#include "sparse/hot/hot_flusher.h"

#include <stdlib.h>
#include <string.h>

#define QUESTIONS_MAX 128u /* most questions in flight */
#define FLOWS_MAX 8u       /* most flows that a round stands for */
#define REFUSALS_MAX 1000u /* more than delayed packets cause */
#define REST_TIMES 7u      /* a rest after a round that took long, in lengths of that round */
#define REST_MOST 64u      /* most `every_ns` that a rest lasts */
#define GATHER_PART 4u     /* a worker waits 1/4 of a round until the next one begins */
#define GATHER_MOST 4u     /* most `every_ns` that it waits */

/* ---- opening ---- */

bool hot_flusher_open(struct hot_flusher *flusher, const struct hot_flusher_options *options,
                      uint64_t now)
{
	const struct sparse_setup *setup = &options->setup;
	uint32_t per_block = sparse_per_block(options->payload, setup->width);
	uint32_t blocks = per_block ? sparse_blocks(setup->rows, per_block) : 0;

	*flusher = (struct hot_flusher){ .options = *options,
		                         .per_block = per_block,
		                         .blocks = blocks,
		                         .generation = setup->generation,
		                         .wanted = setup->generation,
		                         .begin_at = now,
		                         .n_questions = 1 };
	if (!blocks || setup->rows > SPARSE_ROWS_MAX || options->workers >= WIRE_CHILDREN_MAX)
		return false;
	/* Its answers share a server's link with cold rows by TCP, whose queue is always full. */
	hot_timer_init(&flusher->timer, QUESTIONS_MAX, 0);
	/* They bring what all workers would have sent there, each in a flow of its own. */
	if (options->workers > 1)
		flusher->timer.flows = options->workers < FLOWS_MAX ? options->workers : FLOWS_MAX;
	flusher->questions =
		calloc(sparse_pages(options->payload, blocks), sizeof(*flusher->questions));
	flusher->numbers = malloc((size_t)setup->rows * sizeof(*flusher->numbers));
	flusher->values = malloc((size_t)setup->rows * setup->width * sizeof(*flusher->values));
	flusher->dirty = calloc((blocks + 63) / 64, sizeof(*flusher->dirty));
	flusher->touched = calloc((blocks + 63) / 64, sizeof(*flusher->touched));
	if (flusher->questions && flusher->numbers && flusher->values && flusher->dirty &&
	    flusher->touched)
		return true;
	hot_flusher_close(flusher);
	return false;
}

void hot_flusher_close(struct hot_flusher *flusher)
{
	free(flusher->questions);
	free(flusher->numbers);
	free(flusher->values);
	free(flusher->dirty);
	free(flusher->touched);
	flusher->questions = NULL;
	flusher->numbers = flusher->values = NULL;
	flusher->dirty = flusher->touched = NULL;
}

/* ---- phases ---- */

static void enter(struct hot_flusher *flusher, enum hot_phase phase)
{
	flusher->phase = phase;
	flusher->n_questions = flusher->unsent = flusher->open = flusher->in_flight = 0;
	flusher->look_at = UINT64_MAX;
}

static void ask(struct hot_flusher *flusher, uint32_t page)
{
	flusher->questions[flusher->n_questions++] = (struct hot_question){ .page = page };
}

static void begin_survey(struct hot_flusher *flusher)
{
	uint32_t payload = flusher->options.payload;
	uint32_t each = sparse_page_records(payload);
	uint32_t first_bits = flusher->blocks + sparse_record_pages(payload);

	enter(flusher, HOT_SURVEY);
	flusher->n = 0;
	for (uint32_t i = 0; i * each < flusher->options.workers; i++)
		ask(flusher, flusher->blocks + i);
	for (uint32_t i = 0; i < sparse_bit_pages(payload, flusher->blocks); i++)
		ask(flusher, first_bits + i);
}

/* One question for each dirty block. */
static void begin_dirty(struct hot_flusher *flusher, enum hot_phase phase)
{
	enter(flusher, phase);
	for (uint32_t i = 0; i < flusher->blocks; i++)
		if (flusher->dirty[i / 64] >> i % 64 & 1)
			ask(flusher, i);
}

static void begin_release(struct hot_flusher *flusher)
{
	enter(flusher, HOT_RELEASE);
	ask(flusher, 0);
}

void hot_flusher_touch(struct hot_flusher *flusher, uint32_t row)
{
	uint32_t block = row / flusher->per_block;

	if (!(flusher->options.setup.layout & SPARSE_VALUES) || row >= flusher->options.setup.rows)
		return;
	flusher->touched[block / 64] |= 1ull << block % 64;
	flusher->is_touched = true;
}

/* The values of all blocks that have changed. Those of a map that is over need no place. */
static void begin_write(struct hot_flusher *flusher)
{
	bool is_same = flusher->summed == flusher->generation;

	for (uint32_t i = 0; i < (flusher->blocks + 63) / 64; i++) {
		flusher->dirty[i] = (is_same ? flusher->dirty[i] : 0) | flusher->touched[i];
		flusher->touched[i] = 0;
	}
	if (flusher->is_touched)
		flusher->touch_epoch = flusher->epoch;
	flusher->is_touched = false;
	begin_dirty(flusher, HOT_WRITE);
	if (!flusher->n_questions)
		begin_release(flusher);
}

static bool has_news(const struct hot_flusher *flusher)
{
	return flusher->n || memcmp(flusher->records, flusher->before,
	                            flusher->options.workers * sizeof(flusher->records[0])) != 0;
}

/*
 * A worker waits. Others that began together with it will wait soon: one round serves all, and a
 * row crosses the server's link once. If rounds are short, so is the delay.
 */
static void hurry(struct hot_flusher *flusher, uint64_t now)
{
	uint64_t most = GATHER_MOST * flusher->options.every_ns;
	uint64_t delay = flusher->took / GATHER_PART;
	uint64_t at = now + (delay < most ? delay : most);

	if (at < flusher->begin_at)
		flusher->begin_at = at;
}

/* A round that took long meets a slow link: rounds that follow each other closely would fill it. */
static void rest(struct hot_flusher *flusher, uint64_t now)
{
	bool news = has_news(flusher);
	uint64_t every = news ? flusher->options.every_ns : flusher->options.idle_ns;

	flusher->took -= flusher->took / 4;
	if (flusher->took < now - flusher->began_at)
		flusher->took = now - flusher->began_at;
	flusher->begin_at = flusher->began_at + every;
	if (news && flusher->begin_at < now + flusher->took)
		flusher->begin_at = now + (REST_TIMES * flusher->took < REST_MOST * every
		                                   ? REST_TIMES * flusher->took
		                                   : REST_MOST * every);
	if (flusher->is_urgent)
		hurry(flusher, now);
	flusher->rounds += news;
	flusher->rows += flusher->n;
	memcpy(flusher->before, flusher->records, sizeof(flusher->before));
	enter(flusher, HOT_REST);
}

/* All questions of the phase are answered. */
static void advance(struct hot_flusher *flusher, uint64_t now)
{
	switch (flusher->phase) {
	case HOT_SETUP:
		flusher->began_at = now;
		rest(flusher, now);
		break;
	case HOT_FREEZE:
		flusher->summed = flusher->generation;
		flusher->generation = flusher->freezing;
		begin_survey(flusher);
		break;
	case HOT_SURVEY:
		begin_dirty(flusher, HOT_BLOCKS);
		if (flusher->n_questions)
			break;
		/* fall through */
	case HOT_BLOCKS:
		if (has_news(flusher))
			enter(flusher, HOT_HANDED);
		else if (flusher->is_touched)
			begin_write(flusher);
		else
			begin_release(flusher);
		break;
	case HOT_WRITE:
		begin_release(flusher);
		break;
	case HOT_RELEASE:
		rest(flusher, now);
		break;
	default:
		break;
	}
}

bool hot_flusher_flush(const struct hot_flusher *flusher, struct hot_flush *flush)
{
	if (flusher->phase != HOT_HANDED)
		return false;
	*flush = (struct hot_flush){ .epoch = flusher->epoch,
		                     .generation = flusher->summed,
		                     .records = flusher->records,
		                     .n = flusher->n,
		                     .numbers = flusher->numbers,
		                     .values = flusher->values };
	return true;
}

void hot_flusher_logged(struct hot_flusher *flusher)
{
	if (flusher->phase != HOT_HANDED)
		return;
	if (flusher->options.setup.layout & SPARSE_VALUES)
		begin_write(flusher);
	else
		begin_release(flusher);
}

/* ---- sending ---- */

/* The rows of a block that exist, as bits. */
static uint64_t rows_of(const struct hot_flusher *flusher, uint32_t block)
{
	uint32_t left = flusher->options.setup.rows - block * flusher->per_block;
	uint32_t n = left < flusher->per_block ? left : flusher->per_block;

	return n < 64 ? (1ull << n) - 1 : ~0ull;
}

static uint32_t write_values(const struct hot_flusher *flusher, uint32_t block, void *payload)
{
	uint32_t width = flusher->options.setup.width, n = 0;
	uint64_t has = 0;
	uint8_t *values = (uint8_t *)payload + 8;

	for (uint64_t rows = rows_of(flusher, block); rows; rows &= rows - 1) {
		uint32_t row = block * flusher->per_block + (uint32_t)__builtin_ctzll(rows);
		const float *value = flusher->options.value(flusher->options.context, row);

		if (!value)
			continue;
		memcpy(values + (size_t)n++ * width * 4, value, (size_t)width * 4);
		has |= rows & -rows;
	}
	memcpy(payload, &has, 8);
	if (n * width % 2)
		memset(values + (size_t)n * width * 4, 0, 4);
	return sparse_block_bytes(n, width);
}

static uint32_t write_question(struct hot_flusher *flusher, struct hot_question *question,
                               void *packet)
{
	struct wire_header *header = packet;
	void *payload = header + 1;
	uint32_t bytes = 0;

	*header = (struct wire_header){ .pos = flusher->epoch,
		                        .flags = question->tries ? WIRE_RESENT : 0,
		                        .to = WIRE_ALL };
	switch (flusher->phase) {
	case HOT_SETUP:
		header->op = SPARSE_SETUP;
		header->pos = 0;
		bytes = sizeof(flusher->options.setup);
		memcpy(payload, &flusher->options.setup, bytes);
		break;
	case HOT_FREEZE:
		header->op = SPARSE_FREEZE;
		header->scale = (uint16_t)flusher->freezing;
		break;
	case HOT_SURVEY:
	case HOT_BLOCKS:
		header->op = SPARSE_READ;
		header->ack = question->page;
		break;
	case HOT_WRITE:
		header->op = SPARSE_WRITE;
		header->pos = question->number = ++flusher->written;
		header->ack = question->page;
		header->scale = (uint16_t)flusher->generation;
		bytes = write_values(flusher, question->page, payload);
		break;
	default:
		header->op = SPARSE_RELEASE;
		break;
	}
	return WIRE_HEADER + bytes;
}

/* The first question that has to be repeated; `unsent`: none. */
static uint32_t find_due(struct hot_flusher *flusher, uint64_t now)
{
	uint64_t look_at = UINT64_MAX;

	if (now < flusher->look_at)
		return flusher->unsent;
	for (uint32_t i = flusher->open; i < flusher->unsent; i++) {
		const struct hot_question *question = &flusher->questions[i];
		uint64_t due;

		if (question->is_answered)
			continue;
		due = hot_timer_due(&flusher->timer, question->sent_at);
		if (due <= now)
			return i;
		look_at = due < look_at ? due : look_at;
	}
	flusher->look_at = look_at;
	return flusher->unsent;
}

static bool may_ask(const struct hot_flusher *flusher)
{
	return flusher->unsent < flusher->n_questions && flusher->in_flight < flusher->timer.window;
}

uint32_t hot_flusher_next(struct hot_flusher *flusher, uint64_t now, void *packet)
{
	struct hot_question *question;
	uint32_t bytes, due;

	if (flusher->failed)
		return 0;
	if (flusher->phase == HOT_REST && now >= flusher->begin_at) {
		enter(flusher, HOT_FREEZE);
		ask(flusher, 0);
		flusher->epoch++;
		flusher->freezing = flusher->wanted;
		flusher->began_at = now;
		flusher->is_urgent = false;
	}
	due = find_due(flusher, now);
	question = &flusher->questions[due];
	if (due < flusher->unsent) {
		hot_timer_repeats(&flusher->timer, question->sent_at, now);
		flusher->repeats++;
	} else if (may_ask(flusher)) {
		flusher->unsent++;
		flusher->in_flight++;
	} else {
		return 0;
	}
	bytes = write_question(flusher, question, packet);
	question->sent_at = now;
	question->tries += question->tries < UINT8_MAX;
	if (hot_timer_due(&flusher->timer, now) < flusher->look_at)
		flusher->look_at = hot_timer_due(&flusher->timer, now);
	return bytes;
}

uint64_t hot_flusher_wake(const struct hot_flusher *flusher)
{
	if (flusher->failed || flusher->phase == HOT_HANDED)
		return UINT64_MAX;
	if (flusher->phase == HOT_REST)
		return flusher->begin_at;
	return may_ask(flusher) ? 0 : flusher->look_at;
}

/* ---- answers ---- */

/* The question about this page that is not answered yet; NULL: there is none. */
static struct hot_question *find_question(struct hot_flusher *flusher, uint32_t page)
{
	uint32_t from = flusher->open, to = flusher->unsent;

	while (from < to) {
		uint32_t middle = from + (to - from) / 2;
		struct hot_question *question = &flusher->questions[middle];

		if (question->page == page)
			return question->is_answered ? NULL : question;
		if (question->page < page)
			from = middle + 1;
		else
			to = middle;
	}
	return NULL;
}

static bool take_records(struct hot_flusher *flusher, uint32_t i, const uint8_t *payload,
                         uint32_t bytes)
{
	uint32_t each = sparse_page_records(flusher->options.payload), first = i * each;
	uint32_t left = flusher->options.workers - first, n = left < each ? left : each;

	if (bytes < n * sizeof(struct sparse_record))
		return false;
	memcpy(&flusher->records[first], payload, n * sizeof(struct sparse_record));
	/* What was released does not belong to what was summed. */
	for (uint32_t k = 0; k < n; k++)
		flusher->records[first + k].durable = 0;
	return true;
}

static bool take_bits(struct hot_flusher *flusher, uint32_t i, const uint8_t *payload,
                      uint32_t bytes)
{
	uint32_t page = flusher->options.payload;
	uint32_t wanted = sparse_bits_bytes(page, flusher->blocks, i);

	if (bytes < wanted)
		return false;
	memcpy(flusher->dirty + i * (sparse_page_bits(page) / 64), payload, wanted);
	return true;
}

static bool take_block(struct hot_flusher *flusher, uint32_t block, const uint8_t *payload,
                       uint32_t bytes)
{
	uint32_t width = flusher->options.setup.width, n;
	uint64_t rows;

	if (bytes < 8)
		return false;
	memcpy(&rows, payload, 8);
	n = (uint32_t)__builtin_popcountll(rows);
	if (rows & ~rows_of(flusher, block) || bytes != sparse_block_bytes(n, width))
		return false;
	memcpy(flusher->values + (size_t)flusher->n * width, payload + 8, (size_t)n * width * 4);
	for (; rows; rows &= rows - 1)
		flusher->numbers[flusher->n++] =
			block * flusher->per_block + (uint32_t)__builtin_ctzll(rows);
	return true;
}

/* False: no aggregator of ours says that. */
static bool take_page(struct hot_flusher *flusher, uint32_t page, const uint8_t *payload,
                      uint32_t bytes)
{
	uint32_t first_bits = flusher->blocks + sparse_record_pages(flusher->options.payload);

	if (page < flusher->blocks)
		return take_block(flusher, page, payload, bytes);
	if (page < first_bits)
		return take_records(flusher, page - flusher->blocks, payload, bytes);
	return take_bits(flusher, page - first_bits, payload, bytes);
}

static uint8_t kind_of(enum hot_phase phase)
{
	static const uint8_t kinds[] = {
		[HOT_SETUP] = SPARSE_SETUP,   [HOT_REST] = SPARSE_KINDS_END,
		[HOT_FREEZE] = SPARSE_FREEZE, [HOT_SURVEY] = SPARSE_READ,
		[HOT_BLOCKS] = SPARSE_READ,   [HOT_HANDED] = SPARSE_KINDS_END,
		[HOT_WRITE] = SPARSE_WRITE,   [HOT_RELEASE] = SPARSE_RELEASE,
	};

	return kinds[phase];
}

/* Is it an answer to a question of the present phase and epoch? */
static bool is_current(const struct hot_flusher *flusher, const struct wire_header *header)
{
	if (header->op != kind_of(flusher->phase))
		return false;
	return header->op == SPARSE_WRITE || header->op == SPARSE_SETUP ||
	       header->pos == flusher->epoch;
}

static void note_answered(struct hot_flusher *flusher, struct hot_question *question,
                          int is_to_repeat, uint64_t now)
{
	hot_timer_answered(&flusher->timer, question->sent_at, question->tries, is_to_repeat, now);
	flusher->look_at = 0; /* questions that were asked before may be lost */
	question->is_answered = true;
	flusher->refusals = 0;
	flusher->in_flight--;
	while (flusher->open < flusher->unsent && flusher->questions[flusher->open].is_answered)
		flusher->open++;
	if (flusher->open == flusher->n_questions)
		advance(flusher, now);
}

void hot_flusher_take(struct hot_flusher *flusher, const struct wire_header *header, uint32_t bytes,
                      uint64_t now)
{
	struct hot_question *question;
	bool has_page = header->op == SPARSE_READ || header->op == SPARSE_WRITE;

	if (header->op == SPARSE_NEWS && header->from & SPARSE_URGENT && !flusher->is_urgent) {
		flusher->is_urgent = true;
		if (flusher->phase == HOT_REST)
			hurry(flusher, now);
	}
	if (!is_current(flusher, header))
		return;
	question = find_question(flusher, has_page ? header->ack : 0);
	if (!question)
		return;
	if (header->op == SPARSE_WRITE && header->pos != question->number)
		return; /* of an earlier round, or a repeat has left since */
	/* The refusal of a delayed packet names the present epoch, too. */
	if (header->from & SPARSE_REFUSED && header->to == SPARSE_OTHER_EPOCH) {
		flusher->failed = ++flusher->refusals > REFUSALS_MAX;
		return;
	}
	if (header->from & SPARSE_REFUSED ||
	    (header->op == SPARSE_READ &&
	     !take_page(flusher, question->page, (const uint8_t *)(header + 1),
	                bytes - WIRE_HEADER)))
		flusher->failed = true;
	else
		note_answered(flusher, question, header->flags & WIRE_RESENT, now);
}
