/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nonblocking collectives: generalized requests of MPI, which a thread of ours completes. MPI
 * allows that under MPI_THREAD_MULTIPLE only, so under all other levels MPI carries these calls. It
 * also carries the first call on a communicator, which would have to wait for the other ranks, sums
 * of doubles that take two calls of libtributary, and broadcasts and allgathers: another rank may
 * describe the same data by a type with holes.
 */
#include "base/clock.h"
#include "base/log.h"
#include "tribmpi.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAP_NS 50000ull /* between two looks at requests, if none has ended */

/* A call in flight. */
struct flight {
	struct flight *next;
	const char *name;
	struct link *link;
	trib_request *trib;
	MPI_Request mpi;
	MPI_Datatype type;
	MPI_Op op;
	char *all; /* vectors of all ranks, for operations that ranks apply; NULL: none */
	void *output;
	size_t bytes; /* of a vector */
	int items;    /* of the result; 0: this rank gets none */
	int code;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects what follows */
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct flight *flights, **flights_end = &flights;
static bool is_running, is_ending;
static pthread_t thread;

static int query(void *extra, MPI_Status *status)
{
	const struct flight *flight = extra;

	PMPI_Status_set_elements(status, MPI_BYTE, 0);
	PMPI_Status_set_cancelled(status, 0);
	status->MPI_SOURCE = MPI_UNDEFINED;
	status->MPI_TAG = MPI_UNDEFINED;
	return flight->code;
}

static int release(void *extra)
{
	struct flight *flight = extra;

	free(flight->all);
	free(flight);
	return MPI_SUCCESS;
}

static int cancel(void *extra, int complete)
{
	(void)extra;
	(void)complete;
	return MPI_SUCCESS; /* collectives cannot be cancelled */
}

/* True: it has ended, and belongs to MPI. */
static bool flight_end(struct flight *flight)
{
	trib_status status = trib_test(&flight->trib);

	if (status == TRIB_IN_PROGRESS)
		return false;
	if (status != TRIB_OK) {
		log_error("%s: %s", flight->name, trib_last_error());
		flight->code = MPI_ERR_OTHER;
	} else if (flight->all && flight->items) {
		flight->code =
			gather_fold(flight->link, flight->all, flight->bytes, 0, flight->bytes,
		                    flight->items, flight->type, flight->op, flight->output);
	}
	atomic_fetch_sub(&flight->link->in_flight, 1);
	PMPI_Grequest_complete(flight->mpi);
	return true;
}

/* Looks at all flights: a call may end before another one that began earlier. */
static void look(void)
{
	const struct timespec nap = clock_span(NAP_NS);
	struct flight *mine, **at;
	unsigned ended = 0;

	pthread_mutex_lock(&lock);
	while (!flights && !is_ending)
		pthread_cond_wait(&changed, &lock);
	mine = flights;
	flights = NULL;
	flights_end = &flights;
	pthread_mutex_unlock(&lock);
	for (at = &mine; *at;) {
		struct flight *next = (*at)->next;

		if (flight_end(*at)) {
			*at = next;
			ended++;
		} else {
			at = &(*at)->next;
		}
	}
	pthread_mutex_lock(&lock);
	*at = flights; /* begun meanwhile: behind the others */
	if (!flights)
		flights_end = at;
	flights = mine;
	if (flights_end == &mine)
		flights_end = &flights;
	pthread_mutex_unlock(&lock);
	if (!ended)
		nanosleep(&nap, NULL);
}

static void *thread_main(void *unused)
{
	(void)unused;
	for (;;) {
		bool ends;

		pthread_mutex_lock(&lock);
		ends = is_ending && !flights;
		pthread_mutex_unlock(&lock);
		if (ends)
			return NULL;
		look();
	}
}

void nonblocking_end(void)
{
	if (!is_running)
		return;
	pthread_mutex_lock(&lock);
	is_ending = true;
	pthread_cond_signal(&changed);
	pthread_mutex_unlock(&lock);
	pthread_join(thread, NULL);
	is_running = false;
}

/* A call that may begin; NULL: MPI has to carry it. */
static struct flight *flight_new(const char *name, MPI_Comm comm)
{
	struct flight *flight;
	struct link *link;

	if (adapter.level != MPI_THREAD_MULTIPLE || !(link = link_known(comm)))
		return NULL;
	flight = calloc(1, sizeof(*flight));
	if (!flight)
		return NULL;
	flight->name = name;
	flight->link = link;
	return flight;
}

static int flight_begin(struct flight *flight, trib_status status, MPI_Comm comm,
                        MPI_Request *request)
{
	bool runs = true;

	if (status != TRIB_OK) {
		int code = link_fail(comm, flight->name);

		release(flight);
		return code;
	}
	atomic_fetch_add(&flight->link->in_flight, 1);
	PMPI_Grequest_start(query, release, cancel, flight, &flight->mpi);
	*request = flight->mpi;
	adapter_count(flight->bytes);
	pthread_mutex_lock(&lock);
	if (!is_running)
		runs = is_running = pthread_create(&thread, NULL, thread_main, NULL) == 0;
	*flights_end = flight;
	flights_end = &flight->next;
	pthread_cond_signal(&changed);
	pthread_mutex_unlock(&lock);
	if (!runs) {
		log_error("no thread for nonblocking collectives");
		PMPI_Abort(MPI_COMM_WORLD, 1);
	}
	return MPI_SUCCESS;
}

/* Every rank gets all vectors; flight_end applies the operation. */
static trib_status gather_begin(struct flight *flight, const void *input)
{
	size_t words;

	flight->all = aligned_alloc(16, GATHER_BYTES);
	if (!flight->all)
		return trib_set_error(TRIB_ERR_NO_MEMORY, "no memory for short vectors");
	words = gather_pad(flight->link, input, flight->bytes, flight->all);
	return trib_iallreduce(flight->link->trib, TRIB_IN_PLACE, flight->all, words, TRIB_U64,
	                       TRIB_SUM, &flight->trib);
}

/* Begins a reduction to `root`, or to all if that is negative. False: MPI has to carry it. */
static bool reduce_begin(struct flight *flight, const void *input, void *output, int count,
                         MPI_Datatype type, MPI_Op op, int root, trib_status *status)
{
	trib_comm *trib = flight->link->trib;
	struct call_shape shape = type_shape(type, op, (size_t)count, flight->link->size);
	enum call_way way = call_way(&shape, (enum mpi_exact)adapter.exact);
	bool gets_result = root < 0 || root == flight->link->rank;

	flight->bytes = shape.bytes;
	flight->type = type;
	flight->op = op;
	flight->output = output;
	flight->items = gets_result ? count : 0;
	if (way == WAY_GATHER)
		*status = gather_begin(flight, input);
	else if (way == WAY_SUM && root < 0)
		*status = trib_iallreduce(trib, input, output, shape.count, shape.type, type_op(op),
		                          &flight->trib);
	else if (way == WAY_SUM)
		*status = trib_ireduce(trib, input, gets_result ? output : NULL, shape.count,
		                       shape.type, type_op(op), root, &flight->trib);
	return way == WAY_GATHER || way == WAY_SUM;
}

int MPI_Iallreduce(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op,
                   MPI_Comm comm, MPI_Request *request)
{
	struct flight *flight = count > 0 ? flight_new("MPI_Iallreduce", comm) : NULL;
	trib_status status;

	if (flight && reduce_begin(flight, send == MPI_IN_PLACE ? recv : send, recv, count, type,
	                           op, -1, &status))
		return flight_begin(flight, status, comm, request);
	free(flight);
	adapter_pass();
	return PMPI_Iallreduce(send, recv, count, type, op, comm, request);
}

int MPI_Ireduce(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op, int root,
                MPI_Comm comm, MPI_Request *request)
{
	struct flight *flight = count > 0 && root >= 0 ? flight_new("MPI_Ireduce", comm) : NULL;
	trib_status status;

	if (flight && root < flight->link->size &&
	    reduce_begin(flight, send == MPI_IN_PLACE ? recv : send, recv, count, type, op, root,
	                 &status))
		return flight_begin(flight, status, comm, request);
	free(flight);
	adapter_pass();
	return PMPI_Ireduce(send, recv, count, type, op, root, comm, request);
}

int MPI_Ibarrier(MPI_Comm comm, MPI_Request *request)
{
	struct flight *flight = adapter.least ? NULL : flight_new("MPI_Ibarrier", comm);

	if (flight)
		return flight_begin(flight, trib_ibarrier(flight->link->trib, &flight->trib), comm,
		                    request);
	adapter_pass();
	return PMPI_Ibarrier(comm, request);
}

#ifndef OPEN_MPI
/*
 * MPICH 4.0 ends the program if MPI_Waitall gets a generalized request that still runs, and a null
 * request beside it. So it gets them when all have ended.
 */
int MPI_Waitall(int n, MPI_Request requests[], MPI_Status statuses[])
{
	bool may_run;

	pthread_mutex_lock(&lock);
	may_run = is_running;
	pthread_mutex_unlock(&lock);
	for (int i = 0; may_run && i < n; i++) {
		int done = requests[i] == MPI_REQUEST_NULL;

		while (!done &&
		       PMPI_Request_get_status(requests[i], &done, MPI_STATUS_IGNORE) ==
		               MPI_SUCCESS &&
		       !done)
			sched_yield();
	}
	return PMPI_Waitall(n, requests, statuses);
}
#endif
