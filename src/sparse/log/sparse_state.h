/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All that a shard knows, and the one function that changes it. A server uses it for new entries,
 * and for those of its log after a start. So a state that was restored has the same bits. Pure of
 * I/O and clocks.
 *
 * Exactly once:
 * - A client numbers its pushes, and sends them in order over TCP. So the highest number that was
 *   applied says all. A push whose number is not above it is a repeat, and changes nothing. Numbers
 *   may be left out: a client that has several shards has one row of numbers.
 * - An incarnation has a record for each child: the packets that are in the sums of flushes. After
 *   the end of an incarnation the record does not change any more, and its workers push the rows of
 *   all other packets.
 * - A flush counts only in the open incarnation, and only once an epoch.
 */
#ifndef TRIB_SPARSE_LOG_STATE_H
#define TRIB_SPARSE_LOG_STATE_H

#include "sparse/log/log_entry.h"
#include "sparse/store/sparse_store.h"

#define SPARSE_TABLES_MAX 64u
#define SPARSE_INCARNATIONS_KEPT 16u /* of a table, with their records */

struct sparse_incarnation {
	uint32_t number; /* 0: none */
	uint32_t epoch;  /* of the last flush; 0: none yet. Epochs begin with 1 */
	uint32_t children;
	bool is_sealed;
	struct applied_set records[SPARSE_RECORDS_MAX];
};

struct sparse_table {
	struct sparse_table_options options;
	struct sparse_store *store;
	/* Number i is at i mod SPARSE_INCARNATIONS_KEPT. */
	struct sparse_incarnation incarnations[SPARSE_INCARNATIONS_KEPT];
	uint32_t last; /* number of the last incarnation; 0: none yet */
};

struct sparse_state {
	struct sparse_table *tables[SPARSE_TABLES_MAX];
	uint32_t n_tables;
	struct sparse_client *clients; /* in order of their ids */
	uint32_t n_clients, client_room;
	uint64_t applied, repeated; /* entries since the start */
};

/* What an entry did. */
enum sparse_outcome {
	SPARSE_APPLIED,
	SPARSE_REPEATED, /* it was applied before; a client hears the same as after SPARSE_APPLIED
	                  */
	SPARSE_STALE,    /* it came too late, and did nothing: see sparse_state_check */
};

void sparse_state_begin(struct sparse_state *state);
void sparse_state_end(struct sparse_state *state);

/*
 * Can a server take this new entry? The sentence says why not. There are two kinds of reasons:
 * - The entry is wrong and stays so: it names an unknown table, or a width, key or number that
 *   cannot be. sparse_state_apply fails for these too, and changes nothing.
 * - It came too late: its client has left, or its incarnation was sealed. This can also happen
 *   between check and apply. So sparse_state_apply returns SPARSE_STALE for these.
 * A repeat passes.
 */
trib_status sparse_state_check(const struct sparse_state *state, const struct sparse_entry *entry);

/*
 * Changes the state by an entry of a log. TRIB_ERR_NO_MEMORY: the state may have a part of the
 * entry, and cannot be used any longer.
 */
trib_status sparse_state_apply(struct sparse_state *state, const struct sparse_entry *entry,
                               enum sparse_outcome *outcome);

/* Changes the state by an entry of a snapshot; END is not for it. The state began empty. */
trib_status sparse_state_restore(struct sparse_state *state, const struct sparse_entry *entry);

/* NULL: there is none. */
struct sparse_table *sparse_state_table(const struct sparse_state *state, uint32_t table);
bool sparse_state_table_find(const struct sparse_state *state, const char *name, uint32_t *table);
const struct sparse_client *sparse_state_client(const struct sparse_state *state, uint64_t client);
/* Finds a client, or makes it. NULL: there is no memory. Pointers from before are void. */
struct sparse_client *sparse_state_client_make(struct sparse_state *state, uint64_t client);
/* NULL: it never was, or its record is not kept any more. */
struct sparse_incarnation *sparse_table_incarnation(const struct sparse_table *table,
                                                    uint32_t number);

#endif
