/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/store/store_memory.h"

#include "base/random_bits.h"
#include "sparse/store/sparse_store.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* Bytes of this process that are in memory; 0: not known. */
static uint64_t resident_bytes(void)
{
	unsigned long long all, pages = 0;
	FILE *file = fopen("/proc/self/statm", "re");

	if (!file)
		return 0;
	if (fscanf(file, "%llu %llu", &all, &pages) != 2)
		pages = 0;
	fclose(file);
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static bool store_fill(struct sparse_store *store, uint32_t rows, struct store_memory *out)
{
	float *gradient = calloc(sparse_store_options(store)->width, sizeof(*gradient));
	uint64_t state = 1;

	if (!gradient)
		return false;
	while (sparse_store_rows(store) < rows) {
		double ratio;

		if (sparse_store_apply(store, random_next(&state) >> 1, gradient) ==
		    SPARSE_ROW_NONE)
			break;
		ratio = (double)sparse_store_bytes(store) /
		        (double)sparse_store_floats_bytes(store);
		if (sparse_store_rows(store) >= STORE_ROWS_MANY && ratio > out->most)
			out->most = ratio;
	}
	free(gradient);
	return sparse_store_rows(store) == rows;
}

/* In the process of the store. False: no memory. */
static bool memory_measure(const struct sparse_table_options *options, uint32_t rows,
                           struct store_memory *out)
{
	uint64_t before = resident_bytes();
	struct sparse_store *store;

	if (sparse_store_open(options, &store) != TRIB_OK || !store_fill(store, rows, out))
		return false;
	out->needed = sparse_store_floats_bytes(store);
	out->counted = sparse_store_bytes(store);
	out->resident = resident_bytes() - before;
	sparse_store_close(store);
	return true;
}

trib_status store_memory_measure(const struct sparse_table_options *options, uint32_t rows,
                                 struct store_memory *out)
{
	int ends[2], state = 0;
	bool good;
	pid_t pid;

	*out = (struct store_memory){ 0 };
	if (pipe(ends))
		return status_fail_errno("cannot make a pipe");
	pid = fork();
	if (!pid)
		_exit(memory_measure(options, rows, out) &&
		                      write(ends[1], out, sizeof(*out)) == sizeof(*out)
		              ? 0
		              : 1);
	close(ends[1]);
	good = pid > 0 && read(ends[0], out, sizeof(*out)) == sizeof(*out);
	close(ends[0]);
	while (pid > 0 && waitpid(pid, &state, 0) < 0 && errno == EINTR)
		;
	return good ? TRIB_OK
	            : status_fail(TRIB_ERR_NO_MEMORY, "no memory for %u rows of %u floats", rows,
	                          options->width);
}
