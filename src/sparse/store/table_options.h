/* SPDX-License-Identifier: Apache-2.0 */
/* The options of a table of rows, as a server keeps them: with defaults, and checked. */
#ifndef TRIB_SPARSE_STORE_TABLE_OPTIONS_H
#define TRIB_SPARSE_STORE_TABLE_OPTIONS_H

#include "base/status.h"

#include <tributary/sparse.h>

#include <stdbool.h>
#include <stdint.h>

#define SPARSE_NAME_ROOM 64 /* of a table's name, filled with zeros; the last one is 0 */
#define SPARSE_WIDTH_MAX 4096u
#define SPARSE_KEY_NONE UINT64_MAX /* no row has this key */

/* The values are those in logs and packets. */
enum sparse_optimizer { SPARSE_SGD, SPARSE_MOMENTUM, SPARSE_ADAGRAD, SPARSE_ADAM };

struct sparse_table_options {
	char name[SPARSE_NAME_ROOM];
	uint64_t parameters; /* keys are below; 0: every key but SPARSE_KEY_NONE */
	uint32_t width;      /* floats in a row */
	uint32_t optimizer;  /* enum sparse_optimizer */
	double rate, momentum, beta1, beta2, epsilon;
	double init; /* rows begin with values in [-init, init) */
	uint64_t seed;
};

/* NULL: there is no such optimizer. */
const char *sparse_optimizer_name(uint32_t optimizer);

/* The options that a job gave, with the defaults of tributary/sparse.h; checked. */
trib_status sparse_table_options_take(const trib_sparse_options *given,
                                      struct sparse_table_options *options);

/* An error's sentence names the wrong option and its value. */
trib_status sparse_table_options_check(const struct sparse_table_options *options);

bool sparse_table_options_equal(const struct sparse_table_options *a,
                                const struct sparse_table_options *b);

/* True: a row may have this key. */
static inline bool sparse_key_fits(const struct sparse_table_options *options, uint64_t key)
{
	return options->parameters ? key < options->parameters : key != SPARSE_KEY_NONE;
}

#endif
