/* SPDX-License-Identifier: Apache-2.0 */
#include "sparse/log/sparse_log.h"

#include "base/clock.h"
#include "base/log.h"
#include "sparse/log/log_replay.h"
#include "sparse/log/snapshot_process.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define PENDING_FIRST (64u << 10)

struct sparse_log {
	struct sparse_log_options options;
	struct log_folder folder;
	struct sparse_state state;
	struct log_file_head head; /* of the log file that is written */
	int fd;
	uint64_t end;         /* of the entries in that file */
	uint64_t older_bytes; /* of log files before it that no snapshot has */
	bool is_torn;         /* there may be bytes behind `end` */
	bool is_broken;
	bool is_unsynced;
	uint64_t synced_ns;
	uint8_t *pending; /* entries, encoded */
	size_t n_pending, pending_room;
	struct snapshot_process snapshot;
	struct sparse_log_stats stats;
};

bool sparse_sync_find(const char *name, enum sparse_sync *sync)
{
	static const char *const names[] = { "commit", "second", "none" };

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (!strcmp(names[i], name)) {
			*sync = (enum sparse_sync)i;
			return true;
		}
	}
	return false;
}

/* ---- open and close ---- */

static trib_status folder_begin(struct sparse_log *log)
{
	log->head = (struct log_file_head){
		.shard = log->options.shard,
		.shards = log->options.shards,
		.number = 1,
	};
	while (!log->head.identity) {
		if (getrandom(&log->head.identity, sizeof(log->head.identity), 0) < 0)
			return status_fail_errno("no random number for folder %s",
			                         log->folder.path);
	}
	log->end = LOG_HEAD_BYTES;
	return log_folder_create(&log->folder, &log->head, &log->fd);
}

static trib_status folder_go_on(struct sparse_log *log, const struct log_replay *replay)
{
	char name[LOG_NAME_ROOM];

	log->head = replay->head;
	log->end = replay->end;
	log->older_bytes = replay->bytes - replay->end;
	log_folder_name(name, false, log->head.number, "");
	log->fd = openat(log->folder.fd, name, O_RDWR | O_CLOEXEC);
	if (log->fd < 0)
		return status_fail_errno("cannot write %s/%s", log->folder.path, name);
	/* An earlier server may have been killed before the system wrote all. */
	if (fdatasync(log->fd) < 0)
		return status_fail_errno("cannot write %s/%s", log->folder.path, name);
	if (replay->snapshot)
		log_folder_prune(&log->folder, replay->snapshot, log->options.keep_logs);
	log_notice("%s: %" PRIu64 " rows of a snapshot and %" PRIu64
	           " entries of the log were read",
	           log->folder.path, replay->rows, replay->entries);
	return TRIB_OK;
}

static trib_status log_begin(struct sparse_log *log)
{
	struct log_replay replay;
	trib_status status = log_folder_open(&log->folder, log->options.folder);

	if (status != TRIB_OK)
		return status;
	log_folder_tidy(&log->folder);
	status = log_replay(&log->folder, log->options.shard, log->options.shards,
	                    log->options.repair ? LOG_REPAIR_ALL : LOG_REPAIR_TAIL, &log->state,
	                    &replay);
	if (status != TRIB_OK)
		return status;
	log->stats.replayed = replay.entries;
	log->stats.restored_rows = replay.rows;
	return replay.is_new ? folder_begin(log) : folder_go_on(log, &replay);
}

trib_status sparse_log_open(const struct sparse_log_options *options, struct sparse_log **out)
{
	struct sparse_log *log = calloc(1, sizeof(*log));
	trib_status status;

	*out = NULL;
	if (!log)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for a log");
	log->options = *options;
	log->fd = log->folder.fd = log->folder.lock = -1;
	snapshot_process_begin(&log->snapshot);
	status = log_begin(log);
	if (status != TRIB_OK) {
		sparse_log_close(log);
		return status;
	}
	*out = log;
	return TRIB_OK;
}

void sparse_log_close(struct sparse_log *log)
{
	if (!log)
		return;
	snapshot_process_end(&log->snapshot);
	if (log->fd >= 0 && log->is_unsynced && fdatasync(log->fd) < 0)
		log_warn("cannot synchronize the log in %s: %s", log->folder.path, strerror(errno));
	if (log->fd >= 0)
		close(log->fd);
	log_folder_close(&log->folder);
	sparse_state_end(&log->state);
	free(log->pending);
	free(log);
}

struct sparse_state *sparse_log_state(const struct sparse_log *log)
{
	return (struct sparse_state *)&log->state;
}

/* ---- append ---- */

static trib_status pending_grow(struct sparse_log *log, size_t n)
{
	size_t room = log->pending_room ? log->pending_room : PENDING_FIRST;
	uint8_t *pending;

	if (log->pending_room - log->n_pending >= n)
		return TRIB_OK;
	while (room - log->n_pending < n)
		room *= 2;
	pending = realloc(log->pending, room);
	if (!pending)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for %zu bytes of the log", room);
	log->pending = pending;
	log->pending_room = room;
	return TRIB_OK;
}

trib_status sparse_log_append(struct sparse_log *log, const struct sparse_entry *entry)
{
	size_t n = entry_bytes(entry);
	trib_status status;

	if (!n)
		return status_fail(TRIB_ERR_ARGUMENT,
		                   "an entry with %u rows of %u floats is too large", entry->n,
		                   entry->width);
	status = sparse_state_check(&log->state, entry);
	if (status == TRIB_OK)
		status = pending_grow(log, n);
	if (status != TRIB_OK)
		return status;
	entry_encode(entry, log->pending + log->n_pending);
	log->n_pending += n;
	return TRIB_OK;
}

size_t sparse_log_pending(const struct sparse_log *log)
{
	return log->n_pending;
}

bool sparse_log_is_broken(const struct sparse_log *log)
{
	return log->is_broken;
}

/* ---- commit ---- */

/* Entries get their places, which may be others than at a commit that failed. */
static void pending_seal(struct sparse_log *log)
{
	struct entry_place place = { .file = log_head_place(&log->head), .batch = log->end };

	for (size_t at = 0; at < log->n_pending;) {
		uint8_t *bytes = log->pending + at;

		place.offset = log->end + at;
		entry_seal(bytes, &place);
		at += entry_head_read(bytes, place.offset).bytes;
	}
}

/* Removes what a failed write may have left behind the last commit. */
static void cut_back(struct sparse_log *log)
{
	log->is_torn = ftruncate(log->fd, (off_t)log->end) < 0;
}

static trib_status broken_fail(struct sparse_log *log, trib_status status)
{
	log->is_broken = true;
	return status;
}

static trib_status pending_apply(struct sparse_log *log)
{
	trib_status status = TRIB_OK;

	for (size_t at = 0, n; status == TRIB_OK && at < log->n_pending; at += n) {
		const uint8_t *bytes = log->pending + at;
		struct sparse_entry entry;
		enum sparse_outcome outcome;

		n = entry_head_read(bytes, UINT64_MAX).bytes;
		status = entry_parse(bytes, n, &entry);
		if (status == TRIB_OK)
			status = sparse_state_apply(&log->state, &entry, &outcome);
		if (status != TRIB_OK)
			break;
		log->stats.entries++;
		if (log->options.on_applied)
			log->options.on_applied(log->options.context, &entry, outcome);
	}
	log->n_pending = 0;
	/* The log has entries that the state lacks. */
	return status == TRIB_OK ? status : broken_fail(log, status);
}

static trib_status usable_check(const struct sparse_log *log)
{
	return log->is_broken
	               ? status_fail(TRIB_ERR_SYSTEM,
	                             "the log in %s failed before; the server has to start again",
	                             log->folder.path)
	               : TRIB_OK;
}

trib_status sparse_log_commit(struct sparse_log *log, uint64_t now_ns)
{
	trib_status status = usable_check(log);

	if (status != TRIB_OK || !log->n_pending)
		return status;
	if (log->is_torn)
		cut_back(log);
	if (log->is_torn)
		return status_fail_errno("cannot cut back the log in %s", log->folder.path);
	pending_seal(log);
	if (!log_bytes_write(log->fd, log->pending, log->n_pending, log->end) ||
	    (log->options.sync == SPARSE_SYNC_COMMIT && fdatasync(log->fd) < 0)) {
		status = status_fail_errno("cannot write the log in %s", log->folder.path);
		cut_back(log);
		return status;
	}
	if (!log->is_unsynced)
		log->synced_ns = now_ns;
	log->is_unsynced = log->options.sync != SPARSE_SYNC_COMMIT;
	log->end += log->n_pending;
	log->stats.commits++;
	return pending_apply(log);
}

trib_status sparse_log_table(struct sparse_log *log, const struct sparse_table_options *options,
                             uint64_t now_ns, uint32_t *table)
{
	struct sparse_entry entry = { .kind = SPARSE_ENTRY_TABLE, .options = *options };
	trib_status status;

	if (!sparse_state_table_find(&log->state, options->name, &entry.table))
		entry.table = log->state.n_tables;
	*table = entry.table;
	status = sparse_state_check(&log->state, &entry);
	if (status != TRIB_OK || entry.table < log->state.n_tables)
		return status;
	status = sparse_log_append(log, &entry);
	return status == TRIB_OK ? sparse_log_commit(log, now_ns) : status;
}

/* ---- time ---- */

/* What was acknowledged before may be lost after a failure: no later commit may succeed. */
static trib_status log_sync(struct sparse_log *log, uint64_t now_ns)
{
	if (log->is_unsynced && fdatasync(log->fd) < 0)
		return broken_fail(log, status_fail_errno("cannot synchronize the log in %s",
		                                          log->folder.path));
	log->is_unsynced = false;
	log->synced_ns = now_ns;
	return TRIB_OK;
}

static void snapshot_look(struct sparse_log *log)
{
	char why[256];
	uint64_t number;

	switch (snapshot_process_look(&log->snapshot, &number, why, sizeof(why))) {
	case SNAPSHOT_DONE:
		log_folder_prune(&log->folder, number, log->options.keep_logs);
		log->older_bytes = 0;
		log->stats.snapshots++;
		log_info("snapshot %" PRIu64 " in %s is complete", number, log->folder.path);
		break;
	case SNAPSHOT_FAILED:
		log_warn("snapshot %" PRIu64 " failed: %s", number, why);
		break;
	default:
		break;
	}
}

trib_status sparse_log_tick(struct sparse_log *log, uint64_t now_ns)
{
	trib_status status = usable_check(log);

	snapshot_look(log);
	if (status == TRIB_OK && log->options.sync == SPARSE_SYNC_SECOND &&
	    clock_since(now_ns, log->synced_ns) >= NSEC_PER_SEC)
		status = log_sync(log, now_ns);
	return status;
}

/* ---- snapshots ---- */

static trib_status log_switch(struct sparse_log *log)
{
	struct log_file_head head = log->head;
	trib_status status;
	int fd;

	head.number++;
	status = log_folder_create(&log->folder, &head, &fd);
	if (status != TRIB_OK)
		return status;
	close(log->fd);
	log->older_bytes += log->end;
	log->fd = fd;
	log->head = head;
	log->end = LOG_HEAD_BYTES;
	log->is_torn = false;
	return TRIB_OK;
}

trib_status sparse_log_snapshot(struct sparse_log *log, uint64_t now_ns)
{
	struct log_file_head head;
	trib_status status;

	if (sparse_log_is_snapshotting(log))
		return status_fail(TRIB_ERR_ARGUMENT, "a snapshot in %s is being written already",
		                   log->folder.path);
	status = sparse_log_commit(log, now_ns);
	/* The next log goes on where this one ends, so this one must not become shorter later. */
	if (status == TRIB_OK)
		status = log_sync(log, now_ns);
	if (status == TRIB_OK && log->is_torn)
		cut_back(log);
	if (status == TRIB_OK && log->is_torn)
		status = status_fail_errno("cannot cut back the log in %s", log->folder.path);
	if (status == TRIB_OK)
		status = log_switch(log);
	if (status != TRIB_OK)
		return status;
	head = log->head;
	head.is_snapshot = true;
	return snapshot_process_start(&log->snapshot, &log->folder, &head, &log->state);
}

bool sparse_log_is_snapshotting(const struct sparse_log *log)
{
	return snapshot_process_runs(&log->snapshot);
}

void sparse_log_get_stats(const struct sparse_log *log, struct sparse_log_stats *stats)
{
	*stats = log->stats;
	stats->bytes = log->older_bytes + log->end;
	stats->number = log->head.number;
}
