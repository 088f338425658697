/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The desk: where workers ask for their plan, with the packets that they join
 * an aggregator with. It also asks aggregators that a plan is said to be broken
 * at whether they are there.
 */
#include "control/controller_internal.h"

#include "base/clock.h"
#include "base/log.h"
#include "wire/parse.h"

#include <ctype.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define TICK_MS 20
#define TURN_TICK_MS 2          /* while an aggregator is shared */
#define PROBE_EVERY 40000000ull /* nanoseconds */
#define BATCH 64

struct packet {
	struct wire_control header;
	union {
		uint8_t payload[WIRE_PACKET_MAX - WIRE_CONTROL];
		struct wire_join join;
		struct wire_welcome welcome;
		char text[WIRE_PACKET_MAX - WIRE_CONTROL];
	};
};

static void send_packet(struct controller *controller, struct packet *packet, uint32_t bytes,
                        const struct udp_address *to)
{
	wire_seal(packet, bytes);
	/* Lost or not sent is the same: who asks, asks again. */
	sendto(controller->fd, packet, bytes, MSG_DONTWAIT, (const void *)&to->storage, to->length);
}

/* ---- ranks ---- */

/* A name from the network goes into logs, JSON and sentences. */
static void clean_name(char *name)
{
	for (; *name; name++)
		if (!isalnum((unsigned char)*name) && !strchr(".-_", *name))
			*name = '_';
}

/* As long as the question was, or as the text is: it goes on in the padding. */
static void send_part(struct controller *controller, struct packet *packet,
                      const struct visitor *visitor, const char *text, uint32_t length)
{
	uint32_t bytes = WIRE_CONTROL + sizeof(struct wire_welcome), room;
	char *out = (char *)&packet->welcome + offsetof(struct wire_welcome, text);

	bytes = visitor->bytes > bytes ? visitor->bytes : bytes;
	room = (uint32_t)(bytes - WIRE_CONTROL - offsetof(struct wire_welcome, text));
	if (length >= room) {
		bytes += (length - room + 8) & ~7u;
		room = (uint32_t)(bytes - WIRE_CONTROL - offsetof(struct wire_welcome, text));
	}
	memset(out, 0, room);
	memcpy(out, text, length);
	send_packet(controller, packet, bytes, &visitor->from);
}

/* Once, or for a plan that is longer than a packet as often as it has parts. */
static void answer_rank(struct controller *controller, const struct job_entry *job,
                        const struct gathering *gathering, const struct visitor *visitor,
                        const struct answer *answer)
{
	const char *text = answer->kind == ANSWER_PLAN ? gathering->plan : answer->sentence;
	struct packet packet = { .header = { .type = WIRE_WELCOME,
		                             .cookie = job->cookie,
		                             .job = job->job.id,
		                             .child = visitor->child } };
	struct wire_welcome *welcome = &packet.welcome;
	uint32_t whole = (uint32_t)strlen(text), from = 0;

	welcome->present = answer->present;
	welcome->verdict = answer->kind == ANSWER_PLAN   ? WIRE_PLAN
	                   : answer->kind == ANSWER_WAIT ? WIRE_WAIT
	                                                 : WIRE_REFUSED;
	welcome->rank = answer->rank;
	welcome->size = answer->size;
	welcome->generation = gathering->generation;
	welcome->since = gathering->same_since;
	do {
		if (answer->kind == ANSWER_PLAN) {
			welcome->text_bytes = whole;
			welcome->text_from = from;
		}
		send_part(controller, &packet, visitor, text + from,
		          whole - from < WIRE_PLAN_PART ? whole - from : WIRE_PLAN_PART);
		from += WIRE_PLAN_PART;
	} while (from < whole);
}

/* All ranks of a new plan at once: nobody has to wait until it asks again. */
static void answer_members(struct controller *controller, const struct job_entry *job,
                           const struct gathering_entry *entry)
{
	const struct gathering *gathering = &entry->gathering;
	struct answer answer = { .kind = ANSWER_PLAN,
		                 .present = gathering->members,
		                 .size = (uint32_t)__builtin_popcountll(gathering->members) };

	for (uint64_t seats = gathering->members; seats; seats &= seats - 1, answer.rank++)
		answer_rank(controller, job, gathering, &entry->visitors[__builtin_ctzll(seats)],
		            &answer);
}

/* Where each seat asks from, so that it can be told without being asked. */
static void note_visitor(struct gathering_entry *entry, const struct ask *ask,
                         const struct visitor *visitor)
{
	for (unsigned i = 0; i < SEATS_MAX; i++)
		if (entry->gathering.seats[i].nonce == ask->nonce)
			entry->visitors[i] = *visitor;
}

/* The address without its port. */
static void host_text(const struct udp_address *address, char *out, socklen_t size)
{
	if (getnameinfo((const void *)&address->storage, address->length, out, size, NULL, 0,
	                NI_NUMERICHOST))
		*out = '\0';
}

static void take_join(struct controller *controller, const struct packet *packet,
                      const struct visitor *visitor)
{
	const struct wire_join *join = &packet->join;
	struct job_entry *job = controller->jobs[packet->header.job];
	struct gathering_entry *entry;
	struct answer answer;
	struct ask ask = { .rank = join->rank,
		           .size = join->size,
		           .generation = join->generation,
		           .timeout_ms = join->timeout_ms,
		           .pid = join->pid,
		           .pool_bytes = join->pool_bytes,
		           .tcp = join->tcp == 1,
		           .nonce = join->nonce,
		           .lost = join->covers };

	if (!job || job->cookie != packet->header.cookie) {
		controller->counts[DESK_DROPS]++;
		return;
	}
	controller->counts[DESK_JOINS]++;
	admitting_hear(job, clock_now());
	snprintf(ask.host, sizeof(ask.host), "%.*s", HOST_MAX - 1, join->host);
	clean_name(ask.host);
	host_text(&visitor->from, ask.where, sizeof(ask.where));
	entry = jobs_gathering(controller, job, join->key);
	if (!entry || jobs_ask(controller, entry, &ask, clock_now(), &answer) != TRIB_OK)
		return;
	note_visitor(entry, &ask, visitor);
	if (answer.changed) {
		controller->counts[DESK_PLANS]++;
		answer_members(controller, job, entry);
		return;
	}
	if (answer.kind == ANSWER_REFUSE) {
		controller->counts[DESK_REFUSALS]++;
		log_warn("a worker is refused: %s", answer.sentence);
	}
	answer_rank(controller, job, &entry->gathering, visitor, &answer);
}

/* Of the job's own communicator; those of trib_split end with it. */
static void take_bye(struct controller *controller, const struct wire_control *header,
                     const struct udp_address *from)
{
	struct job_entry *job = controller->jobs[header->job];
	struct packet echo = { .header = { .type = WIRE_BYE,
		                           .flags = WIRE_ECHO,
		                           .cookie = header->cookie,
		                           .job = header->job,
		                           .child = header->child,
		                           .pos = header->pos } };

	/* It may be the last word of a job that has been ended. */
	if (header->cookie != secret_cookie(&controller->secret, header->job) ||
	    header->flags & WIRE_ECHO) {
		controller->counts[DESK_DROPS]++;
		return;
	}
	if (!job || jobs_leave(controller, job, wire_position(header)) == TRIB_OK)
		send_packet(controller, &echo, WIRE_CONTROL, from);
}

/* ---- aggregators ---- */

static void take_answer(struct controller *controller, const struct packet *packet,
                        const struct udp_address *from)
{
	char text[TREE_NAME_MAX];
	struct node *node;

	if (packet->header.cookie != secret_cookie(&controller->secret, 0))
		return;
	node = nodes_find(&controller->nodes, udp_text(from, text, sizeof(text)));
	if (node)
		node->confirmed_at = clock_now();
}

static void probe_node(struct controller *controller, struct node *node, uint64_t now)
{
	struct packet packet = { .header = { .type = WIRE_QUERY,
		                             .cookie = secret_cookie(&controller->secret, 0) } };
	struct udp_address to;

	/* It is an address, not a name: nothing is looked up here. */
	if (now < node->probed_at + PROBE_EVERY ||
	    udp_resolve(node->report.address, UDP_DEFAULT_PORT, &to) != TRIB_OK)
		return;
	node->probed_at = now;
	send_packet(controller, &packet, WIRE_CONTROL, &to);
}

/* While a plan is said to be broken, for the next one. */
static void probe_suspects(struct controller *controller, const struct gathering *gathering,
                           uint64_t now)
{
	if (!gathering->since || !gathering->generation)
		return;
	for (unsigned i = 0; i < controller->nodes.n; i++) {
		struct node *node = controller->nodes.all[i];

		if (node->confirmed_at < gathering->since &&
		    node_state(node, now, &controller->limits) <= NODE_LOADED &&
		    planner_suspects(&controller->nodes, gathering->plan, node))
			probe_node(controller, node, now);
	}
}

static void probe_all(struct controller *controller)
{
	uint64_t now = clock_now();

	for (unsigned id = 0; id < JOBS_MAX; id++) {
		const struct job_entry *job = controller->jobs[id];

		for (const struct gathering_entry *at = job ? job->gatherings : NULL; at;
		     at = at->next)
			if (now < at->asked_at + NSEC_PER_SEC)
				probe_suspects(controller, &at->gathering, now);
	}
}

/* ---- how a communicator is ---- */

/* An aggregator of the plan of which nobody hears; "": none is known. */
static const char *silent_one(struct controller *controller, const char *plan, uint64_t now)
{
	const char *silent = "";
	struct node *node;
	bool ask;

	while ((node = plan_node(&controller->nodes, &plan))) {
		if (node_doubt(node, now, &ask))
			silent = node->report.address;
		if (ask)
			probe_node(controller, node, now);
	}
	return silent;
}

/*
 * How a communicator of the job is, for a worker that wants to know whether
 * others wait to come in, have given up the plan, or whether the aggregator that
 * does not answer it is dead.
 */
static void take_query(struct controller *controller, const struct packet *query,
                       const struct udp_address *from)
{
	struct job_entry *job = controller->jobs[query->header.job];
	const struct gathering_entry *entry = job ? job->gatherings : NULL;
	struct packet packet = { .header = { .type = WIRE_ANSWER,
		                             .cookie = query->header.cookie,
		                             .job = query->header.job,
		                             .pos = query->header.pos } };
	uint64_t now = clock_now();
	int length;

	if (!job || job->cookie != query->header.cookie) {
		controller->counts[DESK_DROPS]++;
		return;
	}
	admitting_hear(job, now);
	while (entry &&
	       (entry->gathering.key & WIRE_POSITION_MASK) != wire_position(&query->header))
		entry = entry->next;
	length = snprintf(packet.text, 512,
	                  "{\"controller\":true,\"job\":%u,\"generation\":%u,\"members\":%llu,"
	                  "\"waiting\":%llu,\"silent\":\"%s\"}",
	                  job->job.id, entry ? entry->gathering.generation : 0,
	                  entry ? (unsigned long long)entry->gathering.members : 0,
	                  entry ? (unsigned long long)gathering_waiting(&entry->gathering, now) : 0,
	                  entry ? silent_one(controller, entry->gathering.plan, now) : "");
	send_packet(controller, &packet, WIRE_CONTROL + (((uint32_t)length + 8) & ~7u), from);
}

/* ---- the thread ---- */

static void take_turn(struct controller *controller, const struct wire_control *header,
                      const struct udp_address *from)
{
	struct job_entry *job = controller->jobs[header->job];

	if (job && job->cookie == header->cookie)
		admitting_hear(job, clock_now());
	sharing_take(controller, header, from);
}

static bool take_one(struct controller *controller)
{
	static _Alignas(8) struct packet packet;
	struct visitor visitor = { .from.length = sizeof(visitor.from.storage) };
	ssize_t bytes = recvfrom(controller->fd, &packet, sizeof(packet), MSG_DONTWAIT,
	                         (void *)&visitor.from.storage, &visitor.from.length);

	if (bytes < 0)
		return false;
	visitor.bytes = (uint32_t)bytes;
	visitor.child = packet.header.child;
	pthread_mutex_lock(&controller->lock);
	switch (wire_parse(&packet, (size_t)bytes) == WIRE_SOUND ? packet.header.type : 0) {
	case WIRE_JOIN:
		take_join(controller, &packet, &visitor);
		break;
	case WIRE_BYE:
		take_bye(controller, &packet.header, &visitor.from);
		break;
	case WIRE_QUERY:
		take_query(controller, &packet, &visitor.from);
		break;
	case WIRE_ANSWER:
		take_answer(controller, &packet, &visitor.from);
		break;
	case WIRE_TURN:
		take_turn(controller, &packet.header, &visitor.from);
		break;
	default:
		controller->counts[DESK_DROPS]++;
	}
	pthread_mutex_unlock(&controller->lock);
	return true;
}

static void *desk_main(void *context)
{
	struct controller *controller = context;
	uint64_t tick_at = 0, turn_at = 0;
	bool shares = false;

	while (!controller->stop) {
		struct pollfd wait = { .fd = controller->fd, .events = POLLIN };

		poll(&wait, 1, shares ? TURN_TICK_MS : TICK_MS);
		for (unsigned i = 0; i < BATCH && take_one(controller); i++)
			;
		if (clock_now() >= turn_at + TURN_TICK_MS * 1000000ull) {
			turn_at = clock_now();
			pthread_mutex_lock(&controller->lock);
			shares = sharing_tick(controller, turn_at);
			pthread_mutex_unlock(&controller->lock);
		}
		if (clock_now() < tick_at + TICK_MS * 1000000ull)
			continue;
		tick_at = clock_now();
		pthread_mutex_lock(&controller->lock);
		probe_all(controller);
		admitting_tick(controller, tick_at);
		pthread_mutex_unlock(&controller->lock);
	}
	return NULL;
}

trib_status desk_open(struct controller *controller, const struct udp_address *listen)
{
	const struct udp_options options = { .receive_bytes = 4 << 20, .send_bytes = 1 << 20 };
	trib_status status;
	bool gso;

	if ((status = udp_open(listen, NULL, &options, &controller->fd, &gso)) != TRIB_OK)
		return status;
	if (pthread_create(&controller->desk, NULL, desk_main, controller))
		return status_fail(TRIB_ERR_SYSTEM, "cannot start the controller's thread");
	controller->desk_runs = true;
	return TRIB_OK;
}

void desk_close(struct controller *controller)
{
	controller->stop = true;
	if (controller->desk_runs)
		pthread_join(controller->desk, NULL);
	if (controller->fd >= 0)
		close(controller->fd);
}
