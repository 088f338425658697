/* SPDX-License-Identifier: Apache-2.0 */
/* cm_api: the functions of librdmacm that the room uses. */
#ifndef TRIB_PATH_RDMA_CM_API_H
#define TRIB_PATH_RDMA_CM_API_H

#include "path/rdma/rdma_api.h"

#include <rdma/rdma_cma.h>

struct cm_api {
	struct rdma_event_channel *(*create_event_channel)(void);
	void (*destroy_event_channel)(struct rdma_event_channel *channel);
	int (*create_id)(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context,
	                 enum rdma_port_space space);
	int (*destroy_id)(struct rdma_cm_id *id);
	int (*bind_addr)(struct rdma_cm_id *id, struct sockaddr *address);
	int (*resolve_addr)(struct rdma_cm_id *id, struct sockaddr *from, struct sockaddr *to,
	                    int timeout_ms);
	int (*resolve_route)(struct rdma_cm_id *id, int timeout_ms);
	int (*create_qp)(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
	void (*destroy_qp)(struct rdma_cm_id *id);
	int (*connect)(struct rdma_cm_id *id, struct rdma_conn_param *param);
	int (*listen)(struct rdma_cm_id *id, int backlog);
	int (*accept)(struct rdma_cm_id *id, struct rdma_conn_param *param);
	int (*reject)(struct rdma_cm_id *id, const void *data, uint8_t bytes);
	int (*disconnect)(struct rdma_cm_id *id);
	int (*get_cm_event)(struct rdma_event_channel *channel, struct rdma_cm_event **event);
	int (*ack_cm_event)(struct rdma_cm_event *event);
	int (*migrate_id)(struct rdma_cm_id *id, struct rdma_event_channel *channel);
};

extern struct cm_api cm_api;

/* Loads librdmacm and libibverbs. An error says what is missing. */
trib_status cm_api_load(void);

#endif
