/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of versions 8 to 10: the same functions with fewer arguments. */
#include "tables.h"
#include "coll/coll.h"
#include "link/nccl_link.h"
#include "common/plugin.h"

static int properties_v9(int device, struct nccl_properties_v9 *old)
{
	struct nccl_properties_v11 now;
	int result = device_properties(device, &now);

	if (result == NCCL_SUCCESS)
		*old = (struct nccl_properties_v9){
			.name = now.name,
			.pci_path = now.pci_path,
			.guid = now.guid,
			.pointers = now.pointers,
			.registration_is_global = now.registration_is_global,
			.speed = now.speed,
			.latency = now.latency,
			.max_comms = now.max_comms,
			.max_receives = now.max_receives,
			.parts = now.parts,
			.max_p2p_bytes = now.max_p2p_bytes,
			.max_coll_bytes = now.max_coll_bytes,
		};
	return result;
}

static int properties_v8(int device, struct nccl_properties_v8 *old)
{
	struct nccl_properties_v11 now;
	int result = device_properties(device, &now);

	if (result == NCCL_SUCCESS)
		*old = (struct nccl_properties_v8){
			.name = now.name,
			.pci_path = now.pci_path,
			.guid = now.guid,
			.pointers = now.pointers,
			.registration_is_global = now.registration_is_global,
			.speed = now.speed,
			.latency = now.latency,
			.max_comms = now.max_comms,
			.max_receives = now.max_receives,
		};
	return result;
}

static int init_v10(nccl_logger logger, nccl_profiler profiler)
{
	(void)profiler;
	return table_init(logger);
}

static int connect_v10(int device, struct nccl_comm_config *config, void *handle, void **send_comm,
                       void **offload)
{
	(void)config;
	(void)offload;
	return link_connect(device, handle, send_comm);
}

static int connect_v8(int device, void *handle, void **send_comm, void **offload)
{
	(void)offload;
	return link_connect(device, handle, send_comm);
}

static int isend_v9(void *send_comm, void *data, size_t size, int tag, void *registration,
                    void **request)
{
	return table_isend(send_comm, data, size, tag, registration, NULL, request);
}

static int irecv_v9(void *recv_comm, int n, void **data, size_t *sizes, int *tags,
                    void **registrations, void **request)
{
	return table_irecv(recv_comm, n, data, sizes, tags, registrations, NULL, request);
}

static int isend_v8(void *send_comm, void *data, int size, int tag, void *registration,
                    void **request)
{
	if (size < 0)
		return NCCL_INVALID_ARGUMENT;
	return table_isend(send_comm, data, (size_t)size, tag, registration, NULL, request);
}

static int irecv_v8(void *recv_comm, int n, void **data, int *sizes, int *tags,
                    void **registrations, void **request)
{
	size_t size = n == 1 && sizes[0] >= 0 ? (size_t)sizes[0] : 0;

	if (n == 1 && sizes[0] < 0)
		return NCCL_INVALID_ARGUMENT;
	return table_irecv(recv_comm, n, data, &size, tags, registrations, NULL, request);
}

static int iallreduce_v8(void *coll_comm, void *send, void *recv, int count, int type, int op,
                         void *send_registration, void *recv_registration, void **request)
{
	if (count < 0)
		return NCCL_INVALID_ARGUMENT;
	return table_iallreduce(coll_comm, send, recv, (size_t)count, type, op, send_registration,
	                        recv_registration, request);
}

static int iallgather_v8(void *coll_comm, void *send, int parts, struct nccl_part_v8 *recv,
                         size_t rank_bytes, size_t window, size_t window_bytes,
                         void *send_registration, void **request)
{
	struct nccl_part part = { .address = recv->address, .size = recv->size };

	return table_iallgather(coll_comm, send, parts, &part, rank_bytes, window, window_bytes,
	                        send_registration, request);
}

static int ireducescatter_v8(void *coll_comm, int parts, struct nccl_part_v8 *send, void *recv,
                             size_t rank_bytes, size_t window, size_t window_bytes, int type,
                             int op, void *recv_registration, void **request)
{
	struct nccl_part part = { .address = send->address, .size = send->size };

	return table_ireducescatter(coll_comm, parts, &part, recv, rank_bytes, window, window_bytes,
	                            type, op, recv_registration, request);
}

const struct nccl_net_v8 ncclNetPlugin_v8 = {
	NET_SAME,
	.init = table_init,
	.listen = link_listen,
	.get_properties = properties_v8,
	.connect = connect_v8,
	.isend = isend_v8,
	.irecv = irecv_v8,
};

const struct nccl_net_v9 ncclNetPlugin_v9 = {
	NET_SAME,
	.init = table_init,
	.listen = link_listen,
	.get_properties = properties_v9,
	.connect = connect_v8,
	.isend = isend_v9,
	.irecv = irecv_v9,
};

const struct nccl_net_v10 ncclNetPlugin_v10 = {
	NET_SAME,
	.init = init_v10,
	.listen = link_listen,
	.get_properties = properties_v9,
	.connect = connect_v10,
	.isend = table_isend,
	.irecv = table_irecv,
};

const struct nccl_collnet_v8 ncclCollNetPlugin_v8 = {
	COLLNET_SAME,
	.init = table_coll_init,
	.listen = coll_listen,
	.get_properties = properties_v8,
	.iallreduce = iallreduce_v8,
	.iallgather = iallgather_v8,
	.ireducescatter = ireducescatter_v8,
};

#define COLLNET_V9                                                                   \
	COLLNET_SAME, COLLNET_CALLS, .init = table_coll_init, .listen = coll_listen, \
				     .get_properties = properties_v9

const struct nccl_collnet_v9 ncclCollNetPlugin_v9 = { COLLNET_V9 };
const struct nccl_collnet_v9 ncclCollNetPlugin_v10 = { COLLNET_V9 };
