/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The application's QP, when its path fails: both ends put it into its error state, take all its
 * completions, reset it, and connect it again on a path that works. The application notices
 * nothing.
 */
#include "base/log.h"
#include "tribverbs.h"

#include <string.h>

static bool modify(struct link_qp *link, struct ibv_qp_attr *attr, enum ibv_qp_state state,
                   int mask)
{
	int error;

	attr->qp_state = state;
	error = real.modify_qp(link->qp, attr, IBV_QP_STATE | mask);
	if (error)
		log_warn("QP %u cannot change to state %d: %s", link->qp->qp_num, state,
		         strerror(error));
	return !error;
}

/* Nothing arrives at the QP any more. */
static void close_qp(struct link_qp *link)
{
	struct ibv_qp_attr attr = { 0 };

	atomic_store(&link->mending, true);
	modify(link, &attr, IBV_QPS_ERR, 0);
	splitter_own_down(&link->splitter);
}

static void fail(struct link_qp *link)
{
	log_info("QP %u: its own path %u has failed, so it moves to another", link->qp->qp_num,
	         link->splitter.own);
	link->own.app.phase = PACT_FAILED;
	link->own.serial++;
	link->wants_send = true;
	close_qp(link);
	agreement_wake();
}

void own_break(struct link_qp *link, enum ibv_wc_status status)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	if (link->splitter.broken)
		return;
	if (link->qp->state != IBV_QPS_ERR)
		real.modify_qp(link->qp, &attr, IBV_QP_STATE);
	/* The peer must not wait for this QP to be connected again. */
	if (link->mode == LINK_MULTI)
		agreement_leave(link);
	if (link->receive_lost) {
		link->late = true;
		agreement_wake();
	}
	for (unsigned i = 0; i < link->n_paths; i++) {
		if (link->own.paths[i].phase == PACT_OPEN) {
			link->own.paths[i].phase = PACT_FAILED;
			hidden_fail(link, i);
		}
	}
	splitter_break(&link->splitter, (int)status);
	send_pump(link);
}

bool own_is_lost(struct link_qp *link, enum ibv_wc_status status)
{
	if (link->splitter.broken)
		return false;
	if (status == IBV_WC_RETRY_EXC_ERR && link->mode == LINK_MULTI &&
	    link->own.app.phase == PACT_OPEN)
		fail(link);
	return (status == IBV_WC_RETRY_EXC_ERR || status == IBV_WC_WR_FLUSH_ERR) &&
	       link->own.app.phase == PACT_FAILED;
}

/* Its path is the lowest one that works. If none does, the one before has to come back. */
static unsigned choose_path(const struct link_qp *link)
{
	for (unsigned i = 0; i < link->n_paths; i++)
		if (link->splitter.up[i])
			return i;
	return link->splitter.own;
}

/* Does it hold requests although its path has failed, and another one works? */
static bool is_cut_off(const struct link_qp *link)
{
	unsigned own = link->splitter.own;

	return link->own.app.phase == PACT_OPEN && link->posted[OWN_QP] &&
	       !link->splitter.up[own] && link->own.paths[own].epoch > 1 &&
	       choose_path(link) != own;
}

static bool renew(struct link_qp *link)
{
	struct ibv_qp_attr attr = { 0 };

	link->own.app.psn = hidden_psn();
	link->own.consumed = link->receive_done;
	link->own.via = choose_path(link);
	if (!modify(link, &attr, IBV_QPS_RESET, 0))
		return false;
	attr = link->init;
	return modify(link, &attr, IBV_QPS_INIT,
	              IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) &&
	       receive_post_again(link);
}

/* The path that both ends take. */
static unsigned path_of(const struct link_qp *link)
{
	return link->own.nonce < link->peer.nonce ? link->own.via : link->peer.via;
}

static bool join(struct link_qp *link)
{
	struct ibv_qp_attr rtr = link->rtr, rts = link->rts;

	if (path_of(link) >= link->n_paths)
		return false;
	rtr.rq_psn = link->peer.app.psn;
	hidden_route(link, path_of(link), &rtr.ah_attr);
	rts.sq_psn = link->own.app.psn;
	if (!modify(link, &rtr, IBV_QPS_RTR,
	            IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
	                    IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER))
		return false;
	/* A side that only receives may have stayed in this state. */
	return link->rts.qp_state != IBV_QPS_RTS ||
	       modify(link, &rts, IBV_QPS_RTS,
	              IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
	                      IBV_QP_RNR_RETRY);
}

/* Requests that are known to have arrived are done, and the others go again. */
static bool go_on(struct link_qp *link)
{
	if (!splitter_own_up(&link->splitter, path_of(link), link->peer.consumed))
		return false;
	atomic_store(&link->mending, false);
	log_info("QP %u goes on, on path %u", link->qp->qp_num, link->splitter.own);
	send_done_late(link);
	return true;
}

void own_step(struct link_qp *link)
{
	struct pact_path *app = &link->own.app;
	enum pact_step step;
	bool well = true;

	if (link->splitter.broken)
		return;
	if (is_cut_off(link))
		fail(link);
	step = pact_next(app, &link->peer.app, !link->posted[OWN_QP] && !link->receive_held);
	if (step == PACT_FAIL)
		close_qp(link);
	else if (step == PACT_RENEW)
		well = renew(link);
	else if (step == PACT_JOIN)
		well = join(link);
	if (step != PACT_STAY) {
		link->own.serial++;
		link->wants_send = true;
		log_debug("QP %u: epoch %u, phase %d", link->qp->qp_num, app->epoch, app->phase);
	}
	if (well && link->splitter.own_down && pact_is_usable(app, &link->peer.app))
		well = go_on(link);
	if (!well)
		own_break(link, IBV_WC_RETRY_EXC_ERR);
}
