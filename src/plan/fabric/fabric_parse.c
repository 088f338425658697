/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/fabric/fabric.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define BLANKS " \t\r"
#define WORDS_MAX 4u

struct words {
	const char *at[WORDS_MAX];
	size_t length[WORDS_MAX];
	unsigned n;
};

/* Splits a line into words, up to its end or a comment. False: too many words. */
static bool words_split(struct words *words, const char *line)
{
	words->n = 0;
	while (line += strspn(line, BLANKS), *line && *line != '\n' && *line != '#') {
		size_t length = strcspn(line, BLANKS "\n#");

		if (words->n == WORDS_MAX)
			return false;
		words->at[words->n] = line;
		words->length[words->n++] = length;
		line += length;
	}
	return true;
}

static bool word_is(const struct words *words, unsigned i, const char *text)
{
	return words->length[i] == strlen(text) && !memcmp(words->at[i], text, words->length[i]);
}

static bool word_count(const struct words *words, unsigned i, uint32_t *count)
{
	char *end;
	unsigned long value;

	if (!isdigit((unsigned char)*words->at[i]))
		return false;
	value = strtoul(words->at[i], &end, 10);
	*count = (uint32_t)value;
	return end == words->at[i] + words->length[i] && value <= FABRIC_HOSTS_MAX;
}

static trib_status line_take(struct fabric *fabric, const struct words *words)
{
	if (word_is(words, 0, "level") && words->n == 3) {
		unsigned l = fabric->levels;

		if (l == FABRIC_LEVELS_MAX)
			return status_fail(TRIB_ERR_CONFIG, "more than %u levels",
			                   FABRIC_LEVELS_MAX);
		if (word_count(words, 1, &fabric->down[l]) &&
		    word_count(words, 2, &fabric->up[l])) {
			fabric->levels++;
			return TRIB_OK;
		}
	} else if (word_is(words, 0, "link") && words->n == 2) {
		if (word_count(words, 1, &fabric->link_jobs))
			return TRIB_OK;
	} else if (word_is(words, 0, "switch") && words->n == 2) {
		if (word_count(words, 1, &fabric->switch_jobs))
			return TRIB_OK;
	}
	return status_fail(TRIB_ERR_CONFIG,
	                   "expected \"level DOWN UP\", \"link JOBS\" or \"switch JOBS\"");
}

trib_status fabric_parse(struct fabric *fabric, const char *text)
{
	unsigned number = 1;

	fabric->levels = 0;
	for (const char *line = text; line; number++) {
		struct words words;
		trib_status status;

		if (!words_split(&words, line))
			return status_fail(TRIB_ERR_CONFIG, "%u: more than %u words", number,
			                   WORDS_MAX);
		if (words.n && (status = line_take(fabric, &words)) != TRIB_OK)
			return status_fail(status, "%u: %s", number, trib_last_error());
		line = strchr(line, '\n');
		if (line)
			line++;
	}
	if (!fabric->levels)
		return status_fail(TRIB_ERR_CONFIG, "%u: the text has no \"level DOWN UP\"",
		                   number - 1);
	return fabric_complete(fabric);
}
