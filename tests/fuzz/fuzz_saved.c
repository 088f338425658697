/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Saved results of a benchmark. They are parsed, or refused with a sentence. Parsed results can be
 * drawn.
 */
#include "bench/allreduce/saved_results.h"
#include "fuzz.h"

#include <math.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct bench_saved saved;
	char *text = malloc(size + 1);

	demand(text);
	memcpy(text, data, size);
	text[size] = 0;
	if (saved_read(&saved, text) == TRIB_OK) {
		demand(saved.n > 0 && saved.n <= SAVED_ROWS_MAX && *saved.place);
		demand(!saved_unlike(&saved, &saved));
		for (unsigned i = 0; i < saved.n; i++) {
			const struct saved_row *row = &saved.rows[i];

			demand(*row->system && strlen(row->note) < sizeof(row->note));
			demand(row->bytes >= 4 && row->repeats >= 0 && row->failed >= 0);
			demand(row->repeats == 0 || isfinite(row->bytes / row->median_s));
			demand(row->limit_s == 0 || isfinite(row->bytes / row->limit_s));
		}
	} else {
		demand(*trib_last_error());
	}
	free(text);
	return 0;
}
