/* SPDX-License-Identifier: Apache-2.0 */
/* The value of a setting: its text parsed, and held against its limits. */
#include "base/settings.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define SECONDS_MAX 1e9 /* as nanoseconds, sums of several still fit 64 bits */
#define PATHS_AUTO 8u   /* paths that "auto" looks for */
#define PATHS_LIMIT 16u /* PATHS_MAX in path/balance/monitor.h */
#define EXPECT_PATHS "auto, off, addresses, xor:N or 1 to 16"
#define EXPECT_SECONDS "seconds above 0, such as 30, 0.5 or 200ms"

static bool digits_parse(const char *text, int base, uint64_t *value)
{
	char *end;

	if (!isxdigit((unsigned char)*text))
		return false;
	errno = 0;
	*value = strtoull(text, &end, base);
	return *end == '\0' && errno == 0;
}

static bool word_parse(const char *text, const char *words, uint64_t *value)
{
	char word[32];

	for (*value = 0; setting_word_next(&words, word, sizeof(word)); ++*value) {
		if (strcasecmp(text, word) == 0)
			return true;
	}
	return false;
}

static bool is_one_of(const char *text, const char *a, const char *b, const char *c)
{
	return strcasecmp(text, a) == 0 || strcasecmp(text, b) == 0 || strcasecmp(text, c) == 0;
}

static bool bool_parse(const char *text, uint64_t *value)
{
	*value = is_one_of(text, "on", "yes", "true") || strcmp(text, "1") == 0;
	return *value || is_one_of(text, "off", "no", "false") || strcmp(text, "0") == 0;
}

static bool setting_parse(enum setting_id id, const char *text, uint64_t *value)
{
	if (id == SETTING_COOKIE) /* "0": none. A short cookie could be guessed. */
		return digits_parse(text, 16, value) &&
		       (strlen(text) == COOKIE_DIGITS || strcmp(text, "0") == 0);
	switch (settings[id].type) {
	case SETTING_COUNT:
		return digits_parse(text, 10, value);
	case SETTING_BYTES:
		return parse_bytes(text, value) == TRIB_OK;
	case SETTING_RATE:
		return parse_rate(text, value) == TRIB_OK;
	case SETTING_BOOL:
		return bool_parse(text, value);
	case SETTING_TEXT:
		return setting_limits[id].words &&
		       word_parse(text, setting_limits[id].words, value);
	case SETTING_SECONDS:
		break;
	}
	return false;
}

static void setting_expected(enum setting_id id, char *out, size_t room)
{
	if (id == SETTING_COOKIE)
		snprintf(out, room, "16 hex digits, as trib cookie makes them");
	else if (id == SETTING_PATHS)
		snprintf(out, room, EXPECT_PATHS);
	else if (settings[id].type == SETTING_SECONDS)
		snprintf(out, room, EXPECT_SECONDS);
	else if (settings[id].type == SETTING_BYTES)
		snprintf(out, room, EXPECT_BYTES);
	else if (settings[id].type == SETTING_RATE)
		snprintf(out, room, EXPECT_RATE);
	else if (setting_limits[id].words)
		snprintf(out, room, "one of: %s", setting_limits[id].words);
	else if (settings[id].type == SETTING_COUNT)
		snprintf(out, room, "a whole number from %llu to %llu",
		         (unsigned long long)setting_limits[id].min,
		         (unsigned long long)setting_limits[id].max);
	else
		snprintf(out, room, "%s", settings[id].help);
}

static trib_status setting_fail(enum setting_id id)
{
	const char *origin, *text = setting_text(id, &origin);
	char expected[200];

	setting_expected(id, expected, sizeof(expected));
	if (!text)
		return status_fail(TRIB_ERR_CONFIG, "%s is not set%s%s; expected %s",
		                   settings[id].name,
		                   settings[id].elsewhere ? ", nor by a launcher in one of " : "",
		                   settings[id].elsewhere ? settings[id].elsewhere : "", expected);
	/* A secret never goes to a log, not even a mistyped one. */
	return status_fail(TRIB_ERR_CONFIG, "%s is %s%s%s (from %s); expected %s",
	                   settings[id].name, setting_is_secret(id) ? "" : "\"",
	                   setting_is_secret(id) ? "malformed" : text,
	                   setting_is_secret(id) ? "" : "\"", origin, expected);
}

trib_status setting_count(enum setting_id id, uint64_t *value)
{
	const char *text = setting_text(id, NULL);
	uint64_t number = 0;

	if (!text || !setting_parse(id, text, &number))
		return setting_fail(id);
	if (setting_limits[id].max &&
	    (number < setting_limits[id].min || number > setting_limits[id].max))
		return setting_fail(id);
	*value = number;
	return TRIB_OK;
}

trib_status setting_seconds(enum setting_id id, double *value)
{
	const char *text = setting_text(id, NULL), *unit;
	long double seconds;

	unit = text ? scan_number(text, &seconds) : NULL;
	if (!unit || !is_one_of(unit, "", "s", "ms"))
		return setting_fail(id);
	if (strcasecmp(unit, "ms") == 0)
		seconds /= 1000;
	if (!(seconds > 0 && seconds <= SECONDS_MAX))
		return setting_fail(id);
	*value = (double)seconds;
	return TRIB_OK;
}

trib_status setting_paths(enum path_search *search, unsigned *most)
{
	const char *text = setting_text(SETTING_PATHS, NULL);
	bool computed = strncasecmp(text, "xor:", 4) == 0;
	uint64_t n;

	*search = computed ? PATHS_XOR : PATHS_PROBED;
	*most = PATHS_AUTO;
	if (strcasecmp(text, "auto") == 0)
		return TRIB_OK;
	if (strcasecmp(text, "off") == 0) {
		*search = PATHS_OFF;
		*most = 1;
		return TRIB_OK;
	}
	if (strcasecmp(text, "addresses") == 0) {
		*search = PATHS_ADDRESSES;
		*most = PATHS_LIMIT;
		return TRIB_OK;
	}
	if (!digits_parse(computed ? text + 4 : text, 10, &n) || n < 1 || n > PATHS_LIMIT)
		return setting_fail(SETTING_PATHS);
	*most = (unsigned)n;
	return TRIB_OK;
}

static bool pin_is_good(const char *text)
{
	bool digit = false;

	if (strcmp(text, "off") == 0)
		return true;
	for (; *text; text++) {
		if (*text == ',' && !digit)
			return false;
		digit = isdigit((unsigned char)*text);
		if (!digit && *text != ',')
			return false;
	}
	return digit;
}

trib_status setting_check(enum setting_id id)
{
	const char *text = setting_text(id, NULL), *colon;
	enum path_search search;
	unsigned most;
	uint64_t count;
	double seconds;

	if (!text)
		return TRIB_OK;
	if (id == SETTING_AGGREGATOR || id == SETTING_CONTROLLER) {
		colon = strrchr(text, ':');
		return colon > text && colon[1] ? TRIB_OK : setting_fail(id);
	}
	if (id == SETTING_TREES) /* the reader of the trees parses the brackets */
		return strchr(text, '(') ? TRIB_OK : setting_fail(id);
	if (id == SETTING_PIN)
		return pin_is_good(text) ? TRIB_OK : setting_fail(id);
	if (id == SETTING_PATHS)
		return setting_paths(&search, &most);
	if (settings[id].type == SETTING_SECONDS)
		return setting_seconds(id, &seconds);
	if (settings[id].type == SETTING_TEXT && !setting_limits[id].words && id != SETTING_COOKIE)
		return TRIB_OK; /* any text is valid */
	return setting_count(id, &count);
}
