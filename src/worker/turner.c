/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread that speaks with the controller about turns at an aggregator that
 * is shared (worker/turn.h), and that begins requests when others have ended.
 * What users do never waits for it: they only post.
 */
#include "worker/comm.h"

#include "base/clock.h"
#include "base/log.h"
#include "wire/parse.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define BEAT_MS 100 /* silence is taken for death after five of them (control/turns.h) */
#define BYES 3

struct turner {
	int fd, wake_fd;
	pthread_t thread;
	_Atomic bool stop;
	uint64_t serial, spoke_at;
	/* As it was last told, to know what is news. */
	uint64_t change, next, base;
	uint32_t star;
	enum wire_turn_phase phase;
	uint8_t flags;
	uint64_t shift_at; /* there is something to do about the star then */
};

union turn_packet {
	struct {
		struct wire_control header;
		struct wire_turn turn;
		struct wire_turn_op ops[WIRE_TURN_OPS_MAX];
	};
	_Alignas(8) uint8_t bytes[WIRE_PACKET_MAX];
};

void turner_wake(struct trib_comm *comm)
{
	uint64_t one = 1;

	if (write(comm->turner->wake_fd, &one, sizeof(one)) < 0)
		log_debug("eventfd: %s", strerror(errno)); /* full: it is awake */
}

/* What this rank has to say; false: not now, other trees are looked for. */
static bool fill_state(struct trib_comm *comm, union turn_packet *packet)
{
	struct wire_turn *turn = &packet->turn;
	const struct turn *mine = &comm->turn;
	uint64_t now;
	bool good;

	pthread_mutex_lock(&comm->posting);
	pthread_mutex_lock(&comm->lock);
	good = !comm->recovering && comm->star.step != STAR_NONE;
	now = clock_now();
	packet->header = (struct wire_control){ .type = WIRE_TURN,
		                                .cookie = comm->config.cookie,
		                                .job = comm->config.job,
		                                .child = (uint8_t)comm->config.seat };
	*turn = (struct wire_turn){ .key = comm->config.key,
		                    .peer_key = comm_key(&comm->config),
		                    .nonce = comm->nonce,
		                    .session = mine->session,
		                    .change = mine->change,
		                    .from = mine->now.from,
		                    .to = mine->now.to,
		                    .next = comm->begun,
		                    .finished = ledger_first_open(comm),
		                    .generation = comm->config.generation,
		                    .rank = (uint16_t)comm->config.rank,
		                    .phase = (uint8_t)mine->phase,
		                    .flags = star_flags(&comm->star),
		                    .star = comm->star.number };
	if (comm->under_way[0] + comm->under_way[1])
		turn->busy_us = 1 + (uint32_t)((now - comm->busy_at) / 1000);
	if (turn_is_used_up(mine, comm->begun) && !comm->under_way[1])
		turn->flags |= WIRE_TURN_DONE;
	if (comm->failed != TRIB_OK)
		turn->flags |= WIRE_TURN_FAILED;
	if (comm->config.rank == 0)
		rhythm_tell(&comm->rhythm, comm->config.size, comm->posts, !comm->in_flight, now,
		            turn, packet->ops);
	pthread_mutex_unlock(&comm->lock);
	pthread_mutex_unlock(&comm->posting);
	return good;
}

static bool is_news(const struct turner *turner, const struct wire_turn *turn)
{
	return turn->star != turner->star || turn->change != turner->change ||
	       turn->phase != turner->phase || turn->flags != turner->flags ||
	       (turn->rank == 0 && (turn->next != turner->next || turn->base != turner->base));
}

static void send_state(struct turner *turner, union turn_packet *packet)
{
	struct wire_turn *turn = &packet->turn;
	size_t bytes = sizeof(packet->header) + sizeof(*turn) +
	               ((turn->ops * sizeof(struct wire_turn_op) + 7) & ~(size_t)7);

	if (turn->ops % 2) /* what fills the last word */
		memset(&packet->ops[turn->ops], 0, sizeof(packet->ops[0]));
	turn->serial = ++turner->serial;
	wire_seal(packet, bytes);
	if (send(turner->fd, packet, bytes, MSG_DONTWAIT) < 0)
		log_debug("to the controller: %s", strerror(errno));
	turner->spoke_at = clock_now();
	turner->star = turn->star;
	turner->change = turn->change;
	turner->phase = (enum wire_turn_phase)turn->phase;
	turner->flags = turn->flags;
	turner->next = turn->next;
	turner->base = turn->base;
}

/* Says what is new; `must`: also what is not. */
static void speak(struct trib_comm *comm, bool must)
{
	struct turner *turner = comm->turner;
	union turn_packet packet;

	if (!fill_state(comm, &packet))
		return;
	if (must || is_news(turner, &packet.turn))
		send_state(turner, &packet);
}

static struct udp_address address_of(const struct wire_hop *hop)
{
	struct udp_address address = { 0 };

	if (hop->family == 4) {
		struct sockaddr_in *in = (void *)&address.storage;

		in->sin_family = AF_INET;
		memcpy(&in->sin_addr, hop->address, 4);
		address.length = sizeof(*in);
	} else {
		struct sockaddr_in6 *in6 = (void *)&address.storage;

		in6->sin6_family = AF_INET6;
		memcpy(&in6->sin6_addr, hop->address, 16);
		address.length = sizeof(*in6);
	}
	udp_set_port(&address, hop->port);
	return address;
}

/* The caller holds `posting`. */
static void take_word(struct trib_comm *comm, const struct wire_turn *word)
{
	uint32_t star = comm->star.number;

	star_hear(&comm->star, &comm->turn, word, comm->begun);
	if (comm->star.number == star)
		return;
	comm->shift.to = address_of((const struct wire_hop *)(word + 1));
	comm->turner->shift_at = 0;
}

/* True: an answer is due. */
static bool hear(struct trib_comm *comm)
{
	union turn_packet packet;
	ssize_t bytes;
	bool any = false;

	while ((bytes = recv(comm->turner->fd, &packet, sizeof(packet), MSG_DONTWAIT)) > 0) {
		if (wire_parse(&packet, (size_t)bytes) != WIRE_SOUND ||
		    packet.header.type != WIRE_TURN ||
		    packet.header.cookie != comm->config.cookie ||
		    packet.header.job != comm->config.job || packet.turn.key != comm->config.key)
			continue;
		pthread_mutex_lock(&comm->posting);
		if (packet.turn.generation == comm->config.generation && !comm->recovering)
			take_word(comm, &packet.turn);
		pthread_mutex_unlock(&comm->posting);
		any = true; /* what it asks again for, it has not heard */
	}
	return any;
}

/* Where the keeper is about to replace all trees, there is nothing to do. */
static void look_at_star(struct trib_comm *comm, int *fd)
{
	struct turner *turner = comm->turner;
	bool recovering;

	*fd = -1;
	turner->shift_at = UINT64_MAX;
	if (pthread_mutex_trylock(&comm->shifting))
		return;
	pthread_mutex_lock(&comm->lock);
	recovering = comm->recovering || comm->hurt || comm->failed != TRIB_OK;
	pthread_mutex_unlock(&comm->lock);
	if (!recovering) {
		shift_step(comm, &turner->shift_at);
		*fd = shift_fd(comm);
	}
	pthread_mutex_unlock(&comm->shifting);
}

static int wait_ms(const struct turner *turner)
{
	uint64_t now = clock_now(), left = turner->shift_at > now ? turner->shift_at - now : 0;

	return left < BEAT_MS * 1000000ull ? (int)((left + 999999) / 1000000) : BEAT_MS;
}

static void *turner_main(void *argument)
{
	struct trib_comm *comm = argument;
	struct turner *turner = comm->turner;
	int star_fd = -1;

	while (!atomic_load(&turner->stop)) {
		struct pollfd waits[] = { { .fd = turner->fd, .events = POLLIN },
			                  { .fd = turner->wake_fd, .events = POLLIN },
			                  { .fd = star_fd, .events = POLLIN } };
		uint64_t count;
		bool asked;

		poll(waits, 3, wait_ms(turner));
		if (read(turner->wake_fd, &count, sizeof(count)) < 0 && errno != EAGAIN)
			log_debug("eventfd: %s", strerror(errno));
		asked = hear(comm);
		pthread_mutex_lock(&comm->posting);
		dispatch(comm);
		pthread_mutex_unlock(&comm->posting);
		look_at_star(comm, &star_fd);
		speak(comm, asked || clock_now() >= turner->spoke_at + BEAT_MS * 1000000ull);
	}
	return NULL;
}

static void turner_free(struct turner *turner)
{
	if (turner->fd >= 0)
		close(turner->fd);
	if (turner->wake_fd >= 0)
		close(turner->wake_fd);
	free(turner);
}

/* Lanes look for it with the lock. */
static void turner_set(struct trib_comm *comm, struct turner *turner)
{
	pthread_mutex_lock(&comm->lock);
	comm->turner = turner;
	pthread_mutex_unlock(&comm->lock);
}

trib_status turner_start(struct trib_comm *comm)
{
	struct udp_options options = { .receive_bytes = 1 << 16, .send_bytes = 1 << 16 };
	struct turner *turner = calloc(1, sizeof(*turner));
	trib_status status;
	bool gso;

	if (!turner)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory to share an aggregator");
	turner->fd = -1;
	turner->shift_at = UINT64_MAX;
	turner->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (turner->wake_fd < 0)
		status = status_fail_errno("cannot open an eventfd");
	else
		status = udp_open(NULL, &comm->config.controller, &options, &turner->fd, &gso);
	turner_set(comm, turner); /* before its thread looks for it */
	if (status == TRIB_OK && pthread_create(&turner->thread, NULL, turner_main, comm))
		status = status_fail(TRIB_ERR_SYSTEM, "cannot start the thread for turns");
	if (status != TRIB_OK) {
		turner_set(comm, NULL);
		turner_free(turner);
	}
	return status;
}

void turner_halt(struct trib_comm *comm)
{
	atomic_store(&comm->turner->stop, true);
	turner_wake(comm);
	pthread_join(comm->turner->thread, NULL);
	shift_drop(comm);
}

void turner_stop(struct trib_comm *comm)
{
	struct turner *turner = comm->turner;
	union turn_packet packet;

	/* So that nobody waits for us; where all are lost, silence tells it a little later. */
	for (int i = 0; i < BYES && fill_state(comm, &packet); i++) {
		packet.turn.flags |= WIRE_TURN_FAILED;
		send_state(turner, &packet);
	}
	turner_set(comm, NULL);
	turner_free(turner);
}
