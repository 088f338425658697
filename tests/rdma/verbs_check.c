/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verbs_check: a plain RDMA program that knows every byte. A client sends messages to a server by
 * WRITE, WRITE with immediate, SEND and READ, in random order and of random lengths. Both ends draw
 * the plan from one seed, so each knows what has to come. It checks:
 *   - every byte, at the end where it arrives;
 *   - that a completion comes for each work request, once, in the order of posting;
 *   - that a WRITE is in place when the next SEND or immediate value has come, as verbs promise.
 * The program knows nothing of the library that tests preload under it.
 *
 * Exit codes: 0: all was right; 1: something was wrong; 2: wrong usage, or no connection; 3: the
 * connection broke, and every work request ended once, in order, from some point on with an error.
 */
#include <getopt.h>
#include <inttypes.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/random_bits.h"

#define PORT "18600"
#define ERRORS_WITHIN 60 /* seconds until all work requests of a broken connection have ended */
#define RETRIES 3        /* soft-RoCE takes 7 for "never give up" */
#define LAST UINT32_MAX  /* the immediate value of the client's last message */

enum op { WRITE, WRITE_IMM, SEND, READ, OPS };
static const char *const op_names[OPS] = { "write", "imm", "send", "read" };

/* What the client tells the server when it connects. */
struct plan {
	uint64_t seed;
	uint32_t depth; /* messages between posting and the server's credit */
	uint32_t max;   /* bytes of the longest message */
	uint32_t ops;   /* a bit for each enum op */
};

/* What the server answers: where its memory is. */
struct memory {
	uint64_t address;
	uint32_t rkey;
};

static struct {
	const char *address, *from;
	double seconds;
	bool events; /* sleep until a completion comes, instead of polling */
	struct plan plan;
} options = { .seconds = 5,
	      .plan = { .seed = 1, .depth = 16, .max = 256 << 10, .ops = (1u << OPS) - 1 } };

static struct rdma_cm_id *id;
/* Both ends have `depth` places for messages by number, `depth` buffers for receives, and one place
 * for READs. */
static uint8_t *places;
static struct ibv_mr *mr;
static struct memory far;
static uint64_t bytes, sent_ended, received_ended, receives_posted;
static bool broken;

static void die(int code, const char *what)
{
	fprintf(stderr, "verbs_check: %s: %m\n", what);
	exit(code);
}

static void wrong(const char *what, uint64_t number, uint64_t got, uint64_t expected)
{
	printf("FAILED: %s of message %" PRIu64 " is wrong: %" PRIu64 " instead of %" PRIu64 "\n",
	       what, number, got, expected);
	exit(1);
}

static uint64_t drawn(uint64_t number, unsigned what)
{
	return bits_mix(options.plan.seed * 3 + number * 8 + what);
}

/* Half of the slots have passed since the last message that the server notices at the latest. */
static enum op op_of(uint64_t number)
{
	unsigned half = options.plan.depth / 2;
	enum op op = drawn(number, 0) % OPS;

	if (number % half == half - 1)
		return options.plan.ops & 1u << WRITE_IMM ? WRITE_IMM : SEND;
	while (!(options.plan.ops & 1u << op))
		op = (op + 1) % OPS;
	return op;
}

static uint32_t length_of(uint64_t number)
{
	uint64_t bits = drawn(number, 1);

	return 8 + (bits >> 8) % (bits % 4 ? options.plan.max - 7 : 64);
}

static bool is_noticed(enum op op)
{
	return op == WRITE_IMM || op == SEND;
}

/* The content follows from the message's number alone. READs are of a message that never changes.
 */
static void fill(uint8_t *to, uint64_t number, uint32_t length)
{
	uint64_t state = drawn(number, 2), word;
	uint32_t i;

	for (i = 0; i < length; i += 8) {
		word = random_next(&state);
		memcpy(to + i, &word, length - i < 8 ? length - i : 8);
	}
}

static void compare(const uint8_t *at, uint64_t number, uint64_t content, uint32_t length,
                    const char *what)
{
	uint64_t state = drawn(content, 2), word, found;
	uint32_t i, n;

	for (i = 0; i < length; i += 8) {
		word = random_next(&state);
		found = word;
		n = length - i < 8 ? length - i : 8;
		memcpy(&found, at + i, n);
		if (found != word) {
			printf("FAILED: %s %" PRIu64 " of %u bytes is wrong at byte %u\n", what,
			       number, length, i);
			exit(1);
		}
	}
	bytes += length;
}

static size_t place_of(uint64_t number)
{
	return number % options.plan.depth * options.plan.max;
}

static size_t receive_place(uint64_t number)
{
	return (options.plan.depth + number % (2 * options.plan.depth)) * (size_t)options.plan.max;
}

static size_t read_place(void)
{
	return 3ul * options.plan.depth * options.plan.max;
}

static size_t credit_place(uint64_t number)
{
	return read_place() + options.plan.max + number % (2 * options.plan.depth) * 8;
}

static void make_places(void)
{
	size_t size = read_place() + options.plan.max + 2ul * options.plan.depth * 8;

	places = calloc(1, size);
	if (!places)
		die(2, "memory");
	mr = ibv_reg_mr(id->pd, places, size,
	                IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
	if (!mr)
		die(2, "ibv_reg_mr");
	fill(places + read_place(), UINT64_MAX, options.plan.max);
}

static void post_receive(void)
{
	uint64_t number = receives_posted++;

	if (rdma_post_recv(id, (void *)(uintptr_t)number, places + receive_place(number),
	                   options.plan.max, mr))
		die(1, "ibv_post_recv");
}

static void post(enum ibv_wr_opcode opcode, uint64_t number, size_t place, uint32_t length,
                 uint32_t imm)
{
	struct ibv_sge sge = { (uintptr_t)places + place, length, mr->lkey };
	struct ibv_send_wr wr = { .wr_id = number,
		                  .sg_list = &sge,
		                  .num_sge = 1,
		                  .opcode = opcode,
		                  .send_flags = IBV_SEND_SIGNALED,
		                  .imm_data = htobe32(imm) },
			   *bad;

	wr.wr.rdma.rkey = far.rkey;
	wr.wr.rdma.remote_addr = far.address + (opcode == IBV_WR_RDMA_READ ? read_place() : place);
	if (ibv_post_send(id->qp, &wr, &bad))
		die(1, "ibv_post_send");
}

/* completion CQ WC: false if there is none now. */
static bool completion(struct ibv_cq *cq, struct ibv_wc *wc)
{
	int n = ibv_poll_cq(cq, 1, wc);

	if (n < 0)
		die(1, "ibv_poll_cq");
	return n == 1;
}

/* In order, each once. After an error of a request to send, only errors come. Completions of the
 * two queues have no order between them: a receive may be flushed before a SEND is known to have
 * arrived. */
static void note_ended(const struct ibv_wc *wc, uint64_t *ended, const char *what)
{
	static bool send_failed;

	if (wc->wr_id != *ended)
		wrong(what, *ended, wc->wr_id, *ended);
	if (ended == &sent_ended && wc->status == IBV_WC_SUCCESS && send_failed)
		wrong("success after an error", *ended, 0, 1);
	send_failed |= ended == &sent_ended && wc->status != IBV_WC_SUCCESS;
	if (wc->status != IBV_WC_SUCCESS && !broken) {
		printf("%s %" PRIu64 " ended with: %s\n", what, *ended,
		       ibv_wc_status_str(wc->status));
		broken = true;
	}
	++*ended;
}

static void sleep_until_event(void)
{
	struct pollfd fds[2] = { { .fd = id->send_cq_channel->fd, .events = POLLIN },
		                 { .fd = id->recv_cq_channel->fd, .events = POLLIN } };
	struct ibv_cq *cq;
	void *context;
	unsigned i;

	/* The caller has polled before. What has come since is found by the timeout at the latest.
	 */
	ibv_req_notify_cq(id->send_cq, 0);
	ibv_req_notify_cq(id->recv_cq, 0);
	if (poll(fds, 2, 100) <= 0)
		return;
	for (i = 0; i < 2; i++)
		if (fds[i].revents &&
		    !ibv_get_cq_event(i ? id->recv_cq_channel : id->send_cq_channel, &cq, &context))
			ibv_ack_cq_events(cq, 1);
}

static void rest(void)
{
	if (options.events)
		sleep_until_event();
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

/* The connection broke: all that was posted has to end. */
static int wait_for_errors(uint64_t posted)
{
	double until = now() + ERRORS_WITHIN;
	struct ibv_wc wc;

	while (sent_ended < posted || received_ended < receives_posted) {
		if (completion(id->send_cq, &wc))
			note_ended(&wc, &sent_ended, "work request");
		else if (completion(id->recv_cq, &wc))
			note_ended(&wc, &received_ended, "receive");
		else if (now() > until)
			wrong("the end", sent_ended,
			      posted - sent_ended + receives_posted - received_ended, 0);
	}
	printf("the connection broke: %" PRIu64 " work requests and %" PRIu64
	       " receives ended, each once\n",
	       posted, receives_posted);
	return 3;
}

static int report(const char *who, uint64_t messages)
{
	printf("%s: %" PRIu64 " messages, %" PRIu64 " bytes, all right\n", who, messages, bytes);
	fflush(stdout);
	return 0;
}

/* ---- server ---- */

/* Message `number` has come, and all before it that this end is not told of. */
static uint64_t check_arrivals(uint64_t next, uint64_t number, const uint8_t *received)
{
	for (; next <= number; next++) {
		enum op op = op_of(next);

		if (op == WRITE || op == WRITE_IMM)
			compare(places + place_of(next), next, next, length_of(next), op_names[op]);
		else if (op == SEND)
			compare(received, next, next, length_of(next), op_names[op]);
	}
	return next;
}

static uint64_t next_noticed(uint64_t next)
{
	while (!is_noticed(op_of(next)))
		next++;
	return next;
}

/* The client closes the connection. If this end did, the client's last message might never be
 * acknowledged. */
static int last_words(uint64_t messages)
{
	struct pollfd fd = { .fd = id->channel->fd, .events = POLLIN };

	poll(&fd, 1, 10000);
	return report("server", messages);
}

/* A receive has ended. Returns how many messages have come now. */
static uint64_t take_arrival(const struct ibv_wc *wc, uint64_t next, const uint8_t *received)
{
	uint64_t noticed = next_noticed(next);

	if (wc->wc_flags & IBV_WC_WITH_IMM && be32toh(wc->imm_data) != (uint32_t)noticed)
		wrong("the immediate value", noticed, be32toh(wc->imm_data), noticed);
	if (wc->byte_len != length_of(noticed))
		wrong("the length", noticed, wc->byte_len, length_of(noticed));
	return check_arrivals(next, noticed, received);
}

/* The credit says how many messages have come. */
static void send_credit(uint64_t credit, uint64_t messages)
{
	memcpy(places + credit_place(credit), &messages, sizeof(messages));
	post(IBV_WR_SEND, credit, credit_place(credit), sizeof(messages), 0);
}

static int serve(void)
{
	uint64_t messages = 0, number, credits = 0;
	struct ibv_wc wc;

	while (!broken) {
		if (completion(id->send_cq, &wc)) {
			note_ended(&wc, &sent_ended, "credit");
		} else if (completion(id->recv_cq, &wc)) {
			number = received_ended;
			note_ended(&wc, &received_ended, "receive");
			if (broken)
				break;
			if (wc.wc_flags & IBV_WC_WITH_IMM && be32toh(wc.imm_data) == LAST)
				return last_words(messages);
			messages = take_arrival(&wc, messages, places + receive_place(number));
			post_receive();
			send_credit(credits++, messages);
		} else {
			rest();
		}
	}
	return wait_for_errors(credits);
}

/* ---- client ---- */

static void post_message(uint64_t number)
{
	static const enum ibv_wr_opcode opcodes[OPS] = { IBV_WR_RDMA_WRITE,
		                                         IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_SEND,
		                                         IBV_WR_RDMA_READ };
	enum op op = op_of(number);
	uint8_t *place = places + place_of(number);

	if (op == READ)
		memset(place, 0, length_of(number));
	else
		fill(place, number, length_of(number));
	post(opcodes[op], number, place_of(number), length_of(number), (uint32_t)number);
}

static int converse(void)
{
	uint64_t posted = 0, credited = 0, reported = 0, stop = UINT64_MAX;
	double until = now() + options.seconds;
	struct ibv_wc wc;

	while (!broken && (posted < stop || sent_ended < posted || credited < stop)) {
		/* The last message is one that the server notices. */
		if (stop == UINT64_MAX && now() > until)
			stop = next_noticed(posted) + 1;
		if (posted < stop && posted < credited + options.plan.depth &&
		    posted < sent_ended + options.plan.depth) {
			post_message(posted++);
		} else if (completion(id->send_cq, &wc)) {
			note_ended(&wc, &sent_ended, "work request");
			if (!broken && op_of(wc.wr_id) == READ)
				compare(places + place_of(wc.wr_id), wc.wr_id, UINT64_MAX,
				        length_of(wc.wr_id), "read");
		} else if (completion(id->recv_cq, &wc)) {
			reported = received_ended;
			note_ended(&wc, &received_ended, "receive");
			memcpy(&credited, places + receive_place(reported), sizeof(credited));
			if (!broken)
				post_receive();
		} else {
			rest();
		}
	}
	if (broken)
		return wait_for_errors(posted);
	post(IBV_WR_SEND_WITH_IMM, posted++, 0, 8, LAST);
	while (!completion(id->send_cq, &wc))
		rest();
	note_ended(&wc, &sent_ended, "work request");
	return broken ? wait_for_errors(posted) : report("client", posted);
}

/* ---- the connection ---- */

static void make_endpoint(bool passive, struct rdma_addrinfo **found, struct rdma_cm_id **made)
{
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP,
		                       .ai_flags = passive ? RAI_PASSIVE : 0 },
			     *own;
	struct ibv_qp_init_attr attr = { .cap = { 64, 64, 1, 1, 0 },
		                         .sq_sig_all = 0,
		                         .qp_type = IBV_QPT_RC };

	attr.cap.max_send_wr = attr.cap.max_recv_wr = 4 * options.plan.depth;
	if (options.from) {
		struct rdma_addrinfo bound = { .ai_port_space = RDMA_PS_TCP,
			                       .ai_flags = RAI_PASSIVE };

		if (rdma_getaddrinfo(options.from, NULL, &bound, &own))
			die(2, options.from);
		hints.ai_src_addr = own->ai_src_addr;
		hints.ai_src_len = own->ai_src_len;
	}
	if (rdma_getaddrinfo(options.address, PORT, &hints, found) ||
	    rdma_create_ep(made, *found, NULL, &attr))
		die(2, options.address);
}

static void accept_client(void)
{
	struct memory own;
	struct rdma_conn_param parameters = { .responder_resources = 16,
		                              .initiator_depth = 16,
		                              .retry_count = RETRIES,
		                              .rnr_retry_count = 7,
		                              .private_data = &own,
		                              .private_data_len = sizeof(own) };
	struct rdma_cm_id *listener;
	struct rdma_addrinfo *found;
	unsigned i;

	make_endpoint(true, &found, &listener);
	if (rdma_listen(listener, 1) || rdma_get_request(listener, &id))
		die(2, "no client");
	memcpy(&options.plan, id->event->param.conn.private_data, sizeof(options.plan));
	if (options.plan.depth < 4 || options.plan.depth > 1000 || options.plan.max < 64 ||
	    options.plan.max > 64 << 20)
		die(2, "the client's plan");
	make_places();
	for (i = 0; i < 2 * options.plan.depth; i++)
		post_receive();
	own = (struct memory){ (uintptr_t)places, mr->rkey };
	if (rdma_accept(id, &parameters))
		die(2, "rdma_accept");
}

static void connect_to_server(void)
{
	struct rdma_conn_param parameters = { .responder_resources = 16,
		                              .initiator_depth = 16,
		                              .retry_count = RETRIES,
		                              .rnr_retry_count = 7,
		                              .private_data = &options.plan,
		                              .private_data_len = sizeof(options.plan) };
	struct rdma_addrinfo *found;
	unsigned i;

	make_endpoint(false, &found, &id);
	make_places();
	for (i = 0; i < 2 * options.plan.depth; i++)
		post_receive();
	if (rdma_connect(id, &parameters))
		die(2, "rdma_connect");
	memcpy(&far, id->event->param.conn.private_data, sizeof(far));
}

static void parse_ops(char *list)
{
	char *name, *state = NULL;
	unsigned op;

	options.plan.ops = 0;
	for (name = strtok_r(list, ",", &state); name; name = strtok_r(NULL, ",", &state))
		for (op = 0; op < OPS; op++)
			if (!strcmp(name, op_names[op]))
				options.plan.ops |= 1u << op;
}

static int usage(void)
{
	fprintf(stderr, "usage: verbs_check server ADDRESS [--events]\n"
	                "       verbs_check client ADDRESS [--from ADDRESS] [--seconds S] [--seed "
	                "N] [--max BYTES]\n"
	                "                   [--depth N] [--ops write,imm,send,read] [--events]\n");
	return 2;
}

int main(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "from", 1, NULL, 'f' },   { "seconds", 1, NULL, 's' }, { "seed", 1, NULL, 'r' },
		{ "max", 1, NULL, 'm' },    { "depth", 1, NULL, 'd' },   { "ops", 1, NULL, 'o' },
		{ "events", 0, NULL, 'e' }, { NULL, 0, NULL, 0 }
	};
	int option;

	while ((option = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		switch (option) {
		case 'f':
			options.from = optarg;
			break;
		case 's':
			options.seconds = strtod(optarg, NULL);
			break;
		case 'r':
			options.plan.seed = strtoull(optarg, NULL, 0);
			break;
		case 'm':
			options.plan.max = (uint32_t)strtoul(optarg, NULL, 0);
			break;
		case 'd':
			options.plan.depth = (uint32_t)strtoul(optarg, NULL, 0);
			break;
		case 'o':
			parse_ops(optarg);
			break;
		case 'e':
			options.events = true;
			break;
		default:
			return usage();
		}
	}
	if (argc - optind != 2 || !options.plan.ops)
		return usage();
	options.address = argv[optind + 1];
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!strcmp(argv[optind], "server")) {
		accept_client();
		option = serve();
	} else {
		connect_to_server();
		printf("seed %" PRIu64 "\n", options.plan.seed);
		option = converse();
	}
	rdma_disconnect(id);
	return option;
}
