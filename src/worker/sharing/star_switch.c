/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Leaves one shared star and joins the next while requests use the communicator's own trees.
 * turns/star.h says when; this file does it. All of it runs in the turn client's thread, which
 * also starts requests, so nothing here waits: lanes end by themselves, BYEs and JOINs are
 * repeated when they are due.
 *
 * The shared trunk stands behind the own trunks, and so do its lanes. The lanes are in
 * trib_comm.lanes only while their threads run.
 */
#include "worker/sharing/sharing.h"
#include "worker/transport/lane_carrier.h"
#include "worker/transport/lane_engine_table.h"
#include "worker/transport/transport.h"
#include "worker/trees/trees.h"

#include "base/clock.h"
#include "base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define JOIN_SHARE 6.0 /* joining may take 1/6 of the timeout */
#define JOIN_MIN 1.0   /* seconds, at least */
#define BYES 3u
#define BYE_EVERY (20 * 1000000ull)

static struct trunk *shared_trunk(struct trib_comm *comm)
{
	return &comm->trunks[comm->config.own_trees];
}

static bool has_trunk(const struct trib_comm *comm)
{
	return comm->n_trunks > comm->config.own_trees;
}

static bool has_lanes(const struct trib_comm *comm)
{
	return comm->shared.striping.n > 0;
}

/* ---- leaving ---- */

/* Asks the lanes to end. True: all have ended. */
static bool lanes_end(struct trib_comm *comm)
{
	bool ended = true;

	for (unsigned i = 0; i < comm->shared.striping.n; i++) {
		struct lane *lane = comm->lanes[comm->shared.first + i];

		if (!lane->started || atomic_load(&lane->ended))
			continue;
		ended = false;
		if (!atomic_exchange(&lane->leaves, true))
			lane_wake(lane);
	}
	return ended;
}

/* Takes the lanes out of the communicator's list. */
static void lanes_unlink(struct trib_comm *comm)
{
	unsigned n = comm->shared.striping.n, first = comm->shared.first;

	for (unsigned i = 0; i < n; i++)
		lane_stop(comm->lanes[first + i]);
	pthread_mutex_lock(&comm->posting);
	pthread_mutex_lock(&comm->lock);
	comm_count(comm, first, &comm->past);
	comm->n_lanes = first;
	comm->quiet_lanes -= n;
	comm->shared.striping.n = 0;
	comm->star_switch.is_apart = true;
	comm->star_loss.status = TRIB_OK; /* it was about the star that is left */
	pthread_mutex_unlock(&comm->lock);
	pthread_mutex_unlock(&comm->posting);
}

/* Only a trunk that is apart: after a failed recovery the other trunks may be of an older plan. */
static void trunk_drop(struct trib_comm *comm)
{
	struct trunk *trunk;

	free(comm->star_switch.joining);
	comm->star_switch.joining = NULL;
	if (!comm->star_switch.is_apart)
		return;
	comm->star_switch.is_apart = false;
	trunk = &comm->trunks[--comm->n_trunks];
	while (trunk->n_lanes)
		lane_close(trunk->lanes[--trunk->n_lanes]);
}

/* True: the BYE was heard, or was sent BYES times. */
static bool say_bye(struct trib_comm *comm, uint64_t now, uint64_t *wake)
{
	struct star_switch *change = &comm->star_switch;
	struct trunk *trunk = shared_trunk(comm);

	if (change->is_gone || !trunk->n_lanes || !trunk->welcome.cookie || change->joining)
		return true;
	if (change->byes && trunk_hears_bye(trunk))
		return true;
	if (now >= change->bye_at) {
		if (change->byes++ == BYES)
			return true;
		trunk_say_bye(comm, trunk);
		change->bye_at = now + BYE_EVERY;
	}
	*wake = change->bye_at;
	return false;
}

/* True: the previous star is left. */
static bool leave(struct trib_comm *comm, uint64_t now, uint64_t *wake)
{
	if (has_lanes(comm)) {
		if (!lanes_end(comm))
			return false; /* the last lane that ends wakes this thread */
		lanes_unlink(comm);
		comm->star_switch.byes = 0;
		comm->star_switch.bye_at = 0;
	}
	if (has_trunk(comm) && !say_bye(comm, now, wake))
		return false;
	trunk_drop(comm);
	comm->star_switch.is_gone = false;
	return true;
}

/* ---- joining ---- */

static void set_step(struct trib_comm *comm, enum star_step step)
{
	pthread_mutex_lock(&comm->posting);
	comm->star.step = step;
	pthread_mutex_unlock(&comm->posting);
}

static void go_astray(struct trib_comm *comm, const char *why)
{
	char address[64];

	trunk_drop(comm);
	set_step(comm, STAR_ASTRAY);
	log_warn("cannot join the shared aggregator at %s; requests use the job's own trees: %s",
	         udp_text(&comm->star_switch.to, address, sizeof(address)), why);
}

static trib_status begin_join(struct trib_comm *comm)
{
	const struct comm_config *config = &comm->config;
	double seconds = config->timeout_s / JOIN_SHARE;
	struct trunk *trunk = shared_trunk(comm);
	trib_status status;

	if (seconds < JOIN_MIN)
		seconds = JOIN_MIN;
	memset(trunk, 0, sizeof(*trunk));
	trunk->tree = config->own_trees + comm->star.number;
	trunk->engine = lane_engine_find(ENGINE_DENSE);
	trunk->star = comm->star.number;
	trunk->share = 1;
	trunk->aggregator = comm->star_switch.to;
	trunk->ranks = config->size == 64 ? ~0ull : (1ull << config->size) - 1;
	comm->n_trunks = config->own_trees + 1;
	comm->star_switch.is_apart = true;
	comm->star_switch.deadline = clock_now() + (uint64_t)(seconds * 1e9);
	status = trunk_add_lane(comm, trunk);
	if (status == TRIB_OK)
		status = join_begin(comm, trunk, seconds, &comm->star_switch.joining);
	return status;
}

/* Opens the other lanes without waiting. TRIB_IN_PROGRESS: not all are connected. */
static trib_status open_lanes(struct trib_comm *comm, struct trunk *trunk)
{
	while (trunk->n_lanes < trunk->welcome.lanes) {
		trib_status status = trunk_add_lane(comm, trunk);

		if (status != TRIB_OK)
			return status;
	}
	for (unsigned i = 0; i < trunk->n_lanes; i++)
		if (!trunk->lanes[i]->carrier->reach(trunk->lanes[i], 0))
			return TRIB_IN_PROGRESS;
	return TRIB_OK;
}

/* A lane without a thread counts as quiet: no thread has to wait for it. */
static void count_unstarted(struct trib_comm *comm, const struct trunk *trunk)
{
	pthread_mutex_lock(&comm->lock);
	for (unsigned i = 0; i < trunk->n_lanes; i++) {
		if (trunk->lanes[i]->started)
			continue;
		atomic_store(&trunk->lanes[i]->idle, true);
		comm->quiet_lanes++;
	}
	pthread_cond_broadcast(&comm->changed);
	pthread_mutex_unlock(&comm->lock);
}

/* Puts the lanes into the communicator's list. No request uses them before the first turn. */
static trib_status start_lanes(struct trib_comm *comm, struct trunk *trunk)
{
	double weights[LANES_MAX];
	trib_status status = TRIB_OK;

	if (trunk->welcome.payload < comm->payload)
		return status_fail(TRIB_ERR_SYSTEM,
		                   "packets of %u bytes do not pass, only %u: set TRIB_MTU to what "
		                   "all networks carry",
		                   comm->payload, trunk->welcome.payload);
	if (comm->n_lanes + trunk->n_lanes > LANES_MAX)
		return status_fail(TRIB_ERR_CONFIG, "a communicator has at most %u lanes",
		                   LANES_MAX);
	pthread_mutex_lock(&comm->posting);
	pthread_mutex_lock(&comm->lock);
	comm->shared.first = comm->n_lanes;
	for (unsigned i = 0; i < trunk->n_lanes; i++) {
		weights[i] = 1;
		trunk->lanes[i]->number = comm->n_lanes;
		comm->lanes[comm->n_lanes++] = trunk->lanes[i];
	}
	striping_init(&comm->shared.striping, weights, trunk->n_lanes);
	comm->star_switch.is_apart = false;
	pthread_mutex_unlock(&comm->lock);
	pthread_mutex_unlock(&comm->posting);
	for (unsigned i = 0; status == TRIB_OK && i < trunk->n_lanes; i++)
		status = lane_start(trunk->lanes[i]);
	if (status != TRIB_OK)
		count_unstarted(comm, trunk);
	return status;
}

static void join(struct trib_comm *comm, uint64_t *wake)
{
	struct star_switch *change = &comm->star_switch;
	struct trunk *trunk = shared_trunk(comm);
	trib_status status = has_trunk(comm) ? TRIB_OK : begin_join(comm);
	char address[64];

	if (status == TRIB_OK)
		status = join_step(change->joining, change->deadline, wake);
	if (status == TRIB_OK)
		status = open_lanes(comm, trunk);
	if (status == TRIB_IN_PROGRESS && clock_now() < change->deadline)
		return;
	if (status == TRIB_IN_PROGRESS)
		status = status_fail(TRIB_ERR_AGGREGATOR, "no connection to all of its lanes");
	if (status == TRIB_OK)
		status = start_lanes(comm, trunk);
	if (status != TRIB_OK) {
		go_astray(comm, trib_last_error());
		*wake = 0; /* lanes that were started have to end */
		return;
	}
	free(change->joining);
	change->joining = NULL;
	set_step(comm, STAR_JOINED);
	log_notice("takes its turns at %s from now on",
	           udp_text(&change->to, address, sizeof(address)));
}

/* ---- a star that ends ---- */

/* Is nothing in flight at the star that a rank could need? Under `posting` and `lock`. */
static bool is_quiet(const struct trib_comm *comm)
{
	for (unsigned i = 0; i < comm->shared.striping.n; i++)
		if (!atomic_load(&comm->lanes[comm->shared.first + i]->idle))
			return false;
	return !comm->started[1];
}

/* The star is lost: is it enough to do without it, or are other trees needed? */
static void settle_loss(struct trib_comm *comm)
{
	struct star_loss loss;
	bool leaving, quiet, soft = true, uses = false;

	pthread_mutex_lock(&comm->posting);
	pthread_mutex_lock(&comm->lock);
	loss = comm->star_loss;
	comm->star_loss.status = TRIB_OK;
	leaving = comm->star.step == STAR_LEAVING;
	if (loss.status != TRIB_OK) {
		/* A rank that leaves was told that nothing is in flight at any rank. */
		quiet = leaving ? !comm->started[1] : is_quiet(comm);
		soft = star_lose(&comm->star, &comm->turn, comm->next_start, quiet);
		uses = comm->started[1] || turn_waits(&comm->turn, UINT64_MAX) ||
		       !turn_is_used_up(&comm->turn, comm->next_start);
	}
	pthread_mutex_unlock(&comm->lock);
	pthread_mutex_unlock(&comm->posting);
	if (loss.status == TRIB_OK)
		return;
	comm->star_switch.is_gone = soft;
	if (!soft) {
		/* A rank may have left only the star. The own trees show whether it lives. */
		comm_fail_told(comm, uses ? loss.status : TRIB_ERR_AGGREGATOR, loss.rank,
		               loss.text);
	} else if (!leaving) {
		log_warn("%s; no request was in flight there, and requests use the job's own trees",
		         loss.text);
	}
}

/* ---- steps ---- */

int star_switch_fd(const struct trib_comm *comm)
{
	const struct trunk *trunk = &comm->trunks[comm->config.own_trees];

	return comm->star_switch.is_apart && trunk->n_lanes ? trunk->lanes[0]->fd : -1;
}

void star_switch_drop(struct trib_comm *comm)
{
	trunk_drop(comm);
	comm->star_switch = (struct star_switch){ 0 };
	pthread_mutex_lock(&comm->lock);
	comm->star_loss.status = TRIB_OK;
	pthread_mutex_unlock(&comm->lock);
}

void star_switch_step(struct trib_comm *comm, uint64_t *wake)
{
	uint64_t now = clock_now();

	*wake = UINT64_MAX;
	if (!comm->config.own_trees)
		return;
	settle_loss(comm);
	if (comm->star.step == STAR_LEAVING && leave(comm, now, wake))
		set_step(comm, STAR_JOINING);
	if (comm->star.step == STAR_JOINING)
		join(comm, wake);
	else if (comm->star.step == STAR_ASTRAY && has_trunk(comm))
		leave(comm, now, wake);
}
