/* SPDX-License-Identifier: Apache-2.0 */
/* hot_table: the state of hot rows of a table; the files server_hot*.c share it. */
#ifndef TRIB_SPARSE_SERVER_HOT_TABLE_H
#define TRIB_SPARSE_SERVER_HOT_TABLE_H

#include "sparse/child/sparse_child.h"
#include "sparse/heat/heat_map.h"
#include "sparse/heat/heat_set.h"
#include "sparse/hot/hot_flusher.h"
#include "sparse/hot/hot_map.h"
#include "sparse/server/server_internal.h"

enum hot_state { HOT_OFF, HOT_OPENING, HOT_OPEN, HOT_SEALING };

struct server_hot {
	enum hot_state state;
	uint32_t incarnation; /* OPENING and later */
	uint64_t open_at;     /* ns: not before */
	uint64_t backoff;     /* ns: after an incarnation that has flushed nothing */
	unsigned aggregator;  /* of the list, in turn */
	char address[64];     /* of the present aggregator */
	char why[256];        /* why there are no hot rows */
	struct message_hot about;

	struct sparse_child *child;
	struct hot_flusher flusher;
	bool has_flusher;
	bool is_appended; /* the flush is in the log, and waits for the commit */
	double unit;      /* of a hot integer */
	uint32_t rows;    /* that the aggregator has room for; before it is known: about */
	uint64_t *keys;   /* of a flush */
	float *values;    /* of a flush */
	struct server_table *table;
	float row[SPARSE_WIDTH_MAX]; /* for the aggregator's cache */
	struct applied_set records[SPARSE_RECORDS_MAX];

	struct hot_maps maps;
	uint32_t told;   /* generation that workers know */
	uint32_t filled; /* generation whose values all go to the aggregator's cache */
	uint64_t touched[SPARSE_ROWS_MAX / 64]; /* rows that wait for the commit, as bits */
	bool is_touched;
	uint32_t touched_by; /* generation of the first of them */
	struct heat_set heat;
	void *heat_memory;
	uint64_t heat_since;  /* ns: the first heat; 0: none yet */
	uint64_t refresh_at;  /* ns: when the map is chosen anew */
	uint64_t refresh_gap; /* ns: after what time */
	double share;         /* of all pushed rows that the map should take */
	uint32_t moved_map;   /* generation whose rows have become rare, as workers say */
	uint32_t moved_tells; /* workers that say so of `moved_map` */
	uint64_t moves;       /* times that other rows became popular */
	uint64_t flushes, flushed_rows, opened;
};

/* ---- server_heat.c: which rows are hot ---- */

/* Chooses a map by the heat, if it is better than the present one. False: it stays. */
bool hot_choose(struct server_hot *hot, uint32_t generation);
/* In each round, while the incarnation is open: a new map, and telling it to the workers. */
void hot_refresh(struct sparse_server *server, struct server_table *table, uint64_t now);

/* ---- server_flush.c: sums from the aggregator ---- */

/* The child has joined. False: trib_last_error() says why. */
bool hot_flush_open(struct server_table *table, const struct sparse_server_options *options,
                    uint64_t now);
void hot_flush_close(struct server_hot *hot);
/* Takes packets, appends a round to the log, sends packets. Gives when to call it again. */
uint64_t hot_flush_serve(struct sparse_server *server, struct server_table *table, uint64_t now);
/* Pushes of these keys wait for the commit: the aggregator's cache needs new values then. */
void hot_flush_touch(struct server_hot *hot, const uint64_t *keys, uint32_t n);
/* The log is written. */
void hot_flush_committed(struct server_hot *hot, uint64_t now);

#endif
