/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log owns what a shard keeps on disk: a folder with a log of all changes, and snapshots. It also
 * owns the state that follows from them (sparse_state.h). It must not touch networks and threads.
 * Time is an argument.
 *
 *     sparse_log_open(...)            reads snapshot and log; state is as before the crash
 *     sparse_log_append(log, &push)   checks the entry, and keeps its bytes in memory
 *     sparse_log_append(log, &push2)
 *     sparse_log_commit(log, now)     one write; then each entry is applied, and `on_applied` is
 *                                     called for each: now a client may get its answer
 *
 * Files of the folder, N is a number of 16 hexadecimal digits:
 *     lock         held by the server that uses the folder, with its process number
 *     log-N        entries in order; log N+1 goes on where log N ends
 *     snapshot-N   the state before the first entry of log N
 *
 * A snapshot is written by a child process, so that the server does not stop. When it is complete,
 * older logs and snapshots are removed. A crash between any two steps is harmless.
 */
#ifndef TRIB_SPARSE_LOG_H
#define TRIB_SPARSE_LOG_H

#include "sparse/log/sparse_state.h"

#include <stdio.h>

/* When a commit's bytes have to be on the disk. */
enum sparse_sync {
	SPARSE_SYNC_COMMIT, /* at the end of the commit: power may fail at any time */
	SPARSE_SYNC_SECOND, /* once a second: a power failure loses up to a second */
	SPARSE_SYNC_NONE,   /* when the system likes: the death of the server loses nothing */
};

bool sparse_sync_find(const char *name, enum sparse_sync *sync); /* "commit", "second", "none" */

struct sparse_log_options {
	const char *folder; /* it is made if it is not there */
	uint32_t shard, shards;
	enum sparse_sync sync;
	bool keep_logs; /* for audits: logs are not removed after a snapshot */
	bool repair;    /* cut the log at a damaged entry, instead of refusing to start */
	/* An entry is durable and applied. It must not call sparse_log functions. May be NULL. */
	void (*on_applied)(void *context, const struct sparse_entry *entry,
	                   enum sparse_outcome outcome);
	void *context;
};

struct sparse_log;

trib_status sparse_log_open(const struct sparse_log_options *options, struct sparse_log **log);
/* Entries that were not committed are lost. A snapshot that is being written is given up. */
void sparse_log_close(struct sparse_log *log);

/* Read it freely; only this room changes it. */
struct sparse_state *sparse_log_state(const struct sparse_log *log);

/*
 * Checks an entry against the state as of the last commit, and keeps a copy of its bytes for the
 * next commit. So a table, client or incarnation has to be committed before entries that need it.
 */
trib_status sparse_log_append(struct sparse_log *log, const struct sparse_entry *entry);
/* Bytes that wait for a commit. */
size_t sparse_log_pending(const struct sparse_log *log);

/*
 * Writes all that was appended, and applies it. If the write fails (full disk, I/O error), then
 * nothing was applied, the file is cut back, and the entries wait for the next commit: the caller
 * tries again later. If sparse_log_is_broken says so, only a restart helps.
 */
trib_status sparse_log_commit(struct sparse_log *log, uint64_t now_ns);
bool sparse_log_is_broken(const struct sparse_log *log);

/* The table of these options: it is found by its name, or made. Commits. */
trib_status sparse_log_table(struct sparse_log *log, const struct sparse_table_options *options,
                             uint64_t now_ns, uint32_t *table);

/*
 * Call it at least once a second. It synchronizes for SPARSE_SYNC_SECOND, and looks after the
 * process that writes a snapshot. A failed snapshot is a warning in the program's log.
 */
trib_status sparse_log_tick(struct sparse_log *log, uint64_t now_ns);

/*
 * Begins a snapshot: commits, begins a new log file, and starts a process that writes the state.
 * Only a thread that lives as long as the log may call it: the process dies with that thread.
 */
trib_status sparse_log_snapshot(struct sparse_log *log, uint64_t now_ns);
bool sparse_log_is_snapshotting(const struct sparse_log *log);

struct sparse_log_stats {
	uint64_t bytes;         /* of log files since the last complete snapshot */
	uint64_t commits;       /* since the start */
	uint64_t entries;       /* since the start */
	uint64_t snapshots;     /* completed since the start */
	uint64_t replayed;      /* entries of the log at the start */
	uint64_t restored_rows; /* of the snapshot at the start */
	uint64_t number;        /* of the log file that is written */
};

void sparse_log_get_stats(const struct sparse_log *log, struct sparse_log_stats *stats);

/* ---- reading a folder without a server ---- */

struct sparse_log_visit {
	const char *file; /* name in the folder */
	uint64_t number;  /* of the log file */
	uint64_t offset;
	const struct sparse_entry *entry;
};

/*
 * Calls `visit` for each entry of all log files of a folder, in order. It changes nothing. It stops
 * at a torn tail: `*torn` is its offset in the last file, or UINT64_MAX. If `visit` returns an
 * error, it ends with that.
 */
trib_status sparse_log_visit(const char *folder,
                             trib_status (*visit)(void *context, const struct sparse_log_visit *),
                             void *context, uint64_t *torn);

/* Prints an entry as a line for people or as a line of JSON, for `trib sparse log`. */
void sparse_log_print(FILE *out, const struct sparse_log_visit *visit, bool json);

#endif
