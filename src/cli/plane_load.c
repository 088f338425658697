/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/plane_load.h"

#include "base/clock.h"
#include "cli/plane_join.h"
#include "path/tcp.h"
#include "wire/frame.h"

#include <errno.h>
#include <math.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BATCH 44u              /* packets in a send: 64 KB */
#define RING (1u << 16)        /* fragments that are remembered */
#define LOST_NS 10000000ull    /* silence that long with the window full: they are lost */
#define DRAIN_NS 50000000ull   /* after the last one */
#define REPORT_NS 200000000ull /* heartbeats */
#define CHECKS_MAX (12u << 20) /* packets of which the checksum is made before */
#define RATE_GUESS 2500000.0   /* packets a second, where the rate is not limited */
#define WINDOW 96u             /* fragments under way; a veth's ring has 256 packets */
#define WINDOW_TCP 512u        /* nothing is lost: the fewest that fill its core */
#define WORD 0x100000001ull    /* the same in both halves */

/* Latencies in steps of 1/32 of their size, from 64 ns to 2 minutes. */
#define STEPS 32u
#define BUCKETS (32u * STEPS)

enum fragment_state { FRAGMENT_NONE, FRAGMENT_SENT, FRAGMENT_LOST };

struct fragment {
	uint64_t position, sent_at;
	enum fragment_state state;
};

struct load_lane {
	struct load *load;
	unsigned index;
	pthread_t thread;
	bool started;
	int fds[LOAD_CHILDREN_MAX];
	struct udp_rx *rx;
	struct tcp_rx bytes;
	struct tcp_tail tails[LOAD_CHILDREN_MAX];
	uint64_t sent[LOAD_CHILDREN_MAX]; /* bytes of the stream, or positions */
	uint64_t next;                    /* the first position that not all children have sent */
	uint64_t done;                    /* fragments that are not under way any more */
	uint64_t progress_at, report_at;
	struct fragment *ring;
	uint32_t *checks; /* of position checks_from + i / children, child i % children */
	uint64_t checks_from, n_checks;
	struct wire_header headers[BATCH];
	struct iovec vectors[2 * BATCH];
	uint32_t *latencies;
	_Atomic uint64_t packets, fragments, results, copies, wrong, repeated;
};

struct load {
	struct load_options options;
	struct wire_welcome welcome;
	struct load_lane lanes[LOAD_LANES_MAX];
	uint32_t bytes, stride; /* of payload; of a packet */
	uint64_t *payloads[LOAD_CHILDREN_MAX];
	uint64_t total; /* the sum of all children's factors */
	double rate, seconds;
	pthread_barrier_t ready;
	_Atomic bool stop, note;
};

/* ---- packets ---- */

/* Always the same for a position, so that it can be sealed before, and again when cut in two. */
static void header_make(const struct load_lane *lane, unsigned child, uint64_t position,
                        struct wire_header *header)
{
	const struct load *load = lane->load;
	uint64_t behind = load->welcome.cells / 2;

	*header = (struct wire_header){
		.magic = WIRE_MAGIC,
		.type = WIRE_DATA,
		.cookie = load->welcome.cookie,
		.job = PLANE_JOB,
		.comm = load->welcome.comm,
		.epoch = load->welcome.epoch,
		.child = (uint8_t)child,
		.op = WIRE_ADD64,
		.pos = wire_pos(lane->index, position),
		.ack = (uint32_t)(position > behind ? position - behind : 0),
		.from = WIRE_ALL,
		.to = load->options.to_all ? WIRE_ALL : 0,
	};
}

static uint32_t packet_check(const struct load_lane *lane, unsigned child, uint64_t position,
                             uint64_t *packet)
{
	header_make(lane, child, position, (void *)packet);
	wire_seal(packet, lane->load->stride);
	return ((struct wire_header *)(void *)packet)->check;
}

static void packet_of(const struct load_lane *lane, unsigned child, uint64_t *packet)
{
	memcpy(packet + WIRE_HEADER / 8, lane->load->payloads[child], lane->load->bytes);
}

/* The checksums of what will be sent, as far as memory goes. */
static void checks_prepare(struct load_lane *lane)
{
	const struct load *load = lane->load;
	unsigned children = load->options.children;
	uint64_t packet[(WIRE_HEADER + WIRE_PAYLOAD_MAX) / 8];
	double rate = load->rate > 0 ? load->rate * children * 1.1 : RATE_GUESS;
	uint64_t n = load->rate < 0 ? 0 : (uint64_t)(rate * (load->seconds + 0.1));

	free(lane->checks);
	lane->checks = NULL;
	lane->n_checks = 0;
	if (load->options.tcp || !n)
		return;
	if (n > CHECKS_MAX)
		n = CHECKS_MAX;
	n -= n % children;
	lane->checks = malloc(n * sizeof(*lane->checks));
	if (!lane->checks)
		return;
	for (unsigned child = 0; child < children; child++) {
		packet_of(lane, child, packet);
		for (uint64_t i = child; i < n; i += children)
			lane->checks[i] =
				packet_check(lane, child, lane->next + i / children, packet);
	}
	lane->checks_from = lane->next;
	lane->n_checks = n;
}

/* For frames all children send the same: whose page it was before does not matter then. */
static uint32_t frame_packet(void *context, unsigned child, uint64_t position, void *packet)
{
	const struct load_lane *lane = context;

	packet_of(lane, 0, packet);
	packet_check(lane, child, position, packet);
	return lane->load->stride;
}

static void header_seal(const struct load_lane *lane, unsigned child, uint64_t position,
                        struct wire_header *header)
{
	uint64_t i = (position - lane->checks_from) * lane->load->options.children + child;
	uint64_t packet[(WIRE_HEADER + WIRE_PAYLOAD_MAX) / 8];

	header_make(lane, child, position, header);
	if (lane->load->options.tcp) {
		wire_seal_frame(header, lane->load->stride);
	} else if (position >= lane->checks_from && i < lane->n_checks) {
		header->check = lane->checks[i];
	} else {
		packet_of(lane, child, packet);
		header->check = packet_check(lane, child, position, packet);
	}
}

/* ---- sending ---- */

static void vectors_fill(struct load_lane *lane, unsigned child, uint64_t position, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		header_seal(lane, child, position + i, &lane->headers[i]);
		lane->vectors[2 * i] = (struct iovec){ &lane->headers[i], WIRE_HEADER };
		lane->vectors[2 * i + 1] =
			(struct iovec){ lane->load->payloads[child], lane->load->bytes };
	}
}

static int send_joined(const struct load_lane *lane, int fd, unsigned n)
{
	_Alignas(8) uint8_t control[CMSG_SPACE(sizeof(uint16_t))] = { 0 };
	struct msghdr message = { .msg_iov = (struct iovec *)(uintptr_t)lane->vectors,
		                  .msg_iovlen = 2 * n,
		                  .msg_control = control,
		                  .msg_controllen = sizeof(control) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&message);
	uint16_t segment = (uint16_t)lane->load->stride;

	c->cmsg_level = SOL_UDP;
	c->cmsg_type = UDP_SEGMENT;
	c->cmsg_len = CMSG_LEN(sizeof(segment));
	memcpy(CMSG_DATA(c), &segment, sizeof(segment));
	return sendmsg(fd, &message, MSG_DONTWAIT) < 0 ? -1 : (int)n;
}

static int send_singly(const struct load_lane *lane, int fd, unsigned n)
{
	struct mmsghdr messages[BATCH] = { 0 };

	for (unsigned i = 0; i < n; i++) {
		messages[i].msg_hdr.msg_iov = (struct iovec *)(uintptr_t)&lane->vectors[2 * i];
		messages[i].msg_hdr.msg_iovlen = 2;
	}
	return sendmmsg(fd, messages, n, MSG_DONTWAIT);
}

/* Datagrams of one child up to this position, as many as the socket takes. */
static void child_send(struct load_lane *lane, unsigned child, uint64_t until)
{
	while (lane->sent[child] < until) {
		uint64_t left = until - lane->sent[child];
		unsigned n = left < BATCH ? (unsigned)left : BATCH;
		int sent;

		vectors_fill(lane, child, lane->sent[child], n);
		sent = n > 1 && lane->load->options.gso ? send_joined(lane, lane->fds[child], n)
		                                        : send_singly(lane, lane->fds[child], n);
		if (sent <= 0)
			return;
		lane->sent[child] += (unsigned)sent;
		lane->packets += (unsigned)sent;
	}
}

/* Frames of one child; a socket may take a part of one. */
static void child_stream(struct load_lane *lane, unsigned child, uint64_t until)
{
	uint32_t stride = lane->load->stride;

	while (lane->sent[child] < until * stride) {
		uint64_t position = lane->sent[child] / stride, left = until - position;
		uint32_t cut = (uint32_t)(lane->sent[child] % stride);
		unsigned n = left < BATCH ? (unsigned)left : BATCH;
		struct iovec *first = lane->vectors;
		int64_t sent;

		vectors_fill(lane, child, position, n);
		if (cut >= WIRE_HEADER) {
			first++;
			cut -= WIRE_HEADER;
		}
		first->iov_base = (uint8_t *)first->iov_base + cut;
		first->iov_len -= cut;
		sent = tcp_send(lane->fds[child], first, (unsigned)(lane->vectors + 2 * n - first));
		if (sent <= 0)
			return;
		lane->sent[child] += (uint64_t)sent;
		lane->packets += lane->sent[child] / stride - position;
	}
}

/* Every child sends up to this position, as far as sockets take it. */
static void fragments_send(struct load_lane *lane, uint64_t until, uint64_t now)
{
	const struct load_options *o = &lane->load->options;
	uint64_t common = until;

	for (unsigned child = 0; child < o->children; child++) {
		uint64_t reached;

		/* The clock of a fragment starts with its last packet. */
		if (child == o->children - 1) {
			now = clock_now();
			for (uint64_t p = lane->next; p < until; p++)
				lane->ring[p % RING] = (struct fragment){ p, now, FRAGMENT_SENT };
		}
		if (o->tcp)
			child_stream(lane, child, until);
		else
			child_send(lane, child, until);
		reached = o->tcp ? lane->sent[child] / lane->load->stride : lane->sent[child];
		common = reached < common ? reached : common;
	}
	lane->fragments += common - lane->next;
	lane->next = common;
}

/* ---- receiving ---- */

static void latency_note(struct load_lane *lane, uint64_t ns)
{
	unsigned power = 0;
	uint64_t steps = ns / 2; /* the first full octave is 64 ns */

	while (steps >= 2 * STEPS) {
		steps >>= 1;
		power++;
	}
	if (steps >= STEPS)
		power++, steps -= STEPS;
	if (power < BUCKETS / STEPS)
		lane->latencies[power * STEPS + steps]++;
}

/* The middle of a bucket, in seconds. */
static double latency_of(unsigned bucket)
{
	unsigned power = bucket / STEPS, step = bucket % STEPS;

	if (!power)
		return 2e-9 * (step + 0.5);
	return 2e-9 * (STEPS + step + 0.5) * pow(2, power - 1);
}

static bool sum_is_right(const struct load_lane *lane, const struct wire_header *header,
                         uint32_t bytes)
{
	const struct load *load = lane->load;
	const uint64_t *words = (const uint64_t *)(header + 1);
	uint32_t n = load->bytes / 8, first = 0, step = 1;

	if (bytes != load->stride)
		return false;
	if (!load->options.check) { /* one word in each, another one each time */
		first = (uint32_t)(wire_position(header) % n);
		step = n;
	}
	for (uint32_t i = first; i < n; i += step)
		if (words[i] != (i + 1) * load->total * WORD)
			return false;
	return true;
}

static void result_take(struct load_lane *lane, unsigned child, const struct wire_header *header,
                        uint32_t bytes, uint64_t now)
{
	uint64_t position = wire_position(header);
	struct fragment *fragment = &lane->ring[position % RING];

	if (bytes < WIRE_HEADER || header->magic != WIRE_MAGIC || header->type != WIRE_RESULT)
		return;
	if (lane->load->options.check && !lane->load->options.tcp &&
	    wire_parse(header, bytes) != WIRE_SOUND) {
		lane->wrong++;
		return;
	}
	if (!sum_is_right(lane, header, bytes))
		lane->wrong++;
	if (child) {
		lane->copies++;
		return;
	}
	if (fragment->position != position || fragment->state == FRAGMENT_NONE) {
		lane->repeated++;
		return;
	}
	lane->results++;
	if (fragment->state == FRAGMENT_SENT)
		lane->done++;
	fragment->state = FRAGMENT_NONE;
	lane->progress_at = now;
	if (atomic_load_explicit(&lane->load->note, memory_order_relaxed))
		latency_note(lane, now - fragment->sent_at);
}

static int datagrams_take(struct load_lane *lane, unsigned child)
{
	int n = udp_receive(lane->rx, lane->fds[child]);
	uint64_t now = n > 0 ? clock_now() : 0;

	for (int i = 0; i < n; i++) {
		const struct udp_message *message = udp_message(lane->rx, i);

		for (uint32_t at = 0; at < message->bytes; at += message->segment) {
			uint32_t left = message->bytes - at;

			result_take(lane, child, (const void *)(message->data + at),
			            left < message->segment ? left : message->segment, now);
		}
	}
	return n;
}

static int stream_take(struct load_lane *lane, unsigned child)
{
	int n = tcp_receive(&lane->bytes, &lane->tails[child], lane->fds[child]);
	uint64_t now = n > 0 ? clock_now() : 0;
	uint32_t at = 0, bytes;

	if (n <= 0)
		return n;
	for (;; at += bytes) {
		const struct wire_header *header = (const void *)(lane->bytes.data + at);

		if (wire_frame(header, lane->bytes.bytes - at, &bytes) != WIRE_SOUND) {
			lane->wrong++;
			return -EPROTO;
		}
		if (!bytes)
			break;
		result_take(lane, child, header, bytes, now);
	}
	tcp_keep(&lane->bytes, &lane->tails[child], at);
	return n;
}

static bool results_take(struct load_lane *lane)
{
	const struct load_options *o = &lane->load->options;
	uint64_t before = lane->done;
	static const unsigned often = 1;

	for (unsigned child = 0; child < (o->to_all ? o->children : often); child++)
		while ((o->tcp ? stream_take(lane, child) : datagrams_take(lane, child)) > 0 &&
		       o->to_all)
			;
	return lane->done != before;
}

/* ---- a lane ---- */

static void reports_send(struct load_lane *lane, uint64_t now)
{
	const struct load_options *o = &lane->load->options;

	if (now < lane->report_at)
		return;
	lane->report_at = now + REPORT_NS;
	for (unsigned child = 0; child < o->children; child++) {
		uint64_t behind = lane->load->welcome.cells / 2;

		/* Not into the middle of a frame. */
		if (o->tcp && lane->sent[child] % lane->load->stride)
			continue;
		plane_report(lane->fds[child], o->tcp, &lane->load->welcome, child, lane->index,
		             lane->next > behind ? lane->next - behind : 0);
		/* Answers to those who get no results. */
		if (child && !o->to_all)
			o->tcp ? stream_take(lane, child) : datagrams_take(lane, child);
	}
}

static void give_up(struct load_lane *lane)
{
	for (uint64_t p = lane->next > RING ? lane->next - RING : 0; p < lane->next; p++)
		if (lane->ring[p % RING].position == p &&
		    lane->ring[p % RING].state == FRAGMENT_SENT)
			lane->ring[p % RING].state = FRAGMENT_LOST;
	lane->done = lane->next;
}

/* Up to which position may be sent now? */
static uint64_t window_end(const struct load_lane *lane)
{
	const struct load_options *o = &lane->load->options;
	uint64_t window = o->window;
	uint64_t most = lane->load->welcome.cells / 4;

	return lane->done + (window < most ? window : most);
}

static void run_flat_out(struct load_lane *lane)
{
	unsigned window = lane->load->options.window,
		 least = window / 4 < BATCH ? window / 4 : BATCH;

	lane->progress_at = clock_now();
	while (!atomic_load_explicit(&lane->load->stop, memory_order_relaxed)) {
		uint64_t now = clock_now(), end = window_end(lane);

		reports_send(lane, now);
		if (end >= lane->next + (least ? least : 1))
			fragments_send(lane, end, now);
		if (!results_take(lane) && now > lane->progress_at + LOST_NS &&
		    lane->next > lane->done) {
			give_up(lane);
			lane->progress_at = now;
		}
	}
}

/* Evenly; what could not be sent in time is sent behind. */
static void run_paced(struct load_lane *lane)
{
	double rate = lane->load->rate;
	uint64_t start = clock_now(), first = lane->next;
	uint64_t most = lane->load->welcome.cells / 4;

	most = most < RING / 2 ? most : RING / 2;
	lane->progress_at = start;
	while (!atomic_load_explicit(&lane->load->stop, memory_order_relaxed)) {
		uint64_t now = clock_now();
		uint64_t due = first + (uint64_t)((double)(now - start) * 1e-9 * rate);

		reports_send(lane, now);
		if (due > lane->next + BATCH)
			due = lane->next + BATCH;
		if (due > lane->done + most)
			due = lane->done + most;
		if (due > lane->next)
			fragments_send(lane, due, now);
		if (!results_take(lane) && now > lane->progress_at + LOST_NS &&
		    lane->next > lane->done) {
			give_up(lane);
			lane->progress_at = now;
		}
	}
}

static void run_silent(struct load_lane *lane)
{
	while (!atomic_load_explicit(&lane->load->stop, memory_order_relaxed)) {
		const struct timespec nap = { .tv_nsec = 20000000 };

		reports_send(lane, clock_now());
		results_take(lane);
		nanosleep(&nap, NULL);
	}
}

/* A frame that is cut is brought to its end, and every child comes to the same position. */
static void drain(struct load_lane *lane)
{
	uint64_t until = clock_now() + DRAIN_NS, end = lane->next;

	for (unsigned child = 0; child < lane->load->options.children; child++) {
		uint32_t stride = lane->load->options.tcp ? lane->load->stride : 1;
		uint64_t reached = (lane->sent[child] + stride - 1) / stride;

		end = reached > end ? reached : end;
	}
	while (clock_now() < until && (lane->next < end || lane->done < lane->next)) {
		if (lane->next < end)
			fragments_send(lane, end, clock_now());
		if (results_take(lane))
			until = clock_now() + DRAIN_NS;
	}
}

static void no_signal(int signal)
{
	(void)signal;
}

static void run_frames(struct load_lane *lane, struct frames *frames)
{
	const struct frames_state *state = frames_state(frames);
	const struct timespec nap = { .tv_nsec = DRAIN_NS };
	unsigned block = FRAMES_BLOCK * lane->load->options.children;

	if (frames_run(frames) != TRIB_OK)
		lane->wrong++;
	nanosleep(&nap, NULL);
	lane->next += (state->sent + block - 1) / block * FRAMES_BLOCK;
	lane->done = lane->next;
	for (unsigned child = 0; child < lane->load->options.children; child++)
		lane->sent[child] = lane->next;
}

static void *lane_main(void *argument)
{
	struct load_lane *lane = argument;
	struct load *load = lane->load;
	struct frames *frames = load->options.frames[lane->index];
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(load->options.cores[lane->index], &set);
	pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
	if (!frames)
		checks_prepare(lane);
	else if (frames_prepare(frames, lane->next, load->welcome.cells / 2,
	                        load->options.children * WORD, frame_packet, lane) != TRIB_OK)
		lane->wrong++;
	memset(lane->latencies, 0, BUCKETS * sizeof(*lane->latencies));
	pthread_barrier_wait(&load->ready);
	if (frames)
		run_frames(lane, frames);
	else if (load->rate < 0)
		run_silent(lane);
	else if (load->rate > 0)
		run_paced(lane);
	else
		run_flat_out(lane);
	drain(lane);
	return NULL;
}

/* ---- all of them ---- */

static bool memory_get(struct load *load)
{
	for (unsigned child = 0; child < load->options.children; child++) {
		load->payloads[child] = aligned_alloc(64, (load->bytes + 63) & ~63u);
		if (!load->payloads[child])
			return false;
		load->total += child + 1;
		for (uint32_t i = 0; i < load->bytes / 8; i++)
			load->payloads[child][i] = (i + 1) * (child + 1) * WORD;
	}
	for (unsigned i = 0; i < load->options.lanes; i++) {
		struct load_lane *lane = &load->lanes[i];

		lane->ring = calloc(RING, sizeof(*lane->ring));
		lane->latencies = calloc(BUCKETS, sizeof(*lane->latencies));
		lane->rx = udp_rx_new(16);
		if (!lane->ring || !lane->latencies || !lane->rx || !tcp_rx_init(&lane->bytes))
			return false;
	}
	return true;
}

trib_status load_open(const struct load_options *options, struct load **out)
{
	struct load *load = calloc(1, sizeof(*load));
	trib_status status;

	if (!load)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for a load");
	load->options = *options;
	if (!options->window)
		load->options.window = options->tcp ? WINDOW_TCP : WINDOW;
	load->bytes = options->elements * 4;
	load->stride = WIRE_HEADER + load->bytes;
	for (unsigned i = 0; i < LOAD_LANES_MAX; i++) {
		load->lanes[i].load = load;
		load->lanes[i].index = i;
		for (unsigned child = 0; child < LOAD_CHILDREN_MAX; child++)
			load->lanes[i].fds[child] = -1;
	}
	status = memory_get(load) ? TRIB_OK
	                          : status_fail(TRIB_ERR_NO_MEMORY, "no memory for a load");
	if (status == TRIB_OK)
		status = plane_join(&load->options, &load->welcome);
	for (unsigned i = 0; i < options->lanes; i++)
		for (unsigned child = 0; child < options->children; child++)
			load->lanes[i].fds[child] = load->options.fds[i][child];
	if (status != TRIB_OK) {
		load_close(load);
		return status;
	}
	*out = load;
	return TRIB_OK;
}

void load_close(struct load *load)
{
	if (!load)
		return;
	for (unsigned i = 0; i < LOAD_LANES_MAX; i++) {
		struct load_lane *lane = &load->lanes[i];

		for (unsigned child = 0; child < LOAD_CHILDREN_MAX; child++)
			if (lane->fds[child] >= 0)
				close(lane->fds[child]);
		free(lane->ring);
		free(lane->latencies);
		free(lane->checks);
		udp_rx_free(lane->rx);
		tcp_rx_free(&lane->bytes);
	}
	for (unsigned child = 0; child < LOAD_CHILDREN_MAX; child++)
		free(load->payloads[child]);
	free(load);
}

uint32_t load_cells(const struct load *load)
{
	return load->welcome.cells;
}

trib_status load_start(struct load *load, double rate, double seconds)
{
	unsigned lanes = load->options.lanes;
	struct sigaction ignore = { .sa_handler = no_signal };

	sigaction(SIGUSR1, &ignore, NULL);
	load->rate = rate;
	load->seconds = seconds;
	load->stop = load->note = false;
	pthread_barrier_init(&load->ready, NULL, lanes + 1);
	for (unsigned i = 0; i < lanes; i++) {
		if (pthread_create(&load->lanes[i].thread, NULL, lane_main, &load->lanes[i]))
			return status_fail(TRIB_ERR_SYSTEM, "cannot start a thread for the load");
		load->lanes[i].started = true;
	}
	pthread_barrier_wait(&load->ready);
	return TRIB_OK;
}

void load_note(struct load *load)
{
	load->note = true;
}

void load_stop(struct load *load)
{
	load->stop = true;
	for (unsigned i = 0; i < LOAD_LANES_MAX; i++) {
		if (load->lanes[i].started && load->options.frames[i]) {
			frames_end(load->options.frames[i]);
			pthread_kill(load->lanes[i].thread, SIGUSR1);
		}
	}
	for (unsigned i = 0; i < LOAD_LANES_MAX; i++) {
		if (load->lanes[i].started)
			pthread_join(load->lanes[i].thread, NULL);
		load->lanes[i].started = false;
	}
	pthread_barrier_destroy(&load->ready);
}

static void count_tcp(const struct load_lane *lane, struct load_counts *sum)
{
	for (unsigned child = 0; child < lane->load->options.children; child++) {
		struct tcp_info info = { 0 };
		socklen_t length = sizeof(info);

		if (getsockopt(lane->fds[child], IPPROTO_TCP, TCP_INFO, &info, &length))
			continue;
		sum->retransmitted += info.tcpi_total_retrans;
		sum->segments += lane->sent[child] / (info.tcpi_snd_mss ? info.tcpi_snd_mss : 1);
	}
}

/* Since the last start. */
static void count_frames(const struct frames_state *state, unsigned children,
                         struct load_counts *sum)
{
	const volatile struct frames_state *now = state;

	sum->packets += now->sent;
	sum->fragments += now->sent / children;
	sum->results += now->results;
	sum->wrong += now->wrong;
}

void load_count(const struct load *load, struct load_counts *sum)
{
	*sum = (struct load_counts){ 0 };
	for (unsigned i = 0; i < load->options.lanes; i++) {
		const struct load_lane *lane = &load->lanes[i];

		if (load->options.frames[i])
			count_frames(frames_state(load->options.frames[i]), load->options.children,
			             sum);
		sum->packets += lane->packets;
		sum->fragments += lane->fragments;
		sum->results += lane->results;
		sum->copies += lane->copies;
		sum->wrong += lane->wrong;
		sum->repeated += lane->repeated;
		if (load->options.tcp)
			count_tcp(lane, sum);
	}
}

double load_latency(const struct load *load, double share)
{
	uint64_t all = 0, seen = 0;

	for (unsigned pass = 0; pass < 2; pass++) {
		for (unsigned bucket = 0; bucket < BUCKETS; bucket++) {
			for (unsigned i = 0; i < load->options.lanes; i++)
				*(pass ? &seen : &all) += load->lanes[i].latencies[bucket];
			if (pass && all && (double)seen >= share * (double)all)
				return latency_of(bucket);
		}
	}
	return 0;
}
