/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a direct collective of eight ranks costs: system calls and messages to the kernel. All ranks
 * of a host share its cores, so these decide how long small collectives take. Acknowledgements go
 * along with data, for several messages at a time. An allgather takes steps. Data leaves from its
 * message, without a copy behind each header. Long messages go by TCP, with few calls.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/clock.h"
#include "cluster.h"
#include "short.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#define RANKS 8
#define CALLS 50u
#define BATCHES 5u
#define BATCHES_SHORT 3u
#define BYTES (64u << 10)             /* of the whole call */
#define LONG_BYTES (512u << 10)       /* the same: all messages are long enough for TCP */
#define GATHER (RANKS * 3)            /* messages: log2(RANKS) of each rank */
#define SCATTER (RANKS * (RANKS - 1)) /* messages: one of each pair of ranks */

static _Atomic uint64_t sends, messages, receives;
static _Atomic uint64_t uncopied; /* messages whose data is not copied behind headers */
static _Atomic uint64_t tcp_sends, tcp_receives;

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

ssize_t sendmsg(int fd, const struct msghdr *header, int flags)
{
	ssize_t n = syscall(SYS_sendmsg, fd, header, flags);

	tcp_sends += n > 0;
	return n;
}

ssize_t recvmsg(int fd, struct msghdr *header, int flags)
{
	ssize_t n = syscall(SYS_recvmsg, fd, header, flags);

	tcp_receives += n > 0;
	return n;
}

/* What a call of a batch has cost. */
struct cost {
	double ms, sends, messages, receives, uncopied, tcp_sends, tcp_receives;
};

struct work {
	pthread_barrier_t barrier;
	void (*call)(struct rank *rank, size_t count, float *part, float *whole);
	const char *name;
	unsigned due; /* messages of a call */
	size_t bytes; /* of the whole call */
	uint64_t start;
	struct cost least; /* of the fastest batch: other programs may hold ranks up */
};

static void gather(struct rank *rank, size_t count, float *part, float *whole)
{
	demand(trib_allgather(rank->comm, part, whole, count, TRIB_F32) == TRIB_OK);
}

static void scatter(struct rank *rank, size_t count, float *part, float *whole)
{
	demand(trib_reduce_scatter(rank->comm, whole, part, count, TRIB_F32, TRIB_SUM) == TRIB_OK);
}

static void reduce_all(struct rank *rank, size_t count, float *part, float *whole)
{
	(void)part;
	demand(trib_allreduce(rank->comm, TRIB_IN_PLACE, whole, count * RANKS, TRIB_F32,
	                      TRIB_SUM) == TRIB_OK);
}

static void begin(struct work *work)
{
	sends = messages = receives = uncopied = tcp_sends = tcp_receives = 0;
	work->start = clock_now();
}

static void end(struct work *work)
{
	double ms = (double)(clock_now() - work->start) / 1e6 / CALLS;

	if (work->least.ms <= 0 || ms < work->least.ms)
		work->least = (struct cost){ ms,
			                     (double)sends / CALLS,
			                     (double)messages / CALLS,
			                     (double)receives / CALLS,
			                     (double)uncopied / CALLS,
			                     (double)tcp_sends / CALLS,
			                     (double)tcp_receives / CALLS };
}

static void body(struct rank *rank)
{
	struct work *work = rank->job;
	float *part = calloc(work->bytes / RANKS, 1), *whole = calloc(work->bytes, 1);

	demand(part && whole);
	for (unsigned batch = 0; batch < (test_is_short() ? BATCHES_SHORT : BATCHES); batch++) {
		if (rank->rank == 0)
			begin(work);
		pthread_barrier_wait(&work->barrier);
		for (unsigned i = 0; i < CALLS; i++)
			work->call(rank, work->bytes / RANKS / sizeof(float), part, whole);
		pthread_barrier_wait(&work->barrier);
		if (rank->rank == 0)
			end(work);
		pthread_barrier_wait(&work->barrier);
	}
	free(part);
	free(whole);
}

/* Runs the calls, and says what the fastest batch has cost. */
static void run(struct work *work)
{
	trib_options options = TRIB_OPTIONS_INIT;
	struct cluster cluster;

	cluster_start(&cluster, 1, 0);
	pthread_barrier_init(&work->barrier, NULL, RANKS);
	cluster_run(&cluster, RANKS, &options, body, work);
	pthread_barrier_destroy(&work->barrier);
	cluster_stop(&cluster);
	print_message("%s: %.1f sends of %.1f messages, %.1f receives, %.2f ms; by TCP %.1f sends, "
	              "%.1f receives\n",
	              work->name, work->least.sends, work->least.messages, work->least.receives,
	              work->least.ms, work->least.tcp_sends, work->least.tcp_receives);
}

static void test_packets(void **state)
{
	struct work works[] = {
		{ .call = gather, .name = "allgather", .due = GATHER, .bytes = BYTES },
		{ .call = scatter, .name = "reduce-scatter", .due = SCATTER, .bytes = BYTES }
	};

	(void)state;
	setenv("TRIB_TRANSPORT", "udp", 1);
	for (unsigned i = 0; i < countof(works); i++) {
		const struct cost *least = &works[i].least;
		double most;

		run(&works[i]);
		assert_true(least->messages >= works[i].due);
		assert_true(least->uncopied >= works[i].due);
		/* Besides data, an acknowledgement of each pair in 3 ms, and some credit. */
		most = works[i].due * (1.15 + least->ms / 3);
		assert_true(least->messages <= most);
		assert_true(least->sends <= most);
		assert_true(least->receives <= most);
		assert_true(least->tcp_sends == 0);
	}
	unsetenv("TRIB_TRANSPORT");
}

/* A message takes one call to send, and a few to receive while it comes in pieces. Beside it, only
 * packets about the paths are sent, and on a crowded machine a few messages that TCP had no time
 * for. */
static void test_tcp(void **state)
{
	struct work works[] = {
		{ .call = gather, .name = "long allgather", .due = GATHER, .bytes = LONG_BYTES },
		{ .call = scatter,
		  .name = "long reduce-scatter",
		  .due = SCATTER,
		  .bytes = LONG_BYTES },
		/* The shares, and the sums back: one segment. */
		{ .call = reduce_all,
		  .name = "long allreduce",
		  .due = 2 * SCATTER,
		  .bytes = 2 * LONG_BYTES }
	};

	(void)state;
	for (unsigned i = 0; i < countof(works); i++) {
		const struct cost *least = &works[i].least;

		run(&works[i]);
		assert_true(least->tcp_sends >= 0.9 * works[i].due);
		assert_true(least->tcp_sends <= 1.5 * works[i].due);
		assert_true(least->tcp_receives <= 6 * works[i].due);
		assert_true(least->messages <= works[i].due * (0.15 + least->ms / 3));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_packets),
		cmocka_unit_test(test_tcp),
	};

	cluster_environment();
	setenv("TRIB_TEST_RING", "1", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
