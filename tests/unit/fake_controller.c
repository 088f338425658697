/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_controller.h"

#include "wire/key.h"
#include "wire/parse.h"
#include "worker/trees/plan_text.h"

#include <arpa/inet.h>
#include <poll.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#define THREADS 2
#define PACKET_BYTES 1448 /* size of an answer */

union packet {
	struct {
		struct wire_control header;
		union {
			struct wire_join join;
			struct wire_welcome welcome;
		};
	};
	_Alignas(8) uint8_t bytes[WIRE_PACKET_MAX];
};

static struct fake_membership *find(struct fake_controller *controller,
                                    const struct wire_join *join)
{
	for (unsigned i = 0; i < FAKE_CONTROLLER_MEMBERSHIPS; i++) {
		struct fake_membership *membership = &controller->memberships[i];

		if (!membership->size) {
			membership->key = join->key;
			membership->size = join->size;
			membership->members = join->size == 64 ? ~0ull : (1ull << join->size) - 1;
		}
		if (membership->key == join->key)
			return membership;
	}
	demand(!"room for another membership");
	return NULL;
}

static void put(struct fake_membership *membership, size_t *used, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void put(struct fake_membership *membership, size_t *used, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	*used += (size_t)vsnprintf(membership->plan + *used, sizeof(membership->plan) - *used,
	                           format, args);
	va_end(args);
	demand(*used < sizeof(membership->plan));
}

/*
 * Makes trees with different shares at the first aggregators that run. They are stars; with `deep`,
 * in every other plan, each has an aggregator below with all ranks but the last.
 */
static void make_plan(struct fake_controller *controller, struct fake_membership *membership)
{
	unsigned ranks = (unsigned)__builtin_popcountll(membership->members), n = 0;
	const char *names[FAKE_CONTROLLER_PLACES];
	bool deep;
	size_t used = 0;

	for (unsigned i = 0; i < FAKE_CONTROLLER_PLACES; i++)
		if (controller->places[i].aggregator)
			names[n++] = controller->places[i].address;
	deep = controller->deep && membership->generation % 2 == 0 && n >= 2 && ranks >= 3;
	demand(n > 0);
	for (unsigned i = 0; i < n && i < controller->trees; i++) {
		/* Leading zeros make every other plan longer than a packet. */
		put(membership, &used, "%s%0*u*%s(", i ? ";" : "",
		    !i && membership->generation % 2 ? (int)WIRE_PLAN_PART : 1, i + 1, names[i]);
		if (deep)
			put(membership, &used, "%s(0-%u),%u)", names[(i + 1) % n], ranks - 2,
			    ranks - 1);
		else
			put(membership, &used, "0-%u)", ranks - 1);
	}
	if (controller->star)
		put(membership, &used, "|%s(0-%u)", controller->star, ranks - 1);
	membership->generation++;
}

static void answer(struct fake_controller *controller, const union packet *question,
                   const struct fake_membership *membership, unsigned seat, bool planned,
                   const struct sockaddr_in *to)
{
	union packet packet = { .header = { .type = WIRE_WELCOME,
		                            .cookie = question->header.cookie,
		                            .job = question->header.job,
		                            .child = question->header.child } };
	uint32_t parts = planned ? plan_text_parts((uint32_t)strlen(membership->plan)) : 1;

	packet.welcome.present = membership->asked;
	packet.welcome.verdict = planned ? WIRE_PLAN : WIRE_WAIT;
	packet.welcome.generation = membership->generation;
	packet.welcome.rank =
		(uint32_t)__builtin_popcountll(membership->members & ((1ull << seat) - 1));
	packet.welcome.size = (uint32_t)__builtin_popcountll(membership->members);
	do { /* send the last part first */
		char *text =
			(char *)packet.bytes + WIRE_CONTROL + offsetof(struct wire_welcome, text);

		parts -= parts > 0;
		memset(text, 0, WIRE_PLAN_PART + 1);
		if (planned) {
			packet.welcome.text_bytes = (uint32_t)strlen(membership->plan);
			packet.welcome.text_from = parts * WIRE_PLAN_PART;
			memcpy(text, membership->plan + packet.welcome.text_from,
			       strnlen(membership->plan + packet.welcome.text_from,
			               WIRE_PLAN_PART));
		}
		wire_seal(&packet, PACKET_BYTES);
		demand(sendto(controller->fd, &packet, PACKET_BYTES, 0, (const void *)to,
		              sizeof(*to)) == PACKET_BYTES);
	} while (parts);
}

/* The seat of the process: the one it has, else the one it asks for, else a free one. */
static unsigned find_seat(struct fake_membership *membership, const struct wire_join *join)
{
	unsigned seat = 0;

	while (seat < 64 && membership->nonces[seat] != join->nonce)
		seat++;
	if (seat == 64)
		seat = join->rank;
	if (seat >= 64)
		for (seat = 0; membership->nonces[seat] || membership->members >> seat & 1;)
			seat++;
	demand(seat < 64);
	membership->nonces[seat] = join->nonce;
	return seat;
}

static void take(struct fake_controller *controller, const union packet *packet,
                 const struct sockaddr_in *from)
{
	struct fake_membership *membership = find(controller, &packet->join);
	unsigned seat = find_seat(membership, &packet->join);
	uint64_t awaited;
	bool is_member = membership->members >> seat & 1;

	/* A process that is not a member waits too, until the members ask. */
	if (packet->join.generation == membership->generation || !is_member)
		membership->asked |= 1ull << seat;
	/* Only ranks of the last plan may report dead ranks. */
	if (packet->join.generation && packet->join.generation == membership->generation) {
		uint64_t lost = packet->join.covers;

		for (uint64_t left = membership->members; left; left &= left - 1, lost >>= 1)
			membership->gone |= lost & 1 ? left & -left : 0;
	}
	awaited = membership->members & ~membership->gone;
	if (awaited && (membership->asked & awaited) == awaited) {
		for (uint64_t gone = membership->gone; gone; gone &= gone - 1)
			membership->nonces[__builtin_ctzll(gone)] = 0;
		membership->members = membership->asked;
		membership->asked = membership->gone = 0;
		make_plan(controller, membership);
	}
	answer(controller, packet, membership, seat,
	       packet->join.generation < membership->generation && membership->members >> seat & 1,
	       from);
}

static void take_bye(struct fake_controller *controller, const struct wire_control *header,
                     const struct sockaddr_in *from)
{
	struct wire_control echo = *header;
	struct fake_membership *membership = &controller->memberships[0];

	for (unsigned seat = 0; seat < 64; seat++)
		if (membership->nonces[seat] &&
		    (membership->nonces[seat] & WIRE_POSITION_MASK) == wire_position(header))
			membership->gone |= 1ull << seat;
	echo.flags = WIRE_ECHO;
	wire_seal(&echo, sizeof(echo));
	demand(sendto(controller->fd, &echo, sizeof(echo), 0, (const void *)from, sizeof(*from)) ==
	       sizeof(echo));
}

static void *fake_controller_main(void *argument)
{
	struct fake_controller *controller = argument;

	while (!atomic_load(&controller->stop)) {
		struct pollfd wait = { .fd = controller->fd, .events = POLLIN };
		struct sockaddr_in from;
		socklen_t length = sizeof(from);
		union packet packet;
		ssize_t bytes;

		if (poll(&wait, 1, 20) <= 0)
			continue;
		bytes = recvfrom(controller->fd, &packet, sizeof(packet), 0, (void *)&from,
		                 &length);
		if (bytes < 0 || wire_parse(&packet, (size_t)bytes) != WIRE_SOUND)
			continue;
		pthread_mutex_lock(&controller->lock);
		if (packet.header.type == WIRE_JOIN)
			take(controller, &packet, &from);
		else if (packet.header.type == WIRE_BYE && controller->lost_byes)
			controller->lost_byes--;
		else if (packet.header.type == WIRE_BYE)
			take_bye(controller, &packet.header, &from);
		else if (packet.header.type == WIRE_TURN && controller->on_turn)
			controller->on_turn(controller, &packet.header, &from);
		pthread_mutex_unlock(&controller->lock);
	}
	return NULL;
}

void fake_controller_start(struct fake_controller *controller, unsigned n, unsigned trees,
                           bool deep)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
		                       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof(address);

	memset(controller, 0, sizeof(*controller));
	controller->trees = trees;
	controller->deep = deep;
	for (unsigned i = 0; i < n; i++)
		cluster_start(&controller->places[i], THREADS, 0);
	pthread_mutex_init(&controller->lock, NULL);
	controller->fd = socket(AF_INET, SOCK_DGRAM, 0);
	demand(controller->fd >= 0 && bind(controller->fd, (void *)&address, sizeof(address)) == 0);
	demand(getsockname(controller->fd, (void *)&address, &length) == 0);
	snprintf(controller->address, sizeof(controller->address), "127.0.0.1:%u",
	         ntohs(address.sin_port));
	demand(pthread_create(&controller->thread, NULL, fake_controller_main, controller) == 0);
}

void fake_controller_stop(struct fake_controller *controller)
{
	atomic_store(&controller->stop, true);
	pthread_join(controller->thread, NULL);
	close(controller->fd);
	for (unsigned i = 0; i < FAKE_CONTROLLER_PLACES; i++)
		if (controller->places[i].aggregator)
			cluster_stop(&controller->places[i]);
	pthread_mutex_destroy(&controller->lock);
}

void fake_controller_kill_one(struct fake_controller *controller, uint64_t seed)
{
	struct cluster dead = { .aggregator = NULL };

	pthread_mutex_lock(&controller->lock);
	for (unsigned i = 0; i < FAKE_CONTROLLER_PLACES && !dead.aggregator; i++) {
		struct cluster *place = &controller->places[(seed + i) % FAKE_CONTROLLER_PLACES];

		if (!place->aggregator || !strstr(controller->memberships[0].plan, place->address))
			continue;
		dead = *place;
		place->aggregator = NULL;
	}
	pthread_mutex_unlock(&controller->lock);
	if (!dead.aggregator)
		return;
	cluster_stop(&dead);
	pthread_mutex_lock(&controller->lock);
	for (unsigned i = 0; i < FAKE_CONTROLLER_PLACES; i++) {
		struct cluster *place =
			&controller->places[(seed * 7 + i) % FAKE_CONTROLLER_PLACES];

		if (place->aggregator)
			continue;
		cluster_start(place, THREADS, 0);
		break;
	}
	pthread_mutex_unlock(&controller->lock);
}

void fake_controller_drain_one(struct fake_controller *controller, uint64_t seed)
{
	pthread_mutex_lock(&controller->lock);
	for (unsigned i = 0; i < FAKE_CONTROLLER_PLACES; i++) {
		struct cluster *place = &controller->places[(seed + i) % FAKE_CONTROLLER_PLACES];

		if (!place->aggregator || !strstr(controller->memberships[0].plan, place->address))
			continue;
		/*
		 * The ranks name the communicator by the plan that they began with, the first one.
		 */
		demand(aggregator_drain(place->aggregator, FAKE_CONTROLLER_JOB,
		                        wire_key(controller->memberships[0].key, 1),
		                        controller->memberships[0].generation, "a test says so"));
		break;
	}
	pthread_mutex_unlock(&controller->lock);
}

unsigned fake_controller_generation(struct fake_controller *controller)
{
	unsigned generation;

	pthread_mutex_lock(&controller->lock);
	generation = controller->memberships[0].generation;
	pthread_mutex_unlock(&controller->lock);
	return generation;
}

uint64_t fake_controller_waiting(struct fake_controller *controller)
{
	uint64_t waiting;

	pthread_mutex_lock(&controller->lock);
	waiting = controller->memberships[0].asked;
	pthread_mutex_unlock(&controller->lock);
	return waiting;
}
