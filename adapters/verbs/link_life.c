/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/log.h"
#include "base/settings.h"
#include "tribverbs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define LEAST (2 * SPLIT_LEAST) /* bytes: shorter requests are not split */

static uint32_t power_of_2(uint32_t least)
{
	uint32_t n = 1;

	while (n < least)
		n *= 2;
	return n;
}

static uint32_t send_capacity(const struct link_qp *link)
{
	return power_of_2(link->send_max ? link->send_max : 1);
}

static struct split_config read_config(uint32_t capacity)
{
	struct split_config config = { .least = LEAST, .depth = 4, .capacity = capacity };
	const char *depth = getenv("TRIB_VERBS_DEPTH");
	uint64_t chunk = 51200, balancer = BALANCE_BANDWIDTH, monitor = MONITOR_SMOOTH;

	if (setting_count(SETTING_CHUNK, &chunk) != TRIB_OK ||
	    setting_count(SETTING_BALANCER, &balancer) != TRIB_OK ||
	    setting_count(SETTING_MONITOR, &monitor) != TRIB_OK)
		log_warn("%s", trib_last_error());
	if (depth && atoi(depth) > 0)
		config.depth = (unsigned)atoi(depth);
	if (config.depth > SPLIT_DEPTH_MAX)
		config.depth = SPLIT_DEPTH_MAX;
	config.chunk = (uint32_t)chunk;
	config.balancer = (enum balancer_kind)balancer;
	config.monitor = (enum monitor_kind)monitor;
	return config;
}

static bool allocate(struct link_qp *link)
{
	uint32_t capacity = send_capacity(link);
	struct split_config config = read_config(capacity);

	link->receive_ring = power_of_2(link->receive_max ? link->receive_max : 1);
	link->entries = calloc(capacity, sizeof(*link->entries));
	link->receives = calloc(link->receive_ring, sizeof(*link->receives));
	link->receive_pieces = calloc((size_t)link->receive_ring * link->receive_pieces_max + 1,
	                              sizeof(*link->receive_pieces));
	if (!work_allocate(link, capacity) || !link->entries || !link->receives ||
	    !link->receive_pieces)
		return false;
	splitter_init(&link->splitter, &config, link->entries, send_find_receive, link);
	return true;
}

static void release(struct link_qp *link)
{
	work_release(link, send_capacity(link));
	work_api_forget(link);
	free(link->entries);
	free(link->receives);
	free(link->receive_pieces);
	for (unsigned i = 0; i < link->own.n_paths; i++)
		if (link->sockets[i] >= 0)
			close(link->sockets[i]);
	pthread_mutex_destroy(&link->lock);
	free(link);
}

static bool open_sockets(struct link_qp *link)
{
	bool all = true;

	link->own.n_paths = hidden_find_addresses(link);
	for (unsigned i = 0; i < link->own.n_paths; i++) {
		link->sockets[i] = agreement_socket(link->own.paths[i].address, link->qp->qp_num);
		all = all && link->sockets[i] >= 0;
	}
	if (!all)
		log_notice("QP %u: plain RDMA, since its port for datagrams is not free: %s",
		           link->qp->qp_num, strerror(errno));
	else if (link->own.n_paths < 2)
		log_notice("QP %u: plain RDMA, since the device has no second path (an IPv4 "
		           "address for RoCE v2)",
		           link->qp->qp_num);
	return all && link->own.n_paths > 1;
}

struct link_qp *link_create(struct ibv_qp *qp, const struct ibv_qp_cap *cap, bool signal_all)
{
	struct shared_cq *send_cq = table_find_cq(qp->send_cq);
	struct shared_cq *receive_cq = table_find_cq(qp->recv_cq);
	struct link_qp *link;

	if (!send_cq || !receive_cq || cap->max_send_sge > PIECES_MAX) {
		log_notice("QP %u: plain RDMA, since its CQ is extended or full, or its requests "
		           "have more than %u pieces",
		           qp->qp_num, PIECES_MAX);
		return NULL;
	}
	link = calloc(1, sizeof(*link));
	if (!link)
		return NULL;
	*link = (struct link_qp){ .qp = qp,
		                  .context = qp->context,
		                  .send_cq = send_cq,
		                  .receive_cq = receive_cq,
		                  .signal_all = signal_all,
		                  .send_max = cap->max_send_wr,
		                  .receive_max = cap->max_recv_wr,
		                  .pieces_max = cap->max_send_sge,
		                  .receive_pieces_max = cap->max_recv_sge,
		                  .inline_max = cap->max_inline_data,
		                  .posting = UINT64_MAX,
		                  .advert_path = -1 };
	for (unsigned i = 0; i <= OWN_QP; i++)
		link->seats[i] = (struct seat){ link, i };
	pthread_mutex_init(&link->lock, NULL);
	if (!open_sockets(link) || !allocate(link)) {
		release(link);
		return NULL;
	}
	table_add_number(qp->context, qp->qp_num, &link->seats[OWN_QP]);
	pthread_mutex_lock(&world);
	link->next = links;
	links = link;
	pthread_mutex_unlock(&world);
	return link;
}

/* ---- connecting ---- */

/* With world. */
static void destroy_hidden(struct link_qp *link)
{
	hidden_destroy(link);
	link_lock(link);
	hidden_free_rings(link);
	link_unlock(link);
}

/* With world. */
static void connect_paths(struct link_qp *link)
{
	unsigned need = link->own.n_paths * (link->splitter.config.depth + DEPTH_EXTRA);

	if (link->mode != LINK_PLAIN || !agreement_start())
		return;
	if ((atomic_load(&link->send_cq->qps) + 1) * need > link->send_cq->spare) {
		log_notice("QP %u: plain RDMA, since its CQ has no room for hidden QPs",
		           link->qp->qp_num);
		return;
	}
	if (link->init.port_num != PORT) {
		log_notice("QP %u: plain RDMA, since it has port %u", link->qp->qp_num,
		           link->init.port_num);
		return;
	}
	link->own.serial = 1;
	link->own.qpn = link->qp->qp_num;
	link->own.peer = link->rtr.dest_qp_num;
	link->own.heard = 0;
	link->own.echo = 0;
	link->own.leaving = false;
	link->own.app = (struct pact_path){ .epoch = 1, .phase = PACT_OPEN };
	link->own.via = 0;
	link->own.consumed = 0;
	link->peer = (struct pact){ 0 };
	if (getrandom(&link->own.nonce, sizeof(link->own.nonce), 0) < 8 || !link->own.nonce)
		link->own.nonce = clock_now();
	if (!hidden_create(link)) {
		destroy_hidden(link);
		return;
	}
	atomic_fetch_add(&link->send_cq->qps, 1);
	link_lock(link);
	link->n_paths = 0;
	link->asked_since = clock_now();
	link->told = false;
	link->wants_send = true;
	link->splitter.hold = true;
	link->mode = LINK_ASKING;
	link_unlock(link);
}

/* With world. */
static void disconnect_paths(struct link_qp *link)
{
	if (link->mode == LINK_PLAIN)
		return;
	link_lock(link);
	agreement_leave(link);
	if (link->n_paths)
		log_info("QP %u: %llu requests, %llu chunks went again, paths failed %llu times",
		         link->qp->qp_num, (unsigned long long)link->splitter.posted,
		         (unsigned long long)link->splitter.resent,
		         (unsigned long long)link->splitter.failures);
	link->mode = LINK_PLAIN;
	link->n_paths = 0;
	link->own.app = (struct pact_path){ 0 };
	atomic_store(&link->mending, false);
	link->splitter.hold = false;
	link_unlock(link);
	destroy_hidden(link);
	atomic_fetch_sub(&link->send_cq->qps, 1);
}

/* The application resets its QP: nothing of before comes any more. */
static void reset(struct link_qp *link)
{
	struct split_config config = link->splitter.config;

	splitter_init(&link->splitter, &config, link->entries, send_find_receive, link);
	link->receive_posted = link->receive_done = link->advertised = 0;
	link->advert_path = -1;
	link->adverts = 0;
	link->posted[OWN_QP] = 0;
	link->receive_held = link->receive_lost = 0;
	work_reset(link);
}

static void state_changed(struct link_qp *link, const struct ibv_qp_attr *attr, int mask)
{
	switch (attr->qp_state) {
	case IBV_QPS_RESET:
		reset(link);
		break;
	case IBV_QPS_INIT:
		link->init = *attr;
		break;
	case IBV_QPS_RTR:
		link->rtr = *attr;
		break;
	case IBV_QPS_RTS:
		/* Later changes of single attributes have no number of a packet. */
		if (mask & IBV_QP_SQ_PSN)
			link->rts = *attr;
		break;
	case IBV_QPS_ERR:
		if (link->mode != LINK_PLAIN)
			agreement_leave(link);
		own_break(link, IBV_WC_WR_FLUSH_ERR);
		break;
	default:
		break;
	}
}

void link_modified(struct link_qp *link, const struct ibv_qp_attr *attr, int mask)
{
	if (!(mask & IBV_QP_STATE))
		return;
	pthread_mutex_lock(&world);
	if (attr->qp_state == IBV_QPS_RESET)
		disconnect_paths(link);
	link_lock(link);
	state_changed(link, attr, mask);
	link_unlock(link);
	/* A side that only receives may stay in this state. */
	if (attr->qp_state == IBV_QPS_RTR)
		connect_paths(link);
	pthread_mutex_unlock(&world);
	if (attr->qp_state == IBV_QPS_RTR)
		agreement_wake();
}

/* A thread that took a completion may have found the link before it left the table. */
static void wait_for_polls(struct shared_cq *cq)
{
	pthread_mutex_lock(&cq->lock);
	pthread_mutex_unlock(&cq->lock);
}

void link_destroy(struct link_qp *link)
{
	pthread_mutex_lock(&world);
	for (struct link_qp **at = &links; *at; at = &(*at)->next) {
		if (*at == link) {
			*at = link->next;
			break;
		}
	}
	table_remove_number(link->context, link->qp->qp_num);
	disconnect_paths(link);
	pthread_mutex_unlock(&world);
	wait_for_polls(link->send_cq);
	wait_for_polls(link->receive_cq);
	release(link);
}
