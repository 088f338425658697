/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of sizes and of counts, as command lines have them: "4K,1M" and "2,4,8". Pure. */
#ifndef TRIB_BENCH_BED_SIZE_LIST_H
#define TRIB_BENCH_BED_SIZE_LIST_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

/*
 * Copies the first word of a list, and returns what is behind its comma. A comma at the end of a
 * list is ignored. The caller has to refuse an empty word.
 */
const char *list_word_next(const char *list, char *word, size_t room);

/* Sizes in bytes, each a multiple of 4, `most` of them at most. */
trib_status size_list_parse(const char *text, uint64_t *out, unsigned most, unsigned *n);
/* Whole numbers from 1 to `largest`, `most` of them at most, none twice. */
trib_status count_list_parse(const char *text, uint64_t largest, uint64_t *out, unsigned most,
                             unsigned *n);

/* The same for an option: its hook, and the context of the hook. */
struct count_list {
	uint64_t largest;
	uint64_t *out;
	unsigned most, *n;
};
trib_status count_list_take(void *context, const char *text);

/* "16M", "2.5e6", "1000": the shortest exact form. */
const char *bench_bytes_text(uint64_t bytes, char out[24]);
/* The same as the label of a place in a chart. */
void bench_bytes_label(double bytes, char *text, size_t size);

#endif
