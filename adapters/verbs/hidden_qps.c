/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/log.h"
#include "base/settings.h"
#include "path/verbs/gid_order.h"
#include "tribverbs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define HOPS 64
#define TIMEOUT 16 /* 268 ms (4.096 us * 2^16) until a packet goes again */
#define RETRIES 2  /* then the path has failed */
#define READS 16   /* READs in flight on a path at most */

/* Those of the device for RoCE v2 and IPv4, in order. */
static unsigned list_addresses(struct ibv_context *context, struct gid_address *out)
{
	const char *wanted = getenv("TRIB_VERBS_ADDRESSES");
	struct ibv_gid_entry entry;
	unsigned n = 0;

	for (unsigned i = 0; i < GIDS_MAX; i++)
		if (ibv_query_gid_ex(context, PORT, i, &entry, 0) == 0 &&
		    entry.gid_type == IBV_GID_TYPE_ROCE_V2)
			n = gid_append(out, n, entry.gid.raw, i, wanted);
	qsort(out, n, sizeof(*out), gid_compare);
	return n;
}

unsigned hidden_find_addresses(struct link_qp *link)
{
	struct gid_address addresses[GIDS_MAX];
	enum path_search search;
	unsigned most = PATHS_MAX, n = list_addresses(link->context, addresses);

	if (setting_paths(&search, &most) != TRIB_OK || search == PATHS_OFF)
		most = 1;
	if (n > most)
		n = most;
	for (unsigned i = 0; i < n; i++) {
		memcpy(link->own.paths[i].address, addresses[i].raw, sizeof(addresses[i].raw));
		link->gid_index[i] = addresses[i].index;
	}
	return n;
}

uint32_t hidden_psn(void)
{
	uint32_t psn = 0;

	if (getrandom(&psn, sizeof(psn), 0) != sizeof(psn))
		psn = (uint32_t)clock_now();
	return psn & 0xffffff;
}

static bool modify(struct link_qp *link, unsigned path, struct ibv_qp_attr *attr, int mask)
{
	int error = link->hidden[path]
	                    ? real.modify_qp(link->hidden[path], attr, IBV_QP_STATE | mask)
	                    : EINVAL;

	if (error)
		log_warn("path %u: its QP cannot change to state %d: %s", path, attr->qp_state,
		         strerror(error));
	return !error;
}

static bool init(struct link_qp *link, unsigned path)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT,
		                    .pkey_index = link->init.pkey_index,
		                    .port_num = link->init.port_num,
		                    .qp_access_flags =
		                            link->init.qp_access_flags | IBV_ACCESS_REMOTE_WRITE };

	link->own.paths[path].psn = hidden_psn();
	return modify(link, path, &attr, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

static bool create_one(struct link_qp *link, unsigned path)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = link->qp->send_cq,
		.recv_cq = link->qp->send_cq,
		.cap = { .max_send_wr = link->splitter.config.depth + DEPTH_EXTRA,
		         .max_recv_wr = 1,
		         .max_send_sge = link->pieces_max ? link->pieces_max : 1,
		         .max_recv_sge = 1,
		         .max_inline_data = sizeof(struct note) },
		.qp_type = IBV_QPT_RC,
	};

	link->hidden[path] = real.create_qp(link->qp->pd, &attr);
	if (!link->hidden[path]) {
		log_warn("path %u: no QP: %s", path, strerror(errno));
		return false;
	}
	table_add_number(link->context, link->hidden[path]->qp_num, &link->seats[path]);
	link->own.paths[path].qpn = link->hidden[path]->qp_num;
	return init(link, path);
}

static bool create_rings(struct link_qp *link)
{
	size_t bytes;

	link->own.notes = 1024;
	while (link->own.notes < 2 * link->receive_max)
		link->own.notes *= 2;
	link->own.receives = link->receive_max ? link->receive_max : 1;
	bytes = 2 * link->own.notes * sizeof(struct note);
	link->rings = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
	link->keys = calloc(link->own.notes, sizeof(*link->keys));
	if (!link->rings || !link->keys)
		return false;
	memset(link->rings, 0xff, bytes);
	link->rings_mr = real.reg_mr(link->qp->pd, link->rings, bytes,
	                             IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	if (!link->rings_mr)
		return false;
	link->own.rings = (uintptr_t)link->rings;
	link->own.key = link->rings_mr->rkey;
	return true;
}

bool hidden_create(struct link_qp *link)
{
	if (!create_rings(link)) {
		log_notice("QP %u: plain RDMA, since no memory can be registered: %s",
		           link->qp->qp_num, strerror(errno));
		return false;
	}
	for (unsigned i = 0; i < link->own.n_paths; i++) {
		link->own.paths[i].epoch = 1;
		link->own.paths[i].phase = PACT_FRESH;
		if (!create_one(link, i))
			return false;
	}
	return true;
}

static void destroy_one(struct link_qp *link, unsigned path)
{
	if (!link->hidden[path])
		return;
	table_remove_number(link->context, link->hidden[path]->qp_num);
	real.destroy_qp(link->hidden[path]);
	link->hidden[path] = NULL;
	link->posted[path] = 0;
	link->probing[path] = false;
}

void hidden_destroy(struct link_qp *link)
{
	for (unsigned i = 0; i < PATHS_MAX; i++)
		destroy_one(link, i);
	if (link->rings_mr)
		real.dereg_mr(link->rings_mr);
	link->rings_mr = NULL;
}

void hidden_free_rings(struct link_qp *link)
{
	free(link->rings);
	free(link->keys);
	link->rings = NULL;
	link->keys = NULL;
}

void hidden_fail(struct link_qp *link, unsigned path)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	modify(link, path, &attr, 0);
	splitter_path_down(&link->splitter, path, clock_now());
}

/* With a new number, so that late packets of the epoch before find no QP. */
bool hidden_renew(struct link_qp *link, unsigned path)
{
	destroy_one(link, path);
	return create_one(link, path);
}

void hidden_route(const struct link_qp *link, unsigned path, struct ibv_ah_attr *route)
{
	const struct pact_path *peer = &link->peer.paths[path];

	route->is_global = 1;
	memcpy(route->grh.dgid.raw, peer->address, sizeof(peer->address));
	route->grh.sgid_index = link->gid_index[path];
	route->grh.hop_limit = HOPS;
}

bool hidden_connect(struct link_qp *link, unsigned path)
{
	const struct pact_path *peer = &link->peer.paths[path];
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = link->rtr.path_mtu,
		.dest_qp_num = peer->qpn,
		.rq_psn = peer->psn,
		.max_dest_rd_atomic = READS,
		.min_rnr_timer = link->rtr.min_rnr_timer,
		.ah_attr = link->rtr.ah_attr,
	};

	hidden_route(link, path, &attr.ah_attr);
	if (!modify(link, path, &attr,
	            IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
	                    IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER))
		return false;
	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS,
		                     .sq_psn = link->own.paths[path].psn,
		                     .max_rd_atomic = READS,
		                     .timeout = TIMEOUT,
		                     .retry_cnt = RETRIES,
		                     .rnr_retry = 7 };
	return modify(link, path, &attr,
	              IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
	                      IBV_QP_RNR_RETRY);
}

void link_path_failed(struct link_qp *link, unsigned path, enum ibv_wc_status status)
{
	struct pact_path *own = &link->own.paths[path];

	if (own->phase != PACT_OPEN)
		return;
	log_info("QP %u: path %u has failed: %s", link->qp->qp_num, path,
	         ibv_wc_status_str(status));
	own->phase = PACT_FAILED;
	link->own.serial++;
	link->wants_send = true;
	hidden_fail(link, path);
	agreement_wake();
}
