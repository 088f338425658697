/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of sparse/server share: the server, its tables and its connections. No functions
 * that call up. */
#ifndef TRIB_SPARSE_SERVER_SERVER_INTERNAL_H
#define TRIB_SPARSE_SERVER_SERVER_INTERNAL_H

#include "sparse/server/sparse_server.h"
#include "sparse/server/table_clocks.h"
#include "sparse/wire/sparse_message.h"

/* A client whose output is this long is not read: it has to take its answers first. */
#define OUTPUT_MAX (16u << 20)

struct server_hot;

/* What a table has beside its rows. */
struct server_table {
	uint32_t number;                  /* at the log */
	const struct sparse_table *table; /* rows and options */
	char name[SPARSE_NAME_ROOM];      /* as workers call it */
	struct message_hello run;         /* of the client that began this run */
	struct table_clocks clocks;
	struct server_hot *hot;
	bool is_used;   /* since the server began, rows were pushed or pulled */
	bool is_pulled; /* rows were pulled, so an aggregator should have their values */
};

enum connection_state {
	CONNECTION_NEW,     /* nothing was said */
	CONNECTION_OPEN,    /* the client is in a table */
	CONNECTION_CLOSING, /* what waits is sent, then it is closed */
	CONNECTION_DEAD,    /* to be freed at the end of the round */
};

struct connection {
	int fd;
	enum connection_state state;
	char peer[64]; /* its address */
	char host[MESSAGE_NAME];
	uint32_t events; /* that epoll waits for */
	struct byte_buffer in, out;
	struct server_table *table;
	uint64_t client;
	uint32_t rank;
	uint64_t appended;  /* the highest push in the log or waiting for the commit */
	bool waits_for_ack; /* an ACK is due after the next commit */
	bool waits_for_bye; /* BYE is due after the next commit */
	bool has_said_bye;
	bool is_shut;       /* CONNECTION_CLOSING: all was sent */
	uint64_t closed_at; /* CONNECTION_CLOSING: since when */
	uint64_t since;     /* when it connected */
};

struct server_counts {
	uint64_t pushes, pushed_rows, repeats, pulls, pulled_rows, refused;
};

struct sparse_server {
	struct sparse_server_options options;
	struct sparse_log *log;
	struct sparse_state *state;
	int epoll_fd, listen_fd, stop_fd;
	bool listens; /* the listener is in epoll */
	bool is_running;
	uint64_t random; /* of this process */
	uint64_t started;
	struct connection **connections;
	uint32_t n_connections, connection_room;
	struct server_table *tables[SPARSE_TABLES_MAX];
	uint32_t n_tables;
	float *scratch; /* rows of a message as f32 */
	size_t scratch_room;
	char trouble[256]; /* why the log could not be written; "": it can */
	uint64_t retry_at; /* with trouble */
	uint64_t tick_at;
	bool acks_due;
	struct server_counts counts, counts_before; /* at the last two ticks of a second */
	double pushes_per_s, pulls_per_s;
	uint64_t rates_at;
};

/* The table that is open under this number of the log; NULL: none is. */
static inline struct server_table *server_table_find(const struct sparse_server *server,
                                                     uint32_t number)
{
	for (uint32_t i = 0; i < server->n_tables; i++)
		if (server->tables[i]->number == number)
			return server->tables[i];
	return NULL;
}

#endif
