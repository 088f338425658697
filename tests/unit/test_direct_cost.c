/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a direct collective of eight ranks costs: system calls and messages to the kernel. All ranks
 * of a host share its cores, so these decide how long small collectives take. Acknowledgements go
 * along with data, for several messages at a time. An allgather takes steps. Data leaves from its
 * message, without a copy behind each header.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/clock.h"
#include "cluster.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#define RANKS 8
#define CALLS 50u
#define BATCHES 5u
#define BYTES (64u << 10)             /* of the whole call */
#define GATHER (RANKS * 3)            /* messages: log2(RANKS) of each rank */
#define SCATTER (RANKS * (RANKS - 1)) /* messages: one of each pair of ranks */

static _Atomic uint64_t sends, messages, receives;
static _Atomic uint64_t uncopied; /* messages whose data is not copied behind headers */

int sendmmsg(int fd, struct mmsghdr *headers, unsigned n, int flags)
{
	int sent = (int)syscall(SYS_sendmmsg, fd, headers, n, flags);

	sends++;
	messages += sent > 0 ? (unsigned)sent : 0;
	for (int i = 0; i < sent; i++)
		uncopied += headers[i].msg_hdr.msg_iovlen > 1;
	return sent;
}

int recvmmsg(int fd, struct mmsghdr *headers, unsigned n, int flags, struct timespec *timeout)
{
	int got = (int)syscall(SYS_recvmmsg, fd, headers, n, flags, timeout);

	receives += got > 0;
	return got;
}

/* What a call of a batch has cost. */
struct cost {
	double ms, sends, messages, receives, uncopied;
};

struct work {
	pthread_barrier_t barrier;
	void (*call)(struct rank *rank, float *part, float *whole);
	const char *name;
	unsigned due; /* messages of a call */
	uint64_t start;
	struct cost least; /* of the fastest batch: other programs may hold ranks up */
};

static void gather(struct rank *rank, float *part, float *whole)
{
	demand(trib_allgather(rank->comm, part, whole, BYTES / RANKS / 4, TRIB_F32) == TRIB_OK);
}

static void scatter(struct rank *rank, float *part, float *whole)
{
	demand(trib_reduce_scatter(rank->comm, whole, part, BYTES / RANKS / 4, TRIB_F32,
	                           TRIB_SUM) == TRIB_OK);
}

static void begin(struct work *work)
{
	sends = messages = receives = uncopied = 0;
	work->start = clock_now();
}

static void end(struct work *work)
{
	double ms = (double)(clock_now() - work->start) / 1e6 / CALLS;

	if (work->least.ms <= 0 || ms < work->least.ms)
		work->least = (struct cost){ ms, (double)sends / CALLS, (double)messages / CALLS,
			                     (double)receives / CALLS, (double)uncopied / CALLS };
}

static void body(struct rank *rank)
{
	struct work *work = rank->job;
	float *part = calloc(BYTES / RANKS, 1), *whole = calloc(BYTES, 1);

	demand(part && whole);
	for (unsigned batch = 0; batch < BATCHES; batch++) {
		if (rank->rank == 0)
			begin(work);
		pthread_barrier_wait(&work->barrier);
		for (unsigned i = 0; i < CALLS; i++)
			work->call(rank, part, whole);
		pthread_barrier_wait(&work->barrier);
		if (rank->rank == 0)
			end(work);
		pthread_barrier_wait(&work->barrier);
	}
	free(part);
	free(whole);
}

static void test_costs(void **state)
{
	static const struct work works[] = {
		{ .call = gather, .name = "allgather", .due = GATHER },
		{ .call = scatter, .name = "reduce-scatter", .due = SCATTER }
	};

	(void)state;
	for (unsigned i = 0; i < countof(works); i++) {
		struct work work = works[i];
		trib_options options = TRIB_OPTIONS_INIT;
		struct cluster cluster;
		double most;

		cluster_start(&cluster, 1, 0);
		pthread_barrier_init(&work.barrier, NULL, RANKS);
		cluster_run(&cluster, RANKS, &options, body, &work);
		pthread_barrier_destroy(&work.barrier);
		cluster_stop(&cluster);
		print_message("%s: %.1f sends of %.1f messages, %.1f receives, %.2f ms\n",
		              work.name, work.least.sends, work.least.messages, work.least.receives,
		              work.least.ms);
		assert_true(work.least.messages >= work.due);
		assert_true(work.least.uncopied >= work.due);
		/* Besides data, an acknowledgement of each pair in 3 ms, and some credit. */
		most = work.due * (1.15 + work.least.ms / 3);
		assert_true(work.least.messages <= most);
		assert_true(work.least.sends <= most);
		assert_true(work.least.receives <= most);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_costs) };

	cluster_environment();
	setenv("TRIB_TEST_RING", "1", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
