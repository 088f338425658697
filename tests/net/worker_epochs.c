/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker_epochs: a worker for several epochs.
 *
 *   worker_epochs NUMBER SECONDS EPOCHS
 *
 * In an epoch, all members sum the bits of their numbers repeatedly for SECONDS. Then all regroup.
 * After EPOCHS epochs the worker leaves. EPOCHS 0: it stays until a file named `end` exists. It
 * prints a line for each epoch: "epoch SIZE MEMBERS", with members as bits. A dead peer ends an
 * epoch early; then "lost: SENTENCE" names it.
 *
 * Exit codes: 0: success; 1: a wrong sum; 2: wrong usage; 3: an error.
 */
#include <tributary.h>

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define ELEMENTS 5000

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static int fail(const char *what)
{
	printf("%s: %s\n", what, trib_last_error());
	return 3;
}

/* TRIB_OK: every element is the sum over the members. */
static trib_status sum_once(trib_comm *comm, unsigned number, bool is_over, uint64_t *members,
                            bool *all_over)
{
	static uint64_t vector[ELEMENTS];
	trib_status status;

	for (size_t i = 0; i < ELEMENTS; i++)
		vector[i] = (1ull << number) + (i ? (i << 40) : 0);
	vector[1] = is_over;
	status = trib_allreduce(comm, TRIB_IN_PLACE, vector, ELEMENTS, TRIB_U64, TRIB_SUM);
	if (status != TRIB_OK)
		return status;
	*members = vector[0];
	*all_over = vector[1] > 0;
	for (size_t i = 2; i < ELEMENTS; i++) {
		if (vector[i] != *members + (uint64_t)trib_size(comm) * (i << 40)) {
			printf("wrong at %zu: %" PRIx64 "\n", i, vector[i]);
			exit(1);
		}
	}
	if (__builtin_popcountll(*members) != trib_size(comm)) {
		printf("wrong members: %" PRIx64 " of %d\n", *members, trib_size(comm));
		exit(1);
	}
	return TRIB_OK;
}

int main(int argc, char **argv)
{
	unsigned number, epochs;
	trib_status status;
	trib_comm *comm;
	double span;
	bool ended;

	if (argc != 4)
		return 2;
	number = (unsigned)atoi(argv[1]);
	span = atof(argv[2]);
	epochs = (unsigned)atoi(argv[3]);
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (trib_init(&comm, NULL) != TRIB_OK)
		return fail("init");
	for (unsigned epoch = 1;; epoch++) {
		double start = seconds();
		uint64_t members = 0, last = 0;
		bool over = false;

		while (!over && (status = sum_once(comm, number, seconds() > start + span, &members,
		                                   &over)) == TRIB_OK)
			last = members;
		printf("epoch %d %" PRIx64 "\n", trib_size(comm), last);
		if (status != TRIB_OK && status != TRIB_ERR_PEER)
			return fail("allreduce");
		if (status != TRIB_OK)
			printf("lost: %s\n", trib_last_error());
		ended = access("end", F_OK) == 0;
		if (epochs ? epoch == epochs : ended)
			break;
		if (trib_regroup(&comm) != TRIB_OK)
			return fail("regroup");
	}
	return trib_finalize(comm) == TRIB_OK ? 0 : fail("finalize");
}
