/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sparse/client owns the worker's side of <tributary/sparse.h>: a table, its connections to the
 * parameter servers (shards), and the messages on their way. A thread of the table sends and
 * receives. The user's thread adds messages to queues and waits.
 *
 * This room must not touch the servers' inside (server, store, log), nor communicators of
 * libtributary.
 *
 * client_api.c and client_requests.c have the public functions, client_options.c checks options,
 * key_groups.c finds equal keys, client_route.c decides which way rows go, client_queue.c makes
 * messages of pushes and pulls, client_shard.c speaks with one shard, client_thread.c has the
 * thread's loop. client_hot.c sends hot rows to an aggregator, and client_pull.c asks it for
 * values.
 *
 * Everything below is guarded by `lock`, but for what does not change after trib_sparse_open.
 */
#ifndef TRIB_SPARSE_CLIENT_SPARSE_CLIENT_H
#define TRIB_SPARSE_CLIENT_SPARSE_CLIENT_H

#include "path/tcp.h"
#include "sparse/wire/sparse_message.h"
#include "tributary/sparse.h"

#include <pthread.h>

#define CLIENT_UNDER_WAY_MAX (64u << 20)  /* bytes in all queues; a push waits then */
#define CLIENT_MESSAGE_BYTES (256u << 10) /* of a push; longer ones are split */
#define CLIENT_SENTENCE 512u
#define CLIENT_STEPS 64u

/* A push or a pull. It has ended when `left` is 0. */
struct trib_sparse_request {
	trib_sparse *table;
	struct trib_sparse_request *next, *previous; /* pushes that run, in order */
	uint64_t ticket;                             /* of a push: 1, 2, 3 ... */
	bool is_push;
	bool is_owned;   /* the user has it, and frees it by trib_sparse_test or _wait */
	uint64_t left;   /* messages without an answer, and 1 while messages are added */
	float *rows;     /* of a pull */
	size_t n_copies; /* rows that have the key of an earlier one, and that one */
	size_t (*copies)[2];
};

/* A message in a shard's queue. PUSH stays until it is durable, PULL until it is answered. */
struct outgoing {
	struct outgoing *next;
	struct trib_sparse_request *request;
	enum message_kind kind;
	uint64_t number;
	bool is_sent;   /* on this connection, or applied on an earlier one */
	uint32_t n;     /* rows */
	size_t *places; /* PULL: numbers of the user's rows */
	struct byte_buffer bytes;
};

enum shard_state {
	SHARD_APART,      /* not connected; the next attempt is at retry_at */
	SHARD_CONNECTING, /* until `deadline` */
	SHARD_GREETING,   /* HELLO was sent, until `deadline` */
	SHARD_OPEN,
	SHARD_LEFT, /* BYE was answered */
};

struct client_hot;

struct shard {
	trib_sparse *table;
	uint32_t number;
	char address_text[96]; /* as the user wrote it */
	struct udp_address address;
	int fd; /* -1: none */
	enum shard_state state;
	uint64_t retry_at, deadline, backoff; /* ns */
	char trouble[160];                    /* why it is not connected */
	bool was_refused;                     /* for now; `trouble` has the server's sentence */
	bool was_open;
	bool says_bye;

	struct outgoing *first, *last; /* without an answer, in order */
	struct outgoing *unsent;       /* the first that was not sent on this connection */
	size_t unsent_at;              /* bytes of it that were sent */
	uint64_t pushes;               /* number of the last PUSH */
	uint64_t acknowledged;         /* highest number that is durable */
	struct byte_buffer control;    /* HELLO, STEP, BYE, ...: sent before the queue */
	struct byte_buffer in;

	uint64_t lowest_clock; /* of all workers, as this shard said */
	uint32_t slowest;      /* its rank */
	struct client_hot *hot;
};

/* A step is told to the servers when all pushes up to `ticket` have ended. */
struct client_step {
	uint64_t clock, ticket;
};

struct trib_sparse {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	int wake_fd;
	bool is_leaving; /* it says BYE to each shard, also to those that come back meanwhile */
	bool is_closing;
	bool has_thread;

	struct message_hello hello; /* its shard, clock and acknowledged are set for each shard */
	uint64_t client;            /* random id */
	uint64_t parameters;        /* keys are below */
	uint32_t width;
	bool is_bounded, is_half;
	uint64_t staleness, timeout_ns;

	uint32_t n_shards;
	struct shard *shards;

	trib_status failed; /* TRIB_OK, or why the table cannot go on */
	char sentence[CLIENT_SENTENCE];

	struct trib_sparse_request *pushes, *last_push; /* that run */
	uint64_t tickets, pulls;
	bool hurries;     /* the user waits for pushes: hot rows should be durable soon */
	size_t under_way; /* bytes in queues */
	uint64_t clock;   /* steps that the user has ended */
	uint64_t told;    /* the last step that the servers heard of */
	struct client_step steps[CLIENT_STEPS];
	uint32_t n_steps;
	trib_sparse_stats stats;
};

/* The table fails for good, unless it has failed before: all calls return this. */
void client_fail(trib_sparse *table, trib_status status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Others wait for this worker's steps until it has said BYE. */
bool client_is_awaited(const trib_sparse *table);
/* Wakes the table's thread. */
void client_wake(trib_sparse *table);
/* The user waits for pushes: the same, and hot rows hurry. */
void client_hurry(trib_sparse *table);

#endif
