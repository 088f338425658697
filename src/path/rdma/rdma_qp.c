/* SPDX-License-Identifier: Apache-2.0 */
#include "path/rdma/rdma_link.h"

#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <sys/random.h>

#define HOPS 64
#define TIMEOUT 18   /* 1.07 s (4.096 us * 2^18) until a packet goes again */
#define QP_RETRIES 1 /* then the path has failed */
#define RNR_TIMER 12 /* 0.64 ms until a packet goes again that found no receive */
#define RNR_ALWAYS 7

static bool fail(const struct rdma_link *link, unsigned path, const char *what, int error)
{
	log_notice("path %u to %s: %s: %s", path, link->name, what, strerror(error));
	return false;
}

static bool modify(struct rdma_link *link, unsigned path, struct ibv_qp_attr *attr, int mask)
{
	int error = rdma_api.modify_qp(link->paths[path].qp, attr, IBV_QP_STATE | mask);

	return error ? fail(link, path, "its QP cannot change its state", error) : true;
}

static uint32_t random_psn(void)
{
	uint32_t psn = 0;

	if (getrandom(&psn, sizeof(psn), 0) != sizeof(psn))
		psn = (uint32_t)clock_now();
	return psn & 0xffffff;
}

bool rdma_qp_create(struct rdma_link *link, unsigned path)
{
	struct rdma_path *p = &link->paths[path];
	struct ibv_qp_init_attr attr = { .send_cq = link->cq,
		                         .recv_cq = link->cq,
		                         .cap = { .max_send_wr = RDMA_DEPTH,
		                                  .max_recv_wr = RDMA_RECEIVES,
		                                  .max_send_sge = 1,
		                                  .max_recv_sge = 1 },
		                         .qp_type = IBV_QPT_RC,
		                         .sq_sig_all = 1 };
	struct ibv_qp_attr init = { .qp_state = IBV_QPS_INIT, .port_num = RDMA_PORT };

	p->qp = rdma_api.create_qp(link->device->pd, &attr);
	if (!p->qp)
		return fail(link, path, "no QP", errno);
	p->own.qpn = p->qp->qp_num;
	p->own.psn = random_psn();
	if (!modify(link, path, &init, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
		return false;
	for (unsigned i = 0; i < RDMA_RECEIVES; i++)
		if (!rdma_qp_receive(link, path, i))
			return false;
	return true;
}

bool rdma_qp_connect(struct rdma_link *link, unsigned path, const struct pact_path *peer)
{
	struct rdma_path *p = &link->paths[path];
	struct ibv_qp_attr ready = { .qp_state = IBV_QPS_RTR,
		                     .path_mtu = link->device->mtu,
		                     .dest_qp_num = peer->qpn,
		                     .rq_psn = peer->psn,
		                     .min_rnr_timer = RNR_TIMER,
		                     .ah_attr = { .is_global = 1,
		                                  .port_num = RDMA_PORT,
		                                  .grh = { .sgid_index = p->gid_index,
		                                           .hop_limit = HOPS } } };
	struct ibv_qp_attr sends = { .qp_state = IBV_QPS_RTS,
		                     .sq_psn = p->own.psn,
		                     .timeout = TIMEOUT,
		                     .retry_cnt = QP_RETRIES,
		                     .rnr_retry = RNR_ALWAYS };

	memcpy(ready.ah_attr.grh.dgid.raw, p->to, sizeof(p->to));
	return modify(link, path, &ready,
	              IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
	                      IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) &&
	       modify(link, path, &sends,
	              IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
	                      IBV_QP_RNR_RETRY);
}

void rdma_qp_stop(struct rdma_link *link, unsigned path)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	if (link->paths[path].qp)
		modify(link, path, &attr, 0);
}

void rdma_qp_destroy(struct rdma_link *link, unsigned path)
{
	struct rdma_path *p = &link->paths[path];

	if (!p->qp)
		return;
	rdma_api.destroy_qp(p->qp);
	p->qp = NULL;
	p->posted = 0;
	for (unsigned i = 0; i < RDMA_RECEIVES; i++) {
		if (p->receives[i] && link->events.unplace)
			link->events.unplace(link->events.user, p->receives[i]);
		p->receives[i] = NULL;
	}
}

/* A receive keeps its memory until a message has come that is wanted. */
bool rdma_qp_receive(struct rdma_link *link, unsigned path, unsigned place)
{
	struct rdma_path *p = &link->paths[path];
	const struct ibv_mr *mr;
	struct ibv_sge piece;
	struct ibv_recv_wr wr = { .wr_id = RDMA_ID_RECEIVE | place,
		                  .sg_list = &piece,
		                  .num_sge = 1 };
	struct ibv_recv_wr *bad;
	int error;

	if (!p->receives[place])
		p->receives[place] = link->events.place(link->events.user, 0, link->longest);
	mr = p->receives[place] ? rdma_memory(link, p->receives[place]) : NULL;
	if (!mr)
		return false;
	piece = (struct ibv_sge){ (uintptr_t)p->receives[place], link->longest, mr->lkey };
	error = ibv_post_recv(p->qp, &wr, &bad);
	if (error)
		return fail(link, path, "no receive", error);
	p->posted++;
	return true;
}

bool rdma_qp_send(struct rdma_link *link, const struct carried_message *message, uint64_t now)
{
	struct rdma_path *p = &link->paths[message->path];
	const struct ibv_mr *mr = rdma_memory(link, message->data);
	struct ibv_sge piece = { (uintptr_t)message->data, message->bytes, mr ? mr->lkey : 0 };
	struct ibv_send_wr wr = { .wr_id = message->number,
		                  .sg_list = &piece,
		                  .num_sge = 1,
		                  .opcode = IBV_WR_SEND_WITH_IMM,
		                  .imm_data = htonl(message->number) };
	struct ibv_send_wr *bad;
	int error = mr ? ibv_post_send(p->qp, &wr, &bad) : ENOMEM;

	p->flights[(p->first + p->flying++) % RDMA_DEPTH] =
		(struct rdma_flight){ message->number, message->bytes, now };
	if (error)
		return fail(link, message->path, "no SEND", error);
	p->posted++;
	return true;
}
