/* SPDX-License-Identifier: Apache-2.0 */
#include "glm/text/number_text.h"

#include <float.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* The largest power of ten that a double holds exactly. */
#define POWER_MAX 22
/* As many decimal digits fit into 64 bits, whatever they are. */
#define DIGITS_MAX 19
/* A larger exponent changes nothing: the number is 0 or too large. */
#define EXPONENT_MAX 100000

static const double powers[POWER_MAX + 1] = { 1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
	                                      1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
	                                      1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22 };

static locale_t plain;

static void plain_make(void)
{
	plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

/* The C library rounds correctly, but takes its time, and the locale's decimal point. */
static enum number_text number_slow(const char *text, float *value)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, plain_make);
	*value = strtof_l(text, NULL, plain);
	return isinf(*value) ? NUMBER_TOO_LARGE : NUMBER_OK;
}

static enum number_text number_word(const char *text, const char **end, float *value)
{
	static const char *const words[] = { "nan", "infinity", "inf" };
	unsigned i;

	*value = 0;
	for (i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (!strncasecmp(text, words[i], strlen(words[i]))) {
			*end = text + strlen(words[i]);
			return NUMBER_NOT_FINITE;
		}
	return NUMBER_NONE;
}

static inline unsigned digit_of(const char *at)
{
	return (unsigned)(unsigned char)*at - '0';
}

static int exponent_read(const char **at)
{
	const char *p = *at + 1;
	bool negative = *p == '-';
	int exponent = 0;

	if (*p == '-' || *p == '+')
		p++;
	if (digit_of(p) > 9)
		return 0;
	for (; digit_of(p) <= 9; p++)
		if (exponent < EXPONENT_MAX)
			exponent = exponent * 10 + (int)digit_of(p);
	*at = p;
	return negative ? -exponent : exponent;
}

/*
 * 19 digits and a power of ten give a double with an error below 4 units in the last place. That
 * rounds to the right float, unless the double is that near to the middle between two floats.
 */
static bool number_quick(uint64_t digits, int exponent, float *value)
{
	double d = (double)digits;
	uint64_t bits;

	if (exponent < -POWER_MAX || exponent > POWER_MAX)
		return false;
	d = exponent < 0 ? d / powers[-exponent] : d * powers[exponent];
	if (d < FLT_MIN || d > FLT_MAX)
		return false;
	memcpy(&bits, &d, sizeof(bits));
	*value = (float)d;
	return (bits & 0x1fffffff) - 0xffffffc > 8;
}

enum number_text number_text_read(const char *text, const char **end, float *value)
{
	const char *p = text, *begin;
	bool negative = *p == '-';
	enum number_text kind = NUMBER_OK;
	uint64_t digits = 0;
	int n = 0, exponent = 0;

	*end = text;
	if (*p == '-' || *p == '+')
		p++;
	for (begin = p; digit_of(p) <= 9; p++) {
		if (n < DIGITS_MAX) {
			digits = digits * 10 + digit_of(p);
			n += digits != 0;
		} else {
			exponent++;
		}
	}
	if (p == begin && *p != '.')
		return number_word(p, end, value);
	if (*p == '.') {
		for (begin = begin == p ? p + 1 : begin, p++; digit_of(p) <= 9; p++) {
			if (n < DIGITS_MAX) {
				digits = digits * 10 + digit_of(p);
				n += digits != 0;
				exponent--;
			}
		}
		if (begin == p)
			return NUMBER_NONE;
	}
	if ((*p | 32) == 'e')
		exponent += exponent_read(&p);
	*end = p;
	if (!digits)
		*value = 0;
	else if (!number_quick(digits, exponent, value)) {
		begin = *text == '-' || *text == '+' ? text + 1 : text;
		kind = number_slow(begin, value);
	}
	*value = negative ? -*value : *value;
	return kind;
}
