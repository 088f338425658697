/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of libibverbs that the library replaces. ibv_post_send, ibv_post_recv and
 * ibv_poll_cq are inline and call through the context, so the operations of the context are
 * replaced when a program opens a device.
 */
#include "base/log.h"
#include "tribverbs.h"

#include <stdlib.h>

#define EXPORT __attribute__((visibility("default")))
#define SPARE_MOST 8192u /* places that a CQ gets for completions of hidden QPs */

/* The header makes macros of them. */
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

/* ---- operations of a context ---- */

static int hooked_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct link_qp *link = table_find_qp(qp);

	if (!link || (qp->state != IBV_QPS_RTS && !atomic_load(&link->mending)))
		return real.post_send(qp, wr, bad);
	return work_post(link, wr, bad);
}

static int hooked_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct link_qp *link = table_find_qp(qp);
	int error;

	if (!link)
		return real.post_recv(qp, wr, bad);
	link_lock(link);
	error = receive_post(link, wr, bad);
	link_unlock(link);
	return error;
}

static int hooked_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
	struct link_qp *link = table_find_qp(qp);
	int error;

	if (!link || qp->state != IBV_QPS_RTS)
		return real.bind_mw(qp, mw, bind);
	link_lock(link);
	error = send_bind(link, mw, bind);
	link_unlock(link);
	return error;
}

static void adopt(struct ibv_qp *qp, const struct ibv_qp_cap *cap, bool signal_all)
{
	if (!qp)
		return;
	if (qp->qp_type != IBV_QPT_RC || qp->srq || !link_create(qp, cap, signal_all))
		table_forget_number(qp->context, qp->qp_num);
}

static struct ibv_qp *hooked_create_qp_ex(struct ibv_context *context,
                                          struct ibv_qp_init_attr_ex *attr)
{
	struct ibv_qp *qp = real.create_qp_ex(context, attr);

	adopt(qp, &attr->cap, attr->sq_sig_all);
	if (qp && (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) && table_find_qp(qp))
		work_api_replace(qp);
	return qp;
}

EXPORT struct ibv_device **ibv_get_device_list(int *n)
{
	struct ibv_device **list;
	int found = 0;

	real_find();
	list = real.get_device_list(&found);
	if (list && !found)
		log_notice("there is no RDMA device");
	if (n)
		*n = found;
	return list;
}

EXPORT struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	struct ibv_context *context;
	struct verbs_context *extended;

	real_find();
	context = real.open_device(device);
	if (!context)
		return NULL;
	if (real.post_send &&
	    (real.post_send != context->ops.post_send || real.poll_cq != context->ops.poll_cq)) {
		log_notice("%s: plain RDMA, since its driver is not that of the first device",
		           ibv_get_device_name(device));
		return context;
	}
	real.post_send = context->ops.post_send;
	real.post_recv = context->ops.post_recv;
	real.poll_cq = context->ops.poll_cq;
	real.bind_mw = context->ops.bind_mw;
	context->ops.post_send = hooked_post_send;
	context->ops.bind_mw = hooked_bind_mw;
	context->ops.post_recv = hooked_post_recv;
	context->ops.poll_cq = cq_poll;
	extended = verbs_get_ctx_op(context, create_qp_ex);
	if (extended) {
		real.create_qp_ex = extended->create_qp_ex;
		extended->create_qp_ex = hooked_create_qp_ex;
	}
	return context;
}

/* ---- functions ---- */

EXPORT struct ibv_cq *ibv_create_cq(struct ibv_context *context, int entries, void *user,
                                    struct ibv_comp_channel *channel, int vector)
{
	struct ibv_device_attr device;
	struct shared_cq *cq;
	unsigned spare = 0;

	real_find();
	if (context->ops.poll_cq != cq_poll)
		return real.create_cq(context, entries, user, channel, vector);
	cq = calloc(1, sizeof(*cq));
	if (cq && ibv_query_device(context, &device) == 0 && device.max_cqe > 2 * entries)
		spare = (unsigned)(device.max_cqe - 2 * entries);
	if (spare > SPARE_MOST)
		spare = SPARE_MOST;
	if (!spare) {
		free(cq);
		return real.create_cq(context, entries, user, channel, vector);
	}
	/* Each request of the own QP has a completion, also if the application wants none. */
	cq->cq = real.create_cq(context, 2 * entries + (int)spare, user, channel, vector);
	if (!cq->cq) {
		free(cq);
		return real.create_cq(context, entries, user, channel, vector);
	}
	cq->spare = spare;
	pthread_mutex_init(&cq->lock, NULL);
	table_add_cq(cq);
	return cq->cq;
}

EXPORT int ibv_destroy_cq(struct ibv_cq *ibv_cq)
{
	struct shared_cq *cq;
	int error;

	real_find();
	cq = table_find_cq(ibv_cq);
	if (!cq)
		return real.destroy_cq(ibv_cq);
	table_remove_cq(cq);
	error = real.destroy_cq(ibv_cq);
	if (error) {
		table_add_cq(cq);
		return error;
	}
	pthread_mutex_destroy(&cq->lock);
	free(cq->ready);
	free(cq);
	return 0;
}

EXPORT struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp *qp;

	real_find();
	qp = real.create_qp(pd, attr);
	if (pd->context->ops.poll_cq == cq_poll)
		adopt(qp, &attr->cap, attr->sq_sig_all);
	return qp;
}

EXPORT int ibv_destroy_qp(struct ibv_qp *qp)
{
	struct link_qp *link;

	real_find();
	link = table_find_qp(qp);
	if (link)
		link_destroy(link);
	return real.destroy_qp(qp);
}

EXPORT int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	struct link_qp *link;
	int error;

	real_find();
	error = real.modify_qp(qp, attr, mask);
	link = error ? NULL : table_find_qp(qp);
	if (link)
		link_modified(link, attr, mask);
	return error;
}

/* Memory that takes what others send may be a receive of a split SEND: hidden QPs write to it. */
static unsigned widen(unsigned access)
{
	return access & IBV_ACCESS_LOCAL_WRITE ? access | IBV_ACCESS_REMOTE_WRITE : access;
}

EXPORT struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *address, size_t length, int access)
{
	struct ibv_mr *mr;

	real_find();
	mr = real.reg_mr(pd, address, length, (int)widen((unsigned)access));
	if (!mr)
		return real.reg_mr(pd, address, length, access);
	table_add_mr(mr);
	return mr;
}

EXPORT struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *address, size_t length,
                                       uint64_t iova, unsigned access)
{
	struct ibv_mr *mr;

	real_find();
	mr = real.reg_mr_iova2(pd, address, length, iova, widen(access));
	if (!mr)
		return real.reg_mr_iova2(pd, address, length, iova, access);
	table_add_mr(mr);
	return mr;
}

EXPORT int ibv_dereg_mr(struct ibv_mr *mr)
{
	real_find();
	table_remove_mr(mr);
	return real.dereg_mr(mr);
}
