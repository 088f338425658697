/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The controller answers with a plan when all ranks that it waits for have asked. So a rank that
 * has an answer knows that the others have asked, too.
 */
#include "worker/trees/plan_client.h"
#include "worker/trees/plan_text.h"
#include "worker/trees/trees.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/peer_text.h"
#include "wire/parse.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PLAN_ASK_MS 50
#define FIND_MS 20      /* a running controller answers at once */
#define BYE_FOR 2.0     /* seconds: a controller that was killed has restarted by then */
#define ASK_BYTES 1200u /* answers are as long as questions: room for a part of a plan */

union plan_packet {
	struct {
		struct wire_control header;
		union {
			struct wire_join join;
			struct wire_welcome welcome;
		};
	};
	_Alignas(8) uint8_t bytes[WIRE_PACKET_MAX];
};

/* Where this rank listens for a ring, which the controller chooses if there is no aggregator. */
static void tell_seat(struct wire_join *join, const struct ring_seat *seat)
{
	join->hops = 1;
	join->payload = seat->payload;
	join->up[0].family = seat->family;
	join->up[0].port = seat->port;
	join->up[0].rdma = seat->rdma;
	memcpy(join->up[0].address, seat->address, sizeof(seat->address));
}

static void ask(struct trib_comm *comm, int fd)
{
	const struct comm_config *config = &comm->config;
	union plan_packet packet = { .header = { .type = WIRE_JOIN,
		                                 .cookie = config->cookie,
		                                 .job = config->job,
		                                 .child = (uint8_t)config->seat,
		                                 .token = comm->controller_token } };

	packet.join = (struct wire_join){ .key = config->key,
		                          .pool_bytes = config->pool_bytes,
		                          .nonce = comm->nonce,
		                          .covers = atomic_load(&comm->lost),
		                          .rank = (uint32_t)config->seat,
		                          .size = (uint32_t)config->seats,
		                          .payload = WIRE_PAYLOAD_MIN,
		                          .lanes = config->lanes,
		                          .timeout_ms = (uint32_t)(config->timeout_s * 1000),
		                          .pid = (uint32_t)getpid(),
		                          .generation = config->generation,
		                          .tcp = config->tcp,
		                          .wire = (uint8_t)(config->wire_bits + 1) };
	if (config->ring_listener)
		tell_seat(&packet.join, &config->ring_seat);
	gethostname(packet.join.host, sizeof(packet.join.host) - 1);
	wire_seal(&packet, ASK_BYTES);
	if (send(fd, &packet, ASK_BYTES, 0) < 0)
		log_debug("asking the controller: %s", strerror(errno));
}

/* "OWN|SHARED": the trees after the bar are at aggregators that other jobs use, too. */
static trib_status parse_trees(struct forest *trees, const char *text, unsigned *own)
{
	char all[WIRE_PLAN_MAX];
	char *bar;
	trib_status status;

	*own = 0;
	snprintf(all, sizeof(all), "%s", text);
	bar = strchr(all, '|');
	if (!bar)
		return forest_parse(trees, text);
	*bar = '\0';
	if ((status = forest_parse(trees, all)) != TRIB_OK)
		return status;
	*own = trees->n_trees;
	*bar = ';';
	return forest_parse(trees, all);
}

/* What a plan consists of: trees, or the seats of a ring. */
struct plan_parts {
	struct forest *trees;
	struct ring_seat *seats;
	unsigned own_trees;
};

static void parts_free(struct plan_parts *parts)
{
	free(parts->trees);
	free(parts->seats);
}

/* Only a rank that listens for a ring may be in one. */
static trib_status parse_plan(const struct trib_comm *comm, const struct wire_welcome *welcome,
                              const char *text, struct plan_parts *parts)
{
	uint64_t all = welcome->size >= 64 ? ~0ull : (1ull << welcome->size) - 1;
	bool rings = comm->config.ring_listener && ring_seats_are(text), fits = false;
	trib_status status = TRIB_ERR_NO_MEMORY;
	unsigned n;

	*parts = (struct plan_parts){ 0 };
	if (rings && (parts->seats = calloc(TREE_RANKS_MAX, sizeof(*parts->seats)))) {
		status = ring_seats_parse(text, parts->seats, &n);
		fits = n == welcome->size;
	} else if (!rings && (parts->trees = malloc(sizeof(*parts->trees)))) {
		status = parse_trees(parts->trees, text, &parts->own_trees);
		fits = status == TRIB_OK && parts->trees->trees[0].nodes[0].ranks == all;
	} else {
		status_fail(status, "no memory for a plan");
	}
	if (status == TRIB_OK && (welcome->size < 1 || welcome->size > WIRE_CHILDREN_MAX ||
	                          welcome->rank >= welcome->size || !fits))
		status = status_fail(TRIB_ERR_CONFIG,
		                     "the controller's plan is not for rank %u of %u: \"%.200s\"",
		                     welcome->rank, welcome->size, text);
	return status;
}

/* Takes rank, size and trees of a plan, if they fit each other. */
static trib_status take_plan(struct trib_comm *comm, const struct wire_welcome *welcome,
                             const char *text)
{
	struct plan_parts parts;
	trib_status status = parse_plan(comm, welcome, text, &parts);

	if (status != TRIB_OK) {
		parts_free(&parts);
		return status;
	}
	pthread_mutex_lock(&comm->lock);
	free(comm->config.trees);
	comm->config.trees = parts.trees;
	/* Calls read them without a lock: they change only while the communicator opens. */
	if (comm->config.ring_listener) {
		free(comm->config.ring_seats);
		comm->config.ring_seats = parts.seats;
	}
	comm->config.own_trees = parts.own_trees;
	comm->config.generation = welcome->generation;
	comm->planned_rank = (int)welcome->rank;
	comm->planned_size = (int)welcome->size;
	comm->planned_since = welcome->since;
	comm->planned_seats = welcome->present;
	atomic_store(&comm->lost, 0); /* those were ranks of the previous plan */
	pthread_mutex_unlock(&comm->lock);
	log_info("plan %u of the controller, rank %u of %u: %s", welcome->generation, welcome->rank,
	         welcome->size, text);
	return TRIB_OK;
}

/* Why the controller gives no plan although it could; "": it waits for ranks. */
static void take_reason(struct trib_comm *comm, const char *text)
{
	if (*text && strcmp(comm->why_no_plan, text) != 0)
		log_warn("the controller has no plan yet: %s", text);
	snprintf(comm->why_no_plan, sizeof(comm->why_no_plan), "%s", text);
}

/* Takes one answer. TRIB_IN_PROGRESS: none has come, or it decides nothing. */
static trib_status hear(struct trib_comm *comm, int fd, struct plan_text *plan, uint64_t *present)
{
	const struct comm_config *config = &comm->config;
	union plan_packet packet;
	char text[WIRE_TEXT_MAX];
	ssize_t bytes = recv(fd, &packet, sizeof(packet), MSG_DONTWAIT);

	if (bytes < 0 || wire_parse(&packet, (size_t)bytes) != WIRE_SOUND ||
	    packet.header.type != WIRE_WELCOME || packet.header.cookie != config->cookie ||
	    packet.header.job != config->job || packet.header.child != (uint8_t)config->seat)
		return TRIB_IN_PROGRESS;
	*present = packet.welcome.present;
	if (packet.header.token != comm->controller_token) { /* now it believes our address */
		comm->controller_token = packet.header.token;
		ask(comm, fd);
	}
	if (packet.welcome.verdict == WIRE_WAIT)
		take_reason(comm, packet.welcome.text);
	if (packet.welcome.verdict == WIRE_REFUSED)
		return status_fail(TRIB_ERR_REFUSED, "the controller refused rank %d: %s",
		                   config->seat,
		                   peer_text(text, sizeof(text), packet.welcome.text,
		                             sizeof(packet.welcome.text)));
	/* A late answer may repeat a plan that this rank has had. */
	if (packet.welcome.verdict != WIRE_PLAN || packet.welcome.generation <= config->generation)
		return TRIB_IN_PROGRESS;
	if (!plan_text_take(plan, &packet.welcome,
	                    (const char *)&packet + WIRE_CONTROL +
	                            offsetof(struct wire_welcome, text)))
		return TRIB_IN_PROGRESS;
	return take_plan(comm, &packet.welcome, plan->text);
}

static void nap(void)
{
	struct timespec span = clock_span(PLAN_ASK_MS * 1000000ull);

	nanosleep(&span, NULL);
}

static trib_status hear_until(struct trib_comm *comm, int fd, struct plan_text *plan,
                              uint64_t until, uint64_t *present)
{
	struct pollfd wait = { .fd = fd, .events = POLLIN };
	trib_status status = TRIB_IN_PROGRESS;

	while (status == TRIB_IN_PROGRESS) {
		uint64_t now = clock_now();

		if (now >= until || poll(&wait, 1, (int)((until - now) / 1000000) + 1) <= 0)
			break;
		status = hear(comm, fd, plan, present);
		if (wait.revents & (POLLERR | POLLHUP)) { /* no controller is running now */
			nap();
			break;
		}
	}
	return status;
}

static trib_status give_up(const struct trib_comm *comm, bool heard, uint64_t present)
{
	uint64_t all = comm->config.seats >= 64 ? ~0ull : (1ull << comm->config.seats) - 1;
	char ranks[200], address[64];

	udp_text(&comm->config.controller, address, sizeof(address));
	if (!heard)
		return status_fail(TRIB_ERR_AGGREGATOR,
		                   "no answer from the controller at %s within %.1f s: is tribd "
		                   "running there, and does it know job %u and its TRIB_COOKIE?",
		                   address, comm->config.timeout_s, comm->config.job);
	if (*comm->why_no_plan)
		return status_fail(TRIB_ERR_AGGREGATOR,
		                   "no trees from the controller at %s within %.1f s: %s", address,
		                   comm->config.timeout_s, comm->why_no_plan);
	comm_list_ranks(all & ~present, ranks, sizeof(ranks));
	return status_fail(TRIB_ERR_TIMEOUT,
	                   "no trees from the controller at %s within %.1f s: %s%s", address,
	                   comm->config.timeout_s,
	                   all & ~present ? "it waits for rank " : "it has no plan", ranks);
}

/* For the error message of a user who stops waiting. */
static void note_heard(struct trib_comm *comm, bool heard)
{
	pthread_mutex_lock(&comm->lock);
	comm->controller_heard = heard;
	pthread_mutex_unlock(&comm->lock);
}

trib_status comm_ask_plan(struct trib_comm *comm, uint64_t deadline)
{
	struct udp_options options = { .receive_bytes = 1 << 16, .send_bytes = 1 << 16 };
	uint64_t present = UINT64_MAX;
	struct plan_text plan;
	trib_status status;
	int fd = -1;
	bool gso;

	plan.generation = 0;
	note_heard(comm, false);
	do {
		/* The other ranks may not know yet that these trees are given up. */
		comm_tell_trees_lost(comm);
		if (fd < 0) {
			status = udp_open(NULL, &comm->config.controller, &options, &fd, &gso);
			if (status != TRIB_OK && !comm->opened)
				return status;
		}
		if (fd < 0) { /* a link is down: it may come back while users wait */
			nap();
			status = TRIB_IN_PROGRESS;
			continue;
		}
		ask(comm, fd);
		status = hear_until(comm, fd, &plan, clock_now() + PLAN_ASK_MS * 1000000ull,
		                    &present);
		note_heard(comm, present != UINT64_MAX);
	} while (status == TRIB_IN_PROGRESS && clock_now() < deadline && !comm_is_over(comm));
	if (fd >= 0)
		close(fd);
	return status == TRIB_IN_PROGRESS ? give_up(comm, present != UINT64_MAX, present) : status;
}

bool comm_find_controller(const struct trib_comm *comm, bool *answered)
{
	struct udp_options options = { .receive_bytes = 1 << 16, .send_bytes = 1 << 16 };
	struct wire_query query = { .header = { .type = WIRE_QUERY,
		                                .cookie = comm->config.cookie,
		                                .job = comm->config.job } };
	struct {
		struct wire_control header;
		_Alignas(8) char text[WIRE_PAYLOAD_MAX];
	} answer;
	struct pollfd wait = { .events = POLLIN };
	ssize_t bytes = -1;
	bool gso;

	if (udp_open(NULL, &comm->config.aggregator, &options, &wait.fd, &gso) != TRIB_OK)
		return false;
	wire_seal(&query, sizeof(query));
	if (send(wait.fd, &query, sizeof(query), 0) == sizeof(query) && poll(&wait, 1, FIND_MS) > 0)
		bytes = recv(wait.fd, &answer, sizeof(answer), MSG_DONTWAIT);
	close(wait.fd);
	if (bytes < 0 || wire_parse(&answer, (size_t)bytes) != WIRE_SOUND ||
	    answer.header.type != WIRE_ANSWER || answer.header.cookie != comm->config.cookie)
		return false;
	*answered = true;
	return strstr(answer.text, "\"controller\":true") != NULL;
}

/* Has the controller echoed the BYE? Waits PLAN_ASK_MS. */
static bool hear_bye(const struct wire_control *bye, int fd)
{
	struct pollfd wait = { .fd = fd, .events = POLLIN };
	union plan_packet packet;
	ssize_t bytes;

	if (poll(&wait, 1, PLAN_ASK_MS) <= 0)
		return false;
	bytes = recv(fd, &packet, sizeof(packet), MSG_DONTWAIT);
	if (bytes < 0) { /* no controller is running now */
		nap();
		return false;
	}
	return wire_parse(&packet, (size_t)bytes) == WIRE_SOUND && packet.header.type == WIRE_BYE &&
	       packet.header.flags & WIRE_ECHO && packet.header.cookie == bye->cookie &&
	       packet.header.pos == bye->pos;
}

/* Repeats the BYE for BYE_FOR at most. If it is not heard, the other ranks wait for a timeout. */
void comm_tell_controller_bye(const struct trib_comm *comm)
{
	struct udp_options options = { .receive_bytes = 1 << 16, .send_bytes = 1 << 16 };
	struct wire_control bye = { .type = WIRE_BYE,
		                    .cookie = comm->config.cookie,
		                    .job = comm->config.job,
		                    .child = (uint8_t)comm->config.seat,
		                    .pos = comm->nonce & WIRE_POSITION_MASK };
	double seconds = comm->config.timeout_s < BYE_FOR ? comm->config.timeout_s : BYE_FOR;
	uint64_t until = clock_now() + (uint64_t)(seconds * 1e9);
	bool gso, heard = false;
	int fd;

	if (udp_open(NULL, &comm->config.controller, &options, &fd, &gso) != TRIB_OK)
		return;
	wire_seal(&bye, sizeof(bye));
	while (!heard && clock_now() < until) {
		if (send(fd, &bye, sizeof(bye), 0) < 0)
			log_debug("good-bye to the controller: %s", strerror(errno));
		heard = hear_bye(&bye, fd);
	}
	close(fd);
}
