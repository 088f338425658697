/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of the carrier: the QPs of one channel, and the memory of its messages. */
#ifndef TRIB_PATH_RDMA_LINK_H
#define TRIB_PATH_RDMA_LINK_H

#include "path/channel/carried.h"
#include "path/channel/channel_carrier.h"
#include "path/rdma/rdma_device.h"
#include "path/verbs/pact.h"

#define RDMA_DEPTH 4u     /* messages in flight on a path */
#define RDMA_RECEIVES 16u /* receives that wait on a path */
#define RDMA_BUFFERS 2048u

/* Memory that the device knows. Never more than half of the places are taken. */
struct rdma_buffer {
	void *at; /* NULL: a free place */
	struct ibv_mr *mr;
};

struct rdma_flight {
	uint32_t message, bytes;
	uint64_t sent_at;
};

struct rdma_path {
	bool known;        /* it has addresses */
	uint8_t gid_index; /* of the own address */
	uint8_t to[16];    /* GID of the peer */
	struct ibv_qp *qp; /* NULL: none */
	struct pact_path own;
	unsigned posted; /* requests without a completion, of both queues */
	void *receives[RDMA_RECEIVES];
	struct rdma_flight flights[RDMA_DEPTH]; /* ring, in the order of sending */
	unsigned first, flying;
};

struct rdma_link {
	const struct rdma_device *device;
	struct channel *channel;
	struct channel_events events;
	char name[CHANNEL_NAME];
	uint32_t longest;
	struct ibv_comp_channel *completions;
	struct ibv_cq *cq;
	bool armed; /* the CQ will say when something comes */
	bool full;  /* memory cannot be registered; a line was logged */
	struct rdma_path paths[PATHS_MAX];
	struct rdma_buffer buffers[RDMA_BUFFERS];
	unsigned n_buffers;
};

/* rdma_carrier.c */
extern const struct channel_carrier rdma_link_carrier;

/* rdma_memory.c: the key of the memory. NULL: it cannot be registered. */
const struct ibv_mr *rdma_memory(struct rdma_link *link, const void *at);
void rdma_memory_free(struct rdma_link *link);

/* rdma_qp.c: the QP of a path. False: it fails, and a line says why. */
/* A new QP, with receives, ready to connect. */
bool rdma_qp_create(struct rdma_link *link, unsigned path);
bool rdma_qp_connect(struct rdma_link *link, unsigned path, const struct pact_path *peer);
/* Nothing is sent or received any more; its requests come back with errors. */
void rdma_qp_stop(struct rdma_link *link, unsigned path);
/* The receives that were not used give their memory back. */
void rdma_qp_destroy(struct rdma_link *link, unsigned path);
bool rdma_qp_receive(struct rdma_link *link, unsigned path, unsigned place);
bool rdma_qp_send(struct rdma_link *link, const struct carried_message *message, uint64_t now);

/* The place of a receive, or the number of a message, in wr_id. */
#define RDMA_ID_RECEIVE (1ull << 32)

#endif
