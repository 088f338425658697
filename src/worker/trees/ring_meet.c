/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/trees/ring_meet.h"

#include "base/clock.h"
#include "base/peer_text.h"
#include "path/tcp.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MEET_MAGIC 0x31676e6972627274ull /* "trbring1" */
#define TRY_EVERY_MS 50
#define TALK_MS 2000 /* a caller says who it is within this time */

/* What a rank says. Little-endian. */
struct meet_hello {
	uint64_t magic;
	uint64_t cookie;
	uint32_t rank, size;
	uint32_t job;
	struct ring_seat seat;
	uint32_t unused;
};

/* The answer. If `refused` is empty, the seats of all ranks follow. */
struct meet_answer {
	uint64_t magic;
	char refused[248];
};

_Static_assert(sizeof(struct meet_hello) == 56, "no holes");

static void refuse(int fd, const char *why)
{
	struct meet_answer answer = { .magic = MEET_MAGIC };

	snprintf(answer.refused, sizeof(answer.refused), "%s", why);
	tcp_talk(fd, &answer, sizeof(answer), true, clock_now() + TALK_MS * 1000000ull);
	close(fd);
}

/* Takes a caller's seat. False: it is refused, and the connection is closed. */
static bool take_caller(const struct comm_config *config, int fd, const int *callers,
                        struct ring_seat *seats, unsigned *rank)
{
	struct meet_hello hello;
	char why[128] = "";

	if (tcp_talk(fd, &hello, sizeof(hello), false, clock_now() + TALK_MS * 1000000ull) ||
	    hello.magic != MEET_MAGIC) {
		close(fd);
		return false;
	}
	if (hello.job != config->job || hello.cookie != config->cookie)
		snprintf(why, sizeof(why), "rank 0 belongs to another job (TRIB_JOB, TRIB_COOKIE)");
	else if (hello.size != (uint32_t)config->size)
		snprintf(why, sizeof(why), "rank 0 has %d ranks, this process %u", config->size,
		         hello.size);
	else if (hello.rank == 0 || hello.rank >= hello.size || callers[hello.rank] >= 0)
		snprintf(why, sizeof(why), "rank %u has come twice", hello.rank);
	if (*why) {
		refuse(fd, why);
		return false;
	}
	*rank = hello.rank;
	seats[hello.rank] = hello.seat;
	return true;
}

static trib_status fail_missing(const struct comm_config *config, const int *callers)
{
	uint64_t missing = 0;
	char ranks[200];

	for (int r = 1; r < config->size; r++)
		missing |= (uint64_t)(callers[r] < 0) << r;
	comm_list_ranks(missing, ranks, sizeof(ranks));
	return status_fail(TRIB_ERR_TIMEOUT,
	                   "after %.1f s these ranks have not come to the rendezvous of rank 0: %s",
	                   config->timeout_s, ranks);
}

static trib_status answer_all(const struct comm_config *config, const int *callers,
                              struct ring_seat *seats, uint64_t deadline)
{
	struct meet_answer answer = { .magic = MEET_MAGIC };

	for (int r = 1; r < config->size; r++)
		if (tcp_talk(callers[r], &answer, sizeof(answer), true, deadline) ||
		    tcp_talk(callers[r], seats, sizeof(*seats) * (size_t)config->size, true,
		             deadline))
			return status_fail(TRIB_ERR_PEER, "rank %d has left the rendezvous", r);
	return TRIB_OK;
}

static trib_status host(const struct comm_config *config, struct ring_seat *seats,
                        uint64_t deadline)
{
	int callers[WIRE_CHILDREN_MAX], fd, left = config->size - 1;
	trib_status status = tcp_listen(&config->rendezvous, &fd);

	if (status != TRIB_OK)
		return status_fail(status,
		                   "%s: rank 0 listens there for the other ranks%s%s; if rank 0 "
		                   "runs elsewhere, or another job has the port, set "
		                   "TRIB_RENDEZVOUS=host:port on all ranks",
		                   trib_last_error(), config->launcher ? ", as told by " : "",
		                   config->launcher ? config->launcher : "");
	for (unsigned i = 0; i < WIRE_CHILDREN_MAX; i++)
		callers[i] = -1;
	while (left && clock_now() < deadline) {
		struct pollfd wait = { .fd = fd, .events = POLLIN };
		struct udp_address peer;
		unsigned rank;
		int caller;

		poll(&wait, 1, TRY_EVERY_MS);
		caller = tcp_accept(fd, &peer);
		if (caller >= 0 && take_caller(config, caller, callers, seats, &rank)) {
			callers[rank] = caller;
			left--;
		}
	}
	status =
		left ? fail_missing(config, callers) : answer_all(config, callers, seats, deadline);
	for (int r = 1; r < config->size; r++)
		if (callers[r] >= 0)
			close(callers[r]);
	close(fd);
	return status;
}

/* Asks rank 0 once. TRIB_IN_PROGRESS: it does not answer yet. */
static trib_status ask(const struct comm_config *config, struct ring_seat *seats, uint64_t deadline)
{
	struct meet_hello hello = { .magic = MEET_MAGIC,
		                    .cookie = config->cookie,
		                    .rank = (uint32_t)config->rank,
		                    .size = (uint32_t)config->size,
		                    .job = config->job,
		                    .seat = seats[config->rank] };
	struct meet_answer answer;
	char why[sizeof(answer.refused) + 1];
	int fd = tcp_connect(&config->rendezvous, TALK_MS), error;

	if (fd < 0)
		return TRIB_IN_PROGRESS;
	error = tcp_talk(fd, &hello, sizeof(hello), true, deadline);
	if (!error)
		error = tcp_talk(fd, &answer, sizeof(answer), false, deadline);
	if (!error && answer.magic == MEET_MAGIC && !answer.refused[0])
		error = tcp_talk(fd, seats, sizeof(*seats) * (size_t)config->size, false, deadline);
	close(fd);
	if (error)
		return TRIB_IN_PROGRESS;
	if (answer.magic != MEET_MAGIC)
		return status_fail(TRIB_ERR_REFUSED, "another program, or another version of "
		                                     "Tributary, answers at the rendezvous");
	if (answer.refused[0])
		return status_fail(
			TRIB_ERR_REFUSED, "refused at the rendezvous: %s",
			peer_text(why, sizeof(why), answer.refused, sizeof(answer.refused)));
	return TRIB_OK;
}

trib_status ring_meet(const struct comm_config *config, struct ring_seat *seats, uint64_t deadline)
{
	const struct timespec pause = { .tv_nsec = TRY_EVERY_MS * 1000000L };
	trib_status status;
	char address[64];

	if (config->rank == 0)
		return host(config, seats, deadline);
	while ((status = ask(config, seats, deadline)) == TRIB_IN_PROGRESS) {
		if (clock_now() >= deadline)
			return status_fail(
				TRIB_ERR_TIMEOUT,
				"rank 0 has not answered at the rendezvous %s after %.1f "
				"s, or other ranks have not come",
				udp_text(&config->rendezvous, address, sizeof(address)),
				config->timeout_s);
		nanosleep(&pause, NULL);
	}
	return status;
}
