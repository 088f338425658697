/* SPDX-License-Identifier: Apache-2.0 */
/*
 * adapters/nccl owns libnccl-net-tributary.so: NCCL loads it (NCCL_NET_PLUGIN=tributary) and sends
 * through it. Point-to-point messages go over TCP, several sockets a connection (link/nccl_link.h).
 * Collectives go to aggregators, by the library libtributary (coll/coll.h). tables.c and
 * tables_old.c have the tables of functions that NCCL reads; this header has what the tables of
 * several versions have in common. It must not touch what vectors travel in: that is the library's.
 *
 * NCCL calls `test` until a request has ended, and that moves bytes. So the plugin needs no thread,
 * but for links over several paths (link/link_paths.h). The library's threads end when NCCL closes
 * a communicator.
 */
#ifndef TRIB_NCCL_TABLES_H
#define TRIB_NCCL_TABLES_H

#include "nccl_abi_old.h"

#define TABLE_NAME "Tributary"

int table_init(nccl_logger logger);
int table_devices(int *n);
int table_coll_init(nccl_logger logger);
int table_coll_devices(int *n);
int table_reg_mr(void *comm, void *data, size_t size, int kind, void **registration);
int table_dereg_mr(void *comm, void *registration);
int table_iflush(void *recv_comm, int n, void **data, int *sizes, void **registrations,
                 void **request);
int table_coll_iflush(void *coll_comm, void *data, int size, void *registration, void **request);
int table_accept(void *listener, void **recv_comm, void **offload);
int table_isend(void *send_comm, void *data, size_t size, int tag, void *registration,
                void *profile, void **request);
int table_irecv(void *recv_comm, int n, void **data, size_t *sizes, int *tags, void **registrations,
                void **profiles, void **request);
int table_iallreduce(void *coll_comm, void *send, void *recv, size_t count, int type, int op,
                     void *send_registration, void *recv_registration, void **request);
int table_iallgather(void *coll_comm, void *send, int parts, struct nccl_part *recv,
                     size_t rank_bytes, size_t window, size_t window_bytes, void *send_registration,
                     void **request);
int table_ireducescatter(void *coll_comm, int parts, struct nccl_part *send, void *recv,
                         size_t rank_bytes, size_t window, size_t window_bytes, int type, int op,
                         void *recv_registration, void **request);

/* Entries that the tables of all versions have in common; COLLNET_CALLS: from version 9 on. */
#define NET_SAME                                                                    \
	.name = TABLE_NAME, .devices = table_devices, .accept = table_accept,       \
	.reg_mr = table_reg_mr, .dereg_mr = table_dereg_mr, .iflush = table_iflush, \
	.test = link_test, .close_send = link_close, .close_recv = link_close,      \
	.close_listen = link_close_listen

#define COLLNET_SAME                                                                        \
	.name = TABLE_NAME, .devices = table_coll_devices, .connect = coll_connect,         \
	.reduce_support = coll_support, .reg_mr = table_reg_mr, .dereg_mr = table_dereg_mr, \
	.iflush = table_coll_iflush, .test = coll_test, .close_coll = coll_close,           \
	.close_listen = coll_close_listen

#define COLLNET_CALLS                                                   \
	.iallreduce = table_iallreduce, .iallgather = table_iallgather, \
	.ireducescatter = table_ireducescatter

#endif
