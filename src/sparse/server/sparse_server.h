/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sparse/server owns a parameter server: one shard of all tables, its clients, and when the log is
 * committed. One thread does everything: it takes messages, appends pushes to the log, commits once
 * for all of them, and then acknowledges.
 *
 * Rows and the log belong to sparse/store and sparse/log, the form of messages to sparse/wire.
 *
 * server_loop.c has the loop, server_connection.c moves bytes, server_hello.c admits clients,
 * server_requests.c does what they ask, table_clocks.c counts workers' steps, server_status.c
 * describes the server, server_hot.h is where an aggregator will be served.
 */
#ifndef TRIB_SPARSE_SERVER_SPARSE_SERVER_H
#define TRIB_SPARSE_SERVER_SPARSE_SERVER_H

#include "path/udp.h"
#include "sparse/log/sparse_log.h"

#define SPARSE_SERVER_PORT 7800

struct sparse_server_options {
	struct udp_address listen; /* port 0: any */
	const char *folder;        /* of this shard */
	uint32_t shard, shards;
	enum sparse_sync sync;
	bool keep_logs, repair;
	uint64_t snapshot_bytes; /* a snapshot is begun when the log is this long; 0: never */
	uint64_t cookie;         /* of jobs; 0: anyone may come */
	const char *aggregators; /* "HOST:PORT,HOST:PORT", in order of preference; NULL: none */
	uint64_t memory;         /* asked for at the aggregator, bytes */
	uint64_t flush_ns;       /* between two flushes of hot rows */
	const char *status_file; /* gets the JSON of the status once a second; NULL: none */
};

struct sparse_server;

/* Reads the folder and listens. */
trib_status sparse_server_open(const struct sparse_server_options *options,
                               struct sparse_server **server);
uint16_t sparse_server_port(const struct sparse_server *server);
/* What was restored, for a line of the program. */
const struct sparse_log *sparse_server_log(const struct sparse_server *server);
/* Serves until sparse_server_stop, or until an error that only a restart can heal. */
trib_status sparse_server_run(struct sparse_server *server);
/* May be called from any thread, and from a signal handler. */
void sparse_server_stop(struct sparse_server *server);
void sparse_server_close(struct sparse_server *server);

#endif
