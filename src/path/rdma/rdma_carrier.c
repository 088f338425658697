/* SPDX-License-Identifier: Apache-2.0 */
#include "path/rdma/rdma_link.h"

#include "base/clock.h"
#include "base/log.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>

#define COMPLETIONS 16 /* that are taken at once */
#define DRAIN_NS                                                                         \
	(NSEC_PER_SEC / 2) /* that requests have to come back, when the channel is freed \
	                    */

/* ---- life ---- */

static unsigned own_addresses(struct udp_address own[], unsigned most)
{
	const struct rdma_device *device = rdma_device();
	unsigned n = device->n_addresses < most ? device->n_addresses : most;

	for (unsigned i = 0; i < n; i++)
		udp_from_raw(device->addresses[i].raw + 12, 4, 0, &own[i]);
	return n;
}

static void link_free(struct rdma_link *link)
{
	rdma_memory_free(link);
	if (link->cq)
		rdma_api.destroy_cq(link->cq);
	if (link->completions)
		rdma_api.destroy_comp_channel(link->completions);
	free(link);
}

static void take_events(struct rdma_link *link)
{
	struct ibv_cq *cq;
	void *user;

	while (rdma_api.get_cq_event(link->completions, &cq, &user) == 0) {
		rdma_api.ack_cq_events(cq, 1);
		link->armed = false;
	}
	if (!link->armed)
		link->armed = ibv_req_notify_cq(link->cq, 0) == 0;
}

static trib_status link_open(struct channel *channel, const char *name, uint32_t longest,
                             const struct channel_events *events, void **carrier)
{
	const struct rdma_device *device = rdma_device();
	struct rdma_link *link = calloc(1, sizeof(*link));
	trib_status status;

	if (!link)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for queue pairs");
	link->device = device;
	link->channel = channel;
	link->events = *events;
	link->longest = longest;
	snprintf(link->name, sizeof(link->name), "%s", name);
	link->completions = rdma_api.create_comp_channel(device->context);
	if (link->completions)
		link->cq = rdma_api.create_cq(device->context,
		                              (int)(2 * PATHS_MAX * (RDMA_DEPTH + RDMA_RECEIVES)),
		                              NULL, link->completions, 0);
	if (link->completions && link->cq &&
	    fcntl(link->completions->fd, F_SETFL, O_NONBLOCK) == 0) {
		take_events(link);
		*carrier = link;
		return TRIB_OK;
	}
	status = status_fail_errno("no completion queue for messages with %s", name);
	link_free(link);
	return status;
}

static void link_add_path(void *carrier, unsigned path, const struct path_address *from,
                          const struct path_address *to)
{
	struct rdma_link *link = carrier;
	struct rdma_path *p = &link->paths[path];
	const struct rdma_device *device = link->device;

	if (from->size != 4 || to->size != 4)
		return;
	for (unsigned i = 0; i < device->n_addresses && !p->known; i++) {
		if (memcmp(device->addresses[i].raw + 12, from->raw, 4))
			continue;
		p->known = true;
		p->gid_index = device->addresses[i].index;
		memcpy(p->to, device->addresses[i].raw, sizeof(p->to)); /* the prefix of IPv4 */
		memcpy(p->to + 12, to->raw, 4);
	}
}

static struct pollfd link_poll(const void *carrier)
{
	const struct rdma_link *link = carrier;

	return (struct pollfd){ .fd = link->completions->fd, .events = POLLIN };
}

/* ---- the QP of a path ---- */

static void tell(struct rdma_link *link, unsigned path)
{
	const struct pact_path *own = &link->paths[path].own;
	struct path_carrier word = {
		.qpn = own->qpn, .psn = own->psn, .epoch = own->epoch, .phase = (uint16_t)own->phase
	};

	log_debug("path %u to %s: QP %u, epoch %u, phase %u", path, link->name, own->qpn,
	          own->epoch, own->phase);
	carried_tell(link->channel, path, &word);
}

/* Its messages go again by other paths. */
static void close_path(struct rdma_link *link, unsigned path, uint64_t now)
{
	struct rdma_path *p = &link->paths[path];

	rdma_qp_stop(link, path);
	for (; p->flying; p->flying--, p->first = (p->first + 1) % RDMA_DEPTH)
		carried_lost(link->channel, path, p->flights[p->first].message, now);
	carried_set_up(link->channel, path, false, now);
}

static void fail_path(struct rdma_link *link, unsigned path, const char *why, uint64_t now)
{
	struct rdma_path *p = &link->paths[path];

	if (p->own.phase == PACT_FAILED)
		return;
	log_info("path %u to %s has failed: %s", path, link->name, why);
	p->own.phase = PACT_FAILED;
	close_path(link, path, now);
	tell(link, path);
}

static void renew(struct rdma_link *link, unsigned path)
{
	struct rdma_path *p = &link->paths[path];

	rdma_qp_destroy(link, path);
	if (!rdma_qp_create(link, path))
		p->own.phase = PACT_FAILED;
	tell(link, path);
}

/* What the peer has told. False: nothing so far, or nonsense. */
static bool heard(const struct rdma_link *link, unsigned path, struct pact_path *peer)
{
	const struct path_carrier *word = carried_heard(link->channel, path);

	if (!word || word->qpn >> 24 || word->psn >> 24 || word->phase > PACT_FAILED)
		return false;
	*peer = (struct pact_path){ .qpn = word->qpn,
		                    .psn = word->psn,
		                    .epoch = word->epoch,
		                    .phase = (enum pact_phase)word->phase };
	return true;
}

static void agree(struct rdma_link *link, unsigned path, uint64_t now)
{
	struct rdma_path *p = &link->paths[path];
	struct pact_path peer;
	enum pact_step step;

	if (!p->own.epoch) {
		p->own.epoch = 1;
		renew(link, path);
	}
	if (!heard(link, path, &peer))
		return;
	step = pact_next(&p->own, &peer, !p->posted);
	if (step == PACT_FAIL)
		close_path(link, path, now);
	if (step == PACT_RENEW)
		renew(link, path);
	else if (step == PACT_JOIN && !rdma_qp_connect(link, path, &peer))
		fail_path(link, path, "it cannot connect", now);
	else if (step != PACT_STAY)
		tell(link, path);
	carried_set_up(link->channel, path, pact_is_usable(&p->own, &peer), now);
}

static void link_push(void *carrier, uint64_t now)
{
	struct rdma_link *link = carrier;
	struct carried_message message;

	for (unsigned i = 0; i < PATHS_MAX; i++)
		if (link->paths[i].known)
			agree(link, i, now);
	while (carried_next(link->channel, now, &message))
		if (!rdma_qp_send(link, &message, now))
			fail_path(link, message.path, "it takes no messages", now);
}

/* ---- completions ---- */

static void take_receive(struct rdma_link *link, unsigned path, const struct ibv_wc *wc,
                         uint64_t now)
{
	struct rdma_path *p = &link->paths[path];
	unsigned place = (unsigned)(wc->wr_id % RDMA_RECEIVES);

	if (wc->status != IBV_WC_SUCCESS)
		return; /* rdma_qp_destroy has the memory */
	if (wc->wc_flags & IBV_WC_WITH_IMM && carried_came(link->channel, path, ntohl(wc->imm_data),
	                                                   p->receives[place], wc->byte_len, now))
		p->receives[place] = NULL;
	if (p->own.phase != PACT_FAILED && !rdma_qp_receive(link, path, place))
		fail_path(link, path, "it has no receive", now);
}

/* Messages of a path arrive in the order of sending. */
static void take_sent(struct rdma_link *link, unsigned path, const struct ibv_wc *wc, uint64_t now)
{
	struct rdma_path *p = &link->paths[path];

	if (wc->status != IBV_WC_SUCCESS || !p->flying)
		return;
	carried_arrived(link->channel, path, p->flights[p->first].message,
	                p->flights[p->first].bytes, p->flights[p->first].sent_at, now);
	p->first = (p->first + 1) % RDMA_DEPTH;
	p->flying--;
}

static void take_completion(struct rdma_link *link, const struct ibv_wc *wc, uint64_t now)
{
	unsigned path = 0;

	while (path < PATHS_MAX &&
	       !(link->paths[path].qp && link->paths[path].qp->qp_num == wc->qp_num))
		path++;
	if (path == PATHS_MAX)
		return; /* of a QP that is destroyed */
	link->paths[path].posted--;
	if (wc->status != IBV_WC_SUCCESS)
		fail_path(link, path, rdma_api.wc_status_str(wc->status), now);
	if (wc->wr_id & RDMA_ID_RECEIVE)
		take_receive(link, path, wc, now);
	else
		take_sent(link, path, wc, now);
}

static void link_take(void *carrier, uint64_t now)
{
	struct rdma_link *link = carrier;
	struct ibv_wc done[COMPLETIONS];
	int n;

	take_events(link);
	while ((n = ibv_poll_cq(link->cq, COMPLETIONS, done)) > 0)
		for (int i = 0; i < n; i++)
			take_completion(link, &done[i], now);
}

static bool is_drained(const struct rdma_link *link)
{
	for (unsigned i = 0; i < PATHS_MAX; i++)
		if (link->paths[i].qp && link->paths[i].posted)
			return false;
	return true;
}

/* Requests come back first: some devices are slow to destroy a QP that has some. */
static void link_close(void *carrier)
{
	struct rdma_link *link = carrier;
	uint64_t start = clock_now(), now = start;

	for (unsigned i = 0; i < PATHS_MAX; i++) {
		rdma_qp_stop(link, i);
		link->paths[i].own.phase = PACT_FAILED;
	}
	for (; !is_drained(link) && now < start + DRAIN_NS; now = clock_now()) {
		link_take(link, now);
		sched_yield();
	}
	for (unsigned i = 0; i < PATHS_MAX; i++)
		rdma_qp_destroy(link, i);
	link_free(link);
}

const struct channel_carrier rdma_link_carrier = {
	.depth = RDMA_DEPTH,
	.addresses = own_addresses,
	.open = link_open,
	.close = link_close,
	.add_path = link_add_path,
	.poll = link_poll,
	.take = link_take,
	.push = link_push,
};
