/* SPDX-License-Identifier: Apache-2.0 */
#include "net/kernel/netns.h"

#include "net/kernel/netlink.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#define OWN_NETNS "/proc/thread-self/ns/net"

static void netns_path(char path[NETNS_PATH_BYTES], const char *name)
{
	snprintf(path, NETNS_PATH_BYTES, NETNS_FOLDER "/%s", name);
}

/*
 * A mount keeps a namespace alive. The folder is a shared mount, so that removing a name here also
 * removes it in every mount namespace that copied it. Otherwise such a copy would keep the
 * namespace alive unseen.
 */
static trib_status netns_folder_make(void)
{
	if (mkdir(NETNS_FOLDER, 0755) < 0 && errno != EEXIST)
		return status_fail_errno("cannot create %s", NETNS_FOLDER);
	if (mount("", NETNS_FOLDER, "none", MS_SHARED | MS_REC, NULL) == 0)
		return TRIB_OK;
	if (errno == EINVAL && /* not a mount point yet */
	    mount(NETNS_FOLDER, NETNS_FOLDER, "none", MS_BIND | MS_REC, NULL) == 0 &&
	    mount("", NETNS_FOLDER, "none", MS_SHARED | MS_REC, NULL) == 0)
		return TRIB_OK;
	return status_fail_errno("cannot make %s a shared mount", NETNS_FOLDER);
}

/* Writes a file below /proc/sys/net for the current namespace. */
static int setting_write(const char *file, const char *text)
{
	char path[NETNS_PATH_BYTES];
	int fd, error;

	snprintf(path, sizeof(path), "/proc/sys/net/%s", file);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	error = write(fd, text, strlen(text)) < 0 ? errno : 0;
	close(fd);
	errno = error;
	return error ? -1 : 0;
}

/* No automatic addresses and no router solicitations: only our packets are on the wire. */
static void netns_quiet_ipv6(void)
{
	if (setting_write("ipv6/conf/default/disable_ipv6", "1") < 0) {
		/*
		 * Without IPv6 there is nothing to switch off. In some containers the file is
		 * read-only, and these packets stay.
		 */
	}
}

trib_status netns_open(const char *name, struct netns *out)
{
	char path[NETNS_PATH_BYTES];
	int back;
	trib_status status;

	snprintf(out->name, sizeof(out->name), "%s", name);
	out->nl = -1;
	netns_path(path, name);
	out->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (out->fd < 0)
		return status_fail_errno("cannot open the namespace %s", path);
	status = netns_enter(name, out->fd, &back);
	if (status == TRIB_OK) {
		out->nl = nl_open();
		if (out->nl < 0)
			status = status_fail_errno("cannot open a netlink socket in %s", name);
		if (netns_return(back) != TRIB_OK)
			status = TRIB_ERR_SYSTEM;
	}
	if (status != TRIB_OK)
		netns_close(out);
	return status;
}

void netns_close(struct netns *ns)
{
	if (ns->fd >= 0)
		close(ns->fd);
	if (ns->nl >= 0)
		close(ns->nl);
	ns->fd = ns->nl = -1;
}

trib_status netns_create(const char *name, struct netns *out)
{
	char path[NETNS_PATH_BYTES];
	trib_status status = netns_folder_make();

	out->fd = out->nl = -1;
	if (status != TRIB_OK)
		return status;
	netns_path(path, name);
	int file = open(path, O_RDONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);

	if (file < 0)
		return status_fail_errno("cannot create %s", path);
	close(file);
	int back = open(OWN_NETNS, O_RDONLY | O_CLOEXEC);

	if (back < 0)
		return status_fail_errno("cannot open %s", OWN_NETNS);
	if (unshare(CLONE_NEWNET) < 0) {
		status = status_fail_errno("cannot create the namespace %s", name);
		close(back);
		return status;
	}
	if (mount(OWN_NETNS, path, "none", MS_BIND, NULL) < 0)
		status = status_fail_errno("cannot keep the namespace %s at %s", name, path);
	netns_quiet_ipv6();
	if (netns_return(back) != TRIB_OK)
		return TRIB_ERR_SYSTEM;
	return status == TRIB_OK ? netns_open(name, out) : status;
}

trib_status netns_remove(const char *name)
{
	char path[NETNS_PATH_BYTES];

	netns_path(path, name);
	/* EINVAL: not mounted, as after a crash between creating the file and the mount. */
	if (umount2(path, MNT_DETACH) < 0 && errno != EINVAL && errno != ENOENT)
		return status_fail_errno("cannot unmount %s", path);
	if (unlink(path) < 0 && errno != ENOENT)
		return status_fail_errno("cannot remove %s", path);
	return TRIB_OK;
}

trib_status netns_enter(const char *name, int ns_fd, int *back)
{
	if (back) {
		*back = open(OWN_NETNS, O_RDONLY | O_CLOEXEC);
		if (*back < 0)
			return status_fail_errno("cannot open %s", OWN_NETNS);
	}
	if (setns(ns_fd, CLONE_NEWNET) == 0)
		return TRIB_OK;
	trib_status status = status_fail_errno("cannot enter the namespace %s", name);

	if (back)
		close(*back);
	return status;
}

trib_status netns_return(int back)
{
	trib_status status = TRIB_OK;

	if (setns(back, CLONE_NEWNET) < 0)
		status = status_fail_errno("cannot return from a host's namespace");
	close(back);
	return status;
}

trib_status netns_set(const struct netns *ns, const char *file, const char *text)
{
	int back;
	trib_status status = netns_enter(ns->name, ns->fd, &back);

	if (status != TRIB_OK)
		return status;
	if (setting_write(file, text) < 0)
		status = status_fail_errno("cannot set net/%s to %s in %s", file, text, ns->name);
	return netns_return(back) == TRIB_OK ? status : TRIB_ERR_SYSTEM;
}

void netns_each_process(const struct netns *ns, void (*visit)(const struct netns *ns, int pid))
{
	struct stat own, other;
	struct dirent *entry;
	DIR *proc = opendir("/proc");

	if (!proc)
		return;
	if (fstat(ns->fd, &own) < 0) {
		closedir(proc);
		return;
	}
	while ((entry = readdir(proc))) {
		char path[300];

		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		snprintf(path, sizeof(path), "/proc/%s/ns/net", entry->d_name);
		if (stat(path, &other) == 0 && other.st_ino == own.st_ino &&
		    other.st_dev == own.st_dev && atoi(entry->d_name) != getpid())
			visit(ns, atoi(entry->d_name));
	}
	closedir(proc);
}
