/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/load/load_lane.h"

#include "base/clock.h"

#include <netinet/tcp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LOST_NS \
	10000000ull /* with the window full and silence this long, its fragments count as lost */
#define DRAIN_NS 50000000ull   /* how long to wait after the last fragment */
#define REPORT_NS 200000000ull /* interval of heartbeats */
#define WINDOW 96u             /* fragments in flight; a veth's ring has 256 packets */
#define WINDOW_TCP 512u        /* TCP loses nothing: the fewest that keep its core busy */

/* ---- a lane ---- */

static void reports_send(struct load_lane *lane, uint64_t now)
{
	const struct load_options *o = &lane->load->options;

	if (now < lane->report_at)
		return;
	lane->report_at = now + REPORT_NS;
	for (unsigned child = 0; child < o->children; child++) {
		uint64_t behind = lane->load->welcome.cells / 2;

		/* A heartbeat must not be put into the middle of a frame. */
		if (o->tcp && lane->sent[child] % lane->load->stride)
			continue;
		plane_report(lane->fds[child], o->tcp, &lane->load->welcome, child, lane->index,
		             lane->next > behind ? lane->next - behind : 0, 0);
		/* Drains the answers to children that get no results. */
		if (child && !o->to_all)
			load_take(lane, child);
	}
}

static void give_up(struct load_lane *lane)
{
	for (uint64_t p = lane->next > LOAD_RING ? lane->next - LOAD_RING : 0; p < lane->next; p++)
		if (lane->ring[p % LOAD_RING].position == p &&
		    lane->ring[p % LOAD_RING].state == FRAGMENT_SENT)
			lane->ring[p % LOAD_RING].state = FRAGMENT_LOST;
	lane->done = lane->next;
}

/* The position up to which may be sent now. */
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
		 least = window / 4 < LOAD_BATCH ? window / 4 : LOAD_BATCH;

	lane->progress_at = clock_now();
	while (!atomic_load_explicit(&lane->load->stop, memory_order_relaxed)) {
		uint64_t now = clock_now(), end = window_end(lane);

		reports_send(lane, now);
		if (end >= lane->next + (least ? least : 1))
			load_send(lane, end, now);
		if (!load_take_all(lane) && now > lane->progress_at + LOST_NS &&
		    lane->next > lane->done) {
			give_up(lane);
			lane->progress_at = now;
		}
	}
}

/* Spaces fragments evenly. If some could not be sent in time, they follow at once. */
static void run_paced(struct load_lane *lane)
{
	double rate = lane->load->rate;
	uint64_t start = clock_now(), first = lane->next;
	uint64_t most = lane->load->welcome.cells / 4;

	most = most < LOAD_RING / 2 ? most : LOAD_RING / 2;
	lane->progress_at = start;
	while (!atomic_load_explicit(&lane->load->stop, memory_order_relaxed)) {
		uint64_t now = clock_now();
		uint64_t due = first + (uint64_t)((double)(now - start) * 1e-9 * rate);

		reports_send(lane, now);
		if (due > lane->next + LOAD_BATCH)
			due = lane->next + LOAD_BATCH;
		if (due > lane->done + most)
			due = lane->done + most;
		if (due > lane->next)
			load_send(lane, due, now);
		if (!load_take_all(lane) && now > lane->progress_at + LOST_NS &&
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
		load_take_all(lane);
		nanosleep(&nap, NULL);
	}
}

/* Completes a frame that was sent in part, and brings every child to the same position. */
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
			load_send(lane, end, clock_now());
		if (load_take_all(lane))
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
		load_prepare(lane);
	else if (frames_prepare(frames, lane->next, load->welcome.cells / 2,
	                        load->options.children * LOAD_WORD, load_packet, lane) != TRIB_OK)
		lane->wrong++;
	memset(lane->latencies, 0, LOAD_BUCKETS * sizeof(*lane->latencies));
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
			load->payloads[child][i] = (i + 1) * (child + 1) * LOAD_WORD;
	}
	for (unsigned i = 0; i < load->options.lanes; i++) {
		struct load_lane *lane = &load->lanes[i];

		lane->ring = calloc(LOAD_RING, sizeof(*lane->ring));
		lane->latencies = calloc(LOAD_BUCKETS, sizeof(*lane->latencies));
		lane->rx = udp_rx_new(16, false);
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

/* Counts since the last start. */
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
