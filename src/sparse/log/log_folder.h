/* SPDX-License-Identifier: Apache-2.0 */
/* The folder of a shard: its lock, and the names of its files. */
#ifndef TRIB_SPARSE_LOG_FOLDER_H
#define TRIB_SPARSE_LOG_FOLDER_H

#include "sparse/log/log_file.h"

#define LOG_NAME_ROOM 64

struct log_folder {
	char path[256];
	int fd;
	int lock; /* -1: not locked */
};

/* Files of a folder; numbers are in rising order. */
struct log_folder_files {
	uint64_t *logs;
	uint32_t n_logs, log_room;
	uint64_t snapshot; /* the newest one; 0: none */
};

/* Makes the folder if it is not there, and locks it. The caller closes, also after an error. */
trib_status log_folder_open(struct log_folder *folder, const char *path);
/* Only to read: makes nothing, and locks nothing. */
trib_status log_folder_view(struct log_folder *folder, const char *path);
void log_folder_close(struct log_folder *folder);

/* The caller frees, also after an error. */
trib_status log_folder_list(const struct log_folder *folder, struct log_folder_files *files);
void log_folder_files_free(struct log_folder_files *files);

/* "log-N", "snapshot-N"; with `suffix` behind. */
void log_folder_name(char name[LOG_NAME_ROOM], bool is_snapshot, uint64_t number,
                     const char *suffix);

/* Opens a file of the folder for a reader. */
trib_status log_folder_read(const struct log_folder *folder, bool is_snapshot, uint64_t number,
                            struct log_reader *reader);

/*
 * Makes a log file with its head. It has its name only when the head is on the disk. *fd is open
 * for writing.
 */
trib_status log_folder_create(const struct log_folder *folder, const struct log_file_head *head,
                              int *fd);
/* A file `NAME.new` is complete: it gets its name, and the folder is synchronized. */
trib_status log_folder_publish(const struct log_folder *folder, bool is_snapshot, uint64_t number);

/* Removes what an interrupted server left: files that have no name yet. */
void log_folder_tidy(const struct log_folder *folder);
/* Removes snapshots below `number`, and logs below it unless they are kept. */
void log_folder_prune(const struct log_folder *folder, uint64_t number, bool keep_logs);
/* Renames logs above `number` to lost-N. */
trib_status log_folder_lose(const struct log_folder *folder, uint64_t number);

#endif
