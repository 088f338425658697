/* SPDX-License-Identifier: Apache-2.0 */
#include "control/server/worker_server.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/peer_text.h"
#include "path/address_proof.h"
#include "control/jobs/job_table.h"
#include "control/jobs/plan_server.h"
#include "control/placement/host_lease.h"
#include "control/sharing/turn_server.h"
#include "wire/parse.h"

#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define TICK_MS 20
#define TURN_TICK_MS 2          /* tick while an aggregator is shared */
#define QUERY_EVERY 40000000ull /* 40 ms between two queries to an aggregator */
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
	/* A packet that cannot be sent counts as lost: ranks ask again. */
	sendto(controller->fd, packet, bytes, MSG_DONTWAIT, (const void *)&to->storage, to->length);
}

/* ---- ranks ---- */

/* The answer is as long as the question, or as its text, which continues in the padding. */
static void send_part(struct controller *controller, struct packet *packet,
                      const struct contact *contact, const char *text, uint32_t length)
{
	uint32_t bytes = WIRE_CONTROL + sizeof(struct wire_welcome), room;
	char *out = (char *)&packet->welcome + offsetof(struct wire_welcome, text);

	bytes = contact->bytes > bytes ? contact->bytes : bytes;
	room = (uint32_t)(bytes - WIRE_CONTROL - offsetof(struct wire_welcome, text));
	if (length >= room) {
		bytes += (length - room + 8) & ~7u;
		room = (uint32_t)(bytes - WIRE_CONTROL - offsetof(struct wire_welcome, text));
	}
	memset(out, 0, room);
	memcpy(out, text, length);
	send_packet(controller, packet, bytes, &contact->from);
}

static uint32_t token_of(const struct controller *controller, const struct contact *contact)
{
	return address_token(&controller->address_secret, &contact->from);
}

/* Sends one packet, or several if the plan is longer than a packet. */
static void answer_rank(struct controller *controller, const struct job_entry *job,
                        const struct membership *membership, const struct contact *contact,
                        const struct answer *answer)
{
	const char *text = answer->kind == ANSWER_PLAN ? membership->plan : answer->sentence;
	struct packet packet = { .header = { .type = WIRE_WELCOME,
		                             .cookie = job->cookie,
		                             .job = job->job.id,
		                             .child = contact->child,
		                             .token = token_of(controller, contact) } };
	struct wire_welcome *welcome = &packet.welcome;
	uint32_t whole = (uint32_t)strlen(text), from = 0;

	welcome->present = answer->present;
	welcome->verdict = answer->kind == ANSWER_PLAN   ? WIRE_PLAN
	                   : answer->kind == ANSWER_WAIT ? WIRE_WAIT
	                                                 : WIRE_REFUSED;
	welcome->rank = answer->rank;
	welcome->size = answer->size;
	welcome->generation = membership->generation;
	welcome->since = membership->same_since;
	do {
		if (answer->kind == ANSWER_PLAN) {
			welcome->text_bytes = whole;
			welcome->text_from = from;
		}
		send_part(controller, &packet, contact, text + from,
		          whole - from < WIRE_PLAN_PART ? whole - from : WIRE_PLAN_PART);
		from += WIRE_PLAN_PART;
	} while (from < whole);
}

/* Tells all ranks of a new plan at once, before they ask again. */
static void answer_members(struct controller *controller, const struct job_entry *job,
                           const struct membership_entry *entry)
{
	const struct membership *membership = &entry->membership;
	struct answer answer = { .kind = ANSWER_PLAN,
		                 .present = membership->members,
		                 .size = (uint32_t)__builtin_popcountll(membership->members) };

	for (uint64_t seats = membership->members; seats; seats &= seats - 1, answer.rank++)
		answer_rank(controller, job, membership, &entry->contacts[__builtin_ctzll(seats)],
		            &answer);
}

/* Remembers where to answer each seat. */
static void note_contact(struct membership_entry *entry, const struct ask *ask,
                         const struct contact *contact)
{
	for (unsigned i = 0; i < SEATS_MAX; i++)
		if (entry->membership.seats[i].nonce == ask->nonce)
			entry->contacts[i] = *contact;
}

/* The address without its port. */
static void host_text(const struct udp_address *address, char *out, socklen_t size)
{
	if (getnameinfo((const void *)&address->storage, address->length, out, size, NULL, 0,
	                NI_NUMERICHOST))
		*out = '\0';
}

/* Where the rank listens for a ring; family 0: nowhere. */
static struct ring_seat ring_seat_of(const struct wire_join *join)
{
	const struct wire_hop *hop = &join->up[0];
	struct ring_seat seat = { .family = hop->family,
		                  .port = hop->port,
		                  .rdma = hop->rdma == 1,
		                  .payload = join->payload };

	if (!join->hops || (hop->family != 4 && hop->family != 6) || !hop->port ||
	    join->payload < WIRE_PAYLOAD_MIN || join->payload > WIRE_PAYLOAD_MAX)
		return (struct ring_seat){ 0 };
	memcpy(seat.address, hop->address, sizeof(seat.address));
	return seat;
}

/* Until a rank's address is proven, it gets a token, and no plan. */
static void answer_token(struct controller *controller, const struct wire_control *join,
                         const struct contact *contact)
{
	struct packet packet = { .header = { .type = WIRE_WELCOME,
		                             .cookie = join->cookie,
		                             .job = join->job,
		                             .child = contact->child,
		                             .token = token_of(controller, contact) } };

	packet.welcome.verdict = WIRE_WAIT;
	send_part(controller, &packet, contact, "", 0);
}

/* The sender learns what is wrong, by a packet that is no longer than its own. */
static void refuse_stranger(struct controller *controller, const struct packet *packet,
                            const struct contact *contact)
{
	struct packet answer = { .header = { .type = WIRE_WELCOME,
		                             .cookie = packet->header.cookie,
		                             .job = packet->header.job,
		                             .child = contact->child,
		                             .pos = packet->join.nonce & WIRE_POSITION_MASK } };
	uint64_t count;
	char from[64];

	controller->counts[COUNT_DROPS]++;
	controller->strangers.count++;
	count = tally_due(&controller->strangers, clock_now());
	if (count)
		log_warn("%llu JOINs of unknown jobs or with a wrong cookie were refused, the last "
		         "one from %s for job %u",
		         (unsigned long long)count, udp_text(&contact->from, from, sizeof(from)),
		         packet->header.job);
	if (contact->bytes < WIRE_CONTROL + sizeof(answer.welcome))
		return;
	answer.welcome.verdict = WIRE_REFUSED;
	snprintf(answer.welcome.text, sizeof(answer.welcome.text),
	         "job %u has ended or never began here, or its cookie is not the one in "
	         "TRIB_COOKIE",
	         packet->header.job);
	send_packet(controller, &answer, WIRE_CONTROL + sizeof(answer.welcome), &contact->from);
}

static void take_join(struct controller *controller, const struct packet *packet,
                      const struct contact *contact)
{
	const struct wire_join *join = &packet->join;
	struct job_entry *job = controller->jobs[packet->header.job];
	struct membership_entry *entry;
	struct answer answer;
	struct ask ask = { .rank = join->rank,
		           .size = join->size,
		           .generation = join->generation,
		           .timeout_ms = join->timeout_ms,
		           .pid = join->pid,
		           .pool_bytes = join->pool_bytes,
		           .tcp = join->tcp == 1,
		           .wire = join->wire,
		           .ring = ring_seat_of(join),
		           .nonce = join->nonce,
		           .lost = join->covers };

	if (!job || job->cookie != packet->header.cookie) {
		refuse_stranger(controller, packet, contact);
		return;
	}
	if (!address_is_proven(&controller->address_secret, &contact->from, packet->header.token)) {
		answer_token(controller, &packet->header, contact);
		return;
	}
	controller->counts[COUNT_JOINS]++;
	host_lease_hear(job, clock_now());
	peer_name(ask.host, sizeof(ask.host), join->host, sizeof(join->host));
	host_text(&contact->from, ask.where, sizeof(ask.where));
	entry = job_table_membership(controller, job, join->key);
	if (!entry)
		return;
	if (plan_server_ask(controller, entry, &ask, clock_now(), &answer) != TRIB_OK) {
		/* The disk may be full for a while only: the rank waits, and knows what for. */
		answer.kind = ANSWER_WAIT;
		answer.changed = false;
		snprintf(answer.sentence, sizeof(answer.sentence),
		         "it cannot store the plan, so it gives none out: %s", trib_last_error());
	}
	note_contact(entry, &ask, contact);
	if (answer.changed) {
		controller->counts[COUNT_PLANS]++;
		answer_members(controller, job, entry);
		return;
	}
	if (answer.kind == ANSWER_REFUSE) {
		controller->counts[COUNT_REFUSALS]++;
		log_warn("refused a worker: %s", answer.sentence);
	}
	answer_rank(controller, job, &entry->membership, contact, &answer);
}

/* A goodbye ends the job's own communicator; those of trib_split end with it. */
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

	/* The job may have ended already: a goodbye is confirmed all the same. */
	if (header->cookie != secret_cookie(&controller->secret, header->job) ||
	    header->flags & WIRE_ECHO) {
		controller->counts[COUNT_DROPS]++;
		return;
	}
	if (!job || plan_server_leave(controller, job, wire_position(header)) == TRIB_OK)
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

static void query_node(struct controller *controller, struct node *node, uint64_t now)
{
	struct packet packet = { .header = { .type = WIRE_QUERY,
		                             .cookie = secret_cookie(&controller->secret, 0) } };
	struct udp_address to;

	/* This is an address, not a name: there is no lookup. */
	if (now < node->queried_at + QUERY_EVERY ||
	    udp_resolve(node->report.address, UDP_DEFAULT_PORT, &to) != TRIB_OK)
		return;
	node->queried_at = now;
	send_packet(controller, &packet, WIRE_QUERY_BYTES, &to);
}

/* While a plan is broken: the next one needs to know which aggregators live. */
static void query_suspects(struct controller *controller, const struct membership *membership,
                           uint64_t now)
{
	if (!membership->since || !membership->generation)
		return;
	for (unsigned i = 0; i < controller->nodes.n; i++) {
		struct node *node = controller->nodes.all[i];

		if (node->confirmed_at < membership->since &&
		    node_state(node, now, &controller->limits) <= NODE_LOADED &&
		    planner_suspects(&controller->nodes, membership->plan, node))
			query_node(controller, node, now);
	}
}

static void query_all(struct controller *controller)
{
	uint64_t now = clock_now();

	for (unsigned id = 0; id < JOBS_MAX; id++) {
		const struct job_entry *job = controller->jobs[id];

		for (const struct membership_entry *at = job ? job->memberships : NULL; at;
		     at = at->next)
			if (now < at->asked_at + NSEC_PER_SEC)
				query_suspects(controller, &at->membership, now);
	}
}

/* ---- questions ---- */

/* A silent aggregator of the plan; "": none is known. */
static const char *silent_one(struct controller *controller, const char *plan, uint64_t now)
{
	const char *silent = "";
	struct node *node;
	bool ask;

	while ((node = plan_node(&controller->nodes, &plan))) {
		if (node_suspect(node, now, &ask))
			silent = node->report.address;
		if (ask)
			query_node(controller, node, now);
	}
	return silent;
}

/*
 * Answers a worker's question about its communicator: do ranks wait to join, have others given up
 * the plan, is an aggregator that does not answer dead?
 */
static void take_query(struct controller *controller, const struct packet *query,
                       const struct contact *contact)
{
	struct job_entry *job = controller->jobs[query->header.job];
	struct membership_entry *entry = job ? job->memberships : NULL;
	struct packet packet = { .header = { .type = WIRE_ANSWER,
		                             .cookie = query->header.cookie,
		                             .job = query->header.job,
		                             .pos = query->header.pos } };
	uint64_t now = clock_now();
	uint32_t bytes;
	int length;

	if (!job || job->cookie != query->header.cookie) {
		controller->counts[COUNT_DROPS]++;
		return;
	}
	host_lease_hear(job, now);
	while (entry &&
	       (entry->membership.key & WIRE_POSITION_MASK) != wire_position(&query->header))
		entry = entry->next;
	if (entry && query->header.child)
		membership_see(&entry->membership, query->header.child - 1u, now);
	length = snprintf(packet.text, 512,
	                  "{\"controller\":true,\"job\":%u,\"generation\":%u,\"members\":%llu,"
	                  "\"waiting\":%llu,\"silent\":\"%s\"}",
	                  job->job.id, entry ? entry->membership.generation : 0,
	                  entry ? (unsigned long long)entry->membership.members : 0,
	                  entry ? (unsigned long long)membership_waiting(&entry->membership, now)
	                        : 0,
	                  entry ? silent_one(controller, entry->membership.plan, now) : "");
	bytes = WIRE_CONTROL + (((uint32_t)length + 8) & ~7u);
	if (bytes <= contact->bytes) /* a forged sender gets no more than was sent */
		send_packet(controller, &packet, bytes, &contact->from);
}

/* ---- the thread ---- */

static void take_turn(struct controller *controller, const struct wire_control *header,
                      const struct udp_address *from)
{
	struct job_entry *job = controller->jobs[header->job];

	if (job && job->cookie == header->cookie)
		host_lease_hear(job, clock_now());
	turn_server_take(controller, header, from);
}

static bool take_one(struct controller *controller)
{
	static _Alignas(8) struct packet packet;
	struct contact contact = { .from.length = sizeof(contact.from.storage) };
	ssize_t bytes = recvfrom(controller->fd, &packet, sizeof(packet), MSG_DONTWAIT,
	                         (void *)&contact.from.storage, &contact.from.length);

	if (bytes < 0)
		return false;
	contact.bytes = (uint32_t)bytes;
	contact.child = packet.header.child;
	pthread_mutex_lock(&controller->lock);
	switch (wire_parse(&packet, (size_t)bytes) == WIRE_SOUND ? packet.header.type : 0) {
	case WIRE_JOIN:
		take_join(controller, &packet, &contact);
		break;
	case WIRE_BYE:
		take_bye(controller, &packet.header, &contact.from);
		break;
	case WIRE_QUERY:
		take_query(controller, &packet, &contact);
		break;
	case WIRE_ANSWER:
		take_answer(controller, &packet, &contact.from);
		break;
	case WIRE_TURN:
		take_turn(controller, &packet.header, &contact.from);
		break;
	default:
		controller->counts[COUNT_DROPS]++;
	}
	pthread_mutex_unlock(&controller->lock);
	return true;
}

static void *worker_server_main(void *context)
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
			shares = turn_server_tick(controller, turn_at);
			pthread_mutex_unlock(&controller->lock);
		}
		if (clock_now() < tick_at + TICK_MS * 1000000ull)
			continue;
		tick_at = clock_now();
		pthread_mutex_lock(&controller->lock);
		query_all(controller);
		job_table_tick(controller, tick_at);
		pthread_mutex_unlock(&controller->lock);
	}
	return NULL;
}

trib_status worker_server_open(struct controller *controller, const struct udp_address *listen)
{
	const struct udp_options options = { .receive_bytes = 4 << 20, .send_bytes = 1 << 20 };
	trib_status status;
	bool gso;

	if ((status = udp_open(listen, NULL, &options, &controller->fd, &gso)) != TRIB_OK)
		return status;
	if (pthread_create(&controller->worker_thread, NULL, worker_server_main, controller))
		return status_fail(TRIB_ERR_SYSTEM, "cannot start the controller's thread");
	controller->worker_thread_runs = true;
	return TRIB_OK;
}

void worker_server_close(struct controller *controller)
{
	controller->stop = true;
	if (controller->worker_thread_runs)
		pthread_join(controller->worker_thread, NULL);
	if (controller->fd >= 0)
		close(controller->fd);
}
