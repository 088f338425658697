/* SPDX-License-Identifier: Apache-2.0 */
#include "path/rdma/rdma_device.h"

#include "base/settings.h"

/* Addresses for RoCE v2 and IPv4, in their order. */
static unsigned list_addresses(struct ibv_context *context, struct gid_address *out)
{
	const char *wanted = getenv("TRIB_VERBS_ADDRESSES");
	struct ibv_gid_entry entry;
	unsigned n = 0;

	for (unsigned i = 0; i < GIDS_MAX; i++)
		if (rdma_api.query_gid_ex(context, RDMA_PORT, i, &entry, 0, sizeof(entry)) == 0 &&
		    entry.gid_type == IBV_GID_TYPE_ROCE_V2)
			n = gid_append(out, n, entry.gid.raw, i, wanted);
	qsort(out, n, sizeof(*out), gid_compare);
	return n;
}

static bool has_address(const struct gid_address *addresses, unsigned n,
                        const struct udp_address *local)
{
	size_t size;
	const void *raw = udp_raw(local, &size);

	for (unsigned i = 0; i < n && size == 4; i++)
		if (!memcmp(addresses[i].raw + 12, raw, 4))
			return true;
	return false;
}

static enum ibv_mtu mtu_of(struct ibv_context *context)
{
	struct ibv_port_attr port = { 0 };
	struct verbs_context *more = verbs_get_ctx_op(context, query_port);

	if (!more || more->query_port(context, RDMA_PORT, &port, sizeof(port)))
		return IBV_MTU_1024;
	return port.active_mtu;
}

/* Takes the device if it is the first with addresses, or if it has the address `local`. */
static bool consider(struct ibv_device *from, const struct udp_address *local,
                     struct rdma_device *device)
{
	struct ibv_context *context = rdma_api.open_device(from);
	struct gid_address addresses[GIDS_MAX];
	enum path_search search;
	unsigned most = PATHS_MAX, n;
	bool preferred;

	if (!context)
		return false;
	n = list_addresses(context, addresses);
	preferred = has_address(addresses, n, local);
	if (!n || (device->context && !preferred)) {
		rdma_api.close_device(context);
		return false;
	}
	if (device->context)
		rdma_api.close_device(device->context);
	if (setting_paths(&search, &most) != TRIB_OK || search == PATHS_OFF)
		most = 1;
	device->context = context;
	device->n_addresses = n < most ? n : most;
	memcpy(device->addresses, addresses, device->n_addresses * sizeof(addresses[0]));
	return preferred;
}

static trib_status find(const struct udp_address *local, struct rdma_device *device)
{
	struct ibv_device **list;
	trib_status status = rdma_api_load();
	int n = 0;

	if (status != TRIB_OK)
		return status;
	list = rdma_api.get_device_list(&n);
	for (int i = 0; list && i < n; i++)
		if (consider(list[i], local, device))
			break;
	if (list)
		rdma_api.free_device_list(list);
	if (!device->context)
		return status_fail(
			TRIB_ERR_SYSTEM,
			"none of %d RDMA devices has an IPv4 address for RoCE v2 that may be "
			"used (TRIB_VERBS_ADDRESSES)",
			n);
	device->mtu = mtu_of(device->context);
	device->pd = rdma_api.alloc_pd(device->context);
	return device->pd ? TRIB_OK : status_fail_errno("no protection domain");
}

static struct rdma_device opened;

const struct rdma_device *rdma_device_open(const struct udp_address *local)
{
	return find(local, &opened) == TRIB_OK ? &opened : NULL;
}

const struct rdma_device *rdma_device(void)
{
	return &opened;
}
