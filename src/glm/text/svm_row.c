/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A line is "LABEL [qid:N] INDEX:VALUE ... [# comment]". Indices ascend, as liblinear wants it. The
 * query number of a ranking task is checked and not used.
 */
#include "glm/text/number_text.h"
#include "glm/text/row_text.h"

#include <string.h>

static inline bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static inline bool is_end(char c)
{
	return c == 0 || is_blank(c) || c == '#';
}

static inline bool is_digit(char c)
{
	return (unsigned char)(c - '0') <= 9;
}

/* The end of the word for a sentence. */
static const char *word_end(const char *at)
{
	while (!is_end(*at))
		at++;
	return at;
}

static enum row_verdict label_read(struct glm_row *row, const char **at)
{
	const char *end;
	enum number_text kind = number_text_read(*at, &end, &row->label);

	if (kind == NUMBER_OK && *end == ':')
		return row_fail(row, "the label is missing");
	if (kind == NUMBER_OK && !is_end(*end))
		kind = NUMBER_NONE;
	if (kind != NUMBER_OK)
		return row_fail(row, "the label '%s' %s", row_quote(*at, word_end(*at)).text,
		                row_number_fault((int)kind));
	*at = end;
	return ROW_GOOD;
}

/* Skips "qid:7". Returns false if something else is there. */
static bool query_skip(const char **at)
{
	const char *p = *at + 4;

	if (strncmp(*at, "qid:", 4) != 0 || !is_digit(*p))
		return false;
	while (is_digit(*p))
		p++;
	if (!is_end(*p))
		return false;
	*at = p;
	return true;
}

static enum row_verdict index_fail(struct glm_row *row, const char *at)
{
	const char *end = word_end(at), *colon = memchr(at, ':', (size_t)(end - at));

	if (!colon)
		return row_fail(row, "the feature '%s' has no ':'", row_quote(at, end).text);
	return row_fail(row, "the feature index '%s' is not a number", row_quote(at, colon).text);
}

static enum row_verdict value_fail(struct glm_row *row, const char *at, uint64_t index)
{
	const char *end, *after = word_end(at);
	float ignored;
	enum number_text kind = number_text_read(at, &end, &ignored);

	if (at == after)
		return row_fail(row, "the value of feature %llu is missing",
		                (unsigned long long)index);
	return row_fail(row, "the value '%s' of feature %llu %s", row_quote(at, after).text,
	                (unsigned long long)index,
	                row_number_fault(end == after ? (int)kind : NUMBER_NONE));
}

/* The index is out of range, or below `next`, the lowest index that may follow. */
static enum row_verdict order_fail(struct glm_row *row, const struct row_format *format,
                                   uint64_t index, uint64_t next)
{
	if (!index && format->base == GLM_BASE_ONE)
		return row_fail(row, "feature index 0: indices begin with 1, unless --base says "
		                     "that the file begins with 0");
	if (index >= next)
		return row_fail(row, "feature index %llu is above the limit of %u columns",
		                (unsigned long long)index, format->columns_max);
	if (index + 1 == next)
		return row_fail(row, "feature %llu occurs twice", (unsigned long long)index);
	return row_fail(row, "feature %llu comes after %llu: indices must ascend",
	                (unsigned long long)index, (unsigned long long)next - 1);
}

enum row_verdict svm_row_read(struct glm_row *row, const struct row_format *format,
                              const char *text, size_t length)
{
	/* `next` is the lowest index that may follow. */
	uint64_t first = format->base == GLM_BASE_ONE, next = first;
	uint64_t limit = first + format->columns_max;
	const char *at = text;
	uint32_t n = 0;

	row->n = 0;
	row->has_zero = false;
	while (is_blank(*at))
		at++;
	if (*at == '#' || (!*at && at == text + length))
		return ROW_NONE;
	if (label_read(row, &at) != ROW_GOOD)
		return ROW_BAD;
	for (;;) {
		const char *begin, *end;
		uint64_t index = 0;
		float value;

		while (is_blank(*at))
			at++;
		if (*at == '#' || !*at)
			break;
		begin = at;
		/* Eleven digits are above every limit. */
		for (; is_digit(*at) && at - begin < 11; at++)
			index = index * 10 + (uint64_t)(*at - '0');
		if (*at != ':' || at == begin) {
			if (!n && query_skip(&begin)) {
				at = begin;
				continue;
			}
			if (at - begin == 11 && is_digit(*at))
				return row_fail(
					row, "feature index %s has too many digits",
					row_quote(begin, begin + strcspn(begin, ": \t#")).text);
			return index_fail(row, begin);
		}
		at++;
		/* One digit, the most frequent value, needs no more. */
		if (is_digit(*at) && is_end(at[1])) {
			value = (float)(*at - '0');
			end = at + 1;
		} else if (number_text_read(at, &end, &value) != NUMBER_OK || !is_end(*end)) {
			return value_fail(row, at, index);
		}
		if (index < next || index >= limit)
			return order_fail(row, format, index, next);
		next = index + 1;
		row->has_zero |= !index;
		row->column[n] = (uint32_t)(index - first);
		row->value[n] = value;
		n += value != 0;
		at = end;
	}
	if (!*at && at != text + length)
		return row_fail(row, "a byte 0: this is not text");
	row->n = n;
	row->columns = (uint32_t)(next - first);
	return ROW_GOOD;
}
