/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/log.h"
#include "base/settings.h"
#include "tribverbs.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define HOPS 64
#define TIMEOUT 15 /* 134 ms (4.096 us * 2^15) until a packet goes again */
#define RETRIES 5  /* then the path has failed */
#define READS 16   /* READs in flight on a path at most */
#define GIDS_MAX 256u

static bool is_ipv4(const union ibv_gid *gid)
{
	static const uint8_t prefix[12] = { [10] = 0xff, [11] = 0xff };

	return memcmp(gid->raw, prefix, sizeof(prefix)) == 0;
}

/*
 * The place of an address among the paths: both sides must come to the same order. It is that of
 * TRIB_VERBS_ADDRESSES, or without it that of the numbers. Negative: not to be used.
 */
static int64_t order_of(const union ibv_gid *gid)
{
	const char *list = getenv("TRIB_VERBS_ADDRESSES");
	char text[INET_ADDRSTRLEN];
	uint32_t number;
	size_t length;

	memcpy(&number, gid->raw + 12, sizeof(number));
	if (!list || !*list)
		return ntohl(number);
	inet_ntop(AF_INET, &number, text, sizeof(text));
	length = strlen(text);
	for (const char *at = list; (at = strstr(at, text)); at += length)
		if ((at == list || at[-1] == ',') && (!at[length] || at[length] == ','))
			return at - list;
	return -1;
}

struct address {
	union ibv_gid gid;
	int64_t order;
	uint8_t index;
};

static int compare(const void *left, const void *right)
{
	const struct address *a = left, *b = right;

	return (a->order > b->order) - (a->order < b->order);
}

/* Those of the device for RoCE v2 and IPv4, in order. */
static unsigned list_addresses(struct ibv_context *context, struct address *out)
{
	struct ibv_gid_entry entry;
	unsigned n = 0;

	for (unsigned i = 0; i < GIDS_MAX; i++) {
		if (ibv_query_gid_ex(context, PORT, i, &entry, 0) != 0 ||
		    entry.gid_type != IBV_GID_TYPE_ROCE_V2 || !is_ipv4(&entry.gid))
			continue;
		out[n] = (struct address){ entry.gid, order_of(&entry.gid), (uint8_t)i };
		n += out[n].order >= 0;
	}
	qsort(out, n, sizeof(*out), compare);
	return n;
}

unsigned hidden_find_addresses(struct link_qp *link)
{
	struct address addresses[GIDS_MAX];
	enum path_search search;
	unsigned most = PATHS_MAX, n = list_addresses(link->context, addresses);

	if (setting_paths(&search, &most) != TRIB_OK || search == PATHS_OFF)
		most = 1;
	if (n > most)
		n = most;
	for (unsigned i = 0; i < n; i++) {
		memcpy(link->own.paths[i].address, addresses[i].gid.raw,
		       sizeof(addresses[i].gid.raw));
		link->gid_index[i] = addresses[i].index;
	}
	return n;
}

static uint32_t random_psn(void)
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

	link->own.paths[path].psn = random_psn();
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
	table_add_number(link->context, link->hidden[path]->qp_num, link, path);
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
	pthread_mutex_lock(&link->lock);
	free(link->rings);
	free(link->keys);
	link->rings = NULL;
	link->keys = NULL;
	pthread_mutex_unlock(&link->lock);
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

	attr.ah_attr.is_global = 1;
	memcpy(attr.ah_attr.grh.dgid.raw, peer->address, sizeof(peer->address));
	attr.ah_attr.grh.sgid_index = link->gid_index[path];
	attr.ah_attr.grh.hop_limit = HOPS;
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
