/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/glm/glm_case.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BITS_MAX 8

/* The number behind "name": in a line of JSON. */
static bool number_find(const char *line, const char *name, double *value)
{
	const char *at = strstr(line, name);
	char *end;

	if (!at)
		return false;
	at += strlen(name);
	*value = strtod(at, &end);
	return end != at;
}

bool glm_epoch_read(const char *line, struct glm_epoch *epoch)
{
	double number;

	if (!number_find(line, "\"epoch\": ", &number) ||
	    !number_find(line, "\"loss\": ", &epoch->loss) ||
	    !number_find(line, "\"seconds\": ", &epoch->seconds) ||
	    !number_find(line, "\"total_s\": ", &epoch->at_s) || number < 1 || number > UINT32_MAX)
		return false;
	epoch->number = (unsigned)number;
	return true;
}

uint64_t glm_rows_fit(const struct glm_shape *shape)
{
	uint64_t row_bits = shape->features * (shape->bits ? shape->bits : 32);
	uint64_t most = row_bits ? (uint64_t)GLM_DATA_BYTES * 8 / row_bits : shape->rows;

	if (shape->nonzeros || shape->rows <= most)
		return shape->rows;
	most -= most % shape->batch;
	return most > shape->batch ? most : shape->batch;
}

void glm_data_name(const struct glm_shape *shape, char *out, size_t room)
{
	int used = snprintf(out, room, "synthetic:rows=%" PRIu64 ",columns=%" PRIu64, shape->rows,
	                    shape->features);

	if (shape->nonzeros && shape->nonzeros < shape->features)
		snprintf(out + used, room - (size_t)used, ",density=%.9g",
		         (double)shape->nonzeros / (double)shape->features);
}

static trib_status word_read(const char *word, unsigned *bits)
{
	char *end;
	unsigned long value;

	*bits = 0;
	if (strcmp(word, "float") == 0)
		return TRIB_OK;
	value = strtoul(word, &end, 10);
	if (*word < '1' || *word > '9' || *end || value > BITS_MAX)
		return status_fail(TRIB_ERR_ARGUMENT, "\"%s\" is not float or from 1 to %d", word,
		                   BITS_MAX);
	*bits = (unsigned)value;
	return TRIB_OK;
}

trib_status glm_bits_parse(const char *text, unsigned *bits, unsigned most, unsigned *n)
{
	char word[16];

	*n = 0;
	do {
		size_t length = strcspn(text, ",");

		snprintf(word, sizeof(word), "%.*s", (int)length, text);
		if (*n == most)
			return status_fail(TRIB_ERR_ARGUMENT, "more than %u precisions", most);
		if (word_read(word, &bits[*n]) != TRIB_OK)
			return TRIB_ERR_ARGUMENT;
		for (unsigned i = 0; i < *n; i++)
			if (bits[i] == bits[*n])
				return status_fail(TRIB_ERR_ARGUMENT, "%s is there twice", word);
		(*n)++;
		text += length;
	} while (*text++ == ',');
	return TRIB_OK;
}

void glm_bits_text(unsigned bits, char *out, size_t room)
{
	if (bits)
		snprintf(out, room, "%u bit%s", bits, bits == 1 ? "" : "s");
	else
		snprintf(out, room, "float");
}
