/* SPDX-License-Identifier: Apache-2.0 */
/* number_text: the nearest float of a decimal number in text. The locale has no influence. */
#ifndef TRIB_GLM_NUMBER_TEXT_H
#define TRIB_GLM_NUMBER_TEXT_H

enum number_text {
	NUMBER_OK,
	NUMBER_NONE,       /* no number begins here */
	NUMBER_NOT_FINITE, /* NaN or infinity, in words */
	NUMBER_TOO_LARGE,  /* for a float */
};

/*
 * Reads [+-]digits[.digits][e[+-]digits]. The text must end with a byte that cannot continue a
 * number, such as 0. `end` is the first byte that was not read.
 */
enum number_text number_text_read(const char *text, const char **end, float *value);

#endif
