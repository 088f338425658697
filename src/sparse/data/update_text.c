/* SPDX-License-Identifier: Apache-2.0 */
#include "sparse/data/update_text.h"

#include "sparse/heat/key_hash.h"

#include <string.h>

#define ITEM_KEY (1ull << 32)
#define BLANKS " \t\r\v\f"
#define SHOWN 40 /* letters of a bad field in an error */

/* The next word of a line. False: there is none. */
static bool field_next(const char **at, const char *separators, const char **field, size_t *length)
{
	*field = *at + strspn(*at, separators);
	*length = strcspn(*field, separators);
	*at = *field + *length;
	return *length > 0;
}

static bool number_read(const char *field, size_t length, uint64_t most, uint64_t *value)
{
	*value = 0;
	for (size_t i = 0; i < length; i++) {
		unsigned digit = (unsigned)(unsigned char)field[i] - '0';

		if (digit > 9 || *value > (most - digit) / 10)
			return false;
		*value = *value * 10 + digit;
	}
	return length > 0;
}

static trib_status field_fail(const char *field, size_t length, const char *expected)
{
	return status_fail(TRIB_ERR_CONFIG, "\"%.*s\" is not %s",
	                   (int)(length < SHOWN ? length : SHOWN), field, expected);
}

static uint64_t update_word_key(const char *word, size_t length)
{
	uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */

	for (size_t i = 0; i < length; i++)
		hash = (hash ^ (unsigned char)word[i]) * 0x100000001b3u;
	hash = key_hash(hash);
	return hash == HEAT_NO_KEY ? 0 : hash;
}

/* ---- the formats ---- */

static trib_status pair_take(struct update_data *data, uint64_t user, uint64_t item)
{
	uint64_t keys[2] = { user, ITEM_KEY | item };

	if (data->rows == UPDATES_BOTH)
		return update_data_record(data, keys, 2, (uint32_t)user);
	return update_data_record(data, &keys[data->rows == UPDATES_ITEMS], 1, (uint32_t)user);
}

/* "user item ..." */
static trib_status list_take(struct update_data *data, const char *text, unsigned items_max)
{
	const char *field;
	size_t length;
	uint64_t user, item;
	unsigned items = 0;
	trib_status status = TRIB_OK;

	if (!field_next(&text, BLANKS ",", &field, &length))
		return TRIB_OK;
	if (!number_read(field, length, UINT32_MAX, &user))
		return field_fail(field, length, "the number of a user, below 2^32");
	for (; status == TRIB_OK && items < items_max; items++) {
		if (!field_next(&text, BLANKS ",", &field, &length))
			break;
		if (!number_read(field, length, UINT32_MAX, &item))
			return field_fail(field, length, "the number of an item, below 2^32");
		status = pair_take(data, user, item);
	}
	if (status == TRIB_OK && !items && items_max == 1)
		return status_fail(TRIB_ERR_CONFIG, "there is a user, and no item");
	return status;
}

static trib_status words_take(struct update_data *data, const char *text)
{
	trib_status status = TRIB_OK;
	const char *field;
	size_t length;

	while (status == TRIB_OK && field_next(&text, BLANKS, &field, &length)) {
		uint64_t key = update_word_key(field, length);

		status = update_data_record(data, &key, 1, (uint32_t)data->lines);
	}
	return status;
}

static trib_status count_take(struct update_data *data, const char *text)
{
	const char *word, *field;
	size_t word_length, length;
	uint64_t count;

	if (!field_next(&text, BLANKS, &word, &word_length))
		return TRIB_OK;
	if (!field_next(&text, BLANKS, &field, &length))
		return status_fail(TRIB_ERR_CONFIG, "there is a word, and no count");
	if (!number_read(field, length, UINT64_MAX, &count))
		return field_fail(field, length, "a count");
	return update_data_count(data, update_word_key(word, word_length), count);
}

trib_status update_line_take(struct update_data *data, const char *text, size_t length)
{
	if (memchr(text, 0, length))
		return status_fail(TRIB_ERR_CONFIG, "the line has a 0 byte: this is no text");
	data->lines++;
	switch (data->format) {
	case UPDATES_LISTS:
		return list_take(data, text, UINT32_MAX);
	case UPDATES_PAIRS:
		return list_take(data, text, 1);
	case UPDATES_COUNTS:
		return count_take(data, text);
	default:
		return words_take(data, text);
	}
}

/* ---- which format? ---- */

struct shape {
	unsigned least, most; /* fields of a line */
	bool is_numeric;      /* all fields are numbers; in pairs, the first two of each line */
	bool is_numeric_pair, is_count;
};

static void line_look(struct shape *shape, const char *text)
{
	unsigned fields = 0;
	const char *field;
	size_t length;
	uint64_t value;

	for (; field_next(&text, BLANKS ",", &field, &length); fields++) {
		bool is_number = number_read(field, length, UINT64_MAX, &value);

		shape->is_numeric = shape->is_numeric && is_number;
		if (fields < 2)
			shape->is_numeric_pair = shape->is_numeric_pair && is_number;
		if (fields == 1)
			shape->is_count = shape->is_count && is_number;
	}
	if (!fields)
		return;
	shape->least = fields < shape->least ? fields : shape->least;
	shape->most = fields > shape->most ? fields : shape->most;
}

enum update_format update_format_guess(const char *const *lines, unsigned n)
{
	struct shape shape = { UINT32_MAX, 0, true, true, true };
	bool is_even;

	for (unsigned i = 0; i < n; i++)
		line_look(&shape, lines[i]);
	is_even = shape.least == shape.most && shape.least >= 2 && shape.most <= 4;
	if (is_even && shape.is_numeric_pair)
		return UPDATES_PAIRS;
	if (shape.most && shape.is_numeric)
		return UPDATES_LISTS;
	return is_even && shape.most == 2 && shape.is_count ? UPDATES_COUNTS : UPDATES_TEXT;
}

static const char *const names[] = {
	[UPDATES_AUTO] = "auto", [UPDATES_LISTS] = "lists",   [UPDATES_PAIRS] = "pairs",
	[UPDATES_TEXT] = "text", [UPDATES_COUNTS] = "counts",
};

#define NAMES_N (sizeof(names) / sizeof(*names))

const char *update_format_name(enum update_format format)
{
	return (size_t)format < NAMES_N ? names[format] : NULL;
}

bool update_format_find(const char *name, enum update_format *format)
{
	for (size_t i = 0; i < NAMES_N; i++) {
		if (!strcmp(name, names[i])) {
			*format = (enum update_format)i;
			return true;
		}
	}
	return false;
}
