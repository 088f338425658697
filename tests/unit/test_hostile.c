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

#include "cluster.h"
#include "plane/core/agg_comm.h"
#include "wire/call.h"
#include "short.h"
#include "wire/parse.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define JOB 1

union packet {
	struct wire_header header;
	struct wire_control control;
	uint64_t words[(WIRE_PACKET_MAX + 64) / 8];
};

static void *body_of(union packet *packet)
{
	return wire_is_fragment(&packet->header) ? (void *)(&packet->header + 1)
	                                         : (void *)(&packet->control + 1);
}

/* A packet as a worker would send it, except for the communicator's cookie. */
static uint32_t make(union packet *packet, uint8_t type, uint32_t payload)
{
	memset(packet, 0, WIRE_CONTROL + payload);
	packet->header.type = type;
	packet->header.comm = 1;
	if (wire_is_fragment(&packet->header)) {
		packet->header.from = packet->header.to = WIRE_ALL;
		return WIRE_HEADER + payload;
	}
	packet->control.cookie = CLUSTER_COOKIE;
	packet->control.job = JOB;
	packet->control.epoch = 1;
	return WIRE_CONTROL + payload;
}

/* Sealed with what an outsider knows. */
static uint32_t sealed(union packet *packet, uint32_t bytes)
{
	const struct wire_unsent unsent = { .proof = wire_proof(CLUSTER_COOKIE, JOB, 1),
		                            .pos = packet->header.pos };

	if (wire_is_fragment(&packet->header))
		wire_seal_fragment(packet, bytes, &unsent);
	else
		wire_seal(packet, bytes);
	return bytes;
}

static uint32_t make_join(union packet *packet)
{
	uint32_t bytes = make(packet, WIRE_JOIN, sizeof(struct wire_welcome));
	struct wire_join *join = body_of(packet);

	*join = (struct wire_join){ .key = 4711,
		                    .size = 2,
		                    .payload = 1024,
		                    .lanes = 1,
		                    .pool_bytes = 1 << 20,
		                    .timeout_ms = 20000,
		                    .host = "raw" };
	return bytes;
}

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

static int attacker_open(const struct cluster *cluster)
{
	struct udp_options options = { .receive_bytes = 1 << 20, .send_bytes = 1 << 20 };
	struct udp_address to;
	bool gso;
	int fd;

	demand(udp_resolve(cluster->address, 0, &to) == TRIB_OK);
	demand(udp_open(NULL, &to, &options, &fd, &gso) == TRIB_OK);
	return fd;
}

static void attack(int fd, const union packet *packet, uint32_t bytes)
{
	demand(send(fd, packet, bytes, 0) == (ssize_t)bytes);
}

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

/* ---- an insider: a hand-made rank 1 of 2, beside a rank of the library ---- */

#define WORDS 250u /* elements of a round: one fragment */
#define REPLAYS 5u

struct insider {
	int fd;
	int thief; /* another socket, from which its reports are replayed */
	struct wire_welcome welcome;
	uint32_t token; /* proves its address */
	uint64_t duplicates, finished, stale, epoch, lane, stranger, strangers_data, cookie;
	uint64_t replayed, check;
};

static uint32_t insider_receive(struct insider *insider, union packet *packet, uint8_t type,
                                int wait_ms)
{
	struct pollfd wait = { .fd = insider->fd, .events = POLLIN };

	while (poll(&wait, 1, wait_ms) > 0) {
		ssize_t bytes = recv(insider->fd, packet, sizeof(*packet), 0);

		demand(bytes < 0 || wire_parse(packet, (size_t)bytes) == WIRE_SOUND);
		if (bytes > 0 && packet->header.type == type)
			return (uint32_t)bytes;
	}
	return 0;
}

static void insider_join(struct insider *insider, const struct cluster *cluster)
{
	union packet packet;

	insider->fd = attacker_open(cluster);
	insider->thief = attacker_open(cluster);
	do {
		uint32_t bytes = make_join(&packet);
		struct wire_join *join = body_of(&packet);

		join->key = 0;
		join->rank = 1;
		packet.header.child = 1;
		packet.control.token = insider->token;
		attack(insider->fd, &packet, sealed(&packet, bytes));
		if (insider_receive(insider, &packet, WIRE_WELCOME, 20)) {
			insider->welcome = *(struct wire_welcome *)body_of(&packet);
			insider->token = packet.control.token;
		}
	} while (insider->welcome.verdict != WIRE_JOINED || !insider->welcome.cookie);
}

static uint32_t insider_packet(const struct insider *insider, union packet *packet, uint8_t type,
                               uint32_t payload, uint64_t done)
{
	uint32_t bytes = make(packet, type, payload);

	packet->header.comm = insider->welcome.comm;
	packet->header.child = 1;
	packet->header.ack = (uint32_t)done;
	if (!wire_is_fragment(&packet->header)) {
		packet->control.cookie = insider->welcome.cookie;
		packet->control.epoch = insider->welcome.epoch;
	}
	return bytes;
}

static struct wire_unsent insider_unsent(const struct insider *insider, uint64_t position)
{
	return (struct wire_unsent){ .proof = wire_proof(insider->welcome.cookie, JOB,
		                                         insider->welcome.epoch),
		                     .pos = wire_pos(0, position) };
}

static uint32_t insider_data(const struct insider *insider, union packet *packet, uint64_t position)
{
	const struct wire_unsent unsent = insider_unsent(insider, position);
	uint32_t bytes = insider_packet(insider, packet, WIRE_DATA, WORDS * 4, position);
	uint32_t *words = body_of(packet);
	struct wire_call call = { .kind = WIRE_CALL_ALLREDUCE,
		                  .count = WORDS,
		                  .type = TRIB_U32,
		                  .root = WIRE_ALL,
		                  .number = (uint32_t)position };

	packet->header.pos = (uint32_t)position;
	packet->header.op = WIRE_ADD32;
	packet->header.flags = TRIB_U32 << WIRE_TYPE_SHIFT;
	packet->header.scale = (uint16_t)wire_call_sign(&call);
	for (uint32_t i = 0; i < WORDS; i++)
		words[i] = (uint32_t)position + i;
	wire_seal_fragment(packet, bytes, &unsent);
	return bytes;
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
	struct cluster cluster;
	union packet join, answer;
	const struct wire_welcome *welcome = (const void *)(&answer.control + 1);
	uint32_t bytes, token;
	int fd;

	(void)state;
	cluster_start(&cluster, 1, 0);
	bytes = sealed(&join, make_join(&join));
	((struct wire_join *)body_of(&join))->size = 1;
	sealed(&join, bytes);
	fd = elsewhere_open(&cluster);
	for (unsigned i = 0; i < 3; i++) {
		attack(fd, &join, bytes);
		assert_true(bytes_that_come(fd, &answer) <= bytes);
		assert_int_equal(welcome->verdict, WIRE_WAIT);
	}
	token = answer.control.token;
	close(fd);
	/* The token is that host's alone. */
	fd = attacker_open(&cluster);
	join.control.token = token;
	attack(fd, &join, sealed(&join, bytes));
	assert_true(bytes_that_come(fd, &answer) <= bytes);
	assert_int_equal(welcome->verdict, WIRE_WAIT);
	/* Who hears the answer gets in. */
	join.control.token = answer.control.token;
	attack(fd, &join, sealed(&join, bytes));
	bytes_that_come(fd, &answer);
	assert_int_equal(welcome->verdict, WIRE_JOINED);
	close(fd);
	cluster_stop(&cluster);
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
		came = bytes_that_come(fd, &answer);
		demand(came && came <= bytes && answer.header.type == WIRE_BYE);
	}
	attack(insider->fd, &packet, forged_report(insider, &packet, 110));
	demand(insider_receive(insider, &packet, WIRE_RESULT, 5000));
	bytes = forged_report(insider, &packet, 120);
	packet.control.token = answer.control.token;
	attack(fd, &packet, sealed(&packet, bytes));
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
	struct cluster cluster;
	union packet answer;
	const struct wire_welcome *welcome = (const void *)(&answer.control + 1);
	struct wire_join join = wish;
	uint32_t verdict = WIRE_WAIT;
	unsigned n = 0;
	int fd, other;

	(void)state;
	cluster_start(&cluster, 1, 0);
	fd = elsewhere_open(&cluster);
	other = attacker_open(&cluster);
	for (; n < COMMS_MAX && verdict == WIRE_WAIT; n++) {
		join.key = 100 + n;
		verdict = join_by(fd, &answer, &join);
	}
	assert_int_equal(verdict, WIRE_REFUSED);
	assert_true(n < COMMS_MAX / 2);
	assert_non_null(strstr(welcome->text, "may not have more"));
	join.size = 1; /* alone: it runs at once, if there is a place */
	join.key = 7;
	assert_int_equal(join_by(other, &answer, &join), WIRE_REFUSED); /* the job has had enough */
	close(fd);
	close(other);
	cluster_stop(&cluster);
}

/* So do those of one host and many jobs. */
static void test_many_jobs(void **state)
{
	struct cluster cluster;
	union packet answer;
	const struct wire_welcome *welcome = (const void *)(&answer.control + 1);
	uint16_t job = 1;
	int fd, other;

	(void)state;
	cluster_start(&cluster, 1, 0);
	fd = elsewhere_open(&cluster);
	other = attacker_open(&cluster);
	while (job <= COMMS_A_HOST && join_as(fd, job, CLUSTER_COOKIE, &answer, &wish) == WIRE_WAIT)
		job++;
	assert_int_equal(job, COMMS_A_HOST + 1);
	assert_int_equal(join_as(fd, job, CLUSTER_COOKIE, &answer, &wish), WIRE_REFUSED);
	assert_non_null(strstr(welcome->text, "processes of this host"));
	assert_int_equal(join_as(other, job, CLUSTER_COOKIE, &answer, &wish), WIRE_WAIT);
	close(fd);
	close(other);
	cluster_stop(&cluster);
}

/* What runs has a low id, whatever is half open. */
static void test_low_ids(void **state)
{
	struct cluster cluster;
	union packet answer;
	const struct wire_welcome *welcome = (const void *)(&answer.control + 1);
	struct wire_join join = wish;
	int fd;

	(void)state;
	cluster_start(&cluster, 1, 0);
	fd = attacker_open(&cluster);
	for (join.key = 100; join.key < 200; join.key++)
		assert_int_equal(join_by(fd, &answer, &join), WIRE_WAIT);
	join.size = 1;
	assert_int_equal(join_by(fd, &answer, &join), WIRE_JOINED);
	assert_int_equal(welcome->comm, 1);
	close(fd);
	cluster_stop(&cluster);
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
	struct cluster cluster;
	union packet answer;
	const struct wire_welcome *welcome = (const void *)(&answer.control + 1);
	struct wire_join join = wish;
	int fd;

	(void)state;
	cluster_start(&cluster, 1, 0);
	fd = attacker_open(&cluster);
	join.hops = 1;
	join.ranks = 1;
	join.covers = 1;
	join.up[0] = (struct wire_hop){
		.ranks = 3, .address = { 192, 0, 2, 1 }, .port = 53, .family = 4
	};
	assert_int_equal(join_by(fd, &answer, &join), WIRE_REFUSED);
	assert_non_null(strstr(welcome->text, "--parents"));
	close(fd);
	cluster_stop(&cluster);
}

/* A parent that does not answer gets no more than the child has sent. */
static void test_silent_parent(void **state)
{
	struct udp_options options = { .receive_bytes = 1 << 20, .send_bytes = 1 << 20 };
	struct udp_address at = { .length = sizeof(at.storage) };
	struct cluster cluster;
	union packet answer;
	struct wire_join join = wish;
	int fd, parent;
	bool gso;

	(void)state;
	cluster_start(&cluster, 1, 0);
	demand(udp_resolve("127.0.0.1:0", 0, &at) == TRIB_OK);
	demand(udp_open(&at, NULL, &options, &parent, &gso) == TRIB_OK);
	demand(getsockname(parent, (void *)&at.storage, &at.length) == 0);
	fd = attacker_open(&cluster);
	join.hops = 1;
	join.ranks = 1;
	join.covers = 1;
	join.payload = WIRE_PAYLOAD_MAX;
	join.up[0] = (struct wire_hop){
		.ranks = 3, .address = { 127, 0, 0, 1 }, .port = udp_port(&at), .family = 4
	};
	join_by(fd, &answer, &join); /* two JOINs */
	nap_ms(500);
	assert_true(bytes_that_come(parent, &answer) <= 2 * WIRE_JOIN_LEAST);
	close(parent);
	close(fd);
	cluster_stop(&cluster);
}

/* An ANSWER is no longer than its QUERY. */
static void test_short_query(void **state)
{
	struct cluster cluster;
	union packet query, answer;
	int fd;

	(void)state;
	cluster_start(&cluster, 1, 0);
	fd = attacker_open(&cluster);
	make(&query, WIRE_QUERY, 0);
	query.control.cookie = CLUSTER_COOKIE;
	attack(fd, &query, sealed(&query, WIRE_CONTROL));
	assert_int_equal(bytes_that_come(fd, &answer), 0);
	memset(&query.control + 1, 0, WIRE_QUERY_BYTES - WIRE_CONTROL);
	attack(fd, &query, sealed(&query, WIRE_QUERY_BYTES));
	assert_true(bytes_that_come(fd, &answer) > WIRE_CONTROL);
	close(fd);
	cluster_stop(&cluster);
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
	static const uint16_t jobs[] = { 5, 6 };
	const struct secret secret = { { 1, 2, 3 } };
	struct cluster cluster;
	union packet answer;
	int fd;

	(void)state;
	cluster_start(&cluster, 1, 0);
	aggregator_set_secret(cluster.aggregator, &secret);
	fd = attacker_open(&cluster);
	for (unsigned i = 0; i < countof(jobs); i++)
		assert_int_equal(
			join_as(fd, jobs[i], secret_cookie(&secret, jobs[i]), &answer, &wish),
			WIRE_WAIT);
	for (unsigned i = 0; i < countof(jobs); i++) {
		uint64_t cookie = secret_cookie(&secret, jobs[i]);
		char own[16];

		snprintf(own, sizeof(own), "{\"job\":%u,", jobs[i]);
		assert_non_null(strstr(page_for(fd, jobs[i], cookie, 1, &answer), own));
		assert_string_equal(page_for(fd, jobs[i], cookie, 2, &answer), "{}");
		assert_null(page_for(fd, jobs[!i], cookie, 1, &answer));
	}
	for (unsigned i = 0; i < countof(jobs); i++)
		assert_non_null(
			strstr(page_for(fd, 0, CLUSTER_COOKIE, i + 1, &answer), "{\"job\":"));
	assert_string_equal(page_for(fd, 0, CLUSTER_COOKIE, 3, &answer), "{}");
	close(fd);
	cluster_stop(&cluster);
}

/* When a job has ended at its controller, its cookie lets nobody in. */
static void test_ended_job(void **state)
{
	const struct secret secret = { { 1, 2, 3 } };
	static struct job_roster roster = { .last = 6 };
	struct cluster cluster;
	union packet answer;
	const struct wire_welcome *welcome = (const void *)(&answer.control + 1);
	int fd;

	(void)state;
	bitmap_set(roster.live, 6);
	cluster_start(&cluster, 1, 0);
	aggregator_set_secret(cluster.aggregator, &secret);
	aggregator_set_roster(cluster.aggregator, &roster);
	fd = attacker_open(&cluster);
	assert_int_equal(join_as(fd, 5, secret_cookie(&secret, 5), &answer, &wish), WIRE_REFUSED);
	assert_non_null(strstr(welcome->text, "job 5 has ended"));
	assert_int_equal(join_as(fd, 6, secret_cookie(&secret, 6), &answer, &wish), WIRE_WAIT);
	close(fd);
	cluster_stop(&cluster);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_counted),        cmocka_unit_test(test_insider),
		cmocka_unit_test(test_flood),          cmocka_unit_test(test_goodbye),
		cmocka_unit_test(test_forged_join),    cmocka_unit_test(test_forged_report),
		cmocka_unit_test(test_short_query),    cmocka_unit_test(test_many_joins),
		cmocka_unit_test(test_low_ids),        cmocka_unit_test(test_large_wish),
		cmocka_unit_test(test_foreign_parent), cmocka_unit_test(test_silent_parent),
		cmocka_unit_test(test_query_of_a_job), cmocka_unit_test(test_ended_job),
		cmocka_unit_test(test_many_jobs),
	};

	cluster_environment();
	setenv("TRIB_ENGINE", "dense", 1); /* members that are made here join dense alone */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
