/* SPDX-License-Identifier: Apache-2.0 */
#include "sparse/log/log_folder.h"

#include "base/log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define NEW ".new"
#define DIGITS 16u
#define LOCK_TRIES 250u /* 5 s */
#define LOCK_PAUSE_NS 20000000

void log_folder_name(char name[LOG_NAME_ROOM], bool is_snapshot, uint64_t number,
                     const char *suffix)
{
	snprintf(name, LOG_NAME_ROOM, "%s-%016" PRIx64 "%s", is_snapshot ? "snapshot" : "log",
	         number, suffix);
}

/* ---- the folder and its lock ---- */

trib_status log_folder_view(struct log_folder *folder, const char *path)
{
	*folder = (struct log_folder){ .fd = -1, .lock = -1 };
	if (strlen(path) >= sizeof(folder->path))
		return status_fail(TRIB_ERR_ARGUMENT, "the name of a folder is too long");
	memcpy(folder->path, path, strlen(path) + 1);
	folder->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return folder->fd < 0 ? status_fail_errno("cannot open folder %s", path) : TRIB_OK;
}

/* The process that holds the lock; 0: unknown. */
static pid_t lock_owner(const struct log_folder *folder)
{
	char text[32] = "";

	return pread(folder->lock, text, sizeof(text) - 1, 0) > 0 ? (pid_t)atoi(text) : 0;
}

/*
 * If a server was killed, the process that wrote its snapshot dies a moment later, and has the lock
 * until then. So a lock whose owner is dead is waited for.
 */
static trib_status lock_take(const struct log_folder *folder)
{
	const struct timespec pause = { .tv_nsec = LOCK_PAUSE_NS };

	for (unsigned i = 0; flock(folder->lock, LOCK_EX | LOCK_NB) < 0; i++) {
		pid_t owner;

		if (errno != EWOULDBLOCK)
			return status_fail_errno("cannot lock folder %s", folder->path);
		owner = lock_owner(folder);
		if (i == LOCK_TRIES || (owner > 0 && (!kill(owner, 0) || errno != ESRCH)))
			return status_fail(TRIB_ERR_REFUSED, "folder %s is in use by process %d",
			                   folder->path, (int)owner);
		nanosleep(&pause, NULL);
	}
	return TRIB_OK;
}

trib_status log_folder_open(struct log_folder *folder, const char *path)
{
	char owner[32];
	trib_status status;
	int made = mkdir(path, 0777), why = errno;

	status = log_folder_view(folder, path);
	if (status != TRIB_OK && made < 0 && why != EEXIST) {
		errno = why;
		return status_fail_errno("cannot make folder %s", path);
	}
	if (status != TRIB_OK)
		return status;
	folder->lock = openat(folder->fd, "lock", O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	if (folder->lock < 0)
		return status_fail_errno("cannot write in folder %s", path);
	status = lock_take(folder);
	if (status != TRIB_OK)
		return status;
	/* The number is a help for people. On a full disk the server goes on without it. */
	snprintf(owner, sizeof(owner), "%-15d\n", (int)getpid());
	if (pwrite(folder->lock, owner, strlen(owner), 0) < 0)
		log_info("cannot write %s/lock: %s", path, strerror(errno));
	return TRIB_OK;
}

void log_folder_close(struct log_folder *folder)
{
	if (folder->lock >= 0)
		close(folder->lock);
	if (folder->fd >= 0)
		close(folder->fd);
	folder->fd = folder->lock = -1;
}

/* ---- files ---- */

/* "PREFIX-" and 16 digits, with nothing behind. */
static bool name_parse(const char *name, const char *prefix, uint64_t *number)
{
	size_t n = strlen(prefix);

	if (strncmp(name, prefix, n) != 0 || name[n] != '-')
		return false;
	name += n + 1;
	if (strlen(name) != DIGITS || strspn(name, "0123456789abcdef") != DIGITS)
		return false;
	*number = strtoull(name, NULL, 16);
	return *number != 0;
}

static trib_status log_add(struct log_folder_files *files, uint64_t number)
{
	if (files->n_logs == files->log_room) {
		uint32_t room = files->log_room ? 2 * files->log_room : 16;
		uint64_t *logs = realloc(files->logs, room * sizeof(*logs));

		if (!logs)
			return status_fail(TRIB_ERR_NO_MEMORY, "no memory for the names of logs");
		files->logs = logs;
		files->log_room = room;
	}
	files->logs[files->n_logs++] = number;
	return TRIB_OK;
}

static int numbers_compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Calls `each` for all names. */
static trib_status names_walk(const struct log_folder *folder,
                              trib_status (*each)(void *context, const char *name), void *context)
{
	int fd = openat(folder->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *names = fd < 0 ? NULL : fdopendir(fd);
	trib_status status = TRIB_OK;
	const struct dirent *name;

	if (!names) {
		status = status_fail_errno("cannot list folder %s", folder->path);
		if (fd >= 0)
			close(fd);
		return status;
	}
	while (status == TRIB_OK && (errno = 0, name = readdir(names)))
		status = each(context, name->d_name);
	if (status == TRIB_OK && errno)
		status = status_fail_errno("cannot list folder %s", folder->path);
	closedir(names);
	return status;
}

static trib_status file_note(void *context, const char *name)
{
	struct log_folder_files *files = context;
	uint64_t number;

	if (name_parse(name, "log", &number))
		return log_add(files, number);
	if (name_parse(name, "snapshot", &number) && number > files->snapshot)
		files->snapshot = number;
	return TRIB_OK;
}

trib_status log_folder_list(const struct log_folder *folder, struct log_folder_files *files)
{
	trib_status status;

	*files = (struct log_folder_files){ 0 };
	status = names_walk(folder, file_note, files);
	if (files->n_logs)
		qsort(files->logs, files->n_logs, sizeof(*files->logs), numbers_compare);
	return status;
}

void log_folder_files_free(struct log_folder_files *files)
{
	free(files->logs);
	*files = (struct log_folder_files){ 0 };
}

trib_status log_folder_read(const struct log_folder *folder, bool is_snapshot, uint64_t number,
                            struct log_reader *reader)
{
	char name[LOG_NAME_ROOM];
	trib_status status;
	int fd;

	*reader = (struct log_reader){ .fd = -1 };
	log_folder_name(name, is_snapshot, number, "");
	fd = openat(folder->fd, name, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return status_fail_errno("cannot read %s/%s", folder->path, name);
	status = log_reader_open(reader, fd, name);
	if (status == TRIB_OK &&
	    (reader->head.number != number || reader->head.is_snapshot != is_snapshot))
		status =
			status_fail(TRIB_ERR_ARGUMENT, "%s was another file and was renamed", name);
	return status;
}

/* ---- making and removing ---- */

trib_status log_folder_publish(const struct log_folder *folder, bool is_snapshot, uint64_t number)
{
	char name[LOG_NAME_ROOM], beside[LOG_NAME_ROOM];

	log_folder_name(name, is_snapshot, number, "");
	log_folder_name(beside, is_snapshot, number, NEW);
	if (renameat(folder->fd, beside, folder->fd, name) < 0 || fsync(folder->fd) < 0)
		return status_fail_errno("cannot rename %s/%s", folder->path, beside);
	return TRIB_OK;
}

trib_status log_folder_create(const struct log_folder *folder, const struct log_file_head *head,
                              int *fd)
{
	uint8_t bytes[LOG_HEAD_BYTES];
	char beside[LOG_NAME_ROOM], name[LOG_NAME_ROOM];
	ssize_t written;
	trib_status status = TRIB_OK;

	log_head_encode(head, bytes);
	log_folder_name(beside, head->is_snapshot, head->number, NEW);
	*fd = openat(folder->fd, beside, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (*fd < 0)
		return status_fail_errno("cannot write %s/%s", folder->path, beside);
	written = pwrite(*fd, bytes, sizeof(bytes), 0);
	if (written >= 0 && written < (ssize_t)sizeof(bytes)) {
		errno = ENOSPC;
		written = -1;
	}
	if (written < 0 || fdatasync(*fd) < 0)
		status = status_fail_errno("cannot write %s/%s", folder->path, beside);
	if (status == TRIB_OK)
		status = log_folder_publish(folder, head->is_snapshot, head->number);
	if (status != TRIB_OK) {
		log_folder_name(name, head->is_snapshot, head->number, "");
		unlinkat(folder->fd, beside, 0);
		unlinkat(folder->fd, name, 0);
		close(*fd);
		*fd = -1;
	}
	return status;
}

static trib_status new_remove(void *context, const char *name)
{
	const struct log_folder *folder = context;
	size_t n = strlen(name), end = strlen(NEW);

	if (n > end && !strcmp(name + n - end, NEW) &&
	    (!strncmp(name, "log-", 4) || !strncmp(name, "snapshot-", 9)))
		unlinkat(folder->fd, name, 0);
	return TRIB_OK;
}

void log_folder_tidy(const struct log_folder *folder)
{
	names_walk(folder, new_remove, (void *)folder);
}

struct prune {
	const struct log_folder *folder;
	uint64_t number;
	bool keep_logs;
};

static trib_status old_remove(void *context, const char *name)
{
	const struct prune *prune = context;
	uint64_t number;

	if ((name_parse(name, "snapshot", &number) ||
	     (!prune->keep_logs && name_parse(name, "log", &number))) &&
	    number < prune->number)
		unlinkat(prune->folder->fd, name, 0);
	return TRIB_OK;
}

void log_folder_prune(const struct log_folder *folder, uint64_t number, bool keep_logs)
{
	struct prune prune = { folder, number, keep_logs };

	names_walk(folder, old_remove, &prune);
}

trib_status log_folder_lose(const struct log_folder *folder, uint64_t number)
{
	struct log_folder_files files;
	trib_status status = log_folder_list(folder, &files);

	/* The highest one first: if this is interrupted, no log is missing between two others. */
	for (uint32_t i = files.n_logs; status == TRIB_OK && i-- > 0;) {
		char from[LOG_NAME_ROOM], to[LOG_NAME_ROOM];

		if (files.logs[i] <= number)
			break;
		log_folder_name(from, false, files.logs[i], "");
		snprintf(to, sizeof(to), "lost-%016" PRIx64, files.logs[i]);
		if (renameat(folder->fd, from, folder->fd, to) < 0)
			status = status_fail_errno("cannot rename %s/%s", folder->path, from);
	}
	log_folder_files_free(&files);
	return status;
}
