/* SPDX-License-Identifier: Apache-2.0 */
#include "net/kernel/receive_core.h"

#include "net/kernel/link.h"
#include "net/kernel/netlink.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/genetlink.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* From linux/netdev.h, which many systems do not have yet. */
enum { NETDEV_CMD_NAPI_GET = 11, NETDEV_CMD_NAPI_SET = 14 };
enum {
	NETDEV_A_NAPI_IFINDEX = 1,
	NETDEV_A_NAPI_ID = 2,
	NETDEV_A_NAPI_PID = 4,
	NETDEV_A_NAPI_THREADED = 8,
};

#define THREAD_TRIES 20

struct napi {
	uint32_t id, pid;
};

/* ---- generic netlink ---- */

/* Calls `take` with the attributes of each answering message. Returns -1 with errno on an error. */
static int ask(int fd, uint16_t family, uint8_t command, uint16_t flags, uint16_t attribute,
               const void *value, size_t bytes,
               void (*take)(void *context, const struct rtattr *attributes, int left),
               void *context)
{
	struct genlmsghdr head = { .cmd = command, .version = 1 };
	static _Thread_local uint64_t buffer[16384 / 8];
	struct nl_request request;
	bool more = true;

	nl_start(&request, family, flags, &head, sizeof(head));
	request.head.nlmsg_flags = (uint16_t)(NLM_F_REQUEST | NLM_F_ACK | flags);
	nl_put(&request, attribute, value, bytes);
	if (send(fd, &request, request.head.nlmsg_len, 0) < 0)
		return -1;
	while (more) {
		ssize_t got = recv(fd, buffer, sizeof(buffer), 0);
		struct nlmsghdr *message = (struct nlmsghdr *)buffer;

		if (got <= 0)
			return -1;
		for (unsigned left = (unsigned)got; NLMSG_OK(message, left);
		     message = NLMSG_NEXT(message, left)) {
			const struct nlmsgerr *error = NLMSG_DATA(message);

			if (message->nlmsg_type == NLMSG_ERROR && error->error) {
				errno = -error->error;
				return -1;
			}
			if (message->nlmsg_type == NLMSG_DONE || message->nlmsg_type == NLMSG_ERROR)
				more = false;
			else
				take(context,
				     (const void *)((char *)NLMSG_DATA(message) + GENL_HDRLEN),
				     (int)NLMSG_PAYLOAD(message, GENL_HDRLEN));
		}
	}
	return 0;
}

static void take_family(void *context, const struct rtattr *a, int left)
{
	for (; RTA_OK(a, left); a = RTA_NEXT(a, left))
		if (a->rta_type == CTRL_ATTR_FAMILY_ID)
			memcpy(context, RTA_DATA(a), sizeof(uint16_t));
}

struct napis {
	uint32_t ifindex;
	struct napi all[RECEIVE_THREADS_MAX];
	unsigned n;
};

static void take_napi(void *context, const struct rtattr *a, int left)
{
	struct napis *napis = context;
	struct napi napi = { 0 };
	uint32_t ifindex = 0;

	for (; RTA_OK(a, left); a = RTA_NEXT(a, left)) {
		if (a->rta_type == NETDEV_A_NAPI_IFINDEX)
			memcpy(&ifindex, RTA_DATA(a), sizeof(ifindex));
		else if (a->rta_type == NETDEV_A_NAPI_ID)
			memcpy(&napi.id, RTA_DATA(a), sizeof(napi.id));
		else if (a->rta_type == NETDEV_A_NAPI_PID)
			memcpy(&napi.pid, RTA_DATA(a), sizeof(napi.pid));
	}
	if (ifindex == napis->ifindex && napi.id && napis->n < RECEIVE_THREADS_MAX)
		napis->all[napis->n++] = napi;
}

/* Lists the interface's NAPIs, with their threads if they have any. */
static int napis_list(int fd, uint16_t family, struct napis *napis)
{
	napis->n = 0;
	return ask(fd, family, NETDEV_CMD_NAPI_GET, NLM_F_DUMP, NETDEV_A_NAPI_IFINDEX,
	           &napis->ifindex, sizeof(napis->ifindex), take_napi, napis);
}

static int napi_thread(int fd, uint16_t family, uint32_t id)
{
	struct genlmsghdr head = { .cmd = NETDEV_CMD_NAPI_SET, .version = 1 };
	struct nl_request request;

	nl_start(&request, family, 0, &head, sizeof(head));
	nl_put_u32(&request, NETDEV_A_NAPI_ID, id);
	nl_put_u32(&request, NETDEV_A_NAPI_THREADED, 1);
	return nl_talk(fd, &request);
}

/* ---- files of the namespace ---- */

/*
 * Writes to a file of the interface below /sys/class/net. The system's own mount shows the
 * interfaces of the namespace in which it was mounted, so a separate process mounts another one.
 */
static int sysfs_write(const struct netns *ns, const char *link, const char *file, const char *text)
{
	char path[256];
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		int fd;

		snprintf(path, sizeof(path), "/sys/class/net/%s/%s", link, file);
		if (setns(ns->fd, CLONE_NEWNET) || unshare(CLONE_NEWNS) ||
		    mount("", "/", "none", MS_PRIVATE | MS_REC, NULL) ||
		    mount("sysfs", "/sys", "sysfs", 0, NULL))
			_exit(errno & 127);
		fd = open(path, O_WRONLY | O_CLOEXEC);
		_exit(fd < 0 || write(fd, text, strlen(text)) < 0 ? errno & 127 : 0);
	}
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	errno = pid > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : EIO;
	return -1;
}

/* Words of 32 bits, the highest first: the format of the kernel's masks. */
static void mask_text(char *out, size_t size, int core)
{
	int groups = core < 0 ? 0 : core / 32;
	size_t used = 0;

	for (int i = groups; i >= 0; i--)
		used += (size_t)snprintf(out + used, size - used, "%08x%s",
		                         core >= 0 && i == groups ? 1u << (core % 32) : 0u,
		                         i ? "," : "");
}

static int steer(const struct netns *ns, const char *link, int core)
{
	char mask[256];

	mask_text(mask, sizeof(mask), core);
	return sysfs_write(ns, link, "queues/rx-0/rps_cpus", mask);
}

/* ---- */

static trib_status thread_place(uint32_t pid, unsigned core, bool urgent)
{
	struct sched_param first = { .sched_priority = RECEIVE_PRIORITY };
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(core, &set);
	if (sched_setaffinity((pid_t)pid, sizeof(set), &set))
		return status_fail_errno("cannot move a receive thread to core %u", core);
	if (urgent && sched_setscheduler((pid_t)pid, SCHED_FIFO, &first))
		return status_fail_errno("cannot raise the priority of a receive thread");
	return TRIB_OK;
}

static trib_status threads_place(const struct netns *ns, const char *link, int fd, uint16_t family,
                                 struct napis *napis, unsigned core, bool urgent,
                                 struct receive *out)
{
	trib_status status = TRIB_OK;
	bool by_file = false;

	for (unsigned i = 0; i < napis->n && !by_file; i++)
		by_file = !napis->all[i].pid && napi_thread(fd, family, napis->all[i].id) < 0;
	/* Kernels before 6.17 have only the file. */
	if (by_file && sysfs_write(ns, link, "threaded", "1") < 0)
		return status_fail_errno("the receive work of %s cannot be made a thread", link);
	for (int try = 0; try < THREAD_TRIES; try++) {
		const struct timespec nap = { .tv_nsec = 5000000 };

		if (napis_list(fd, family, napis) < 0)
			return status_fail_errno("cannot query the receive threads of %s", link);
		if (napis->n && napis->all[napis->n - 1].pid)
			break;
		nanosleep(&nap, NULL);
	}
	for (unsigned i = 0; i < napis->n && status == TRIB_OK; i++) {
		if (!napis->all[i].pid)
			return status_fail(TRIB_ERR_SYSTEM,
			                   "the kernel does not name the receive thread of %s",
			                   link);
		status = thread_place(napis->all[i].pid, core, urgent);
		out->threads[out->n++] = (int)napis->all[i].pid;
	}
	steer(ns, link, -1);
	return status;
}

static trib_status place(const struct netns *ns, const char *link, unsigned core, bool urgent,
                         struct receive *out)
{
	struct napis napis = { .ifindex = link_index(ns, link) };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC);
	uint16_t family = 0;
	trib_status status;

	if (fd < 0 || !napis.ifindex) {
		if (fd >= 0)
			close(fd);
		return status_fail_errno("cannot query the receive work of %s", link);
	}
	/* A kernel without this family has no NAPIs that we could find. */
	if (ask(fd, GENL_ID_CTRL, CTRL_CMD_GETFAMILY, 0, CTRL_ATTR_FAMILY_NAME, "netdev",
	        sizeof("netdev"), take_family, &family) == 0)
		napis_list(fd, family, &napis);
	if (napis.n)
		status = threads_place(ns, link, fd, family, &napis, core, urgent, out);
	else
		status = steer(ns, link, (int)core) < 0
		                 ? status_fail_errno("cannot steer what %s receives to core %u",
		                                     link, core)
		                 : TRIB_OK;
	close(fd);
	return status;
}

trib_status receive_place(const char *namespace, const char *link, unsigned core, bool urgent,
                          struct receive *out)
{
	struct netns ns;
	trib_status status = netns_open(namespace, &ns), back;
	int home;

	out->n = 0;
	if (status != TRIB_OK)
		return status;
	status = netns_enter(ns.name, ns.fd, &home);
	if (status == TRIB_OK) {
		status = place(&ns, link, core, urgent, out);
		back = netns_return(home);
		if (status == TRIB_OK)
			status = back;
	}
	netns_close(&ns);
	return status;
}

trib_status receive_moderate(const struct netns *ns, const char *link, unsigned microseconds)
{
	char span[32];

	snprintf(span, sizeof(span), "%llu", microseconds * 1000ull);
	/* After a poll that found nothing, the next packet is processed at once. */
	if (sysfs_write(ns, link, "napi_defer_hard_irqs", microseconds ? "1" : "0") < 0 ||
	    sysfs_write(ns, link, "gro_flush_timeout", span) < 0)
		return status_fail_errno("cannot set how long %s in %s waits for packets", link,
		                         ns->name);
	return TRIB_OK;
}
