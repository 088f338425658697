/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Have all ranks the adapter? A rank without it makes no call for us, so no collective may be used
 * to find out. Every rank says hello to rank 0, and rank 0 answers those that did. Ranks have just
 * left MPI_Init together, so a rank that says nothing until the deadline does not have the adapter.
 */
#include "base/clock.h"
#include "base/peer_text.h"
#include "tribmpi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HELLO_TAG 32766 /* every MPI has tags up to 32767 */
#define ANSWER_TAG 32765
#define POLL_NS 500000ull
#define MARGIN_S 2 /* rank 0 waits for all until its deadline, and then answers */

/* 64 bytes in every version. */
struct hello {
	char magic[8]; /* "tribmpi" */
	char version[24];
	uint32_t use, exact;
	uint32_t least; /* of struct adapter: differs if only some ranks know an aggregator */
	char unused[20];
};

_Static_assert(sizeof(struct hello) == 64, "every version reads it");

struct answer {
	uint32_t is_active;
	uint32_t use; /* of struct adapter: MPI_USE_ON if one rank demands it, so that all end */
	char why[248];
};

/* True: all have ended before the deadline. */
static bool wait_all(int n, MPI_Request *requests, uint64_t deadline)
{
	const struct timespec pause = clock_span(POLL_NS);
	int done = 0;

	while (PMPI_Testall(n, requests, &done, MPI_STATUSES_IGNORE) == MPI_SUCCESS && !done) {
		if (clock_now() >= deadline)
			return false;
		nanosleep(&pause, NULL);
	}
	return done;
}

static struct hello own_hello(void)
{
	struct hello hello = { .magic = "tribmpi",
		               .version = TRIB_VERSION,
		               .use = (uint32_t)adapter.use,
		               .exact = (uint32_t)adapter.exact,
		               .least = (uint32_t)adapter.least };

	return hello;
}

/* What does not fit between rank 0 and rank r? */
static void compare(const struct hello *first, const struct hello *other, int r,
                    struct answer *answer)
{
	char version[sizeof(other->version) + 1];

	peer_text(version, sizeof(version), other->version, sizeof(other->version));
	if (memcmp(first->magic, other->magic, sizeof(first->magic)) != 0 ||
	    strcmp(first->version, version) != 0)
		snprintf(answer->why, sizeof(answer->why),
		         "rank %d has version %s of the adapter, rank 0 has %s", r, version,
		         first->version);
	else if (first->use != other->use)
		snprintf(answer->why, sizeof(answer->why),
		         "TRIB_MPI differs between ranks 0 and %d", r);
	else if (first->exact != other->exact)
		snprintf(answer->why, sizeof(answer->why),
		         "TRIB_MPI_EXACT differs between ranks 0 and %d", r);
	else if (first->least != other->least)
		snprintf(answer->why, sizeof(answer->why),
		         "rank %d knows an aggregator, rank %d does not: give TRIB_AGGREGATOR or "
		         "TRIB_CONTROLLER to all ranks",
		         first->least ? r : 0, first->least ? 0 : r);
}

/* Rank 0. `heard` of a request that has ended is MPI_REQUEST_NULL. */
static bool collect(struct hello *hellos, MPI_Request *heard, char *why, size_t room)
{
	struct answer answer = { .use = (uint32_t)adapter.use };
	uint64_t deadline = clock_now() + (uint64_t)(adapter.timeout_s * 1e9);
	bool *has_come = calloc((size_t)adapter.size, sizeof(*has_come));

	for (int r = 1; r < adapter.size; r++)
		PMPI_Irecv(&hellos[r], sizeof(*hellos), MPI_BYTE, r, HELLO_TAG, MPI_COMM_WORLD,
		           &heard[r - 1]);
	wait_all(adapter.size - 1, heard, deadline);
	hellos[0] = own_hello();
	for (int r = 1; has_come && r < adapter.size; r++) {
		int done = 0;

		PMPI_Test(&heard[r - 1], &done, MPI_STATUS_IGNORE);
		has_come[r] = done;
		if (done && hellos[r].use == MPI_USE_ON)
			answer.use = MPI_USE_ON;
		if (done && !*answer.why) {
			compare(&hellos[0], &hellos[r], r, &answer);
		} else if (!done) {
			snprintf(answer.why, sizeof(answer.why),
			         "rank %d does not have the adapter: it has said nothing for %.3g "
			         "s; give "
			         "LD_PRELOAD to all ranks (mpirun -x LD_PRELOAD=...)",
			         r, adapter.timeout_s);
			PMPI_Cancel(&heard[r - 1]);
			PMPI_Wait(&heard[r - 1], MPI_STATUS_IGNORE);
		}
	}
	answer.is_active = has_come && !*answer.why;
	for (int r = 1; has_come && r < adapter.size; r++)
		if (has_come[r])
			PMPI_Send(&answer, sizeof(answer), MPI_BYTE, r, ANSWER_TAG, MPI_COMM_WORLD);
	free(has_come);
	snprintf(why, room, "%s", answer.why);
	adapter.use = answer.use;
	return answer.is_active;
}

/* The other ranks. If rank 0 does not answer, it may take our hello for a message of the program.
 */
static bool ask(char *why, size_t room)
{
	struct hello hello = own_hello();
	struct answer answer = { 0 };
	MPI_Request requests[2];

	PMPI_Irecv(&answer, sizeof(answer), MPI_BYTE, 0, ANSWER_TAG, MPI_COMM_WORLD, &requests[0]);
	PMPI_Isend(&hello, sizeof(hello), MPI_BYTE, 0, HELLO_TAG, MPI_COMM_WORLD, &requests[1]);
	if (!wait_all(2, requests,
	              clock_now() + (uint64_t)((adapter.timeout_s + MARGIN_S) * 1e9))) {
		fprintf(stderr,
		        "tributary: rank %d: rank 0 has not answered for %.3g s: it does not have "
		        "the "
		        "adapter; give LD_PRELOAD to all ranks (mpirun -x LD_PRELOAD=...)\n",
		        adapter.rank, adapter.timeout_s + MARGIN_S);
		adapter_flush();
		PMPI_Abort(MPI_COMM_WORLD, 1);
	}
	peer_text(why, room, answer.why, sizeof(answer.why));
	adapter.use = answer.use;
	return answer.is_active;
}

bool hello_all(char *why, size_t room)
{
	struct hello *hellos = calloc((size_t)adapter.size, sizeof(*hellos));
	MPI_Request *heard = calloc((size_t)adapter.size, sizeof(MPI_Request));
	bool fits = false;

	if (adapter.rank)
		fits = ask(why, room);
	else if (hellos && heard)
		fits = collect(hellos, heard, why, room);
	free(hellos);
	free(heard);
	return fits;
}
