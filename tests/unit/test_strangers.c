/* SPDX-License-Identifier: Apache-2.0 */
/* Strangers: forged addresses, quotas, parents that nobody allowed, and queries. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "hostile_packets.h"
#include "plane/core/agg_comm.h"

/* An aggregator, and a socket of somebody who is no member. */
struct scene {
	struct cluster cluster;
	int fd;
	union packet answer;                /* the last one that this socket got */
	const struct wire_welcome *welcome; /* the body of the answer, if it is a WELCOME */
};

static int scene_begin(void **state)
{
	static struct scene scene;

	scene.welcome = (const void *)(&scene.answer.control + 1);
	cluster_start(&scene.cluster, 1, 0);
	scene.fd = attacker_open(&scene.cluster);
	*state = &scene;
	return 0;
}

static int scene_end(void **state)
{
	struct scene *scene = *state;

	close(scene->fd);
	cluster_stop(&scene->cluster);
	return 0;
}

/* ---- forged addresses: 127.0.0.2 stands for another host ---- */

static int elsewhere_open(const struct cluster *cluster)
{
	struct udp_options options = { .receive_bytes = 1 << 20, .send_bytes = 1 << 20 };
	struct udp_address to, from;
	bool gso;
	int fd;

	demand(udp_resolve(cluster->address, 0, &to) == TRIB_OK);
	demand(udp_resolve("127.0.0.2:0", 0, &from) == TRIB_OK);
	demand(udp_open(&from, &to, &options, &fd, &gso) == TRIB_OK);
	return fd;
}

/* An answer comes: on a busy machine it may be late. */
static void await(int fd)
{
	struct pollfd wait = { .fd = fd, .events = POLLIN };

	demand(poll(&wait, 1, 5000) == 1);
}

/* All that comes within 100 ms, in bytes; *last is the last packet. */
static uint32_t bytes_that_come(int fd, union packet *last)
{
	struct pollfd wait = { .fd = fd, .events = POLLIN };
	uint32_t sum = 0;

	while (poll(&wait, 1, 100) > 0) {
		ssize_t bytes = recv(fd, last, sizeof(*last), 0);

		demand(bytes > 0 && wire_parse(last, (size_t)bytes) == WIRE_SOUND);
		sum += (uint32_t)bytes;
	}
	return sum;
}

/* A JOIN from an unproven address makes no communicator, and its answer is no longer. */
static void test_forged_join(void **state)
{
	struct scene *scene = *state;
	union packet join;
	uint32_t bytes, token;
	int fd;

	bytes = sealed(&join, make_join(&join));
	((struct wire_join *)body_of(&join))->size = 1;
	sealed(&join, bytes);
	fd = elsewhere_open(&scene->cluster);
	for (unsigned i = 0; i < 3; i++) {
		attack(fd, &join, bytes);
		await(fd);
		assert_true(bytes_that_come(fd, &scene->answer) <= bytes);
		assert_int_equal(scene->welcome->verdict, WIRE_WAIT);
	}
	token = scene->answer.control.token;
	close(fd);
	/* The token is that host's alone. */
	join.control.token = token;
	attack(scene->fd, &join, sealed(&join, bytes));
	await(scene->fd);
	assert_true(bytes_that_come(scene->fd, &scene->answer) <= bytes);
	assert_int_equal(scene->welcome->verdict, WIRE_WAIT);
	/* Who hears the answer gets in. */
	join.control.token = scene->answer.control.token;
	attack(scene->fd, &join, sealed(&join, bytes));
	await(scene->fd);
	bytes_that_come(scene->fd, &scene->answer);
	assert_int_equal(scene->welcome->verdict, WIRE_JOINED);
}

static uint32_t forged_report(const struct insider *insider, union packet *packet, uint32_t stamp)
{
	uint32_t bytes =
		insider_packet(insider, packet, WIRE_REPORT, sizeof(struct wire_report), 0);
	struct wire_report *report = body_of(packet);

	report->stamp = stamp;
	report->serial = stamp;
	report->bits = 1;
	report->missing[0] = 1;
	return sealed(packet, bytes);
}

/* A report from another address does not move the results there until it shows the token. */
static void forged_body(struct rank *rank)
{
	struct insider *insider = rank->job;
	uint32_t word[WORDS] = { 0 }, bytes, came;
	union packet packet, answer;
	int fd;

	if (rank->rank == 0) {
		demand(trib_init(&rank->comm, &rank->options) == TRIB_OK);
		demand(trib_allreduce(rank->comm, TRIB_IN_PLACE, word, WORDS, TRIB_U32, TRIB_SUM) ==
		       TRIB_OK);
		trib_finalize(rank->comm);
		return;
	}
	insider_join(insider, rank->cluster);
	attack(insider->fd, &packet, insider_data(insider, &packet, 0));
	demand(insider_receive(insider, &answer, WIRE_RESULT, 5000));
	fd = elsewhere_open(rank->cluster);
	for (uint32_t stamp = 100; stamp < 103; stamp++) {
		bytes = forged_report(insider, &packet, stamp);
		attack(fd, &packet, bytes);
		await(fd);
		came = bytes_that_come(fd, &answer);
		demand(came <= bytes && answer.header.type == WIRE_BYE);
	}
	attack(insider->fd, &packet, forged_report(insider, &packet, 110));
	demand(insider_receive(insider, &packet, WIRE_RESULT, 5000));
	bytes = forged_report(insider, &packet, 120);
	packet.control.token = answer.control.token;
	attack(fd, &packet, sealed(&packet, bytes));
	await(fd);
	demand(bytes_that_come(fd, &answer) > bytes);
	close(fd);
	attack(insider->fd, &packet,
	       sealed(&packet, insider_packet(insider, &packet, WIRE_BYE, 0, 1)));
	nap_ms(50);
	close(insider->fd);
	close(insider->thief);
}

static void test_forged_report(void **state)
{
	struct insider insider = { 0 };
	struct cluster cluster;

	(void)state;
	cluster_start(&cluster, 1, 0);
	cluster_run_bare(&cluster, 2, NULL, forged_body, &insider);
	aggregator_stop(cluster.aggregator);
	assert_int_equal(cluster_count(&cluster, "drops", "unproven"), 3);
	aggregator_free(cluster.aggregator);
}

/* ---- quotas ---- */

/* Joins as rank 0 of a job from this socket; the last answer is in *answer. The verdict. */
static uint32_t join_as(int fd, uint16_t job, uint64_t cookie, union packet *answer,
                        const struct wire_join *wish)
{
	struct pollfd wait = { .fd = fd, .events = POLLIN };
	const struct wire_welcome *welcome = (const void *)(&answer->control + 1);
	union packet packet;
	uint32_t token = 0, bytes = make_join(&packet);

	for (unsigned i = 0; i < 2; i++) { /* the first answer brings the token */
		*(struct wire_join *)body_of(&packet) = *wish;
		packet.control.job = job;
		packet.control.cookie = cookie;
		packet.control.token = token;
		attack(fd, &packet, sealed(&packet, bytes));
		if (poll(&wait, 1, i ? 1000 : 5000) == 0) /* it asks a parent first */
			return WIRE_WAIT;
		demand(recv(fd, answer, sizeof(*answer), 0) > 0);
		token = answer->control.token;
	}
	return welcome->verdict;
}

static uint32_t join_by(int fd, union packet *answer, const struct wire_join *wish)
{
	return join_as(fd, JOB, CLUSTER_COOKIE, answer, wish);
}

static const struct wire_join wish = { .size = 2,
	                               .payload = 1024,
	                               .lanes = 1,
	                               .pool_bytes = 1 << 20,
	                               .timeout_ms = 20000,
	                               .host = "raw" };

/* Half-open communicators of one host and job leave places for others, and for the kernel part. */
static void test_many_joins(void **state)
{
	struct scene *scene = *state;
	struct wire_join join = wish;
	uint32_t verdict = WIRE_WAIT;
	unsigned n = 0;
	int fd;

	fd = elsewhere_open(&scene->cluster);
	for (; n < COMMS_MAX && verdict == WIRE_WAIT; n++) {
		join.key = 100 + n;
		verdict = join_by(fd, &scene->answer, &join);
	}
	assert_int_equal(verdict, WIRE_REFUSED);
	assert_true(n < COMMS_MAX / 2);
	assert_non_null(strstr(scene->welcome->text, "may not have more"));
	join.size = 1; /* alone: it runs at once, if there is a place */
	join.key = 7;
	assert_int_equal(join_by(scene->fd, &scene->answer, &join),
	                 WIRE_REFUSED); /* the job has had enough */
	close(fd);
}

/* So do those of one host and many jobs. */
static void test_many_jobs(void **state)
{
	struct scene *scene = *state;
	uint16_t job = 1;
	int fd;

	fd = elsewhere_open(&scene->cluster);
	while (job <= COMMS_A_HOST &&
	       join_as(fd, job, CLUSTER_COOKIE, &scene->answer, &wish) == WIRE_WAIT)
		job++;
	assert_int_equal(job, COMMS_A_HOST + 1);
	assert_int_equal(join_as(fd, job, CLUSTER_COOKIE, &scene->answer, &wish), WIRE_REFUSED);
	assert_non_null(strstr(scene->welcome->text, "processes of this host"));
	assert_int_equal(join_as(scene->fd, job, CLUSTER_COOKIE, &scene->answer, &wish), WIRE_WAIT);
	close(fd);
}

/* What runs has a low id, whatever is half open. */
static void test_low_ids(void **state)
{
	struct scene *scene = *state;
	struct wire_join join = wish;

	for (join.key = 100; join.key < 200; join.key++)
		assert_int_equal(join_by(scene->fd, &scene->answer, &join), WIRE_WAIT);
	join.size = 1;
	assert_int_equal(join_by(scene->fd, &scene->answer, &join), WIRE_JOINED);
	assert_int_equal(scene->welcome->comm, 1);
}

/* A wish for all memory and for ever gets neither. */
static void test_large_wish(void **state)
{
	struct cluster cluster;
	union packet answer = { .words = { 0 } };
	const struct wire_welcome *welcome = (const void *)(&answer.control + 1);
	struct wire_join join = wish;
	int fd;

	(void)state;
	cluster_start(&cluster, 1, 1 << 22);
	fd = attacker_open(&cluster);
	join.size = 1;
	join.pool_bytes = UINT64_MAX;
	join.timeout_ms = UINT32_MAX;
	assert_int_equal(join_by(fd, &answer, &join), WIRE_JOINED);
	assert_true((uint64_t)welcome->cells * welcome->payload <= 1 << 22);
	assert_true(welcome->dead_after_ms <= 300000);
	close(fd);
	cluster_stop(&cluster);
}

/* A parent outside of the allowed networks is refused; nothing is sent there. */
static void test_foreign_parent(void **state)
{
	struct scene *scene = *state;
	struct wire_join join = wish;

	join.hops = 1;
	join.ranks = 1;
	join.covers = 1;
	join.up[0] = (struct wire_hop){
		.ranks = 3, .address = { 192, 0, 2, 1 }, .port = 53, .family = 4
	};
	assert_int_equal(join_by(scene->fd, &scene->answer, &join), WIRE_REFUSED);
	assert_non_null(strstr(scene->welcome->text, "--parents"));
}

/* A parent that does not answer gets no more than the child has sent. */
static void test_silent_parent(void **state)
{
	struct scene *scene = *state;
	struct udp_options options = { .receive_bytes = 1 << 20, .send_bytes = 1 << 20 };
	struct udp_address at = { .length = sizeof(at.storage) };
	struct wire_join join = wish;
	int parent;
	bool gso;

	demand(udp_resolve("127.0.0.1:0", 0, &at) == TRIB_OK);
	demand(udp_open(&at, NULL, &options, &parent, &gso) == TRIB_OK);
	demand(getsockname(parent, (void *)&at.storage, &at.length) == 0);
	join.hops = 1;
	join.ranks = 1;
	join.covers = 1;
	join.payload = WIRE_PAYLOAD_MAX;
	join.up[0] = (struct wire_hop){
		.ranks = 3, .address = { 127, 0, 0, 1 }, .port = udp_port(&at), .family = 4
	};
	join_by(scene->fd, &scene->answer, &join); /* two JOINs */
	nap_ms(500);
	assert_true(bytes_that_come(parent, &scene->answer) <= 2 * WIRE_JOIN_LEAST);
	close(parent);
}

/* An ANSWER is no longer than its QUERY. */
static void test_short_query(void **state)
{
	struct scene *scene = *state;
	union packet query;

	make(&query, WIRE_QUERY, 0);
	query.control.cookie = CLUSTER_COOKIE;
	attack(scene->fd, &query, sealed(&query, WIRE_CONTROL));
	assert_int_equal(bytes_that_come(scene->fd, &scene->answer), 0);
	memset(&query.control + 1, 0, WIRE_QUERY_BYTES - WIRE_CONTROL);
	attack(scene->fd, &query, sealed(&query, WIRE_QUERY_BYTES));
	await(scene->fd);
	assert_true(bytes_that_come(scene->fd, &scene->answer) > WIRE_CONTROL);
}

/* Asks for a page with this job's cookie; the answer's text is in *answer. NULL: none came. */
static const char *page_for(int fd, uint16_t job, uint64_t cookie, unsigned page,
                            union packet *answer)
{
	union packet query;

	make(&query, WIRE_QUERY, WIRE_QUERY_BYTES - WIRE_CONTROL);
	query.control.job = job;
	query.control.cookie = cookie;
	query.control.pos = wire_pos(0, page);
	attack(fd, &query, sealed(&query, WIRE_QUERY_BYTES));
	return bytes_that_come(fd, answer) ? body_of(answer) : NULL;
}

/* The cookie of one job shows that job alone; the aggregator's own shows all. */
static void test_query_of_a_job(void **state)
{
	struct scene *scene = *state;
	static const uint16_t jobs[] = { 5, 6 };
	const struct secret secret = { { 1, 2, 3 } };

	aggregator_set_secret(scene->cluster.aggregator, &secret);
	for (unsigned i = 0; i < countof(jobs); i++)
		assert_int_equal(join_as(scene->fd, jobs[i], secret_cookie(&secret, jobs[i]),
		                         &scene->answer, &wish),
		                 WIRE_WAIT);
	for (unsigned i = 0; i < countof(jobs); i++) {
		uint64_t cookie = secret_cookie(&secret, jobs[i]);
		char own[16];

		snprintf(own, sizeof(own), "{\"job\":%u,", jobs[i]);
		assert_non_null(
			strstr(page_for(scene->fd, jobs[i], cookie, 1, &scene->answer), own));
		assert_string_equal(page_for(scene->fd, jobs[i], cookie, 2, &scene->answer), "{}");
		assert_null(page_for(scene->fd, jobs[!i], cookie, 1, &scene->answer));
	}
	for (unsigned i = 0; i < countof(jobs); i++)
		assert_non_null(
			strstr(page_for(scene->fd, 0, CLUSTER_COOKIE, i + 1, &scene->answer),
		               "{\"job\":"));
	assert_string_equal(page_for(scene->fd, 0, CLUSTER_COOKIE, 3, &scene->answer), "{}");
}

/* When a job has ended at its controller, its cookie lets nobody in. */
static void test_ended_job(void **state)
{
	struct scene *scene = *state;
	const struct secret secret = { { 1, 2, 3 } };
	static struct job_roster roster = { .last = 6 };

	bitmap_set(roster.live, 6);
	aggregator_set_secret(scene->cluster.aggregator, &secret);
	aggregator_set_roster(scene->cluster.aggregator, &roster);
	assert_int_equal(join_as(scene->fd, 5, secret_cookie(&secret, 5), &scene->answer, &wish),
	                 WIRE_REFUSED);
	assert_non_null(strstr(scene->welcome->text, "job 5 has ended"));
	assert_int_equal(join_as(scene->fd, 6, secret_cookie(&secret, 6), &scene->answer, &wish),
	                 WIRE_WAIT);
}

#define SCENE(test) cmocka_unit_test_setup_teardown(test, scene_begin, scene_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCENE(test_forged_join),    cmocka_unit_test(test_forged_report),
		SCENE(test_many_joins),     SCENE(test_many_jobs),
		SCENE(test_low_ids),        cmocka_unit_test(test_large_wish),
		SCENE(test_foreign_parent), SCENE(test_silent_parent),
		SCENE(test_short_query),    SCENE(test_query_of_a_job),
		SCENE(test_ended_job),
	};

	cluster_environment();
	setenv("TRIB_ENGINE", "dense", 1); /* members that are made here join dense alone */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
