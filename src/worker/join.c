/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Joining: ask, in any order of processes, until the aggregators have all ranks
 * or the deadline is there; all trees at once. A JOIN is padded to the path's MTU and so is its
 * answer: what gets through fits. Only behind that one is sent that lets us in,
 * for nobody knows before that results will come back, too. Where nothing so long does, shorter
 * ones are tried; when one of those is the first to be answered, so is the full length once more:
 * perhaps nobody was there before. On a connection that is the kernel's business; fragments are as
 * long as datagrams would be, so that results have the same bits.
 */
#include "worker/comm.h"

#include "base/clock.h"
#include "base/log.h"
#include "wire/brief.h"
#include "wire/parse.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ASK_EVERY_MS 50
#define REFUSED_MAX 5u
#define PATIENT_ASKS 8 /* in full length, before shorter ones are tried */
#define AGAIN_ASKS 4u  /* ... and when a shorter one has come back */

struct join_packet {
	struct wire_control header;
	struct wire_join join;
	uint8_t padding[WIRE_PACKET_MAX - WIRE_CONTROL - sizeof(struct wire_join)];
};

static uint32_t payload_for(unsigned mtu, const struct udp_address *peer)
{
	unsigned overhead = udp_overhead(peer) + WIRE_HEADER;
	uint32_t payload = mtu > overhead ? (mtu - overhead) & ~7u : 0;

	return payload > WIRE_PAYLOAD_MAX ? WIRE_PAYLOAD_MAX : payload;
}

/* One tree that is asked. */
struct asking {
	struct trib_comm *comm;
	struct trunk *trunk;
	struct lane *lane;
	uint64_t ask_at, present;
	unsigned mtu;
	uint32_t full;        /* the payload that the route should carry */
	uint32_t asked;       /* the one that was tried last */
	uint32_t came;        /* the longest one that came back; 0: none has */
	uint32_t settled;     /* the one that is used; 0: that is open */
	unsigned asks, again; /* again: in full length since one came */
	unsigned refused;     /* times in a row that its port was closed */
	trib_status status;   /* a sure failure */
	int reach_ms;         /* that may be spent on a connection at once */
	double seconds;       /* that it may take in all */
	bool heard, joined, is_controller;
	bool is_known;            /* not to be one; tcp only */
	char text[WIRE_TEXT_MAX]; /* what we wait for, where it is no rank */
};

static void ask(struct asking *asking, uint32_t payload)
{
	const struct comm_config *config = &asking->comm->config;
	const struct trunk *trunk = asking->trunk;
	struct lane *lane = asking->lane;
	uint32_t bytes = WIRE_HEADER + payload; /* as long as DATA will be */
	int error;
	struct join_packet packet = {
		.header = { .type = WIRE_JOIN,
		            .cookie = config->cookie,
		            .job = config->job,
		            .child = (uint8_t)config->rank },
		.join = { .key = comm_key(config),
		          .pool_bytes = config->pool_bytes,
		          /* In other trees it is asked anew, perhaps of the same ones. */
		          .nonce = asking->comm->nonce + config->generation +
		                   ((uint64_t)trunk->star << 32),
		          .covers = 1ull << config->rank,
		          .ranks = trunk->ranks,
		          .rank = (uint32_t)config->rank,
		          .size = (uint32_t)config->size,
		          .payload = payload,
		          .lanes = asking->comm->lanes_wanted,
		          .timeout_ms = (uint32_t)(config->timeout_s * 1000),
		          .pid = (uint32_t)getpid(),
		          .generation = config->generation,
		          .tree = (uint16_t)trunk->tree,
		          .hops = (uint8_t)trunk->hops,
		          .tries = !asking->settled },
	};

	memcpy(packet.join.up, trunk->up, sizeof(packet.join.up));
	gethostname(packet.join.host, sizeof(packet.join.host) - 1);
	if (bytes < offsetof(struct join_packet, padding) || config->tcp)
		bytes = offsetof(struct join_packet, padding);
	asking->asked = payload;
	error = lane->way->send_one(lane, &packet, bytes);
	asking->refused += error == -ECONNREFUSED;
	if (error)
		log_debug("join of %u bytes: %s", payload, strerror(-error));
}

/* Full length; as long as nothing has come every third time a shorter one. */
static uint32_t next_length(struct asking *asking)
{
	static const uint32_t shorter[] = { 4016, 1448, 1416, 1368, 1248, 1040, 528 };

	if (!asking->settled && asking->came && asking->again++ == AGAIN_ASKS)
		asking->settled = asking->came;
	if (asking->settled)
		return asking->settled;
	if (asking->came)
		return asking->full;
	for (;;) {
		unsigned k = asking->asks++;
		uint32_t payload;

		if (k < PATIENT_ASKS || (k - PATIENT_ASKS) % 3)
			return asking->full;
		payload = shorter[(k - PATIENT_ASKS) / 3 % (sizeof(shorter) / sizeof(shorter[0]))];
		if (payload <= asking->full)
			return payload;
	}
}

/* In one tree and not yet in others: the aggregator must not take us for dead. */
static void beat(struct asking *asking)
{
	const struct wire_welcome *welcome = &asking->trunk->welcome;
	struct {
		struct wire_control header;
		struct wire_report report;
	} packet = { .header = { .type = WIRE_REPORT,
		                 .cookie = welcome->cookie,
		                 .job = asking->comm->config.job,
		                 .comm = welcome->comm,
		                 .epoch = welcome->epoch,
		                 .child = (uint8_t)asking->comm->config.rank } };
	int error = asking->lane->way->send_one(asking->lane, &packet, wire_cut(&packet));

	if (error)
		log_debug("a heartbeat while joining: %s", strerror(-error));
}

/* Against a hostile or mistaken answer. */
static bool welcome_ok(const struct trib_comm *comm, const struct wire_welcome *welcome)
{
	return welcome->cells >= 2 && welcome->payload >= WIRE_PAYLOAD_MIN &&
	       welcome->payload <= WIRE_PAYLOAD_MAX && welcome->payload % 8 == 0 &&
	       welcome->lanes >= 1 && welcome->lanes <= comm->lanes_wanted;
}

/* So much passes both ways. */
static void note_passes(struct asking *asking, uint32_t payload)
{
	if (asking->settled || payload <= asking->came)
		return;
	if (payload == asking->full)
		asking->settled = payload; /* with that we may be let in */
	if (!asking->came || asking->settled)
		asking->ask_at = 0;
	asking->came = payload;
}

static void take_verdict(struct asking *asking, const struct wire_welcome *welcome, uint32_t bytes)
{
	uint32_t carried = (bytes - WIRE_HEADER) & ~7u;
	char address[64];

	asking->heard = true;
	asking->refused = 0;
	asking->present = welcome->present;
	memcpy(asking->text, welcome->text, sizeof(asking->text));
	trunk_name(asking->trunk, address, sizeof(address));
	if (welcome->verdict == WIRE_REFUSED) {
		asking->status = status_fail(
			TRIB_ERR_REFUSED, "the aggregator at %s refused rank %d: %.*s", address,
			asking->comm->config.rank, WIRE_TEXT_MAX - 1, welcome->text);
		return;
	}
	if (welcome->verdict == WIRE_PLAN) {
		asking->is_controller = true;
		return;
	}
	/* As long as both were: an answer may be to an earlier, shorter question. */
	if (carried > asking->asked)
		carried = asking->asked;
	note_passes(asking, carried);
	if (welcome->verdict != WIRE_JOINED || !asking->settled ||
	    !welcome_ok(asking->comm, welcome))
		return;
	if (asking->settled < asking->full)
		log_warn("packets of %u bytes do not reach %s although the MTU is %u: %u are used",
		         asking->full, address, asking->mtu, asking->settled);
	asking->trunk->welcome = *welcome;
	asking->joined = true;
}

static void take_answer(struct lane *lane, const struct wire_header *packet, uint32_t bytes,
                        bool by_group, void *context)
{
	const struct wire_control *header = wire_control(packet);
	const struct comm_config *config = &lane->comm->config;
	struct asking *asking = context;

	(void)by_group;
	if (!header || asking->status != TRIB_OK || header->job != config->job ||
	    header->child != config->rank)
		return;
	if (header->cookie != (asking->joined ? lane->trunk->welcome.cookie : config->cookie))
		return;
	if (header->type == WIRE_ABORT) { /* another rank is gone, or an aggregator above */
		const struct wire_abort *abort = wire_payload(header);

		asking->status =
			status_fail(abort->status < 0 ? (trib_status)abort->status : TRIB_ERR_PEER,
		                    "%s", abort->text);
	} else if (header->type == WIRE_WELCOME && !asking->joined) {
		take_verdict(asking, wire_payload(header), bytes);
	}
}

static trib_status give_up(const struct asking *asking)
{
	const struct comm_config *config = &asking->comm->config;
	uint64_t all = config->size == 64 ? ~0ull : (1ull << config->size) - 1;
	char ranks[200], address[64];

	trunk_name(asking->trunk, address, sizeof(address));
	if (asking->lane->unreached)
		return status_fail(TRIB_ERR_AGGREGATOR,
		                   "no connection to the aggregator at %s within %.1f s: %s; is "
		                   "tribd running there, with --plane tcp?",
		                   address, asking->seconds, strerror(asking->lane->unreached));
	if (!asking->heard)
		return status_fail(
			TRIB_ERR_AGGREGATOR,
			"no answer from the aggregator at %s within %.1f s: is tribd "
			"running there, with the same TRIB_COOKIE?%s (trib check "
			"--aggregator %s)",
			address, asking->seconds,
			strncmp(address, "127.", 4) ? "" : " That address is this machine itself.",
			address);
	if (*asking->text) /* it is not a rank that is missing */
		return status_fail(TRIB_ERR_AGGREGATOR,
		                   "the aggregator at %s did not let us in within %.1f s: %s",
		                   address, asking->seconds, asking->text);
	comm_list_ranks(all & ~asking->present, ranks, sizeof(ranks));
	return status_fail(TRIB_ERR_TIMEOUT,
	                   "rank %s of %d did not join within %.1f s (aggregator %s, job %u)",
	                   ranks, config->size, asking->seconds, address, config->job);
}

/* Of the route, as a socket for datagrams sees it; 0: unknown. */
static unsigned route_mtu(const struct udp_address *peer)
{
	struct udp_options options = { .receive_bytes = 4096, .send_bytes = 4096 };
	unsigned mtu;
	bool gso;
	int fd;

	if (udp_open(NULL, peer, &options, &fd, &gso) != TRIB_OK)
		return 0;
	mtu = udp_mtu(fd);
	close(fd);
	return mtu;
}

static trib_status asking_init(struct asking *asking, struct trib_comm *comm, struct trunk *trunk)
{
	const struct comm_config *config = &comm->config;
	struct udp_address *peer = &trunk->aggregator, local;
	unsigned route = route_mtu(peer);
	char interface[64], one[64], two[64];

	*asking = (struct asking){ .comm = comm,
		                   .trunk = trunk,
		                   .lane = trunk->lanes[0],
		                   .reach_ms = ASK_EVERY_MS,
		                   .seconds = config->timeout_s };
	asking->mtu = config->mtu ? config->mtu : route;
	if (config->tcp && route && route < asking->mtu)
		asking->mtu = route; /* datagrams would find out by trying */
	asking->full = payload_for(asking->mtu ? asking->mtu : 1500, peer);
	if (comm->payload && asking->full > comm->payload)
		asking->full = comm->payload; /* as in the trees before these */
	asking->settled = config->tcp ? asking->full : 0;
	if (udp_route(peer, &local, interface, sizeof(interface)) != TRIB_OK)
		return TRIB_ERR_SYSTEM;
	if (asking->full < WIRE_PAYLOAD_MIN)
		return status_fail(TRIB_ERR_CONFIG, "an MTU of %u is too small", asking->mtu);
	/* Which way it goes is the first question when something is slow: once a job, say it. */
	log_line(config->rank == 0 && !config->key ? LOG_NOTICE : LOG_INFO,
	         "to the aggregator %s by interface %s, address %s, MTU %u",
	         udp_text(peer, one, sizeof(one)), interface, udp_text(&local, two, sizeof(two)),
	         asking->mtu);
	return TRIB_OK;
}

/*
 * A controller speaks HTTP on connections, and would never answer what we say on one; and it
 * gives a rank to who has none, but not to who says that it is rank 0 of 1.
 */
static bool is_controller(struct asking *asking)
{
	const struct comm_config *config = &asking->comm->config;

	if (config->controller.length)
		return false; /* there is one already */
	if (!config->trees && (config->tcp || config->asks))
		for (unsigned tries = config->asks ? 3 : 1; tries && !asking->is_known; tries--)
			asking->is_controller =
				comm_find_controller(asking->comm, &asking->is_known);
	return asking->is_controller;
}

/* A controller names aggregators that run; others may be started later than we are. */
static void check_closed(struct asking *asking)
{
	char address[64];

	if (asking->comm->config.controller.length && asking->refused >= REFUSED_MAX &&
	    asking->status == TRIB_OK)
		asking->status = status_fail(TRIB_ERR_AGGREGATOR,
		                             "the aggregator at %s has ended: its port is closed",
		                             trunk_name(asking->trunk, address, sizeof(address)));
}

/* It is time to. */
static void ask_again(struct asking *asking)
{
	if (asking->joined) {
		beat(asking);
	} else if (asking->lane->way->reach(asking->lane, asking->reach_ms)) {
		ask(asking, next_length(asking));
	} else {
		asking->refused += asking->lane->unreached != EINPROGRESS;
		check_closed(asking);
	}
	asking->ask_at = clock_now() + ASK_EVERY_MS * 1000000ull;
}

/* Asks where it is time to, and says when that is again. */
static uint64_t ask_all(struct asking *askings, unsigned n)
{
	uint64_t next = UINT64_MAX;

	for (unsigned i = 0; i < n; i++) {
		struct asking *asking = &askings[i];

		if (clock_now() >= asking->ask_at) {
			if (is_controller(asking))
				return clock_now();
			ask_again(asking);
		}
		if (asking->ask_at < next)
			next = asking->ask_at;
	}
	return next;
}

static void hear_some(struct asking *asking)
{
	int got;

	do
		got = asking->lane->way->receive(asking->lane, take_answer, asking);
	while (got > 0);
	asking->refused += got == -ECONNREFUSED;
	check_closed(asking);
}

/* Takes the answers that come until then, or until something is decided. */
static void hear_all(struct asking *askings, unsigned n, const struct plan_watch *watch,
                     uint64_t until)
{
	struct pollfd waits[FOREST_TREES_MAX + 1];
	bool decided = false;

	while (!decided) {
		uint64_t now = clock_now();

		for (unsigned i = 0; i < n; i++)
			waits[i] = (struct pollfd){ .fd = askings[i].lane->fd, .events = POLLIN };
		waits[n] = (struct pollfd){ .fd = watch->fd, .events = POLLIN };
		if (now >= until || poll(waits, n + 1, (int)((until - now) / 1000000) + 1) <= 0)
			return;
		decided = waits[n].revents;
		for (unsigned i = 0; i < n; i++) {
			struct asking *asking = &askings[i];
			bool joined = asking->joined;
			uint32_t came = asking->came;

			if (waits[i].revents)
				hear_some(asking);
			decided |= asking->joined != joined || asking->came != came ||
			           asking->status != TRIB_OK || asking->is_controller;
		}
	}
}

/* The first one that has failed, or that is not joined. */
static const struct asking *first_open(const struct asking *askings, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (askings[i].status != TRIB_OK)
			return &askings[i];
	for (unsigned i = 0; i < n; i++)
		if (!askings[i].joined)
			return &askings[i];
	return NULL;
}

static trib_status join_all(struct trib_comm *comm, struct plan_watch *watch, uint64_t deadline)
{
	struct asking askings[FOREST_TREES_MAX];
	const struct asking *open;
	trib_status status = TRIB_OK;

	for (unsigned i = 0; status == TRIB_OK && i < comm->n_trunks; i++)
		status = asking_init(&askings[i], comm, &comm->trunks[i]);
	if (status != TRIB_OK)
		return status;
	while ((open = first_open(askings, comm->n_trunks))) {
		if (open->status != TRIB_OK)
			return open->status;
		if (open->is_controller && !comm->config.controller.length)
			return TRIB_IN_PROGRESS;
		if (comm_is_over(comm))
			return status_fail(TRIB_ERR_CLOSED, "given up while joining");
		if ((status = plan_watch_hear(comm, watch)) != TRIB_OK)
			return status;
		if (clock_now() >= deadline)
			return give_up(open);
		plan_watch_ask(comm, watch);
		hear_all(askings, comm->n_trunks, watch, ask_all(askings, comm->n_trunks));
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

/* ---- one tree, while others carry on ---- */

trib_status asking_open(struct trib_comm *comm, struct trunk *trunk, double seconds,
                        struct asking **out)
{
	struct asking *asking = malloc(sizeof(*asking));
	trib_status status;

	*out = NULL;
	if (!asking)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory to join an aggregator");
	status = asking_init(asking, comm, trunk);
	if (status != TRIB_OK) {
		free(asking);
		return status;
	}
	asking->reach_ms = 0;
	asking->seconds = seconds;
	*out = asking;
	return TRIB_OK;
}

trib_status asking_step(struct asking *asking, uint64_t deadline, uint64_t *wake)
{
	uint64_t now = clock_now();

	if (asking->lane->fd >= 0)
		hear_some(asking);
	if (now >= asking->ask_at && asking->status == TRIB_OK)
		ask_again(asking); /* also where it is joined, and its other lanes are not there yet
		                    */
	*wake = asking->ask_at;
	if (asking->status != TRIB_OK)
		return asking->status;
	if (asking->joined)
		return TRIB_OK;
	return now >= deadline ? give_up(asking) : TRIB_IN_PROGRESS;
}
