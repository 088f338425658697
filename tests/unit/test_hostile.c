/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bad input. Every kind is dropped and counted by its kind, and a flood of all kinds changes no
 * sum. Outsiders do not know the communicator's cookie. An insider is a member that replays and
 * lies.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "hostile_packets.h"
#include "short.h"

#include <pthread.h>
#include <stdatomic.h>

static uint32_t bad_empty(union packet *packet, uint64_t random)
{
	(void)packet;
	(void)random;
	return 0;
}

static uint32_t bad_short(union packet *packet, uint64_t random)
{
	sealed(packet, make(packet, WIRE_DATA, 64));
	return (uint32_t)(1 + random % (WIRE_HEADER - 1));
}

static uint32_t bad_odd(union packet *packet, uint64_t random)
{
	return sealed(packet, make(packet, WIRE_DATA, 64)) + (uint32_t)(1 + random % 7);
}

static uint32_t bad_long(union packet *packet, uint64_t random)
{
	(void)random;
	return sealed(packet, make(packet, WIRE_DATA, WIRE_PAYLOAD_MAX + 8));
}

static uint32_t bad_magic(union packet *packet, uint64_t random)
{
	uint32_t bytes = sealed(packet, make(packet, WIRE_DATA, 64));

	packet->header.magic ^= (uint16_t)(1 + random % 0xffff);
	return bytes;
}

static uint32_t bad_type(union packet *packet, uint64_t random)
{
	uint8_t type = random % 2 ? 0 : (uint8_t)(WIRE_TYPES_END + random % 200);

	return sealed(packet, make(packet, type, 64));
}

static uint32_t bad_check(union packet *packet, uint64_t random)
{
	uint32_t bytes = sealed(packet, make_join(packet));

	packet->words[1 + random % (bytes / 8 - 1)] ^= 1ull << (random >> 32) % 64;
	return bytes;
}

/* DATA of a sender that has not joined. */
static uint32_t bad_proof(union packet *packet, uint64_t random)
{
	uint32_t bytes = make(packet, WIRE_DATA, 8 * (uint32_t)(random % 100));

	packet->header.child = random >> 8 & 1;
	packet->header.op = WIRE_ADD32;
	return sealed(packet, bytes);
}

static uint32_t bad_cut(union packet *packet, uint64_t random)
{
	return sealed(packet, make_join(packet)) - 8 * (uint32_t)(1 + random % 12);
}

static uint32_t bad_content(union packet *packet, uint64_t random)
{
	static const uint8_t wrong_child[] = { 64, 100, 254 };
	uint32_t bytes = make(packet, WIRE_DATA, 64);

	switch (random % 10) {
	case 0:
		packet->header.child = wrong_child[random / 10 % 3];
		break;
	case 1:
		bytes = make(packet, WIRE_REPORT, sizeof(struct wire_report));
		packet->control.pos = wire_pos(16 + random / 10 % 240, 0);
		break;
	case 2:
		packet->header.op = (uint8_t)(WIRE_OPS_END + random / 10 % 200);
		break;
	case 3:
		packet->header.from = wrong_child[random / 10 % 3];
		break;
	case 4:
		bytes = make(packet, WIRE_REPORT, sizeof(struct wire_report));
		((struct wire_report *)body_of(packet))->call.kind =
			(uint8_t)(WIRE_CALLS_END + random / 10 % 200);
		break;
	case 5:
		packet->header.child = WIRE_ALL;
		break;
	case 6:
		bytes = make(packet, WIRE_REPORT, sizeof(struct wire_report));
		((struct wire_report *)body_of(packet))->bits = WIRE_GROUP + 1 + (random >> 40);
		break;
	case 7:
		bytes = make_join(packet);
		memset(((struct wire_join *)body_of(packet))->host, 'x', WIRE_NAME_MAX);
		break;
	case 8:
		bytes = make(packet, WIRE_JOIN, sizeof(struct wire_join) - 8);
		break;
	default:
		bytes = make(packet, WIRE_BYE, 8);
	}
	return sealed(packet, bytes);
}

static uint32_t bad_unexpected(union packet *packet, uint64_t random)
{
	static const struct {
		uint8_t type;
		uint32_t payload;
	} theirs[] = { { WIRE_RESULT, 64 },
		       { WIRE_STATUS, sizeof(struct wire_status) },
		       { WIRE_WELCOME, sizeof(struct wire_welcome) },
		       { WIRE_ANSWER, 8 } };
	unsigned i = random % countof(theirs);

	return sealed(packet, make(packet, theirs[i].type, theirs[i].payload));
}

static uint32_t session_packet(union packet *packet, uint64_t random)
{
	return random % 2 ? make(packet, WIRE_REPORT, sizeof(struct wire_report))
	                  : make(packet, WIRE_BYE, 0);
}

static uint32_t bad_unknown(union packet *packet, uint64_t random)
{
	uint32_t bytes = random % 3 ? session_packet(packet, random) : make(packet, WIRE_DATA, 64);

	if (random % 3 && random >> 8 & 1)
		packet->control.job = JOB + 1;
	else
		packet->header.comm = random >> 9 & 1 ? 900 : 60000;
	return sealed(packet, bytes);
}

static uint32_t bad_cookie(union packet *packet, uint64_t random)
{
	uint32_t bytes = session_packet(packet, random);

	if (random >> 8 & 1)
		bytes = random >> 9 & 1 ? make_join(packet) : make(packet, WIRE_QUERY, 0);
	packet->control.cookie = random | 1ull << 63;
	return sealed(packet, bytes);
}

static uint32_t bad_wishes(union packet *packet, uint64_t random)
{
	uint32_t bytes = make_join(packet);
	struct wire_join *join = body_of(packet);

	switch (random % 6) {
	case 0:
		join->rank = join->size;
		break;
	case 1:
		join->rank = UINT32_MAX;
		break;
	case 2:
		join->size = WIRE_CHILDREN_MAX + 1;
		break;
	case 3:
		join->size = 0;
		break;
	case 4:
		join->lanes = random >> 8 & 1 ? 0 : UINT32_MAX;
		break;
	default:
		join->payload = random >> 8 & 1 ? 0 : WIRE_PAYLOAD_MIN - 8;
		break;
	}
	return sealed(packet, bytes);
}

/* Each kind of bad packet, and its counter. */
static const struct kind {
	uint32_t (*make)(union packet *packet, uint64_t random);
	const char *drop;
} kinds[] = {
	{ bad_empty, "length" },          { bad_short, "length" },    { bad_odd, "length" },
	{ bad_long, "length" },           { bad_magic, "magic" },     { bad_type, "type" },
	{ bad_check, "checksum" },        { bad_cut, "checksum" },    { bad_content, "content" },
	{ bad_unexpected, "unexpected" }, { bad_unknown, "unknown" }, { bad_cookie, "cookie" },
	{ bad_wishes, "refused" },        { bad_proof, "checksum" },
};

/* ---- outsiders ---- */

struct siege {
	const struct cluster *cluster;
	_Atomic bool over;
	_Atomic uint64_t sent;
};

static void *flood(void *argument)
{
	struct siege *siege = argument;
	int fd = attacker_open(siege->cluster);
	union packet packet;
	uint8_t sink[64];

	for (uint64_t n = 1; !atomic_load(&siege->over); n++) {
		uint64_t random = mix(n);
		uint32_t bytes;

		if (random % 8 == 0) { /* noise, which has no kind */
			bytes = 8 * (uint32_t)(random >> 32 & 255);
			for (uint32_t i = 0; i < bytes / 8; i++)
				packet.words[i] = mix(random + i);
			if (random >> 50 & 1)
				packet.header.magic = WIRE_MAGIC;
		} else {
			bytes = kinds[random % countof(kinds)].make(&packet, mix(random));
		}
		attack(fd, &packet, bytes);
		atomic_fetch_add(&siege->sent, 1);
		/* Read the answers to refused packets, and leave time to other threads. */
		while (recv(fd, sink, sizeof(sink), MSG_DONTWAIT) >= 0)
			;
		if (n % 16 == 0)
			usleep(200);
	}
	close(fd);
	return NULL;
}

static void besieged_body(struct rank *rank)
{
	struct siege *siege = rank->job;
	uint32_t *vector = malloc(50000 * 4);
	int rounds = test_is_short() ? 30 : 100;

	demand(vector);
	for (int round = 0; round < rounds; round++) {
		unsigned count = round % 2 ? 50000 : 77;

		for (unsigned i = 0; i < count; i++)
			vector[i] = (uint32_t)mix(i * 3u + (unsigned)rank->rank);
		demand(trib_allreduce(rank->comm, TRIB_IN_PLACE, vector, count, TRIB_U32,
		                      TRIB_SUM) == TRIB_OK);
		for (unsigned i = 0; i < count; i++)
			demand(vector[i] == (uint32_t)mix(i * 3u) + (uint32_t)mix(i * 3u + 1) +
			                            (uint32_t)mix(i * 3u + 2));
		/* Wait until the attack has sent enough in each round. */
		while (rank->rank == 0 && atomic_load(&siege->sent) < (uint64_t)round * 100)
			usleep(200);
	}
	free(vector);
}

static void test_flood(void **state)
{
	struct cluster cluster;
	struct siege siege = { .cluster = &cluster };
	pthread_t thread;

	(void)state;
	cluster_start(&cluster, 1, 0);
	demand(pthread_create(&thread, NULL, flood, &siege) == 0);
	cluster_run(&cluster, 3, NULL, besieged_body, &siege);
	atomic_store(&siege.over, true);
	pthread_join(thread, NULL);
	aggregator_stop(cluster.aggregator);
	for (unsigned i = 0; i < countof(kinds); i++)
		assert_true(cluster_count(&cluster, "drops", kinds[i].drop) > 0);
	assert_int_equal(cluster_count(&cluster, "verdicts", "mismatch"), 0);
	aggregator_free(cluster.aggregator);
}

/* Without other traffic, every single packet is counted by its kind. */
#define EACH 50u

static void counted_body(struct rank *rank)
{
	uint64_t value = 1;

	if (rank->rank == 0) {
		int fd = attacker_open(rank->cluster);

		for (unsigned i = 0; i < countof(kinds); i++) {
			for (unsigned k = 0; k < EACH; k++) {
				union packet packet;
				uint32_t bytes = kinds[i].make(&packet, mix(i * 1000 + k) >> 1);

				attack(fd, &packet, bytes);
			}
			nap_ms(5);
		}
		close(fd);
	}
	demand(trib_allreduce(rank->comm, TRIB_IN_PLACE, &value, 1, TRIB_U64, TRIB_SUM) == TRIB_OK);
	demand(value == 2);
}

static void test_counted(void **state)
{
	struct cluster cluster;

	(void)state;
	cluster_start(&cluster, 1, 0);
	cluster_run(&cluster, 2, NULL, counted_body, NULL);
	aggregator_stop(cluster.aggregator);
	for (unsigned i = 0; i < countof(kinds); i++) {
		uint64_t expect = 0, count = cluster_count(&cluster, "drops", kinds[i].drop);

		for (unsigned k = 0; k < countof(kinds); k++)
			expect += strcmp(kinds[k].drop, kinds[i].drop) == 0 ? EACH : 0;
		if (count != expect)
			print_error("%s: %llu of %llu\n", kinds[i].drop, (unsigned long long)count,
			            (unsigned long long)expect);
		assert_int_equal(count, expect);
	}
	aggregator_free(cluster.aggregator);
}

/* DATA with a wrong epoch or position, and DATA of a non-member. */
static void insider_lies(struct insider *insider, union packet *packet, uint32_t bytes)
{
	const struct wire_unsent right = insider_unsent(insider, packet->header.pos);
	struct wire_unsent lies[] = { right, right, right, right };

	lies[0].proof ^= 1;
	lies[1].proof ^= 1ull << 16; /* the epoch */
	lies[2].pos ^= 1ull << WIRE_LANE_SHIFT;
	lies[3].pos ^= 1ull << 32;
	for (unsigned i = 0; i < countof(lies); i++) {
		wire_seal_fragment(packet, bytes, &lies[i]);
		attack(insider->fd, packet, bytes);
		insider->check++;
	}
	packet->header.child = 2;
	wire_seal_fragment(packet, bytes, &right);
	attack(insider->fd, packet, bytes);
	insider->strangers_data++;
	packet->header.child = 1;
	wire_seal_fragment(packet, bytes, &right);
}

/* Variations of a valid report. */
static void insider_forges(struct insider *insider, union packet *packet, uint32_t bytes)
{
	struct wire_control right = packet->control;

	packet->control.epoch++;
	attack(insider->fd, packet, sealed(packet, bytes));
	insider->epoch++;
	packet->control = right;
	packet->control.cookie ^= 1;
	attack(insider->fd, packet, sealed(packet, bytes));
	insider->cookie++;
	packet->control = right;
	packet->control.pos = wire_pos(1, 0);
	attack(insider->fd, packet, sealed(packet, bytes));
	insider->lane++;
	packet->control = right;
}

/* Impossible reports, and a report of a non-member. */
static void insider_reports(struct insider *insider, uint64_t done, uint64_t random)
{
	union packet packet;
	uint32_t bytes =
		insider_packet(insider, &packet, WIRE_REPORT, sizeof(struct wire_report), done);
	struct wire_report *report = body_of(&packet);

	report->base = random;
	report->bits = WIRE_GROUP;
	report->stamp = (uint32_t)(done + 1) * 16;
	report->serial = (done + 1) << 40; /* between two of them, 32 bits have wrapped */
	memset(report->missing, 0xff, sizeof(report->missing));
	insider_forges(insider, &packet, bytes);
	attack(insider->fd, &packet, sealed(&packet, bytes));
	/* An old report from another address must not redirect the results. */
	report->stamp += 8;
	report->serial -= 8;
	attack(insider->thief, &packet, sealed(&packet, bytes));
	insider->replayed++;
	packet.header.child = (uint8_t)(2 + random % 62);
	attack(insider->fd, &packet, sealed(&packet, bytes));
	insider->stranger++;
	bytes = insider_packet(insider, &packet, WIRE_BYE, 0, done);
	packet.header.child = random % 2 ? WIRE_ALL : 63;
	attack(insider->fd, &packet, sealed(&packet, bytes));
	insider->stranger++;
}

static void insider_round(struct insider *insider, uint64_t position)
{
	union packet packet, result, old;
	uint32_t bytes = insider_data(insider, &packet, position);
	const uint32_t *words = (const void *)(&result.header + 1);

	insider_lies(insider, &packet, bytes);
	insider_reports(insider, position, mix(position));
	attack(insider->fd, &packet, bytes);
	for (unsigned i = 0; i < REPLAYS; i++) /* duplicates, or already finished */
		attack(insider->fd, &packet, bytes);
	insider->duplicates += REPLAYS;
	if (position >= 3) { /* all have acknowledged it by sending the next one */
		attack(insider->fd, &old, insider_data(insider, &old, position - 3));
		insider->stale++;
	}
	do
		demand(insider_receive(insider, &result, WIRE_RESULT, 5000));
	while (result.header.pos != position);
	for (uint32_t i = 0; i < WORDS; i++)
		demand(words[i] == 2 * ((uint32_t)position + i));
	attack(insider->fd, &packet, bytes);
	insider->finished++;
}

struct inside_job {
	struct insider insider;
	uint64_t rounds;
};

static void inside_body(struct rank *rank)
{
	struct inside_job *job = rank->job;

	if (rank->rank == 1) {
		union packet packet;
		struct insider *insider = &job->insider;

		insider_join(insider, rank->cluster);
		for (uint64_t round = 0; round < job->rounds; round++)
			insider_round(insider, round);
		attack(insider->fd, &packet,
		       sealed(&packet, insider_packet(insider, &packet, WIRE_BYE, 0, job->rounds)));
		nap_ms(50);
		close(insider->fd);
		close(insider->thief);
		return;
	}
	demand(trib_init(&rank->comm, &rank->options) == TRIB_OK);
	for (uint32_t round = 0; round < job->rounds; round++) {
		uint32_t words[WORDS];

		for (uint32_t i = 0; i < WORDS; i++)
			words[i] = round + i;
		demand(trib_allreduce(rank->comm, TRIB_IN_PLACE, words, WORDS, TRIB_U32,
		                      TRIB_SUM) == TRIB_OK);
		for (uint32_t i = 0; i < WORDS; i++)
			demand(words[i] == 2 * (round + i));
	}
	demand(trib_finalize(rank->comm) == TRIB_OK);
}

static void test_insider(void **state)
{
	struct inside_job job = { .rounds = test_is_short() ? 100 : 500 };
	const struct insider *insider = &job.insider;
	struct cluster cluster;
	uint64_t seen;

	(void)state;
	cluster_start(&cluster, 1, 0);
	cluster_run_bare(&cluster, 2, NULL, inside_body, &job);
	aggregator_stop(cluster.aggregator);
	assert_int_equal(cluster_count(&cluster, "drops", "checksum"), insider->check);
	assert_int_equal(cluster_count(&cluster, "drops", "epoch"), insider->epoch);
	assert_int_equal(cluster_count(&cluster, "drops", "cookie"), insider->cookie);
	assert_int_equal(cluster_count(&cluster, "drops", "lane"), insider->lane);
	assert_int_equal(cluster_count(&cluster, "drops", "replayed"), insider->replayed);
	assert_int_equal(cluster_count(&cluster, "drops", "stranger"), insider->stranger);
	assert_int_equal(cluster_count(&cluster, "verdicts", "stranger"), insider->strangers_data);
	assert_int_equal(cluster_count(&cluster, "verdicts", "completed"), job.rounds);
	assert_int_equal(cluster_count(&cluster, "verdicts", "mismatch"), 0);
	/* A replay is a duplicate, finished or stale, depending on when the other rank sends. */
	seen = cluster_count(&cluster, "verdicts", "duplicate") +
	       cluster_count(&cluster, "verdicts", "finished") +
	       cluster_count(&cluster, "verdicts", "stale");
	assert_true(seen >= insider->duplicates + insider->finished + insider->stale);
	assert_true(cluster_count(&cluster, "verdicts", "stale") >= insider->stale);
	aggregator_free(cluster.aggregator);
}

/* The insider has made another call before, and says so only when it is asked. */
static void earlier_body(struct rank *rank)
{
	struct insider insider = { 0 };
	struct wire_call call = insider_call(1);
	const struct wire_call before = { .kind = WIRE_CALL_BROADCAST, .count = 7, .root = 1 };
	uint32_t vector[WORDS] = { 0 }, bytes;
	struct wire_report *report;
	union packet packet;
	bool waits = false;

	if (rank->rank == 0) {
		demand(trib_init(&rank->comm, &rank->options) == TRIB_OK);
		demand(trib_allreduce(rank->comm, TRIB_IN_PLACE, vector, WORDS, TRIB_U32,
		                      TRIB_SUM) == TRIB_OK);
		demand(trib_allreduce(rank->comm, TRIB_IN_PLACE, vector, WORDS, TRIB_U32,
		                      TRIB_SUM) == TRIB_ERR_MISMATCH);
		demand(error_has("broadcast of 7") && error_has("allreduce of 250") &&
		       error_has("call #0"));
		trib_finalize(rank->comm);
		return;
	}
	insider_join(&insider, rank->cluster);
	attack(insider.fd, &packet, insider_data(&insider, &packet, 0));
	call.before ^= 1;
	for (uint64_t serial = 1; packet.header.type != WIRE_ABORT; serial++) {
		const struct wire_status *status = body_of(&packet);
		uint32_t asks = packet.header.type == WIRE_STATUS ? status->asks : 0;

		waits |= asks == 2; /* rank 0 waits for its second call */
		bytes = insider_packet(&insider, &packet, WIRE_REPORT, sizeof(struct wire_report),
		                       1);
		packet.control.token = insider.token;
		report = body_of(&packet);
		*report = (struct wire_report){ .stamp = 1, .serial = serial };
		if (waits)
			report->call = asks == 1 ? before : call;
		attack(insider.fd, &packet, sealed(&packet, bytes));
		demand(insider_receive_one(&insider, &packet, WIRE_STATUS, WIRE_ABORT, 5000));
	}
	close(insider.fd);
	close(insider.thief);
}

static void test_earlier_calls(void **state)
{
	struct cluster cluster;

	(void)state;
	cluster_start(&cluster, 1, 0);
	cluster_run_bare(&cluster, 2, NULL, earlier_body, NULL);
	cluster_stop(&cluster);
}

/* A worker that is not known any more may leave at once. Echoes are not echoed. */
static void test_goodbye(void **state)
{
	struct cluster cluster;
	struct pollfd wait = { .events = POLLIN };
	union packet packet, answer;
	uint32_t bytes = make(&packet, WIRE_BYE, 0);
	int fd;

	(void)state;
	cluster_start(&cluster, 1, 0);
	wait.fd = fd = attacker_open(&cluster);
	packet.header.child = 3;
	attack(fd, &packet, sealed(&packet, bytes));
	assert_int_equal(poll(&wait, 1, 5000), 1);
	assert_int_equal(recv(fd, &answer, sizeof(answer), 0), WIRE_CONTROL);
	assert_int_equal(wire_parse(&answer, WIRE_CONTROL), WIRE_SOUND);
	assert_int_equal(answer.header.type, WIRE_BYE);
	assert_int_equal(answer.header.flags, WIRE_ECHO);
	assert_int_equal(answer.header.child, 3);
	assert_true(answer.control.cookie == packet.control.cookie);
	packet.header.flags = WIRE_ECHO;
	attack(fd, &packet, sealed(&packet, bytes));
	assert_int_equal(poll(&wait, 1, 100), 0);
	close(fd);
	cluster_stop(&cluster);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_counted),       cmocka_unit_test(test_insider),
		cmocka_unit_test(test_earlier_calls), cmocka_unit_test(test_flood),
		cmocka_unit_test(test_goodbye),
	};

	cluster_environment();
	setenv("TRIB_ENGINE", "dense", 1); /* members that are made here join dense alone */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
