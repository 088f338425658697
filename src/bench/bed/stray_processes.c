/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/bed/stray_processes.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LOOKS 10
#define LOOK_NS 50000000 /* between two looks */

void stray_processes_mark(char *out, size_t room, unsigned run)
{
	snprintf(out, room, "TRIB_BENCH_RUN=%d-%u", (int)getpid(), run);
}

static bool process_has(pid_t pid, const char *mark)
{
	/* Reads all of the environment: it may be long, and our mark is the last entry. */
	static char text[1 << 20];
	size_t used = 0;
	char path[64];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	while (used + 1 < sizeof(text) && (n = read(fd, text + used, sizeof(text) - 1 - used)) > 0)
		used += (size_t)n;
	close(fd);
	text[used] = '\0';
	for (const char *entry = text; entry < text + used; entry += strlen(entry) + 1) {
		if (strcmp(entry, mark) == 0)
			return true;
	}
	return false;
}

static unsigned marked_signal(const char *mark, int signal)
{
	DIR *folder = opendir("/proc");
	struct dirent *entry;
	unsigned found = 0;

	while (folder && (entry = readdir(folder))) {
		pid_t pid = (pid_t)atoi(entry->d_name);

		if (pid <= 1 || pid == getpid() || !process_has(pid, mark))
			continue;
		found++;
		kill(pid, signal);
	}
	if (folder)
		closedir(folder);
	return found;
}

void stray_processes_end(const char *mark)
{
	for (unsigned look = 0; look < LOOKS; look++) {
		if (marked_signal(mark, 0) == 0)
			return;
		nanosleep(&(struct timespec){ .tv_nsec = LOOK_NS }, NULL);
	}
	marked_signal(mark, SIGKILL);
}
