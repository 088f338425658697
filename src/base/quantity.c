/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers with a unit, as text: bytes and rates. */
#include "base/settings.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

/*
 * strtod does not serve: it depends on the locale's decimal point and accepts signs, hex and "nan".
 * A long double holds every 64-bit integer.
 */
const char *scan_number(const char *text, long double *value)
{
	long double number = 0;
	int exponent = 0, digits = 0;

	if (strlen(text) > 64)
		return NULL;
	for (; isdigit((unsigned char)*text); text++, digits++)
		number = number * 10 + (*text - '0');
	if (*text == '.') {
		for (text++; isdigit((unsigned char)*text); text++, digits++, exponent--)
			number = number * 10 + (*text - '0');
	}
	if (!digits)
		return NULL;
	if (*text == 'e' || *text == 'E') {
		const char *p = text + 1;
		int sign = *p == '-' ? -1 : 1, written = 0;

		p += *p == '-' || *p == '+';
		if (!isdigit((unsigned char)*p))
			return NULL;
		for (; isdigit((unsigned char)*p); p++)
			written = written < 100 ? written * 10 + (*p - '0') : written;
		exponent += sign * written;
		text = p;
	}
	for (; exponent > 0 && number > 0 && number < 1e30L; exponent--)
		number *= 10;
	/* One division, so that 1.1e6 is exactly 1100000. */
	long double divisor = 1;
	for (; exponent < 0; exponent++)
		divisor *= 10;
	*value = number / divisor;
	return text;
}

/* A number, an optional prefix K, M, G or T, and an optional unit. */
static trib_status number_parse(const char *text, unsigned step, const char *unit,
                                const char *other_unit, const char *expected, uint64_t *value)
{
	static const char prefixes[] = "KMGT";
	long double number, scale = 1;
	const char *rest = scan_number(text, &number), *prefix;

	if (rest && *rest && (prefix = strchr(prefixes, toupper((unsigned char)*rest)))) {
		for (; prefix >= prefixes; prefix--)
			scale *= step;
		rest++;
	}
	if (!rest || (*rest && strcasecmp(rest, unit) != 0 && strcasecmp(rest, other_unit) != 0))
		return status_fail(TRIB_ERR_ARGUMENT, "\"%s\" is not %s", text, expected);
	number *= scale;
	if (number > (long double)UINT64_MAX)
		return status_fail(TRIB_ERR_ARGUMENT, "\"%s\" is more than 64 bits can hold", text);
	if (number > 0 && number < 1)
		return status_fail(TRIB_ERR_ARGUMENT, "\"%s\" is less than 1", text);
	*value = (uint64_t)number;
	return TRIB_OK;
}

trib_status parse_bytes(const char *text, uint64_t *value)
{
	return number_parse(text, 1024, "B", "iB", EXPECT_BYTES, value);
}

/* No "bps": to tc that is bytes, to everyone else bits. */
trib_status parse_rate(const char *text, uint64_t *bits_per_second)
{
	return number_parse(text, 1000, "bit", "bit/s", EXPECT_RATE, bits_per_second);
}
