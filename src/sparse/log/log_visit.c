/* SPDX-License-Identifier: Apache-2.0 */
#include "sparse/log/log_folder.h"
#include "sparse/log/sparse_log.h"

#include <inttypes.h>

typedef trib_status (*visitor)(void *context, const struct sparse_log_visit *visit);

static trib_status file_visit(struct log_reader *reader, visitor visit, void *context,
                              enum log_read *what)
{
	struct sparse_entry entry;
	trib_status status;

	while ((status = log_reader_next(reader, &entry, what)) == TRIB_OK &&
	       *what == LOG_READ_ENTRY) {
		struct sparse_log_visit here = {
			.file = reader->name,
			.number = reader->head.number,
			.offset = reader->at,
			.entry = &entry,
		};

		status = visit(context, &here);
		if (status != TRIB_OK)
			return status;
	}
	return status == TRIB_OK && *what == LOG_READ_DAMAGED ? TRIB_ERR_ARGUMENT : status;
}

static trib_status log_visit(const struct log_folder *folder, const struct log_folder_files *files,
                             uint32_t i, visitor visit, void *context, uint64_t *torn)
{
	struct log_reader reader;
	enum log_read what = LOG_READ_END;
	trib_status status;

	if (i && files->logs[i] != files->logs[i - 1] + 1)
		return status_fail(TRIB_ERR_ARGUMENT, "folder %s lacks log-%016" PRIx64,
		                   folder->path, files->logs[i - 1] + 1);
	status = log_folder_read(folder, false, files->logs[i], &reader);
	if (status == TRIB_OK)
		status = file_visit(&reader, visit, context, &what);
	if (status == TRIB_OK && what == LOG_READ_TORN) {
		*torn = reader.offset;
		if (i + 1 < files->n_logs)
			status = status_fail(TRIB_ERR_ARGUMENT,
			                     "%s is damaged at %" PRIu64
			                     ": it ends there, and a later log exists",
			                     reader.name, reader.offset);
	}
	log_reader_close(&reader);
	return status;
}

trib_status sparse_log_visit(const char *path, visitor visit, void *context, uint64_t *torn)
{
	struct log_folder folder;
	struct log_folder_files files = { 0 };
	trib_status status = log_folder_view(&folder, path);

	*torn = UINT64_MAX;
	if (status == TRIB_OK)
		status = log_folder_list(&folder, &files);
	if (status == TRIB_OK && !files.n_logs)
		status = status_fail(TRIB_ERR_ARGUMENT, "folder %s has no log", path);
	for (uint32_t i = 0; status == TRIB_OK && i < files.n_logs; i++)
		status = log_visit(&folder, &files, i, visit, context, torn);
	log_folder_files_free(&files);
	log_folder_close(&folder);
	return status;
}
