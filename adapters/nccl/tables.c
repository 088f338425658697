/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of version 11, and what both of them need. */
#include "tables.h"
#include "coll/coll.h"
#include "link/nccl_link.h"
#include "common/plugin.h"

#include "base/status.h"

#include <arpa/inet.h>
#include <stdatomic.h>

static atomic_int contexts; /* that NCCL has opened and not finalized */

int table_init(nccl_logger logger)
{
	const struct device *device = device_get();
	char address[INET6_ADDRSTRLEN];
	size_t bytes;

	plugin_start(logger);
	if (!device) {
		plugin_warn("there is no network interface (NCCL_SOCKET_IFNAME)");
		return NCCL_SYSTEM_ERROR;
	}
	plugin_info("Tributary %s, point-to-point by %s (%s), %u sockets a connection",
	            TRIB_VERSION, device->name,
	            inet_ntop(device->address.storage.ss_family, udp_raw(&device->address, &bytes),
	                      address, sizeof(address)),
	            LINK_STRIPES);
	return NCCL_SUCCESS;
}

int table_devices(int *n)
{
	*n = device_get() != NULL;
	return NCCL_SUCCESS;
}

int table_coll_init(nccl_logger logger)
{
	plugin_start(logger);
	if (!device_has_aggregator())
		plugin_info(
			"no aggregator is named (TRIB_AGGREGATOR, TRIB_TREES, TRIB_CONTROLLER), "
			"so NCCL uses point-to-point for all collectives");
	return NCCL_SUCCESS;
}

int table_coll_devices(int *n)
{
	*n = device_get() && device_has_aggregator();
	return NCCL_SUCCESS;
}

int table_reg_mr(void *comm, void *data, size_t size, int kind, void **registration)
{
	(void)comm;
	(void)data;
	(void)size;
	*registration = NULL;
	if (kind != NCCL_PTR_HOST)
		return NCCL_INVALID_ARGUMENT; /* the properties offer host memory alone */
	*registration = &plugin_something;
	return NCCL_SUCCESS;
}

int table_dereg_mr(void *comm, void *registration)
{
	(void)comm;
	(void)registration;
	return NCCL_SUCCESS;
}

/* Host memory needs no flush. */
int table_iflush(void *recv_comm, int n, void **data, int *sizes, void **registrations,
                 void **request)
{
	(void)recv_comm;
	(void)n;
	(void)data;
	(void)sizes;
	(void)registrations;
	*request = NULL;
	return NCCL_SUCCESS;
}

int table_coll_iflush(void *coll_comm, void *data, int size, void *registration, void **request)
{
	(void)coll_comm;
	(void)data;
	(void)size;
	(void)registration;
	*request = NULL;
	return NCCL_SUCCESS;
}

int table_accept(void *listener, void **recv_comm, void **offload)
{
	(void)offload;
	return link_accept(listener, recv_comm);
}

int table_isend(void *send_comm, void *data, size_t size, int tag, void *registration,
                void *profile, void **request)
{
	(void)tag;
	(void)registration;
	(void)profile;
	return link_send(send_comm, data, size, request);
}

int table_irecv(void *recv_comm, int n, void **data, size_t *sizes, int *tags, void **registrations,
                void **profiles, void **request)
{
	(void)tags;
	(void)registrations;
	(void)profiles;
	return link_receive(recv_comm, n, data, sizes, request);
}

int table_iallreduce(void *coll_comm, void *send, void *recv, size_t count, int type, int op,
                     void *send_registration, void *recv_registration, void **request)
{
	(void)send_registration;
	(void)recv_registration;
	return coll_allreduce(coll_comm, send, recv, count, type, op, request);
}

int table_iallgather(void *coll_comm, void *send, int parts, struct nccl_part *recv,
                     size_t rank_bytes, size_t window, size_t window_bytes, void *send_registration,
                     void **request)
{
	(void)send_registration;
	return coll_allgather(coll_comm, send, parts, recv, rank_bytes, window, window_bytes,
	                      request);
}

int table_ireducescatter(void *coll_comm, int parts, struct nccl_part *send, void *recv,
                         size_t rank_bytes, size_t window, size_t window_bytes, int type, int op,
                         void *recv_registration, void **request)
{
	(void)recv_registration;
	return coll_reduce_scatter(coll_comm, parts, send, recv, rank_bytes, window, window_bytes,
	                           type, op, request);
}

static int net_init(void **context, uint64_t comm_id, struct nccl_comm_config *config,
                    nccl_logger logger, nccl_profiler profiler)
{
	(void)comm_id;
	(void)config;
	(void)profiler;
	*context = &plugin_something;
	atomic_fetch_add(&contexts, 1);
	return table_init(logger);
}

/* With the last communicator, the connections end that NCCL has given up. */
static int net_finalize(void *context)
{
	(void)context;
	if (atomic_fetch_sub(&contexts, 1) == 1)
		link_drop_attempts();
	return NCCL_SUCCESS;
}

static int net_listen(void *context, int device, void *handle, void **listener)
{
	(void)context;
	return link_listen(device, handle, listener);
}

static int net_connect(void *context, int device, void *handle, void **send_comm, void **offload)
{
	(void)context;
	(void)offload;
	return link_connect(device, handle, send_comm);
}

static int collnet_init(void **context, uint64_t comm_id, nccl_logger logger)
{
	(void)comm_id;
	*context = &plugin_something;
	return table_coll_init(logger);
}

static int collnet_listen(void *context, int device, void *handle, void **listener)
{
	(void)context;
	return coll_listen(device, handle, listener);
}

static int collnet_finalize(void *context)
{
	(void)context;
	return NCCL_SUCCESS;
}

const struct nccl_net_v11 ncclNetPlugin_v11 = {
	NET_SAME,
	.init = net_init,
	.get_properties = device_properties,
	.listen = net_listen,
	.connect = net_connect,
	.isend = table_isend,
	.irecv = table_irecv,
	.finalize = net_finalize,
};

const struct nccl_collnet_v11 ncclCollNetPlugin_v11 = {
	COLLNET_SAME,
	COLLNET_CALLS,
	.init = collnet_init,
	.get_properties = device_properties,
	.listen = collnet_listen,
	.finalize = collnet_finalize,
};
