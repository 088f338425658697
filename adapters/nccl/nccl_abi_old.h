/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables of versions 8 (NCCL 2.20), 9 (2.24) and 10 (2.26). nccl_abi.h has the newest ones and
 * explains the functions. These versions have no context: all communicators of a process share one.
 */
#ifndef TRIB_NCCL_ABI_OLD_H
#define TRIB_NCCL_ABI_OLD_H

#include "common/nccl_abi.h"

struct nccl_properties_v8 {
	char *name;
	char *pci_path;
	uint64_t guid;
	int pointers;
	int registration_is_global;
	int speed;
	int port;
	float latency;
	int max_comms;
	int max_receives;
	int offload_type;
	int offload_version;
};
_Static_assert(sizeof(struct nccl_properties_v8) == 64, "NCCL's layout");
_Static_assert(offsetof(struct nccl_properties_v8, speed) == 32, "NCCL's layout");

/* Also of version 10. */
struct nccl_properties_v9 {
	char *name;
	char *pci_path;
	uint64_t guid;
	int pointers;
	int registration_is_global;
	int force_flush;
	int speed;
	int port;
	float latency;
	int max_comms;
	int max_receives;
	int offload_type;
	int offload_version;
	struct nccl_virtual_device parts;
	size_t max_p2p_bytes;
	size_t max_coll_bytes;
};
_Static_assert(sizeof(struct nccl_properties_v9) == 104, "NCCL's layout");

struct nccl_part_v8 {
	void *registration;
	void *address;
	uint32_t size;
};

struct nccl_net_v8 {
	const char *name;
	int (*init)(nccl_logger logger);
	int (*devices)(int *n);
	int (*get_properties)(int device, struct nccl_properties_v8 *properties);
	int (*listen)(int device, void *handle, void **listener);
	int (*connect)(int device, void *handle, void **send_comm, void **offload);
	int (*accept)(void *listener, void **recv_comm, void **offload);
	NCCL_MEMORY_MEMBERS;
	int (*isend)(void *send_comm, void *data, int size, int tag, void *registration,
	             void **request);
	int (*irecv)(void *recv_comm, int n, void **data, int *sizes, int *tags,
	             void **registrations, void **request);
	NCCL_NET_END_MEMBERS;
};
_Static_assert(sizeof(struct nccl_net_v8) == 19 * sizeof(void *), "NCCL's layout");

struct nccl_net_v9 {
	const char *name;
	int (*init)(nccl_logger logger);
	int (*devices)(int *n);
	int (*get_properties)(int device, struct nccl_properties_v9 *properties);
	int (*listen)(int device, void *handle, void **listener);
	int (*connect)(int device, void *handle, void **send_comm, void **offload);
	int (*accept)(void *listener, void **recv_comm, void **offload);
	NCCL_MEMORY_MEMBERS;
	int (*isend)(void *send_comm, void *data, size_t size, int tag, void *registration,
	             void **request);
	int (*irecv)(void *recv_comm, int n, void **data, size_t *sizes, int *tags,
	             void **registrations, void **request);
	NCCL_NET_END_MEMBERS;
	int (*make_virtual)(int *device, struct nccl_virtual_device *parts);
};
_Static_assert(sizeof(struct nccl_net_v9) == 20 * sizeof(void *), "NCCL's layout");

struct nccl_net_v10 {
	const char *name;
	int (*init)(nccl_logger logger, nccl_profiler profiler);
	int (*devices)(int *n);
	int (*get_properties)(int device, struct nccl_properties_v9 *properties);
	int (*listen)(int device, void *handle, void **listener);
	int (*connect)(int device, struct nccl_comm_config *config, void *handle, void **send_comm,
	               void **offload);
	int (*accept)(void *listener, void **recv_comm, void **offload);
	NCCL_MEMORY_MEMBERS;
	NCCL_NET_MOVE_MEMBERS;
	NCCL_NET_END_MEMBERS;
	int (*make_virtual)(int *device, struct nccl_virtual_device *parts);
};
_Static_assert(sizeof(struct nccl_net_v10) == 20 * sizeof(void *), "NCCL's layout");

struct nccl_collnet_v8 {
	const char *name;
	int (*init)(nccl_logger logger);
	int (*devices)(int *n);
	int (*get_properties)(int device, struct nccl_properties_v8 *properties);
	int (*listen)(int device, void *handle, void **listener);
	NCCL_COLLNET_OPEN_MEMBERS;
	NCCL_MEMORY_MEMBERS;
	int (*iallreduce)(void *coll_comm, void *send, void *recv, int count, int type, int op,
	                  void *send_registration, void *recv_registration, void **request);
	int (*iallgather)(void *coll_comm, void *send, int parts, struct nccl_part_v8 *recv,
	                  size_t rank_bytes, size_t window, size_t window_bytes,
	                  void *send_registration, void **request);
	int (*ireducescatter)(void *coll_comm, int parts, struct nccl_part_v8 *send, void *recv,
	                      size_t rank_bytes, size_t window, size_t window_bytes, int type,
	                      int op, void *recv_registration, void **request);
	NCCL_COLLNET_END_MEMBERS;
};
_Static_assert(sizeof(struct nccl_collnet_v8) == 17 * sizeof(void *), "NCCL's layout");

/* Also version 10. */
struct nccl_collnet_v9 {
	const char *name;
	int (*init)(nccl_logger logger);
	int (*devices)(int *n);
	int (*get_properties)(int device, struct nccl_properties_v9 *properties);
	int (*listen)(int device, void *handle, void **listener);
	NCCL_COLLNET_OPEN_MEMBERS;
	NCCL_MEMORY_MEMBERS;
	NCCL_COLLNET_CALL_MEMBERS;
	NCCL_COLLNET_END_MEMBERS;
	int (*make_virtual)(int *device, struct nccl_virtual_device *parts);
};
_Static_assert(sizeof(struct nccl_collnet_v9) == 18 * sizeof(void *), "NCCL's layout");

extern const struct nccl_net_v8 ncclNetPlugin_v8;
extern const struct nccl_net_v9 ncclNetPlugin_v9;
extern const struct nccl_net_v10 ncclNetPlugin_v10;
extern const struct nccl_collnet_v8 ncclCollNetPlugin_v8;
extern const struct nccl_collnet_v9 ncclCollNetPlugin_v9, ncclCollNetPlugin_v10;

#endif
