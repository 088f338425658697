/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread that speaks with the controller about turns at a shared aggregator (turns/turn.h), and
 * that starts requests when others have ended. Users never wait for it: they only post.
 */
#include "worker/sharing/sharing.h"
#include "worker/requests/requests.h"

#include "base/clock.h"
#include "base/log.h"
#include "wire/parse.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define HEARTBEAT_MS 100 /* five lost heartbeats: the rank counts as dead (turn_protocol.h) */
#define BYES 3           /* repeats of the last message, since packets get lost */

struct turn_client {
	int fd, wake_fd;
	pthread_t thread;
	_Atomic bool stop;
	uint64_t serial, spoke_at;
	/* The state that was last sent, to find out what is new: */
	uint64_t change, next, base;
	uint32_t star;
	enum wire_turn_phase phase;
	uint8_t flags;
	uint64_t switch_at; /* when the star needs the next step */
};

union turn_packet {
	struct {
		struct wire_control header;
		struct wire_turn turn;
		struct wire_turn_op ops[WIRE_TURN_OPS_MAX];
	};
	_Alignas(8) uint8_t bytes[WIRE_PACKET_MAX];
};

/* Fills in this rank's state. False: not now, failover replaces the trees. */
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
		                    .next = comm->next_start,
		                    .finished = ledger_first_open(comm),
		                    .generation = comm->config.generation,
		                    .rank = (uint16_t)comm->config.rank,
		                    .phase = (uint8_t)mine->phase,
		                    .flags = star_flags(&comm->star),
		                    .star = comm->star.number };
	if (comm->started[0] + comm->started[1])
		turn->busy_us = 1 + (uint32_t)((now - comm->busy_at) / 1000);
	if (turn_is_used_up(mine, comm->next_start) && !comm->started[1])
		turn->flags |= WIRE_TURN_DONE;
	if (comm->failed != TRIB_OK)
		turn->flags |= WIRE_TURN_FAILED;
	if (comm->config.rank == 0)
		step_profile_tell(&comm->profile, comm->config.size, comm->posts, !comm->in_flight,
		                  now, turn, packet->ops);
	pthread_mutex_unlock(&comm->lock);
	pthread_mutex_unlock(&comm->posting);
	return good;
}

static bool is_news(const struct turn_client *client, const struct wire_turn *turn)
{
	return turn->star != client->star || turn->change != client->change ||
	       turn->phase != client->phase || turn->flags != client->flags ||
	       (turn->rank == 0 && (turn->next != client->next || turn->base != client->base));
}

static void send_state(struct turn_client *client, union turn_packet *packet)
{
	struct wire_turn *turn = &packet->turn;
	size_t bytes = sizeof(packet->header) + sizeof(*turn) +
	               ((turn->ops * sizeof(struct wire_turn_op) + 7) & ~(size_t)7);

	if (turn->ops % 2) /* padding to 8 bytes */
		memset(&packet->ops[turn->ops], 0, sizeof(packet->ops[0]));
	turn->serial = ++client->serial;
	wire_seal(packet, bytes);
	if (send(client->fd, packet, bytes, MSG_DONTWAIT) < 0)
		log_debug("to the controller: %s", strerror(errno));
	client->spoke_at = clock_now();
	client->star = turn->star;
	client->change = turn->change;
	client->phase = (enum wire_turn_phase)turn->phase;
	client->flags = turn->flags;
	client->next = turn->next;
	client->base = turn->base;
}

/* Sends the state if it is new, or if `must`. */
static void speak(struct trib_comm *comm, bool must)
{
	struct turn_client *client = comm->turn_client;
	union turn_packet packet;

	if (!fill_state(comm, &packet))
		return;
	if (must || is_news(client, &packet.turn))
		send_state(client, &packet);
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

	star_hear(&comm->star, &comm->turn, word, comm->next_start);
	if (comm->star.number == star)
		return;
	comm->star_switch.to = address_of((const struct wire_hop *)(word + 1));
	comm->turn_client->switch_at = 0;
}

/* Takes the messages that have come. True: an answer is due. */
static bool hear(struct trib_comm *comm)
{
	union turn_packet packet;
	ssize_t bytes;
	bool any = false;

	while ((bytes = recv(comm->turn_client->fd, &packet, sizeof(packet), MSG_DONTWAIT)) > 0) {
		if (wire_parse(&packet, (size_t)bytes) != WIRE_SOUND ||
		    packet.header.type != WIRE_TURN ||
		    packet.header.cookie != comm->config.cookie ||
		    packet.header.job != comm->config.job || packet.turn.key != comm->config.key)
			continue;
		pthread_mutex_lock(&comm->posting);
		if (!comm->recovering && packet.turn.generation == comm->config.generation)
			take_word(comm, &packet.turn);
		pthread_mutex_unlock(&comm->posting);
		any = true; /* the controller repeats what it has no answer to */
	}
	return any;
}

/* Does the next step for the shared star, unless failover is replacing all trees. */
static void look_at_star(struct trib_comm *comm, int *fd)
{
	struct turn_client *client = comm->turn_client;
	bool recovering;

	*fd = -1;
	client->switch_at = UINT64_MAX;
	if (pthread_mutex_trylock(&comm->trunks_lock))
		return;
	pthread_mutex_lock(&comm->lock);
	recovering = comm->recovering || comm->trees_lost || comm->failed != TRIB_OK;
	pthread_mutex_unlock(&comm->lock);
	if (!recovering) {
		star_switch_step(comm, &client->switch_at);
		*fd = star_switch_fd(comm);
	}
	pthread_mutex_unlock(&comm->trunks_lock);
}

static int wait_ms(const struct turn_client *client)
{
	uint64_t now = clock_now(), left = client->switch_at > now ? client->switch_at - now : 0;

	return left < HEARTBEAT_MS * 1000000ull ? (int)((left + 999999) / 1000000) : HEARTBEAT_MS;
}

static void *turn_client_main(void *argument)
{
	struct trib_comm *comm = argument;
	struct turn_client *client = comm->turn_client;
	int star_fd = -1;

	while (!atomic_load(&client->stop)) {
		struct pollfd waits[] = { { .fd = client->fd, .events = POLLIN },
			                  { .fd = client->wake_fd, .events = POLLIN },
			                  { .fd = star_fd, .events = POLLIN } };
		uint64_t count;
		bool asked;

		poll(waits, 3, wait_ms(client));
		if (read(client->wake_fd, &count, sizeof(count)) < 0 && errno != EAGAIN)
			log_debug("eventfd: %s", strerror(errno));
		asked = hear(comm);
		pthread_mutex_lock(&comm->posting);
		requests_start(comm);
		pthread_mutex_unlock(&comm->posting);
		look_at_star(comm, &star_fd);
		speak(comm, asked || clock_now() >= client->spoke_at + HEARTBEAT_MS * 1000000ull);
	}
	return NULL;
}

static void turn_client_free(struct turn_client *client)
{
	if (client->fd >= 0)
		close(client->fd);
	if (client->wake_fd >= 0)
		close(client->wake_fd);
	free(client);
}

/* NULL: none. Lanes look for it under `lock`, failover under `posting`. */
static void turn_client_set(struct trib_comm *comm, struct turn_client *client)
{
	pthread_mutex_lock(&comm->posting);
	pthread_mutex_lock(&comm->lock);
	comm->turn_client = client;
	comm->turn_wake_fd = client ? client->wake_fd : -1;
	pthread_mutex_unlock(&comm->lock);
	pthread_mutex_unlock(&comm->posting);
}

trib_status turn_client_start(struct trib_comm *comm)
{
	struct udp_options options = { .receive_bytes = 1 << 16, .send_bytes = 1 << 16 };
	struct turn_client *client = calloc(1, sizeof(*client));
	trib_status status;
	bool gso;

	if (!client)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory to share an aggregator");
	client->fd = -1;
	client->switch_at = UINT64_MAX;
	client->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (client->wake_fd < 0)
		status = status_fail_errno("cannot open an eventfd");
	else
		status = udp_open(NULL, &comm->config.controller, &options, &client->fd, &gso);
	turn_client_set(comm, client); /* before the thread reads it */
	if (status == TRIB_OK && pthread_create(&client->thread, NULL, turn_client_main, comm))
		status = status_fail(TRIB_ERR_SYSTEM, "cannot start the thread for turns");
	if (status != TRIB_OK) {
		turn_client_set(comm, NULL);
		turn_client_free(client);
	}
	return status;
}

void turn_client_halt(struct trib_comm *comm)
{
	atomic_store(&comm->turn_client->stop, true);
	comm_wake_turns(comm);
	pthread_join(comm->turn_client->thread, NULL);
	star_switch_drop(comm);
}

void turn_client_stop(struct trib_comm *comm)
{
	struct turn_client *client = comm->turn_client;
	union turn_packet packet;

	/* The controller need not wait for this rank then. If all are lost, silence tells it later.
	 */
	for (int i = 0; i < BYES && fill_state(comm, &packet); i++) {
		packet.turn.flags |= WIRE_TURN_FAILED;
		send_state(client, &packet);
	}
	turn_client_set(comm, NULL);
	turn_client_free(client);
}
