/* SPDX-License-Identifier: Apache-2.0 */
/* rdma_device: the RDMA device of this process, opened once. */
#ifndef TRIB_PATH_RDMA_DEVICE_H
#define TRIB_PATH_RDMA_DEVICE_H

#include "path/balance/monitor.h"
#include "path/rdma/rdma_api.h"
#include "path/udp.h"
#include "path/verbs/gid_order.h"

#define RDMA_PORT 1 /* of the device, the only one that is used */

struct rdma_device {
	struct ibv_context *context;
	struct ibv_pd *pd;
	enum ibv_mtu mtu;
	unsigned n_addresses; /* at least 1 */
	struct gid_address addresses[PATHS_MAX];
};

/* Opens it, once. `local`: an own address, whose device is preferred. NULL: there is none, and the
 * error says why. */
const struct rdma_device *rdma_device_open(const struct udp_address *local);
/* The one that is open. */
const struct rdma_device *rdma_device(void);

#endif
