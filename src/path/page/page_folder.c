/* SPDX-License-Identifier: Apache-2.0 */
#include "path/page/page_folder.h"

#include "base/log.h"
#include "base/settings.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define ROOT_PARENT "/run/tributary" /* trib net uses it, too */
#define ROOT_FOLDER ROOT_PARENT "/paths"
#define USER_FOLDER "/tmp/tributary-"
#define FILES_MAX 4096u /* that are looked at in a folder */
#define READS_MAX 3u    /* of a page that is being written */
#define NAME_BYTES 24u

struct page_file {
	int folder, fd;
	char name[NAME_BYTES];
	struct path_page before; /* at 0: none was written */
};

/* False: TRIB_PAGES is off. */
static bool folder_name(char *out, size_t size)
{
	const char *text = setting_text(SETTING_PAGES, NULL);

	if (text && strcasecmp(text, "off") == 0)
		return false;
	if (text)
		snprintf(out, size, "%s", text);
	else if (geteuid() == 0)
		snprintf(out, size, ROOT_FOLDER);
	else
		snprintf(out, size, USER_FOLDER "%u", (unsigned)geteuid());
	return true;
}

/* Opens a folder that no other user can write to. -1: there is none; errno says why. */
static int folder_open(const char *name, uid_t *owner)
{
	int fd = open(name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat about;

	if (fd < 0)
		return -1;
	if (fstat(fd, &about) == 0 && !(about.st_mode & (S_IWGRP | S_IWOTH)) &&
	    (about.st_uid == geteuid() || geteuid() == 0)) {
		*owner = about.st_uid;
		return fd;
	}
	close(fd);
	errno = EPERM;
	return -1;
}

/* ---- the process that has paths ---- */

static bool file_make(struct page_file *file)
{
	uint64_t random;

	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return false;
	snprintf(file->name, sizeof(file->name), "%016" PRIx64, random);
	file->fd = openat(file->folder, file->name,
	                  O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	return file->fd >= 0 && flock(file->fd, LOCK_EX | LOCK_NB) == 0;
}

struct page_file *page_open(void)
{
	struct page_file *file;
	char folder[PATH_MAX];
	uid_t owner;

	if (!folder_name(folder, sizeof(folder)) || !(file = calloc(1, sizeof(*file))))
		return NULL;
	page_each(NULL, NULL); /* removes those of processes that have ended */
	file->fd = -1;
	if (strcmp(folder, ROOT_FOLDER) == 0)
		mkdir(ROOT_PARENT, 0755);
	mkdir(folder, 0700); /* if it fails, so does folder_open */
	file->folder = folder_open(folder, &owner);
	if (file->folder >= 0 && file_make(file))
		return file;
	log_info("trib top --paths does not show this process: %s: %s", folder, strerror(errno));
	page_close(file);
	return NULL;
}

void page_close(struct page_file *file)
{
	if (!file)
		return;
	if (file->fd >= 0) {
		unlinkat(file->folder, file->name, 0);
		close(file->fd);
	}
	if (file->folder >= 0)
		close(file->folder);
	free(file);
}

static void find_rates(struct page_peer *peer, const struct page_peer *before, uint64_t span)
{
	for (unsigned i = 0; i < peer->n; i++) {
		struct page_path *path = &peer->paths[i];
		const struct page_path *then = &before->paths[i];
		uint64_t bytes = path->sent + path->received - then->sent - then->received;

		path->rate_bps = (uint64_t)((double)bytes * 8e9 / (double)span);
	}
}

void page_write(struct page_file *file, struct path_page *page, uint64_t now)
{
	page->pid = (uint32_t)getpid();
	page->at = now;
	for (unsigned i = 0; i < page->n_peers && file->before.at && now > file->before.at; i++)
		find_rates(&page->peers[i], &file->before.peers[i], now - file->before.at);
	path_page_seal(page);
	file->before = *page;
	if (pwrite(file->fd, page, sizeof(*page), 0) != (ssize_t)sizeof(*page))
		log_debug("page of paths: %s", strerror(errno));
}

/* ---- readers ---- */

/* False: it is no page, of another version, or damaged. */
static bool page_read(int fd, struct path_page *page)
{
	for (unsigned i = 0; i < READS_MAX; i++) {
		ssize_t bytes = pread(fd, page, sizeof(*page), 0);

		if (bytes < (ssize_t)sizeof(page->magic) || page->magic != PAGE_MAGIC)
			return false;
		if (path_page_is_good(page, (size_t)bytes))
			return true;
	}
	return false;
}

static void file_visit(int folder, const char *name, uid_t owner,
                       void (*visit)(void *context, const struct path_page *page), void *context)
{
	int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct path_page page = { 0 };
	struct stat about;
	bool good;

	if (fd < 0)
		return;
	if (fstat(fd, &about) == 0 && S_ISREG(about.st_mode) && about.st_uid == owner) {
		good = page_read(fd, &page);
		/* Pages of all versions are removed. A file that is still empty is none yet. */
		if (page.magic == PAGE_MAGIC && flock(fd, LOCK_SH | LOCK_NB) == 0)
			unlinkat(folder, name, 0);
		else if (good && visit)
			visit(context, &page);
	}
	close(fd);
}

static void folder_visit(const char *name,
                         void (*visit)(void *context, const struct path_page *page), void *context)
{
	uid_t owner;
	int fd = folder_open(name, &owner);
	DIR *folder = fd >= 0 ? fdopendir(fd) : NULL;
	const struct dirent *entry;

	if (!folder) {
		if (fd >= 0)
			close(fd);
		return;
	}
	for (unsigned i = 0; i < FILES_MAX && (entry = readdir(folder)); i++)
		if (entry->d_name[0] != '.')
			file_visit(fd, entry->d_name, owner, visit, context);
	closedir(folder);
}

trib_status page_each(void (*visit)(void *context, const struct path_page *page), void *context)
{
	char folder[PATH_MAX];
	glob_t users;

	if (!folder_name(folder, sizeof(folder)))
		return status_fail(TRIB_ERR_ARGUMENT, "TRIB_PAGES is off");
	folder_visit(folder, visit, context);
	if (setting_text(SETTING_PAGES, NULL) || geteuid() != 0)
		return TRIB_OK;
	if (glob(USER_FOLDER "*", GLOB_NOSORT, NULL, &users) == 0) {
		for (size_t i = 0; i < users.gl_pathc; i++)
			folder_visit(users.gl_pathv[i], visit, context);
		globfree(&users);
	}
	return TRIB_OK;
}
