/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Joining: sends JOIN to the aggregators of all trees at once, again and again, until all ranks are
 * in or the deadline has passed. Processes may start in any order.
 *
 * A JOIN is padded to the path's MTU, and so is its answer: a length that gets through both ways
 * can be used for fragments. Only then does the rank ask to be let in, because results have to
 * come back, too. If no packet of full length is answered, shorter ones are tried. If a shorter one
 * is the first to be answered, the full length is tried once more: the aggregator may have started
 * in between. Over TCP the length of packets does not matter to the path; fragments are as long as
 * datagrams would be, so that results have the same bits.
 */
#include "worker/trees/plan_client.h"
#include "worker/trees/plan_watch.h"
#include "worker/trees/trees.h"
#include "engine/engines.h"
#include "worker/transport/lane_carrier.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/peer_text.h"
#include "path/length_probe.h"
#include "wire/brief.h"
#include "wire/parse.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define JOIN_ASK_MS 50
#define REFUSED_MAX 5u

struct join_packet {
	struct wire_control header;
	struct wire_join join;
	uint8_t padding[WIRE_PACKET_MAX - WIRE_CONTROL - sizeof(struct wire_join)];
};

/* Joining one tree. */
struct join_attempt {
	struct trib_comm *comm;
	struct trunk *trunk;
	struct lane *lane;
	uint64_t ask_at, present;
	unsigned mtu;
	struct length_probe length;
	unsigned refused;   /* times in a row that the port was closed */
	trib_status status; /* not TRIB_OK: the attempt has failed */
	int reach_ms;       /* longest wait for a connection, for each JOIN */
	double seconds;     /* timeout of the attempt, for error messages */
	bool heard, joined, is_controller;
	bool told_closed; /* the log says that the port is closed */
	bool is_known;    /* a process at the address has answered, so is_controller is certain */
	char text[WIRE_TEXT_MAX]; /* why the aggregator waits, if not for a rank */
};

static unsigned lanes_wanted(const struct trib_comm *comm, const struct trunk *trunk)
{
	unsigned most = trunk->engine->lanes_max;

	return comm->lanes_wanted < most ? comm->lanes_wanted : most;
}

static void ask(struct join_attempt *attempt, uint32_t payload)
{
	const struct comm_config *config = &attempt->comm->config;
	const struct trunk *trunk = attempt->trunk;
	struct lane *lane = attempt->lane;
	uint32_t bytes = WIRE_HEADER + payload; /* as long as a fragment will be */
	int error;
	struct join_packet packet = {
		.header = { .type = WIRE_JOIN,
		            .cookie = config->cookie,
		            .job = config->job,
		            .child = (uint8_t)config->rank,
		            .token = trunk->token },
		.join = { .key = comm_key(config),
		          .pool_bytes = trunk->engine->pool_bytes(config, bytes),
		          .engine = trunk->engine->number,
		          /* Each plan and each star needs a nonce of its own: aggregators may
		             recur. */
		          .nonce = attempt->comm->nonce + config->generation +
		                   ((uint64_t)trunk->star << 32),
		          .covers = 1ull << config->rank,
		          .ranks = trunk->ranks,
		          .rank = (uint32_t)config->rank,
		          .size = (uint32_t)config->size,
		          .payload = payload,
		          .lanes = lanes_wanted(attempt->comm, trunk),
		          .timeout_ms = (uint32_t)(config->timeout_s * 1000),
		          .pid = (uint32_t)getpid(),
		          .generation = config->generation,
		          .tree = (uint16_t)trunk->tree,
		          .hops = (uint8_t)trunk->hops,
		          .tries = !attempt->length.settled,
		          .wire = (uint8_t)(config->wire_bits + 1) },
	};

	memcpy(packet.join.up, trunk->up, sizeof(packet.join.up));
	gethostname(packet.join.host, sizeof(packet.join.host) - 1);
	if (bytes < WIRE_JOIN_LEAST || config->tcp)
		bytes = WIRE_JOIN_LEAST;
	error = lane->carrier->send_one(lane, &packet, bytes);
	attempt->refused += error == -ECONNREFUSED;
	if (error)
		log_debug("join of %u bytes: %s", payload, strerror(-error));
}

/* This tree is joined, others are not yet: its aggregator must not take this rank for dead. */
static void send_heartbeat(struct join_attempt *attempt)
{
	const struct wire_welcome *welcome = &attempt->trunk->welcome;
	struct {
		struct wire_control header;
		struct wire_report report;
	} packet = { .header = { .type = WIRE_REPORT,
		                 .cookie = welcome->cookie,
		                 .job = attempt->comm->config.job,
		                 .comm = welcome->comm,
		                 .epoch = welcome->epoch,
		                 .child = (uint8_t)attempt->comm->config.rank,
		                 .token = attempt->trunk->token },
		     .report = { .serial = clock_now() } };
	int error = attempt->lane->carrier->send_one(attempt->lane, &packet, wire_cut(&packet));

	if (error)
		log_debug("a heartbeat while joining: %s", strerror(-error));
}

/*
 * Against a hostile or mistaken answer. A communicator's cookie is never 0. Heartbeats follow from
 * dead_after_ms: with 0 they would never pause.
 */
static bool welcome_ok(const struct join_attempt *attempt, const struct wire_welcome *welcome)
{
	const struct trunk *trunk = attempt->trunk;
	bool is_power = !(welcome->cells & (welcome->cells - 1));

	if (welcome->engine != trunk->engine->number ||
	    (!trunk->engine->any_cells && (!is_power || welcome->cells > ENGINE_CELLS_MAX)))
		return false;
	return welcome->cookie && welcome->dead_after_ms && welcome->cells >= 2 &&
	       welcome->payload >= WIRE_PAYLOAD_MIN &&
	       welcome->payload <= attempt->length.settled && welcome->payload % 8 == 0 &&
	       welcome->lanes >= 1 && welcome->lanes <= lanes_wanted(attempt->comm, trunk);
}

static void take_verdict(struct join_attempt *attempt, const struct wire_welcome *welcome,
                         uint32_t bytes)
{
	uint32_t carried = (bytes - WIRE_HEADER) & ~7u;
	char address[64];

	attempt->heard = true;
	attempt->refused = 0;
	attempt->present = welcome->present;
	/* The text of a plan may be longer, and have no end here. */
	peer_text(attempt->text, sizeof(attempt->text), welcome->text, sizeof(welcome->text));
	trunk_name(attempt->trunk, address, sizeof(address));
	if (welcome->verdict == WIRE_REFUSED) {
		attempt->status =
			status_fail(TRIB_ERR_REFUSED, "the aggregator at %s refused rank %d: %s",
		                    address, attempt->comm->config.rank, attempt->text);
		return;
	}
	if (welcome->verdict == WIRE_PLAN) {
		attempt->is_controller = true;
		return;
	}
	if (length_probe_passes(&attempt->length, carried))
		attempt->ask_at = 0;
	if (welcome->verdict != WIRE_JOINED || !attempt->length.settled ||
	    !welcome_ok(attempt, welcome))
		return;
	if (attempt->length.settled < attempt->length.full)
		log_warn("packets of %u bytes do not reach %s although the MTU is %u: %u are used",
		         attempt->length.full, address, attempt->mtu, attempt->length.settled);
	attempt->trunk->welcome = *welcome;
	attempt->joined = true;
}

static void take_answer(struct join_attempt *attempt, const struct wire_header *packet,
                        uint32_t bytes)
{
	const struct wire_control *header = wire_control(packet);
	const struct lane *lane = attempt->lane;
	const struct comm_config *config = &lane->comm->config;

	if (!header || attempt->status != TRIB_OK || header->job != config->job ||
	    header->child != config->rank)
		return;
	if (header->cookie != (attempt->joined ? lane->trunk->welcome.cookie : config->cookie))
		return;
	if (header->type == WIRE_ABORT) { /* another rank has gone, or an aggregator above */
		const struct wire_abort *abort = wire_payload(header);
		char text[WIRE_TEXT_MAX];

		attempt->status = status_fail(
			abort->status < 0 ? (trib_status)abort->status : TRIB_ERR_PEER, "%s",
			peer_text(text, sizeof(text), abort->text, sizeof(abort->text)));
	} else if (header->type == WIRE_WELCOME && !attempt->joined) {
		attempt->trunk->token = header->token;
		take_verdict(attempt, wire_payload(header), bytes);
	}
}

static trib_status give_up(const struct join_attempt *attempt)
{
	const struct comm_config *config = &attempt->comm->config;
	uint64_t all = config->size == 64 ? ~0ull : (1ull << config->size) - 1;
	char ranks[200], address[64];

	trunk_name(attempt->trunk, address, sizeof(address));
	if (attempt->lane->connect_error)
		return status_fail(TRIB_ERR_AGGREGATOR,
		                   "no connection to the aggregator at %s within %.1f s: %s; is "
		                   "tribd running there, with --plane tcp?",
		                   address, attempt->seconds,
		                   strerror(attempt->lane->connect_error));
	if (!attempt->heard && attempt->refused)
		return status_fail(
			TRIB_ERR_AGGREGATOR,
			"there is no aggregator at %s: its port has been closed for %.1f s; "
			"start tribd there, or correct TRIB_AGGREGATOR",
			address, attempt->seconds);
	if (!attempt->heard)
		return status_fail(
			TRIB_ERR_AGGREGATOR,
			"no answer from the aggregator at %s within %.1f s: is tribd "
			"running there, with the same TRIB_COOKIE?%s (trib check "
			"--aggregator %s)",
			address, attempt->seconds,
			strncmp(address, "127.", 4) ? "" : " That address is this machine itself.",
			address);
	if (*attempt->text) /* the aggregator waits for something other than a rank */
		return status_fail(TRIB_ERR_AGGREGATOR,
		                   "the aggregator at %s did not admit this rank within %.1f s: %s",
		                   address, attempt->seconds, attempt->text);
	comm_list_ranks(all & ~attempt->present, ranks, sizeof(ranks));
	return status_fail(TRIB_ERR_TIMEOUT,
	                   "rank %s of %d did not join within %.1f s (aggregator %s, job %u)",
	                   ranks, config->size, attempt->seconds, address, config->job);
}

static trib_status attempt_init(struct join_attempt *attempt, struct trib_comm *comm,
                                struct trunk *trunk)
{
	const struct comm_config *config = &comm->config;
	struct udp_address *peer = &trunk->aggregator, local;
	unsigned route = udp_route_mtu(peer);
	char interface[64], one[64], two[64];

	*attempt = (struct join_attempt){ .comm = comm,
		                          .trunk = trunk,
		                          .lane = trunk->lanes[0],
		                          .reach_ms = JOIN_ASK_MS,
		                          .seconds = config->timeout_s };
	attempt->mtu = config->mtu ? config->mtu : route;
	if (config->tcp && route && route < attempt->mtu)
		attempt->mtu =
			route; /* a connection cannot find it out by trying, as datagrams do */
	attempt->length.full =
		length_probe_full(attempt->mtu ? attempt->mtu : 1500,
	                          udp_overhead(peer) + WIRE_HEADER, WIRE_PAYLOAD_MAX);
	if (comm->payload && attempt->length.full > comm->payload)
		attempt->length.full = comm->payload; /* as in the previous trees */
	attempt->length.settled = config->tcp ? attempt->length.full : 0;
	if (udp_route(peer, &local, interface, sizeof(interface)) != TRIB_OK)
		return TRIB_ERR_SYSTEM;
	if (attempt->length.full < WIRE_PAYLOAD_MIN)
		return status_fail(TRIB_ERR_CONFIG, "an MTU of %u is too small", attempt->mtu);
	/* The first question when a job is slow is its route: log it once a job. */
	log_line(config->rank == 0 && !config->key && !trunk->engine->small ? LOG_NOTICE : LOG_INFO,
	         "to the aggregator %s by interface %s, address %s, MTU %u",
	         udp_text(peer, one, sizeof(one)), interface, udp_text(&local, two, sizeof(two)),
	         attempt->mtu);
	return TRIB_OK;
}

/*
 * Is the address a controller's? This has to be known before a JOIN is sent. On connections a
 * controller speaks HTTP and would never answer a JOIN. And a process without a rank must not join
 * as rank 0 of 1. All other processes ask when they are told to wait: to a controller they have to
 * say more than a JOIN does, in case that it has no aggregator for them.
 */
static bool is_controller(struct join_attempt *attempt)
{
	const struct comm_config *config = &attempt->comm->config;

	if (config->controller.length)
		return false; /* the controller is known already */
	if (!config->trees && (config->tcp || config->asks || attempt->heard))
		for (unsigned tries = config->asks ? 3 : 1; tries && !attempt->is_known; tries--)
			attempt->is_controller =
				comm_find_controller(attempt->comm, &attempt->is_known);
	return attempt->is_controller;
}

/* A controller names only running aggregators. Without one, an aggregator may start later. */
static void check_closed(struct join_attempt *attempt)
{
	char address[64];

	if (attempt->refused && !attempt->told_closed) {
		attempt->told_closed = true;
		log_notice(
			"there is no aggregator at %s yet: its port is closed; waiting up to %.1f "
			"s for it",
			trunk_name(attempt->trunk, address, sizeof(address)), attempt->seconds);
	}
	if (attempt->comm->config.controller.length && attempt->refused >= REFUSED_MAX &&
	    attempt->status == TRIB_OK)
		attempt->status = status_fail(TRIB_ERR_AGGREGATOR,
		                              "the aggregator at %s has ended: its port is closed",
		                              trunk_name(attempt->trunk, address, sizeof(address)));
}

static void ask_again(struct join_attempt *attempt)
{
	if (attempt->joined) {
		send_heartbeat(attempt);
	} else if (attempt->lane->carrier->reach(attempt->lane, attempt->reach_ms)) {
		ask(attempt, length_probe_next(&attempt->length));
	} else {
		attempt->refused += attempt->lane->connect_error != EINPROGRESS;
		check_closed(attempt);
	}
	attempt->ask_at = clock_now() + JOIN_ASK_MS * 1000000ull;
}

/*
 * Is it certain that the first tree's address is an aggregator's? A controller must not get two
 * JOINs of a rank: its plan would answer one of them only. It may answer WAIT as an aggregator
 * does.
 */
static bool is_aggregator(const struct join_attempt *first)
{
	const struct comm_config *config = &first->comm->config;

	return first->joined || (first->heard && (config->controller.length || config->trees));
}

/* Sends the JOINs that are due. Gives the time of the next one. */
static uint64_t ask_all(struct join_attempt *attempts, unsigned n)
{
	uint64_t next = UINT64_MAX;

	for (unsigned i = 0; i < n; i++) {
		struct join_attempt *attempt = &attempts[i];

		if (attempt->trunk->engine->small && !is_aggregator(&attempts[0]))
			continue;
		if (clock_now() >= attempt->ask_at) {
			if (is_controller(attempt))
				return clock_now();
			ask_again(attempt);
		}
		if (attempt->ask_at < next)
			next = attempt->ask_at;
	}
	return next;
}

static void hear_some(struct join_attempt *attempt)
{
	const struct lane_batch *batch = &attempt->lane->batch;
	int got;

	do {
		got = attempt->lane->carrier->receive(attempt->lane);
		attempt->refused += got == -ECONNREFUSED;
		for (unsigned i = 0; i < batch->n; i++)
			take_answer(attempt, batch->packets[i].header, batch->packets[i].bytes);
	} while (got > 0 || batch->more);
	check_closed(attempt);
}

/* Takes answers until the given time, or until one changes something. */
static void hear_all(struct join_attempt *attempts, unsigned n, const struct plan_watch *watch,
                     uint64_t until)
{
	struct pollfd waits[FOREST_TREES_MAX + 1];
	bool decided = false;

	while (!decided) {
		uint64_t now = clock_now();

		for (unsigned i = 0; i < n; i++)
			waits[i] = (struct pollfd){ .fd = attempts[i].lane->fd, .events = POLLIN };
		waits[n] = (struct pollfd){ .fd = watch->fd, .events = POLLIN };
		if (now >= until || poll(waits, n + 1, (int)((until - now) / 1000000) + 1) <= 0)
			return;
		decided = waits[n].revents;
		for (unsigned i = 0; i < n; i++) {
			struct join_attempt *attempt = &attempts[i];
			bool joined = attempt->joined;
			uint32_t came = attempt->length.came;

			if (waits[i].revents)
				hear_some(attempt);
			decided |= attempt->joined != joined || attempt->length.came != came ||
			           attempt->status != TRIB_OK || attempt->is_controller;
		}
	}
}

/* The first attempt that has failed; else the first that is not joined; NULL: all are joined. */
static const struct join_attempt *first_open(const struct join_attempt *attempts, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (attempts[i].status != TRIB_OK)
			return &attempts[i];
	for (unsigned i = 0; i < n; i++)
		if (!attempts[i].joined)
			return &attempts[i];
	return NULL;
}

static trib_status join_all(struct trib_comm *comm, struct plan_watch *watch, uint64_t deadline)
{
	struct join_attempt attempts[FOREST_TREES_MAX];
	const struct join_attempt *open;
	trib_status status = TRIB_OK;
	unsigned n = comm->n_trunks;

	for (unsigned i = 0; status == TRIB_OK && i < n; i++)
		status = attempt_init(&attempts[i], comm, &comm->trunks[i]);
	if (status != TRIB_OK)
		return status;
	while ((open = first_open(attempts, n))) {
		if (open->status != TRIB_OK)
			return open->status;
		if (open->is_controller && !comm->config.controller.length)
			return TRIB_IN_PROGRESS;
		if (comm_is_over(comm))
			return status_fail(
				TRIB_ERR_CLOSED,
				"the communicator failed or was closed while it was joining");
		if ((status = plan_watch_hear(comm, watch)) != TRIB_OK)
			return status;
		if (clock_now() >= deadline)
			return give_up(open);
		plan_watch_ask(comm, watch);
		hear_all(attempts, n, watch, ask_all(attempts, n));
	}
	return TRIB_OK;
}

trib_status comm_join(struct trib_comm *comm, uint64_t deadline)
{
	struct plan_watch watch;
	trib_status status;

	plan_watch_open(comm, &watch);
	status = join_all(comm, &watch, deadline);
	plan_watch_close(&watch);
	return status;
}

/* ---- one tree, while the others are in use ---- */

trib_status join_begin(struct trib_comm *comm, struct trunk *trunk, double seconds,
                       struct join_attempt **out)
{
	struct join_attempt *attempt = malloc(sizeof(*attempt));
	trib_status status;

	*out = NULL;
	if (!attempt)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory to join an aggregator");
	status = attempt_init(attempt, comm, trunk);
	if (status != TRIB_OK) {
		free(attempt);
		return status;
	}
	attempt->reach_ms = 0;
	attempt->seconds = seconds;
	*out = attempt;
	return TRIB_OK;
}

trib_status join_step(struct join_attempt *attempt, uint64_t deadline, uint64_t *wake)
{
	uint64_t now = clock_now();

	if (attempt->lane->fd >= 0)
		hear_some(attempt);
	if (now >= attempt->ask_at && attempt->status == TRIB_OK)
		ask_again(
			attempt); /* also where it is joined, and its other lanes are not there yet
		                   */
	*wake = attempt->ask_at;
	if (attempt->status != TRIB_OK)
		return attempt->status;
	if (attempt->joined)
		return TRIB_OK;
	return now >= deadline ? give_up(attempt) : TRIB_IN_PROGRESS;
}
