/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The binary interface between NCCL and its network plugins: version 11 of both tables (NCCL 2.28
 * to 2.30). nccl_abi_old.h has versions 8 to 10. Layout and order are NCCL's; names and words are
 * our own, so that the plugin builds without NCCL.
 *
 * Enumerations of NCCL are int here, which has the same size.
 */
#ifndef TRIB_NCCL_ABI_H
#define TRIB_NCCL_ABI_H

#include <stddef.h>
#include <stdint.h>

/* What every function returns. */
enum nccl_result {
	NCCL_SUCCESS,
	NCCL_CUDA_ERROR,
	NCCL_SYSTEM_ERROR,
	NCCL_INTERNAL_ERROR,
	NCCL_INVALID_ARGUMENT,
	NCCL_INVALID_USAGE,
	NCCL_REMOTE_ERROR,
	NCCL_IN_PROGRESS,
};

enum nccl_type {
	NCCL_I8,
	NCCL_U8,
	NCCL_I32,
	NCCL_U32,
	NCCL_I64,
	NCCL_U64,
	NCCL_F16,
	NCCL_F32,
	NCCL_F64,
	NCCL_BF16,
	NCCL_F8E4M3,
	NCCL_F8E5M2,
	NCCL_TYPES,
};

enum nccl_op { NCCL_SUM, NCCL_PROD, NCCL_MAX, NCCL_MIN, NCCL_AVG, NCCL_OPS };

/* Kinds of memory; `pointers` of the properties is a set of them. */
#define NCCL_PTR_HOST 1
#define NCCL_PTR_CUDA 2
#define NCCL_PTR_DMABUF 4

#define NCCL_HANDLE_BYTES 128
#define NCCL_REQUESTS_MAX 32 /* running at once on a comm object */
#define NCCL_NIC_DEVICES 4

enum nccl_log_level {
	NCCL_LOG_NONE,
	NCCL_LOG_VERSION,
	NCCL_LOG_WARN,
	NCCL_LOG_INFO,
	NCCL_LOG_ABORT,
	NCCL_LOG_TRACE,
};
#define NCCL_LOG_INIT 0x01ul
#define NCCL_LOG_COLL 0x02ul
#define NCCL_LOG_NET 0x10ul

typedef void (*nccl_logger)(int level, unsigned long flags, const char *file, int line,
                            const char *format, ...) __attribute__((format(printf, 5, 6)));
typedef int (*nccl_profiler)(void **event, int type, void *parent, int64_t id, void *data);

/* Several physical devices that act as one. */
struct nccl_virtual_device {
	int n;
	int devices[NCCL_NIC_DEVICES];
};

struct nccl_properties_v11 {
	char *name;
	char *pci_path; /* NULL: a virtual device */
	uint64_t guid;
	int pointers;
	int registration_is_global; /* memory is registered for all connections at once */
	int force_flush;
	int speed; /* Mb/s */
	int port;
	float latency; /* microseconds */
	int max_comms;
	int max_receives; /* buffers in one irecv */
	int offload_type; /* 0: the host's processor drives the network */
	int offload_version;
	struct nccl_virtual_device parts;
	size_t max_p2p_bytes;
	size_t max_coll_bytes;
	int max_multi_request;
};
_Static_assert(sizeof(struct nccl_properties_v11) == 112, "NCCL's layout");
_Static_assert(offsetof(struct nccl_properties_v11, pointers) == 24, "NCCL's layout");
_Static_assert(offsetof(struct nccl_properties_v11, speed) == 36, "NCCL's layout");
_Static_assert(offsetof(struct nccl_properties_v11, max_comms) == 48, "NCCL's layout");
_Static_assert(offsetof(struct nccl_properties_v11, parts) == 64, "NCCL's layout");
_Static_assert(offsetof(struct nccl_properties_v11, max_p2p_bytes) == 88, "NCCL's layout");
_Static_assert(offsetof(struct nccl_properties_v11, max_multi_request) == 104, "NCCL's layout");

struct nccl_comm_config {
	int traffic_class; /* -1: unset */
};

/* A part of a vector in memory. */
struct nccl_part {
	void *registration;
	void *address;
	size_t size;
};

/* Members that several versions of the tables have in common. */
#define NCCL_MEMORY_MEMBERS                                                                  \
	int (*reg_mr)(void *comm, void *data, size_t size, int kind, void **registration);   \
	int (*reg_mr_dmabuf)(void *comm, void *data, size_t size, int kind, uint64_t offset, \
	                     int fd, void **registration);                                   \
	int (*dereg_mr)(void *comm, void *registration)

#define NCCL_NET_END_MEMBERS                                                                 \
	int (*iflush)(void *recv_comm, int n, void **data, int *sizes, void **registrations, \
	              void **request);                                                       \
	int (*test)(void *request, int *done, int *sizes);                                   \
	int (*close_send)(void *send_comm);                                                  \
	int (*close_recv)(void *recv_comm);                                                  \
	int (*close_listen)(void *listener);                                                 \
	int (*get_device_mr)(void *comm, void *registration, void **device_registration);    \
	int (*irecv_consumed)(void *recv_comm, int n, void *request)

#define NCCL_NET_MOVE_MEMBERS                                                               \
	int (*isend)(void *send_comm, void *data, size_t size, int tag, void *registration, \
	             void *profile, void **request);                                        \
	int (*irecv)(void *recv_comm, int n, void **data, size_t *sizes, int *tags,         \
	             void **registrations, void **profiles, void **request)

#define NCCL_COLLNET_OPEN_MEMBERS                                                                \
	int (*connect)(void *handles[], int nranks, int rank, void *listener, void **coll_comm); \
	int (*reduce_support)(int type, int op, int *supported)

#define NCCL_COLLNET_CALL_MEMBERS                                                                  \
	int (*iallreduce)(void *coll_comm, void *send, void *recv, size_t count, int type, int op, \
	                  void *send_registration, void *recv_registration, void **request);       \
	int (*iallgather)(void *coll_comm, void *send, int parts, struct nccl_part *recv,          \
	                  size_t rank_bytes, size_t window, size_t window_bytes,                   \
	                  void *send_registration, void **request);                                \
	int (*ireducescatter)(void *coll_comm, int parts, struct nccl_part *send, void *recv,      \
	                      size_t rank_bytes, size_t window, size_t window_bytes, int type,     \
	                      int op, void *recv_registration, void **request)

#define NCCL_COLLNET_END_MEMBERS                                                                  \
	int (*iflush)(void *coll_comm, void *data, int size, void *registration, void **request); \
	int (*test)(void *request, int *done, int *size);                                         \
	int (*close_coll)(void *coll_comm);                                                       \
	int (*close_listen)(void *listener)

/*
 * Point to point. connect and accept never wait: they give success and a NULL comm until the
 * connection is ready, and are called again. isend and irecv may leave *request NULL, and are
 * called again.
 */
struct nccl_net_v11 {
	const char *name;
	int (*init)(void **context, uint64_t comm_id, struct nccl_comm_config *config,
	            nccl_logger logger, nccl_profiler profiler);
	int (*devices)(int *n);
	int (*get_properties)(int device, struct nccl_properties_v11 *properties);
	int (*listen)(void *context, int device, void *handle, void **listener);
	int (*connect)(void *context, int device, void *handle, void **send_comm, void **offload);
	int (*accept)(void *listener, void **recv_comm, void **offload);
	NCCL_MEMORY_MEMBERS;
	NCCL_NET_MOVE_MEMBERS;
	NCCL_NET_END_MEMBERS;
	int (*make_virtual)(int *device, struct nccl_virtual_device *parts);
	int (*finalize)(void *context);
	int (*set_attributes)(void *context, void *attributes);
};
_Static_assert(sizeof(struct nccl_net_v11) == 22 * sizeof(void *), "NCCL's layout");

/*
 * Collectives. connect gets a handle of each node and may wait. It succeeds or fails on all nodes
 * together. In iallgather and ireducescatter, the vector of all ranks has nranks times
 * `rank_bytes`. A call is about the bytes from `window` on, `window_bytes` long.
 */
struct nccl_collnet_v11 {
	const char *name;
	int (*init)(void **context, uint64_t comm_id, nccl_logger logger);
	int (*devices)(int *n);
	int (*get_properties)(int device, struct nccl_properties_v11 *properties);
	int (*listen)(void *context, int device, void *handle, void **listener);
	NCCL_COLLNET_OPEN_MEMBERS;
	NCCL_MEMORY_MEMBERS;
	NCCL_COLLNET_CALL_MEMBERS;
	NCCL_COLLNET_END_MEMBERS;
	int (*make_virtual)(int *device, struct nccl_virtual_device *parts);
	int (*finalize)(void *context);
};
_Static_assert(sizeof(struct nccl_collnet_v11) == 19 * sizeof(void *), "NCCL's layout");

/* The symbols for which NCCL looks. */
extern const struct nccl_net_v11 ncclNetPlugin_v11;
extern const struct nccl_collnet_v11 ncclCollNetPlugin_v11;

#endif
