/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of fields with a separator between them. */
#ifndef TRIB_SIM_FIELDS_H
#define TRIB_SIM_FIELDS_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

#define FIELDS_MAX 8u
#define FIELD_ROOM 256u

struct fields {
	unsigned line, n;
	char at[FIELDS_MAX][FIELD_ROOM]; /* without blanks around them */
};

/*
 * The next line that has any; *text moves behind it, and is NULL at the end,
 * where n is 0. A line with more or longer fields is an error, unless `loose`:
 * then they are cut.
 */
trib_status fields_next(struct fields *fields, const char **text, char separator, bool loose);

trib_status fields_fail(const struct fields *fields, const char *what);

/* Numbers without a sign; what a field is, for the error. */
trib_status field_count(const struct fields *fields, unsigned i, const char *what, uint32_t least,
                        uint32_t most, uint32_t *value);
trib_status field_number(const struct fields *fields, unsigned i, const char *what, double most,
                         double *value);

#endif
