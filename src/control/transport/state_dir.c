/* SPDX-License-Identifier: Apache-2.0 */
#include "control/transport/state_dir.h"

#include "base/settings.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static trib_status join(char out[STATE_DIR_PATH_MAX], const char *state_dir, const char *name)
{
	int n = snprintf(out, STATE_DIR_PATH_MAX, "%s%s%s", state_dir, *name ? "/" : "", name);

	if (n >= STATE_DIR_PATH_MAX)
		return status_fail(TRIB_ERR_CONFIG, "the state folder's path is too long: %s",
		                   state_dir);
	return TRIB_OK;
}

trib_status state_dir_find(const char *given, char out[STATE_DIR_PATH_MAX])
{
	const char *path = given ? given : setting_text(SETTING_STATE, NULL);
	const char *home = getenv("HOME"), *state = getenv("XDG_STATE_HOME");

	if (!path)
		path = getenv("STATE_DIRECTORY"); /* set by systemd */
	if (path)
		return join(out, path, "");
	if (geteuid() == 0)
		return join(out, "/var/lib/tributary", "");
	if (state && *state == '/')
		return join(out, state, "tributary");
	if (home && *home == '/')
		return join(out, home, ".local/state/tributary");
	return status_fail(TRIB_ERR_CONFIG,
	                   "no state folder: HOME is not set; give --state or TRIB_STATE");
}

trib_status state_dir_make(const char *given, char out[STATE_DIR_PATH_MAX])
{
	trib_status status = state_dir_find(given, out);

	if (status != TRIB_OK)
		return status;
	for (char *slash = strchr(out + 1, '/');; slash = strchr(slash + 1, '/')) {
		int made;

		if (slash)
			*slash = '\0';
		made = mkdir(out, 0700);
		if (made && errno != EEXIST)
			return status_fail_errno("cannot create the state folder %s", out);
		if (!slash)
			return TRIB_OK;
		*slash = '/';
	}
}

trib_status state_dir_read(const char *state_dir, const char *name, char *out, size_t size)
{
	char path[STATE_DIR_PATH_MAX];
	trib_status status = join(path, state_dir, name);
	ssize_t n, used = 0;
	int fd;

	if (status != TRIB_OK)
		return status;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		status_fail_errno("cannot read %s", path);
		return errno == ENOENT ? TRIB_ERR_CONFIG : TRIB_ERR_SYSTEM;
	}
	while ((n = read(fd, out + used, size - 1 - (size_t)used)) > 0)
		used += n;
	close(fd);
	if (n < 0)
		return status_fail_errno("cannot read %s", path);
	out[used] = '\0';
	return TRIB_OK;
}

static bool write_all(int fd, const char *text)
{
	size_t bytes = strlen(text);

	while (bytes) {
		ssize_t n = write(fd, text, bytes);

		if (n <= 0)
			return false;
		text += n;
		bytes -= (size_t)n;
	}
	return fsync(fd) == 0;
}

trib_status state_dir_write(const char *state_dir, const char *name, const char *text, mode_t mode)
{
	char path[STATE_DIR_PATH_MAX], fresh[STATE_DIR_PATH_MAX + 8];
	trib_status status = join(path, state_dir, name);
	bool good;
	int fd;

	if (status != TRIB_OK)
		return status;
	snprintf(fresh, sizeof(fresh), "%s.new", path);
	unlink(fresh); /* a file left by a crash may have another mode */
	fd = open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
	if (fd < 0)
		return status_fail_errno("cannot write %s", fresh);
	good = write_all(fd, text);
	close(fd);
	if (!good || rename(fresh, path))
		return status_fail_errno("cannot write %s", path);
	return TRIB_OK;
}
