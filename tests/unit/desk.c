/* SPDX-License-Identifier: Apache-2.0 */
#include "desk.h"

#include "wire/key.h"
#include "wire/parse.h"
#include "worker/plan_text.h"

#include <arpa/inet.h>
#include <poll.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#define THREADS 2
#define PACKET_BYTES 1448 /* of an answer */

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

static struct desk_gathering *find(struct desk *desk, const struct wire_join *join)
{
	for (unsigned i = 0; i < DESK_GATHERINGS; i++) {
		struct desk_gathering *gathering = &desk->gatherings[i];

		if (!gathering->size) {
			gathering->key = join->key;
			gathering->size = join->size;
			gathering->members = join->size == 64 ? ~0ull : (1ull << join->size) - 1;
		}
		if (gathering->key == join->key)
			return gathering;
	}
	demand(!"room for another gathering");
	return NULL;
}

static void put(struct desk_gathering *gathering, size_t *used, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void put(struct desk_gathering *gathering, size_t *used, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	*used += (size_t)vsnprintf(gathering->plan + *used, sizeof(gathering->plan) - *used, format,
	                           args);
	va_end(args);
	demand(*used < sizeof(gathering->plan));
}

/*
 * Trees of unlike shares at the first that are there: stars, or (every other
 * plan, where it is wanted) each with one below it that has all ranks but the last.
 */
static void make_plan(struct desk *desk, struct desk_gathering *gathering)
{
	unsigned ranks = (unsigned)__builtin_popcountll(gathering->members), n = 0;
	const char *names[DESK_PLACES];
	bool deep;
	size_t used = 0;

	for (unsigned i = 0; i < DESK_PLACES; i++)
		if (desk->places[i].aggregator)
			names[n++] = desk->places[i].address;
	deep = desk->deep && gathering->generation % 2 == 0 && n >= 2 && ranks >= 3;
	demand(n > 0);
	for (unsigned i = 0; i < n && i < desk->trees; i++) {
		/* With zeros in front every other plan is longer than a packet. */
		put(gathering, &used, "%s%0*u*%s(", i ? ";" : "",
		    !i && gathering->generation % 2 ? (int)WIRE_PLAN_PART : 1, i + 1, names[i]);
		if (deep)
			put(gathering, &used, "%s(0-%u),%u)", names[(i + 1) % n], ranks - 2,
			    ranks - 1);
		else
			put(gathering, &used, "0-%u)", ranks - 1);
	}
	if (desk->star)
		put(gathering, &used, "|%s(0-%u)", desk->star, ranks - 1);
	gathering->generation++;
}

static void answer(struct desk *desk, const union packet *question,
                   const struct desk_gathering *gathering, unsigned seat, bool planned,
                   const struct sockaddr_in *to)
{
	union packet packet = { .header = { .type = WIRE_WELCOME,
		                            .cookie = question->header.cookie,
		                            .job = question->header.job,
		                            .child = question->header.child } };
	uint32_t parts = planned ? plan_text_parts((uint32_t)strlen(gathering->plan)) : 1;

	packet.welcome.present = gathering->asked;
	packet.welcome.verdict = planned ? WIRE_PLAN : WIRE_WAIT;
	packet.welcome.generation = gathering->generation;
	packet.welcome.rank =
		(uint32_t)__builtin_popcountll(gathering->members & ((1ull << seat) - 1));
	packet.welcome.size = (uint32_t)__builtin_popcountll(gathering->members);
	do { /* the last part first */
		char *text =
			(char *)packet.bytes + WIRE_CONTROL + offsetof(struct wire_welcome, text);

		parts -= parts > 0;
		memset(text, 0, WIRE_PLAN_PART + 1);
		if (planned) {
			packet.welcome.text_bytes = (uint32_t)strlen(gathering->plan);
			packet.welcome.text_from = parts * WIRE_PLAN_PART;
			memcpy(text, gathering->plan + packet.welcome.text_from,
			       strnlen(gathering->plan + packet.welcome.text_from, WIRE_PLAN_PART));
		}
		wire_seal(&packet, PACKET_BYTES);
		demand(sendto(desk->fd, &packet, PACKET_BYTES, 0, (const void *)to, sizeof(*to)) ==
		       PACKET_BYTES);
	} while (parts);
}

/* The one that the process has, the one that it asks for, or a free one. */
static unsigned find_seat(struct desk_gathering *gathering, const struct wire_join *join)
{
	unsigned seat = 0;

	while (seat < 64 && gathering->nonces[seat] != join->nonce)
		seat++;
	if (seat == 64)
		seat = join->rank;
	if (seat >= 64)
		for (seat = 0; gathering->nonces[seat] || gathering->members >> seat & 1;)
			seat++;
	demand(seat < 64);
	gathering->nonces[seat] = join->nonce;
	return seat;
}

static void take(struct desk *desk, const union packet *packet, const struct sockaddr_in *from)
{
	struct desk_gathering *gathering = find(desk, &packet->join);
	unsigned seat = find_seat(gathering, &packet->join);
	uint64_t awaited;
	bool is_member = gathering->members >> seat & 1;

	/* Who is not in waits as well, for whenever the others ask. */
	if (packet->join.generation == gathering->generation || !is_member)
		gathering->asked |= 1ull << seat;
	/* Who is known to be dead is told by ranks of the last plan. */
	if (packet->join.generation && packet->join.generation == gathering->generation) {
		uint64_t lost = packet->join.covers;

		for (uint64_t left = gathering->members; left; left &= left - 1, lost >>= 1)
			gathering->gone |= lost & 1 ? left & -left : 0;
	}
	awaited = gathering->members & ~gathering->gone;
	if (awaited && (gathering->asked & awaited) == awaited) {
		for (uint64_t gone = gathering->gone; gone; gone &= gone - 1)
			gathering->nonces[__builtin_ctzll(gone)] = 0;
		gathering->members = gathering->asked;
		gathering->asked = gathering->gone = 0;
		make_plan(desk, gathering);
	}
	answer(desk, packet, gathering, seat,
	       packet->join.generation < gathering->generation && gathering->members >> seat & 1,
	       from);
}

static void take_bye(struct desk *desk, const struct wire_control *header,
                     const struct sockaddr_in *from)
{
	struct wire_control echo = *header;
	struct desk_gathering *gathering = &desk->gatherings[0];

	for (unsigned seat = 0; seat < 64; seat++)
		if (gathering->nonces[seat] &&
		    (gathering->nonces[seat] & WIRE_POSITION_MASK) == wire_position(header))
			gathering->gone |= 1ull << seat;
	echo.flags = WIRE_ECHO;
	wire_seal(&echo, sizeof(echo));
	demand(sendto(desk->fd, &echo, sizeof(echo), 0, (const void *)from, sizeof(*from)) ==
	       sizeof(echo));
}

static void *desk_main(void *argument)
{
	struct desk *desk = argument;

	while (!atomic_load(&desk->stop)) {
		struct pollfd wait = { .fd = desk->fd, .events = POLLIN };
		struct sockaddr_in from;
		socklen_t length = sizeof(from);
		union packet packet;
		ssize_t bytes;

		if (poll(&wait, 1, 20) <= 0)
			continue;
		bytes = recvfrom(desk->fd, &packet, sizeof(packet), 0, (void *)&from, &length);
		if (bytes < 0 || wire_parse(&packet, (size_t)bytes) != WIRE_SOUND)
			continue;
		pthread_mutex_lock(&desk->lock);
		if (packet.header.type == WIRE_JOIN)
			take(desk, &packet, &from);
		else if (packet.header.type == WIRE_BYE && desk->lost_byes)
			desk->lost_byes--;
		else if (packet.header.type == WIRE_BYE)
			take_bye(desk, &packet.header, &from);
		else if (packet.header.type == WIRE_TURN && desk->on_turn)
			desk->on_turn(desk, &packet.header, &from);
		pthread_mutex_unlock(&desk->lock);
	}
	return NULL;
}

void desk_start(struct desk *desk, unsigned n, unsigned trees, bool deep)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
		                       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof(address);

	memset(desk, 0, sizeof(*desk));
	desk->trees = trees;
	desk->deep = deep;
	for (unsigned i = 0; i < n; i++)
		cluster_start(&desk->places[i], THREADS, 0);
	pthread_mutex_init(&desk->lock, NULL);
	desk->fd = socket(AF_INET, SOCK_DGRAM, 0);
	demand(desk->fd >= 0 && bind(desk->fd, (void *)&address, sizeof(address)) == 0);
	demand(getsockname(desk->fd, (void *)&address, &length) == 0);
	snprintf(desk->address, sizeof(desk->address), "127.0.0.1:%u", ntohs(address.sin_port));
	demand(pthread_create(&desk->thread, NULL, desk_main, desk) == 0);
}

void desk_stop(struct desk *desk)
{
	atomic_store(&desk->stop, true);
	pthread_join(desk->thread, NULL);
	close(desk->fd);
	for (unsigned i = 0; i < DESK_PLACES; i++)
		if (desk->places[i].aggregator)
			cluster_stop(&desk->places[i]);
	pthread_mutex_destroy(&desk->lock);
}

void desk_kill_one(struct desk *desk, uint64_t seed)
{
	struct cluster dead = { .aggregator = NULL };

	pthread_mutex_lock(&desk->lock);
	for (unsigned i = 0; i < DESK_PLACES && !dead.aggregator; i++) {
		struct cluster *place = &desk->places[(seed + i) % DESK_PLACES];

		if (!place->aggregator || !strstr(desk->gatherings[0].plan, place->address))
			continue;
		dead = *place;
		place->aggregator = NULL;
	}
	pthread_mutex_unlock(&desk->lock);
	if (!dead.aggregator)
		return;
	cluster_stop(&dead);
	pthread_mutex_lock(&desk->lock);
	for (unsigned i = 0; i < DESK_PLACES; i++) {
		struct cluster *place = &desk->places[(seed * 7 + i) % DESK_PLACES];

		if (place->aggregator)
			continue;
		cluster_start(place, THREADS, 0);
		break;
	}
	pthread_mutex_unlock(&desk->lock);
}

void desk_leave_one(struct desk *desk, uint64_t seed)
{
	pthread_mutex_lock(&desk->lock);
	for (unsigned i = 0; i < DESK_PLACES; i++) {
		struct cluster *place = &desk->places[(seed + i) % DESK_PLACES];

		if (!place->aggregator || !strstr(desk->gatherings[0].plan, place->address))
			continue;
		/* As its ranks have named it: by the plan that they began with, which is the first.
		 */
		demand(aggregator_leave(place->aggregator, DESK_JOB,
		                        wire_key(desk->gatherings[0].key, 1),
		                        desk->gatherings[0].generation, "a test says so"));
		break;
	}
	pthread_mutex_unlock(&desk->lock);
}

unsigned desk_generation(struct desk *desk)
{
	unsigned generation;

	pthread_mutex_lock(&desk->lock);
	generation = desk->gatherings[0].generation;
	pthread_mutex_unlock(&desk->lock);
	return generation;
}

uint64_t desk_waiting(struct desk *desk)
{
	uint64_t waiting;

	pthread_mutex_lock(&desk->lock);
	waiting = desk->gatherings[0].asked;
	pthread_mutex_unlock(&desk->lock);
	return waiting;
}
