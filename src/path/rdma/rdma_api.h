/* SPDX-License-Identifier: Apache-2.0 */
/* rdma_api: the functions of libibverbs that the room uses. The others are inline. */
#ifndef TRIB_PATH_RDMA_API_H
#define TRIB_PATH_RDMA_API_H

#include "base/status.h"

#include <infiniband/verbs.h>

/* The header makes a macro of it. */
#undef ibv_reg_mr

struct rdma_api {
	struct ibv_device **(*get_device_list)(int *n);
	void (*free_device_list)(struct ibv_device **list);
	const char *(*get_device_name)(struct ibv_device *device);
	struct ibv_context *(*open_device)(struct ibv_device *device);
	int (*close_device)(struct ibv_context *context);
	int (*query_gid_ex)(struct ibv_context *context, uint32_t port, uint32_t index,
	                    struct ibv_gid_entry *entry, uint32_t flags, size_t size);
	struct ibv_pd *(*alloc_pd)(struct ibv_context *context);
	struct ibv_mr *(*reg_mr)(struct ibv_pd *pd, void *at, size_t bytes, int access);
	int (*dereg_mr)(struct ibv_mr *mr);
	struct ibv_comp_channel *(*create_comp_channel)(struct ibv_context *context);
	int (*destroy_comp_channel)(struct ibv_comp_channel *channel);
	int (*get_cq_event)(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **user);
	void (*ack_cq_events)(struct ibv_cq *cq, unsigned n);
	struct ibv_cq *(*create_cq)(struct ibv_context *context, int places, void *user,
	                            struct ibv_comp_channel *channel, int vector);
	int (*destroy_cq)(struct ibv_cq *cq);
	struct ibv_qp *(*create_qp)(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
	int (*modify_qp)(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);
	int (*destroy_qp)(struct ibv_qp *qp);
	const char *(*wc_status_str)(enum ibv_wc_status status);
};

extern struct rdma_api rdma_api;

struct rdma_function {
	const char *name;
	void *pointer; /* to the place for the function */
};

/* Loads functions of a library. An error says what is missing. */
trib_status rdma_functions_load(const char *library, const struct rdma_function *functions,
                                unsigned n);
/* Loads libibverbs. An error says what is missing. */
trib_status rdma_api_load(void);

#endif
