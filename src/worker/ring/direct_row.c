/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/ring/direct_row.h"

/* The calls so far. */
struct row {
	struct direct_call *first, **end;
	unsigned n;
	struct direct_call *back; /* of the newest segment: it comes after the next share */
	unsigned share;           /* of the newest segment: its place */
	bool failed;              /* no memory */
};

static void append(struct row *row, struct direct_call *call)
{
	row->failed |= !call;
	if (!call)
		return;
	*row->end = call;
	row->end = &call->next;
	row->n++;
}

static void append_back(struct row *row, struct direct_call *back, unsigned share)
{
	if (!back)
		return;
	back->behind = row->n - share;
	append(row, back);
}

static void append_segment(struct row *row, const struct round_spec *segment, unsigned size,
                           uint32_t payload, void *owner)
{
	struct round_spec share[WIRE_CHILDREN_MAX], back[WIRE_CHILDREN_MAX];
	struct direct_call *last = row->back;
	unsigned last_share = row->share;

	if (size == 2) {
		append(row, direct_call_new(DIRECT_ALLREDUCE, segment, 1, owner));
		return;
	}
	direct_cut(segment, size, payload, share, back);
	row->share = row->n;
	append(row, direct_call_new(DIRECT_SHARE, share, size, owner));
	row->back = direct_call_new(DIRECT_BACK, back, size, owner);
	row->failed |= !row->back;
	append_back(row, last, last_share);
}

static struct round_spec segment_of(const struct round_spec *whole, size_t first, size_t count)
{
	size_t at = first * trib_type_size(whole->type);
	struct round_spec segment = *whole;

	segment.count = count;
	segment.first += first;
	segment.source = (const uint8_t *)whole->source + at;
	segment.target = (uint8_t *)whole->target + at;
	if (whole->residual)
		segment.residual += first;
	return segment;
}

struct direct_call *direct_row_new(const struct round_spec *whole, unsigned size, uint32_t payload,
                                   size_t segment, void *owner, unsigned *n)
{
	size_t per = round_spec_block(whole, payload);
	size_t blocks = segment / (per * trib_type_size(whole->type)),
	       each = per * (blocks + !blocks);
	struct row row = { .end = &row.first };

	for (size_t first = 0; first < whole->count && !row.failed; first += each) {
		size_t left = whole->count - first;
		struct round_spec part = segment_of(whole, first, left < each ? left : each);

		append_segment(&row, &part, size, payload, owner);
	}
	append_back(&row, row.back, row.share);
	*n = row.n;
	if (!row.failed)
		return row.first;
	direct_row_free(row.first);
	return NULL;
}

struct direct_call *direct_row_at(const struct round_spec *whole, unsigned root, void *owner,
                                  unsigned *n)
{
	struct round_spec sum = *whole,
			  back = { .copy = true,
		                   .count = whole->count * trib_type_size(whole->type),
		                   .source = whole->target,
		                   .target = whole->target,
		                   .from = (uint8_t)root,
		                   .to = WIRE_ALL,
		                   .call = whole->call };
	struct row row = { .end = &row.first };

	sum.to = (uint8_t)root;
	append(&row, direct_call_new(DIRECT_REDUCE, &sum, 1, owner));
	append(&row, direct_call_new(DIRECT_BROADCAST, &back, 1, owner));
	for (struct direct_call *call = row.first; call; call = call->next)
		call->few = true;
	*n = row.n;
	if (!row.failed)
		return row.first;
	direct_row_free(row.first);
	return NULL;
}

void direct_row_free(struct direct_call *row)
{
	while (row) {
		struct direct_call *next = row->next;

		direct_call_free(row);
		row = next;
	}
}
