/* SPDX-License-Identifier: Apache-2.0 */
#include "sparse/log/log_replay.h"

#include "base/log.h"
#include "sparse/log/sparse_snapshot.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

struct replayer {
	const struct log_folder *folder;
	struct log_folder_files files;
	struct sparse_state *state;
	struct log_replay *replay;
	struct log_file_head expected; /* `identity` is 0: not known yet */
	enum log_repair repair;
};

static trib_status head_check(struct replayer *r, const struct log_reader *reader)
{
	const struct log_file_head *head = &reader->head;

	if (r->expected.shards &&
	    (head->shard != r->expected.shard || head->shards != r->expected.shards))
		return status_fail(TRIB_ERR_MISMATCH,
		                   "%s/%s belongs to shard %u of %u, and this is shard %u of %u",
		                   r->folder->path, reader->name, head->shard, head->shards,
		                   r->expected.shard, r->expected.shards);
	if (r->expected.identity && head->identity != r->expected.identity)
		return status_fail(TRIB_ERR_MISMATCH,
		                   "%s/%s comes from another folder than the files before it",
		                   r->folder->path, reader->name);
	r->expected.identity = head->identity;
	return TRIB_OK;
}

static trib_status cut(const struct replayer *r, const struct log_reader *reader)
{
	int fd = openat(r->folder->fd, reader->name, O_WRONLY | O_CLOEXEC);
	trib_status status = TRIB_OK;

	if (fd < 0 || ftruncate(fd, (off_t)reader->offset) < 0 || fsync(fd) < 0)
		status = status_fail_errno("cannot cut %s/%s at %" PRIu64, r->folder->path,
		                           reader->name, reader->offset);
	if (fd >= 0)
		close(fd);
	return status;
}

/* The log ends before the end of its file. `*stop`: no later log counts. */
static trib_status rest_drop(struct replayer *r, const struct log_reader *reader,
                             enum log_read what, bool *stop)
{
	bool is_last = reader->head.number == r->files.logs[r->files.n_logs - 1];

	if (what == LOG_READ_TORN && !is_last)
		status_fail(TRIB_ERR_ARGUMENT,
		            "%s is damaged at %" PRIu64 ": it ends there, and a later log exists",
		            reader->name, reader->offset);
	if ((what != LOG_READ_TORN || !is_last) && r->repair != LOG_REPAIR_ALL)
		return TRIB_ERR_ARGUMENT;
	*stop = true;
	if (r->repair == LOG_REPAIR_NOTHING)
		return TRIB_OK;
	log_notice("%s/%s is cut off at %" PRIu64 ", %" PRIu64 " bytes before its end: %s",
	           r->folder->path, reader->name, reader->offset, reader->size - reader->offset,
	           what == LOG_READ_TORN && is_last ? "the last write was not completed"
	                                            : trib_last_error());
	*stop = true;
	if (!is_last && log_folder_lose(r->folder, reader->head.number) != TRIB_OK)
		return TRIB_ERR_SYSTEM;
	return cut(r, reader);
}

static trib_status entry_fail(const struct replayer *r, const struct log_reader *reader,
                              trib_status status)
{
	return status_fail(status, "%s/%s at %" PRIu64 ": %s", r->folder->path, reader->name,
	                   reader->at, trib_last_error());
}

static trib_status log_apply(struct replayer *r, struct log_reader *reader, bool *stop)
{
	struct sparse_entry entry;
	enum sparse_outcome outcome;
	enum log_read what;
	trib_status status;

	while ((status = log_reader_next(reader, &entry, &what)) == TRIB_OK &&
	       what == LOG_READ_ENTRY) {
		status = sparse_state_apply(r->state, &entry, &outcome);
		if (status != TRIB_OK)
			return entry_fail(r, reader, status);
		r->replay->entries++;
	}
	if (status == TRIB_OK && what != LOG_READ_END)
		status = rest_drop(r, reader, what, stop);
	r->replay->head = reader->head;
	r->replay->end = reader->offset;
	r->replay->bytes += reader->offset;
	return status;
}

static trib_status log_read_file(struct replayer *r, uint64_t number, bool *stop)
{
	struct log_reader reader;
	trib_status status = log_folder_read(r->folder, false, number, &reader);

	if (status == TRIB_OK)
		status = head_check(r, &reader);
	if (status == TRIB_OK)
		status = log_apply(r, &reader, stop);
	log_reader_close(&reader);
	return status;
}

static trib_status snapshot_read_file(struct replayer *r, uint64_t number)
{
	struct log_reader reader;
	trib_status status = log_folder_read(r->folder, true, number, &reader);

	if (status == TRIB_OK)
		status = head_check(r, &reader);
	if (status == TRIB_OK)
		status = sparse_snapshot_read(&reader, r->state, &r->replay->rows);
	log_reader_close(&reader);
	r->replay->snapshot = number;
	return status;
}

static trib_status logs_read(struct replayer *r)
{
	uint64_t next = r->files.snapshot ? r->files.snapshot : 1;
	trib_status status = TRIB_OK;
	bool stop = false;

	for (uint32_t i = 0; status == TRIB_OK && !stop && i < r->files.n_logs; i++) {
		/* A snapshot has them, but they were not removed yet. */
		if (r->files.logs[i] < next && !r->replay->end)
			continue;
		if (r->files.logs[i] != next)
			break;
		status = log_read_file(r, next++, &stop);
	}
	if (status == TRIB_OK && !stop &&
	    (!r->replay->end || r->files.logs[r->files.n_logs - 1] >= next))
		status = status_fail(TRIB_ERR_ARGUMENT, "folder %s lacks log-%016" PRIx64,
		                     r->folder->path, next);
	return status;
}

trib_status log_replay(const struct log_folder *folder, uint32_t shard, uint32_t shards,
                       enum log_repair repair, struct sparse_state *state,
                       struct log_replay *replay)
{
	struct replayer r = {
		.folder = folder,
		.state = state,
		.replay = replay,
		.expected = { .shard = shard, .shards = shards },
		.repair = repair,
	};
	trib_status status = log_folder_list(folder, &r.files);

	*replay = (struct log_replay){ 0 };
	replay->is_new = !r.files.n_logs && !r.files.snapshot;
	if (status == TRIB_OK && r.files.snapshot)
		status = snapshot_read_file(&r, r.files.snapshot);
	if (status == TRIB_OK && !replay->is_new)
		status = logs_read(&r);
	log_folder_files_free(&r.files);
	return status;
}
