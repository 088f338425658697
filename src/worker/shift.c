/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Going to another shared star while requests go the communicator's own way:
 * star.h says when, this does it. All of it is by the turner's thread, which begins
 * requests too, so nothing here waits for anybody: lanes end by themselves,
 * good-byes and JOINs are said again when it is time.
 *
 * The shared trunks are behind the own ones, as are their lanes. They are in the
 * row of all lanes only while their threads run.
 */
#include "worker/comm.h"

#include "base/clock.h"
#include "base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define JOIN_SHARE 6.0 /* of the deadline, to join */
#define JOIN_MIN 1.0
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
	return comm->shared.shares.n > 0;
}

/* ---- leaving ---- */

/* Asks them to; true: all have. */
static bool lanes_end(struct trib_comm *comm)
{
	bool ended = true;

	for (unsigned i = 0; i < comm->shared.shares.n; i++) {
		struct lane *lane = comm->lanes[comm->shared.first + i];

		if (!lane->started || atomic_load(&lane->ended))
			continue;
		ended = false;
		if (!atomic_exchange(&lane->leaves, true))
			lane_wake(lane);
	}
	return ended;
}

/* Out of the row. */
static void lanes_unlink(struct trib_comm *comm)
{
	unsigned n = comm->shared.shares.n, first = comm->shared.first;

	for (unsigned i = 0; i < n; i++)
		lane_stop(comm->lanes[first + i]);
	pthread_mutex_lock(&comm->posting);
	pthread_mutex_lock(&comm->lock);
	comm_count(comm, first, &comm->past);
	comm->n_lanes = first;
	comm->quiet_lanes -= n;
	comm->shared.shares.n = 0;
	comm->shift.is_apart = true;
	comm->star_loss.status = TRIB_OK; /* of a star that is left: it says nothing of the next */
	pthread_mutex_unlock(&comm->lock);
	pthread_mutex_unlock(&comm->posting);
}

/* The star's alone: after a recovery that failed, a plan's own trees need not be those there are.
 */
static void trunk_drop(struct trib_comm *comm)
{
	struct trunk *trunk;

	free(comm->shift.asking);
	comm->shift.asking = NULL;
	if (!comm->shift.is_apart)
		return;
	comm->shift.is_apart = false;
	trunk = &comm->trunks[--comm->n_trunks];
	while (trunk->n_lanes)
		lane_close(trunk->lanes[--trunk->n_lanes]);
}

/* True: it was heard, or was said often enough. */
static bool say_bye(struct trib_comm *comm, uint64_t now, uint64_t *wake)
{
	struct shift *shift = &comm->shift;
	struct trunk *trunk = shared_trunk(comm);

	if (shift->is_gone || !trunk->n_lanes || !trunk->welcome.cookie || shift->asking)
		return true;
	if (shift->byes && trunk_hears_bye(trunk))
		return true;
	if (now >= shift->bye_at) {
		if (shift->byes++ == BYES)
			return true;
		trunk_say_bye(comm, trunk);
		shift->bye_at = now + BYE_EVERY;
	}
	*wake = shift->bye_at;
	return false;
}

/* True: nothing of the star before is left. */
static bool leave(struct trib_comm *comm, uint64_t now, uint64_t *wake)
{
	if (has_lanes(comm)) {
		if (!lanes_end(comm))
			return false; /* the last one wakes us */
		lanes_unlink(comm);
		comm->shift.byes = 0;
		comm->shift.bye_at = 0;
	}
	if (has_trunk(comm) && !say_bye(comm, now, wake))
		return false;
	trunk_drop(comm);
	comm->shift.is_gone = false;
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
	log_warn("the aggregator at %s, where this job was to take its turns, is not joined, and "
	         "requests go their own way: %s",
	         udp_text(&comm->shift.to, address, sizeof(address)), why);
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
	trunk->star = comm->star.number;
	trunk->share = 1;
	trunk->aggregator = comm->shift.to;
	trunk->ranks = config->size == 64 ? ~0ull : (1ull << config->size) - 1;
	comm->n_trunks = config->own_trees + 1;
	comm->shift.is_apart = true;
	comm->shift.deadline = clock_now() + (uint64_t)(seconds * 1e9);
	status = trunk_add_lane(comm, trunk);
	if (status == TRIB_OK)
		status = asking_open(comm, trunk, seconds, &comm->shift.asking);
	return status;
}

/* The other lanes, without a wait for a connection. TRIB_IN_PROGRESS: not all are there. */
static trib_status open_lanes(struct trib_comm *comm, struct trunk *trunk)
{
	while (trunk->n_lanes < trunk->welcome.lanes) {
		trib_status status = trunk_add_lane(comm, trunk);

		if (status != TRIB_OK)
			return status;
	}
	for (unsigned i = 0; i < trunk->n_lanes; i++)
		if (!trunk->lanes[i]->way->reach(trunk->lanes[i], 0))
			return TRIB_IN_PROGRESS;
	return TRIB_OK;
}

/* Nobody has to wait for one that has no thread. */
static void count_unstarted(struct trib_comm *comm, const struct trunk *trunk)
{
	pthread_mutex_lock(&comm->lock);
	for (unsigned i = 0; i < trunk->n_lanes; i++) {
		if (trunk->lanes[i]->started)
			continue;
		atomic_store(&trunk->lanes[i]->rests, true);
		comm->quiet_lanes++;
	}
	pthread_cond_broadcast(&comm->changed);
	pthread_mutex_unlock(&comm->lock);
}

/* Into the row of all lanes; nobody uses them before there is a turn. */
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
		return status_fail(TRIB_ERR_CONFIG, "there can be %u lanes in all", LANES_MAX);
	pthread_mutex_lock(&comm->posting);
	pthread_mutex_lock(&comm->lock);
	comm->shared.first = comm->n_lanes;
	for (unsigned i = 0; i < trunk->n_lanes; i++) {
		weights[i] = 1;
		trunk->lanes[i]->number = comm->n_lanes;
		comm->lanes[comm->n_lanes++] = trunk->lanes[i];
	}
	shares_init(&comm->shared.shares, weights, trunk->n_lanes);
	comm->shift.is_apart = false;
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
	struct shift *shift = &comm->shift;
	struct trunk *trunk = shared_trunk(comm);
	trib_status status = has_trunk(comm) ? TRIB_OK : begin_join(comm);
	char address[64];

	if (status == TRIB_OK)
		status = asking_step(shift->asking, shift->deadline, wake);
	if (status == TRIB_OK)
		status = open_lanes(comm, trunk);
	if (status == TRIB_IN_PROGRESS && clock_now() < shift->deadline)
		return;
	if (status == TRIB_IN_PROGRESS)
		status = status_fail(TRIB_ERR_AGGREGATOR, "no connection to all of its lanes");
	if (status == TRIB_OK)
		status = start_lanes(comm, trunk);
	if (status != TRIB_OK) {
		go_astray(comm, trib_last_error());
		*wake = 0; /* lanes that were started are to end */
		return;
	}
	free(shift->asking);
	shift->asking = NULL;
	set_step(comm, STAR_JOINED);
	log_notice("takes its turns at %s from now on",
	           udp_text(&shift->to, address, sizeof(address)));
}

/* ---- a star that ends ---- */

bool shift_note_lost(struct lane *lane, trib_status status, uint32_t rank, const char *text)
{
	struct trib_comm *comm = lane->comm;
	struct star_loss *loss = &comm->star_loss;
	bool ours;

	if (!trunk_is_shared(comm, lane->trunk) ||
	    (status != TRIB_ERR_AGGREGATOR && status != TRIB_ERR_PEER))
		return false;
	pthread_mutex_lock(&comm->lock);
	ours = comm->turner && !comm->recovering && !comm->hurt && comm->failed == TRIB_OK &&
	       !atomic_load(&comm->closing);
	if (ours && loss->status == TRIB_OK) {
		loss->status = status;
		loss->rank = rank;
		snprintf(loss->text, sizeof(loss->text), "%s", text);
		turner_wake(comm);
	}
	pthread_mutex_unlock(&comm->lock);
	return ours;
}

/* Under `posting` and the lock: is nothing under way at the star, and nothing left of it? */
static bool is_quiet(const struct trib_comm *comm)
{
	for (unsigned i = 0; i < comm->shared.shares.n; i++)
		if (!atomic_load(&comm->lanes[comm->shared.first + i]->rests))
			return false;
	return !comm->under_way[1];
}

/* Is it enough to do without the star, or does it take other trees? */
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
		/* Who leaves was told that nothing is, at all ranks; lanes need not know yet. */
		quiet = leaving ? !comm->under_way[1] : is_quiet(comm);
		soft = star_lose(&comm->star, &comm->turn, comm->begun, quiet);
		uses = comm->under_way[1] || turn_waits(&comm->turn, UINT64_MAX) ||
		       !turn_is_used_up(&comm->turn, comm->begun);
	}
	pthread_mutex_unlock(&comm->lock);
	pthread_mutex_unlock(&comm->posting);
	if (loss.status == TRIB_OK)
		return;
	comm->shift.is_gone = soft;
	if (!soft) {
		/* A rank may only have left the star; whether it lives, the other trees know. */
		comm_fail_told(comm, uses ? loss.status : TRIB_ERR_AGGREGATOR, loss.rank,
		               loss.text);
	} else if (!leaving) {
		log_warn("%s; nothing was under way there, and requests go their own way",
		         loss.text);
	}
}

/* ---- all of it ---- */

int shift_fd(const struct trib_comm *comm)
{
	const struct trunk *trunk = &comm->trunks[comm->config.own_trees];

	return comm->shift.is_apart && trunk->n_lanes ? trunk->lanes[0]->fd : -1;
}

void shift_drop(struct trib_comm *comm)
{
	trunk_drop(comm);
	comm->shift = (struct shift){ 0 };
	pthread_mutex_lock(&comm->lock);
	comm->star_loss.status = TRIB_OK;
	pthread_mutex_unlock(&comm->lock);
}

void shift_step(struct trib_comm *comm, uint64_t *wake)
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
