/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/bed/size_list.h"

#include "base/settings.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORD 32

const char *list_word_next(const char *list, char *word, size_t room)
{
	size_t length = strcspn(list, ",");

	snprintf(word, room, "%.*s", (int)length, list);
	return list + length + (list[length] == ',');
}

trib_status size_list_parse(const char *text, uint64_t *out, unsigned most, unsigned *n)
{
	char word[WORD];

	for (*n = 0; *text;) {
		uint64_t bytes;

		text = list_word_next(text, word, sizeof(word));
		if (parse_bytes(word, &bytes) != TRIB_OK)
			return TRIB_ERR_ARGUMENT;
		if (bytes < 4 || bytes % 4)
			return status_fail(TRIB_ERR_ARGUMENT, "\"%s\" is not a multiple of 4 bytes",
			                   word);
		if (*n == most)
			return status_fail(TRIB_ERR_ARGUMENT, "more than %u sizes", most);
		out[(*n)++] = bytes;
	}
	return TRIB_OK;
}

static bool is_in(uint64_t value, const uint64_t *list, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (list[i] == value)
			return true;
	return false;
}

trib_status count_list_parse(const char *text, uint64_t largest, uint64_t *out, unsigned most,
                             unsigned *n)
{
	char word[WORD], *end;

	for (*n = 0; *text;) {
		uint64_t value;

		text = list_word_next(text, word, sizeof(word));
		value = strtoull(word, &end, 10);
		if (*word < '0' || *word > '9' || *end || value < 1 || value > largest)
			return status_fail(TRIB_ERR_ARGUMENT,
			                   "\"%s\" is not a whole number from 1 to %llu", word,
			                   (unsigned long long)largest);
		if (is_in(value, out, *n))
			return status_fail(TRIB_ERR_ARGUMENT, "%s is there twice", word);
		if (*n == most)
			return status_fail(TRIB_ERR_ARGUMENT, "more than %u numbers", most);
		out[(*n)++] = value;
	}
	return TRIB_OK;
}

trib_status count_list_take(void *context, const char *text)
{
	const struct count_list *list = context;

	return count_list_parse(text, list->largest, list->out, list->most, list->n);
}

const char *bench_bytes_text(uint64_t bytes, char out[24])
{
	static const char units[] = "\0KMGT";
	unsigned unit = 0;

	if (bytes % 100000 == 0 && bytes % (1 << 20)) {
		snprintf(out, 24, "%.1fe6", (double)bytes / 1e6);
		return out;
	}
	while (bytes && bytes % 1024 == 0 && unit < 4) {
		bytes /= 1024;
		unit++;
	}
	snprintf(out, 24, "%llu%.1s", (unsigned long long)bytes, units + unit);
	return out;
}

void bench_bytes_label(double bytes, char *text, size_t size)
{
	char own[24];

	snprintf(text, size, "%s", bench_bytes_text((uint64_t)bytes, own));
}
