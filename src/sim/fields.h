/* SPDX-License-Identifier: Apache-2.0 */
/* fields: reads lines of fields with a separator. */
#ifndef TRIB_SIM_FIELDS_H
#define TRIB_SIM_FIELDS_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

#define FIELDS_MAX 11u /* one more than any line has, so that more are noticed */
#define FIELD_ROOM 256u

struct fields {
	unsigned line, n;
	char at[FIELDS_MAX][FIELD_ROOM]; /* without blanks around them */
};

/*
 * Reads the next line with fields, and moves *text past it. At the end *text is NULL and n
 * is 0. More or longer fields are an error, or are cut off if `loose`.
 */
trib_status fields_next(struct fields *fields, const char **text, char separator, bool loose);

trib_status fields_fail(const struct fields *fields, const char *what);

/* Unsigned numbers. `what` names the field in the error. */
trib_status field_count(const struct fields *fields, unsigned i, const char *what, uint32_t least,
                        uint32_t most, uint32_t *value);
trib_status field_number(const struct fields *fields, unsigned i, const char *what, double most,
                         double *value);

#endif
