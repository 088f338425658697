/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A job that takes turns at one shared star is told to migrate to another, and something is in the
 * way: the old aggregator is cut off, or no thread can be started. Requests go on with the right
 * sums, and nothing waits forever.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "control/policy/turn_protocol.h"
#include "fake_controller.h"
#include "relay.h"
#include "wire/parse.h"
#include "worker/trees/trees.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#define RANKS 2
#define COUNT 500 /* elements: one fragment */
#define PATIENCE_MS 30000
#define GIVE_UP_S 120 /* a test that hangs has failed */

/* ---- threads that cannot be created ---- */

static _Atomic unsigned fails_at; /* which pthread_create of a calling thread fails; 0: none */
static _Thread_local unsigned asked;
static _Atomic int threads;       /* started and not joined */
static pthread_barrier_t failing; /* all ranks fail at once, so that none affects another */

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*body)(void *), void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*body)(void *), void *argument);
int __real_pthread_join(pthread_t thread, void **result);
int __wrap_pthread_join(pthread_t thread, void **result);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*body)(void *), void *argument)
{
	unsigned at = atomic_load(&fails_at);
	int error;

	if (at && ++asked == at) {
		pthread_barrier_wait(&failing);
		return EAGAIN;
	}
	error = __real_pthread_create(thread, attributes, body, argument);
	atomic_fetch_add(&threads, !error);
	return error;
}

int __wrap_pthread_join(pthread_t thread, void **result)
{
	int error = __real_pthread_join(thread, result);

	atomic_fetch_sub(&threads, !error);
	return error;
}

/* ---- the controller ---- */

struct stage {
	/* Its first aggregator is the job's own, the others are shared. */
	struct fake_controller controller;
	struct turns turns;
	struct turns_share share;
	uint32_t star; /* number of the newest */
	struct wire_hop hop;
	bool gives; /* the job is to get a turn of one request */
	struct sockaddr_in from[RANKS];
	pthread_barrier_t barrier;
};

static void send_word(struct stage *stage, unsigned rank, const struct wire_turn *heard,
                      struct wire_turn word)
{
	struct {
		struct wire_control header;
		struct wire_turn turn;
		struct wire_hop hop;
	} packet = { .header = { .type = WIRE_TURN,
		                 .cookie = CLUSTER_COOKIE,
		                 .job = FAKE_CONTROLLER_JOB },
		     .hop = stage->hop };
	size_t bytes =
		word.word == WIRE_TURN_MOVE ? sizeof(packet) : sizeof(packet) - sizeof(packet.hop);
	const struct sockaddr_in *to = &stage->from[rank];

	word.key = heard->key;
	word.generation = heard->generation;
	word.star = stage->star;
	packet.turn = word;
	wire_seal(&packet, bytes);
	if (to->sin_port)
		demand(sendto(stage->controller.fd, &packet, bytes, 0, (const void *)to,
		              sizeof(*to)) == (ssize_t)bytes);
}

static void hear_turn(struct fake_controller *controller, const struct wire_control *header,
                      const struct sockaddr_in *from)
{
	struct stage *stage = (struct stage *)controller; /* `controller` is its first member */
	const struct wire_turn *turn = wire_payload(header);
	struct turns_share *share = &stage->share;
	struct wire_turn word = { .word = WIRE_TURN_MOVE, .session = 1 };

	demand(turn->rank < RANKS);
	stage->from[turn->rank] = *from;
	if (turn->star < stage->star) {
		send_word(stage, turn->rank, turn, word);
		return;
	}
	turns_hear(share, turn->rank, turn, 1);
	stage->gives &= !share->held || share->step == TURNS_ASKING;
	if (stage->gives && turns_may_give(&stage->turns, share))
		turns_give(share, turns_next(share), turns_next(share) + 1, 1);
	for (unsigned r = 0; r < RANKS; r++)
		if (turns_say(share, r, &word))
			send_word(stage, r, turn, word);
}

static void stage_start(struct stage *stage, unsigned places)
{
	memset(stage, 0, sizeof(*stage));
	fake_controller_start(&stage->controller, places, 1, false);
	stage->turns.capacity = 1;
	turns_add(&stage->turns, &stage->share, RANKS, 1, false, 1);
	pthread_barrier_init(&stage->barrier, NULL, RANKS);
}

/* Adds the star that the job has from the start. */
static void stage_share(struct stage *stage, const char *star)
{
	pthread_mutex_lock(&stage->controller.lock);
	stage->controller.star = star;
	stage->controller.on_turn = hear_turn;
	pthread_mutex_unlock(&stage->controller.lock);
}

static void stage_stop(struct stage *stage)
{
	fake_controller_stop(&stage->controller);
	pthread_barrier_destroy(&stage->barrier);
}

/* From now on its turns are at another aggregator. */
static void move_to(struct stage *stage, const struct cluster *place)
{
	struct udp_address address;
	const struct sockaddr_in *in = (const void *)&address.storage;

	demand(udp_resolve(place->address, UDP_DEFAULT_PORT, &address) == TRIB_OK);
	pthread_mutex_lock(&stage->controller.lock);
	demand(!stage->share.held);
	stage->star++;
	stage->hop = (struct wire_hop){ .ranks = (1u << RANKS) - 1,
		                        .family = 4,
		                        .port = udp_port(&address) };
	memcpy(stage->hop.address, &in->sin_addr, 4);
	turns_remove(&stage->turns, &stage->share);
	turns_add(&stage->turns, &stage->share, RANKS, 1, false, 1);
	turns_await(&stage->share);
	pthread_mutex_unlock(&stage->controller.lock);
}

static void give_turn(struct stage *stage)
{
	pthread_mutex_lock(&stage->controller.lock);
	stage->gives = true;
	pthread_mutex_unlock(&stage->controller.lock);
}

static bool holds(const struct stage *stage)
{
	return !stage->gives && stage->share.held && stage->share.step == TURNS_IDLE;
}

static bool is_free(const struct stage *stage)
{
	return turns_is_free(&stage->share);
}

static bool is_in(const struct stage *stage)
{
	return turns_is_joined(&stage->share);
}

static bool is_lost(const struct stage *stage)
{
	return stage->share.lost;
}

static void await(struct stage *stage, bool (*condition)(const struct stage *stage))
{
	bool met = false;

	for (unsigned ms = 0; !met && ms < PATIENCE_MS; ms++) {
		pthread_mutex_lock(&stage->controller.lock);
		met = condition(stage);
		pthread_mutex_unlock(&stage->controller.lock);
		if (!met)
			nap_ms(1);
	}
	demand(met);
}

/* ---- ranks ---- */

static void meet(struct stage *stage)
{
	pthread_barrier_wait(&stage->barrier);
}

static void sum(const struct rank *rank)
{
	int32_t values[COUNT];

	for (int i = 0; i < COUNT; i++)
		values[i] = i + rank->rank;
	demand(trib_allreduce(rank->comm, TRIB_IN_PLACE, values, COUNT, TRIB_I32, TRIB_SUM) ==
	       TRIB_OK);
	for (int i = 0; i < COUNT; i++)
		demand(values[i] == 2 * i + 1);
}

/* A sum through the shared aggregator, finished at all ranks. */
static void sum_in_turn(const struct rank *rank, struct stage *stage, const struct cluster *place)
{
	uint64_t before = cluster_count(place, "results", NULL);

	meet(stage);
	if (rank->rank == 0) {
		give_turn(stage);
		await(stage, holds);
	}
	meet(stage);
	sum(rank);
	if (rank->rank == 0) {
		await(stage, is_free);
		for (unsigned ms = 0; cluster_count(place, "results", NULL) == before; ms++) {
			demand(ms < PATIENCE_MS);
			nap_ms(1);
		}
	}
	meet(stage);
}

static void go_to(const struct rank *rank, struct stage *stage, const struct cluster *place,
                  bool (*end)(const struct stage *stage))
{
	meet(stage);
	if (rank->rank == 0) {
		move_to(stage, place);
		await(stage, end);
	}
	meet(stage);
	sum(rank); /* through its own aggregator */
}

static const trib_options brief = { .struct_size = sizeof(brief), .lanes = 1, .timeout_s = 60 };

static void run(struct stage *stage, trib_options options, void (*body)(struct rank *rank))
{
	options.controller = stage->controller.address;
	cluster_run(&stage->controller.places[0], RANKS, &options, body, stage);
}

/* ---- the old aggregator is silent ---- */

/* Drops STATUS, so no rank learns from the aggregator that all have got their results. */
static bool is_no_status(struct relay *relay, bool up, const struct wire_header *packet,
                         size_t bytes)
{
	(void)relay;
	(void)bytes;
	return up || packet->type != WIRE_STATUS;
}

static void leave_silent_body(struct rank *rank)
{
	struct stage *stage = rank->job;
	struct cluster *places = stage->controller.places;

	sum(rank);
	sum_in_turn(rank, stage, &places[1]);
	go_to(rank, stage, &places[2], is_in);
	sum_in_turn(rank, stage, &places[2]);
}

static void test_leaving_a_silent_one(void **state)
{
	struct stage stage;
	struct relay relay;

	(void)state;
	stage_start(&stage, 3);
	relay_open(&relay, stage.controller.places[1].address, is_no_status);
	stage_share(&stage, relay.address);
	run(&stage, brief, leave_silent_body);
	relay_stop(&relay);
	stage_stop(&stage);
	assert_true(relay.dropped > 0);
}

/* ---- no thread for a lane of the new star ---- */

static void no_thread_body(struct rank *rank)
{
	struct stage *stage = rank->job;
	struct cluster *places = stage->controller.places;
	trib_request *request;
	int32_t value = 1;

	sum_in_turn(rank, stage, &places[1]);
	atomic_store(&fails_at, 2); /* the first lane gets a thread, the second does not */
	go_to(rank, stage, &places[2], is_lost);
	atomic_store(&fails_at, 0);
	go_to(rank, stage, &places[3], is_in);
	sum_in_turn(rank, stage, &places[3]);
	/* A rank that fails gets its buffers back: all its lanes are known to be quiet. */
	meet(stage);
	if (rank->rank == 0) {
		demand(trib_iallreduce(rank->comm, TRIB_IN_PLACE, &value, 1, TRIB_I32, TRIB_SUM,
		                       &request) == TRIB_OK);
		comm_fail(rank->comm, TRIB_ERR_SYSTEM, "a test says so");
		demand(trib_wait(&request, 10) == TRIB_ERR_SYSTEM);
	}
	meet(stage);
}

static void test_no_thread_for_a_lane(void **state)
{
	trib_options options = brief;
	struct stage stage;

	(void)state;
	options.lanes = 2;
	stage_start(&stage, 4);
	stage_share(&stage, stage.controller.places[1].address);
	run(&stage, options, no_thread_body);
	stage_stop(&stage);
}

/* ---- no thread at the start, whichever thread it is ---- */

#define THREADS 4u /* of a communicator: a lane of its own, a shared one, failover, turn client */

static void start_body(struct rank *rank)
{
	trib_comm *comm = NULL;
	trib_status status;

	asked = 0;
	status = trib_init(&comm, &rank->options);
	demand(status == (atomic_load(&fails_at) ? TRIB_ERR_SYSTEM : TRIB_OK));
	demand(status == TRIB_OK || error_has("cannot start"));
	demand(status == TRIB_OK || asked == atomic_load(&fails_at));
	if (status == TRIB_OK)
		demand(trib_finalize(comm) == TRIB_OK);
}

static void test_no_thread_at_the_start(void **state)
{
	trib_options options = brief;

	(void)state;
	for (unsigned at = 0; at <= THREADS; at++) {
		struct stage stage;

		stage_start(&stage, 2);
		stage_share(&stage, stage.controller.places[1].address);
		options.controller = stage.controller.address;
		asked = THREADS; /* threads of this test may be created */
		atomic_store(&fails_at, at);
		cluster_run_bare(&stage.controller.places[0], RANKS, &options, start_body, NULL);
		atomic_store(&fails_at, 0);
		stage_stop(&stage);
		assert_int_equal(atomic_load(&threads), 0); /* no thread uses freed memory */
	}
}

/* ---- last words while the turn client changes trunks ---- */

static void await_quiet(struct trib_comm *comm)
{
	bool quiet = false;

	while (!quiet) {
		nap_ms(1);
		pthread_mutex_lock(&comm->lock);
		quiet = comm->quiet_lanes == comm->n_lanes;
		pthread_mutex_unlock(&comm->lock);
	}
}

static void *tell_main(void *argument)
{
	struct rank *rank = argument;
	_Atomic bool *told = rank->job;

	comm_tell_failure(rank->comm);
	atomic_store(told, true);
	return NULL;
}

static void tell_body(struct rank *rank)
{
	struct stage *stage = rank->job;
	_Atomic bool told = false;
	struct rank teller = *rank;
	pthread_t thread;

	teller.job = &told;
	sum(rank);
	meet(stage);
	pthread_mutex_lock(&rank->comm->trunks_lock); /* as who changes them */
	comm_fail(rank->comm, TRIB_ERR_SYSTEM, "a test says so");
	await_quiet(rank->comm);
	demand(pthread_create(&thread, NULL, tell_main, &teller) == 0);
	nap_ms(100);
	demand(!atomic_load(&told));
	pthread_mutex_unlock(&rank->comm->trunks_lock);
	demand(pthread_join(thread, NULL) == 0);
	meet(stage);
}

static void test_last_words_wait(void **state)
{
	struct stage stage;

	(void)state;
	stage_start(&stage, 2);
	stage_share(&stage, stage.controller.places[1].address);
	run(&stage, brief, tell_body);
	stage_stop(&stage);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_leaving_a_silent_one),
		cmocka_unit_test(test_no_thread_for_a_lane),
		cmocka_unit_test(test_no_thread_at_the_start),
		cmocka_unit_test(test_last_words_wait),
	};

	cluster_environment();
	unsetenv("TRIB_TEST_TREE");
	pthread_barrier_init(&failing, NULL, RANKS);
	alarm(GIVE_UP_S);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
