/* SPDX-License-Identifier: Apache-2.0 */
#include "net/cluster.h"

#include "base/log.h"
#include "net/names.h"
#include "net/cluster_plan.h"
#include "net/state.h"
#include "net/wiring.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static trib_status cluster_check_privilege(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { 0 };
	const uint32_t need = 1u << CAP_SYS_ADMIN | 1u << CAP_NET_ADMIN;

	if (syscall(SYS_capget, &head, data) == 0 && (data[0].effective & need) == need)
		return TRIB_OK;
	return status_fail(TRIB_ERR_SYSTEM,
	                   "a cluster is made of network namespaces, which needs root "
	                   "(CAP_SYS_ADMIN and CAP_NET_ADMIN); try it with sudo");
}

/* Locks the state of all clusters. Negative: *status says why not. */
static int cluster_lock(trib_status *status)
{
	*status = cluster_check_privilege();
	return *status == TRIB_OK ? state_lock(status) : -1;
}

static trib_status cluster_remove(const char *name);

trib_status cluster_up(const struct cluster_options *options, struct cluster *out)
{
	struct cluster_options named = *options;
	unsigned subnet;
	trib_status status;
	int lock;

	if (!named.name)
		named.name = NAMES_DEFAULT;
	status = names_check(named.name);
	if (status == TRIB_OK)
		status = plan_make(&named, 0, out); /* report wrong options before missing rights */
	if (status != TRIB_OK)
		return status;
	lock = cluster_lock(&status);
	if (lock < 0)
		return status;
	if (state_exists(named.name))
		status = status_fail(TRIB_ERR_CONFIG,
		                     "a cluster named %s exists already; remove it with: trib net "
		                     "down --name %s, or give this one another --name",
		                     named.name, named.name);
	if (status == TRIB_OK) {
		subnet = state_free_subnet(named.name);
		plan_make(&named, subnet, out);
		status = state_begin(named.name, subnet);
		if (status == TRIB_OK)
			status = wiring_make(&named, out);
		if (status == TRIB_OK)
			status = state_write(out);
		if (status != TRIB_OK) {
			char why[512];

			snprintf(why, sizeof(why), "%s", trib_last_error());
			cluster_remove(named.name);
			status_fail(status, "%s", why);
		}
	}
	state_unlock(lock);
	return status;
}

static void process_warn(const struct netns *ns, int pid)
{
	log_warn("process %d still runs in %s without links; the namespace ends with the process",
	         pid, ns->name);
}

/* Removes the links first. Otherwise they would live as long as a process keeps the namespace. */
static trib_status namespace_remove(void *context, const char *namespace)
{
	struct netns ns;
	trib_status status;

	++*(unsigned *)context;
	/* If it cannot be opened, a crash left a file without a mount. */
	if (netns_open(namespace, &ns) == TRIB_OK) {
		status = link_remove_all(&ns);
		netns_each_process(&ns, process_warn);
		netns_close(&ns);
		if (status != TRIB_OK)
			return status;
	}
	return netns_remove(namespace);
}

static trib_status cluster_remove(const char *name)
{
	trib_status status;
	unsigned found;

	/* Repeat until none is left: reading a directory while it changes may miss entries. */
	do {
		found = 0;
		status = names_each_namespace(name, namespace_remove, &found);
	} while (status == TRIB_OK && found);
	return status == TRIB_OK ? state_remove(name) : status;
}

trib_status cluster_down(const char *name)
{
	trib_status status;
	int lock;

	if (!name)
		name = NAMES_DEFAULT;
	status = names_check(name);
	if (status != TRIB_OK)
		return status;
	lock = cluster_lock(&status);
	if (lock < 0)
		return status;
	status = cluster_remove(name);
	state_unlock(lock);
	return status;
}

const struct cluster_host *cluster_find(const struct cluster *cluster, const char *host)
{
	for (unsigned i = 0; i < cluster->n; i++)
		if (strcmp(cluster->hosts[i].name, host) == 0)
			return &cluster->hosts[i];
	return NULL;
}

trib_status cluster_enter(const struct cluster_host *host)
{
	char path[NETNS_PATH_BYTES];

	snprintf(path, sizeof(path), NETNS_FOLDER "/%s", host->ns);
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return status_fail_errno("cannot open the namespace %s", path);
	trib_status status = netns_enter(host->ns, fd, NULL);

	close(fd);
	return status;
}
