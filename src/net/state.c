/* SPDX-License-Identifier: Apache-2.0 */
#include "net/state.h"

#include "net/fabric_plan.h"
#include "net/names.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define STATE_ROOT "/run/tributary"
#define STATE_FOLDER STATE_ROOT "/net"
#define STATE_PATH_BYTES 288 /* fits any file name */

static void state_path(char path[STATE_PATH_BYTES], const char *name)
{
	snprintf(path, STATE_PATH_BYTES, STATE_FOLDER "/%s", name);
}

int state_lock(trib_status *status)
{
	*status = TRIB_OK;
	if ((mkdir(STATE_ROOT, 0755) < 0 && errno != EEXIST) ||
	    (mkdir(STATE_FOLDER, 0755) < 0 && errno != EEXIST)) {
		*status = status_fail_errno("cannot create %s", STATE_FOLDER);
		return -1;
	}
	int lock = open(STATE_ROOT "/lock", O_RDWR | O_CREAT | O_CLOEXEC, 0644);

	if (lock < 0 || flock(lock, LOCK_EX) < 0) {
		*status = status_fail_errno("cannot lock %s/lock", STATE_ROOT);
		if (lock >= 0)
			close(lock);
		return -1;
	}
	return lock;
}

void state_unlock(int lock)
{
	close(lock);
}

static trib_status namespace_found(void *context, const char *namespace)
{
	(void)namespace;
	*(bool *)context = true;
	return TRIB_OK;
}

bool state_exists(const char *name)
{
	char path[STATE_PATH_BYTES];
	bool found = false;

	names_each_namespace(name, namespace_found, &found);
	state_path(path, name);
	return found || access(path, F_OK) == 0;
}

trib_status state_begin(const char *name, unsigned subnet)
{
	char path[STATE_PATH_BYTES];

	state_path(path, name);
	FILE *file = fopen(path, "we");

	if (!file)
		return status_fail_errno("cannot write %s", path);
	fprintf(file, "building\nsubnet %u\n", subnet);
	if (fclose(file) != 0)
		return status_fail_errno("cannot write %s", path);
	return TRIB_OK;
}

trib_status state_write(const struct cluster *cluster)
{
	static const char draft[] = STATE_ROOT "/draft";
	char path[STATE_PATH_BYTES];

	state_path(path, cluster->name);
	FILE *file = fopen(draft, "we");

	if (!file)
		return status_fail_errno("cannot write %s", draft);
	fprintf(file, "ready\nsubnet %u\nswitch %d\nmtu %u\nsingle %d\n", cluster->subnet,
	        cluster->is_switch, cluster->mtu, cluster->is_single);
	if (cluster->fabric.leafs)
		fprintf(file, "fabric %u %u %u %d %d %" PRIu64 "\n", cluster->fabric.leafs,
		        cluster->fabric.spines, cluster->fabric.paths, cluster->fabric.is_static,
		        cluster->fabric.hash_l3, cluster->fabric.core_bps);
	for (unsigned i = 0; i < cluster->n; i++) {
		const struct cluster_host *host = &cluster->hosts[i];

		fprintf(file, "host %s %s %" PRIu64 " %d\n", host->name, host->address,
		        host->rate_bps, host->is_server);
	}
	for (unsigned link = 0; link < cluster_links(cluster); link++)
		if (cluster->changes[link].slow_bps || cluster->changes[link].cut)
			fprintf(file, "change %u %" PRIu64 " %d\n", link,
			        cluster->changes[link].slow_bps, cluster->changes[link].cut);
	if (fclose(file) != 0 || rename(draft, path) < 0)
		return status_fail_errno("cannot write %s", path);
	return TRIB_OK;
}

trib_status state_remove(const char *name)
{
	char path[STATE_PATH_BYTES];

	state_path(path, name);
	if (unlink(path) < 0 && errno != ENOENT)
		return status_fail_errno("cannot remove %s", path);
	return TRIB_OK;
}

trib_status state_each(trib_status (*visit)(void *context, const char *name), void *context)
{
	trib_status status = TRIB_OK;
	struct dirent *entry;
	DIR *folder = opendir(STATE_FOLDER);

	if (!folder)
		return errno == ENOENT ? TRIB_OK : status_fail_errno("cannot read " STATE_FOLDER);
	while (status == TRIB_OK && (entry = readdir(folder)))
		if (entry->d_name[0] != '.')
			status = visit(context, entry->d_name);
	closedir(folder);
	return status;
}

static trib_status subnet_mark(void *context, const char *name)
{
	bool *used = context;
	char path[STATE_PATH_BYTES];
	unsigned subnet;

	state_path(path, name);
	FILE *file = fopen(path, "re");

	if (!file)
		return TRIB_OK;
	if (fscanf(file, "%*s subnet %u", &subnet) == 1 && subnet < 256)
		used[subnet] = true;
	fclose(file);
	return TRIB_OK;
}

unsigned state_free_subnet(const char *name)
{
	bool used[256] = { false };
	unsigned subnet = names_subnet_hint(name);

	state_each(subnet_mark, used);
	for (unsigned tries = 0; used[subnet] && tries < 254; tries++)
		subnet = subnet % 254 + 1;
	return subnet;
}

static bool fabric_parse(const char *line, struct cluster_fabric *out)
{
	int is_static, hash_l3;

	if (sscanf(line, "fabric %u %u %u %d %d %" SCNu64, &out->leafs, &out->spines, &out->paths,
	           &is_static, &hash_l3, &out->core_bps) != 6)
		return false;
	out->is_static = is_static;
	out->hash_l3 = hash_l3;
	return out->leafs - 1 < CLUSTER_LEAFS_MAX && out->spines - 1 < CLUSTER_SPINES_MAX &&
	       out->paths - 1 < CLUSTER_PATHS_MAX;
}

static bool change_parse(const char *line, struct cluster *out)
{
	struct link_change change;
	unsigned link, cut;

	if (sscanf(line, "change %u %" SCNu64 " %u", &link, &change.slow_bps, &cut) != 3 ||
	    link >= cluster_links(out) || cut > LINK_DOWN)
		return false;
	change.cut = (enum link_cut)cut;
	out->changes[link] = change;
	return true;
}

static bool host_parse(const char *line, struct cluster *out)
{
	struct cluster_host *host = &out->hosts[out->n];
	int is_server;

	if (out->n == CLUSTER_HOSTS_MAX || sscanf(line, "host %15s %39s %" SCNu64 " %d", host->name,
	                                          host->address, &host->rate_bps, &is_server) != 4)
		return false;
	host->is_server = is_server;
	names_namespace(host->ns, out->name, host->name);
	out->n++;
	return true;
}

static bool state_parse_line(const char *line, struct cluster *out)
{
	int flag;

	if (sscanf(line, "switch %d", &flag) == 1) {
		out->is_switch = flag;
		return true;
	}
	if (sscanf(line, "single %d", &flag) == 1) {
		out->is_single = flag;
		return true;
	}
	return sscanf(line, "mtu %u", &out->mtu) == 1 ||
	       sscanf(line, "subnet %u", &out->subnet) == 1 || fabric_parse(line, &out->fabric) ||
	       host_parse(line, out) || change_parse(line, out);
}

trib_status cluster_load(const char *name, struct cluster *out)
{
	char path[STATE_PATH_BYTES], line[160];
	trib_status status;

	if (!name)
		name = NAMES_DEFAULT;
	status = names_check(name);
	if (status != TRIB_OK)
		return status;
	memset(out, 0, sizeof(*out));
	snprintf(out->name, sizeof(out->name), "%s", name);
	state_path(path, name);
	FILE *file = fopen(path, "re");

	if (!file && errno == ENOENT)
		return status_fail(TRIB_ERR_CONFIG,
		                   "there is no cluster named %s; make it with: trib net up "
		                   "--name %s --hosts 4",
		                   name, name);
	if (!file)
		return status_fail_errno("cannot read %s", path);
	if (!fgets(line, sizeof(line), file) || strcmp(line, "ready\n") != 0)
		status = status_fail(TRIB_ERR_CONFIG,
		                     "the cluster %s was not completed; remove it with: trib net "
		                     "down --name %s",
		                     name, name);
	while (status == TRIB_OK && fgets(line, sizeof(line), file))
		if (!state_parse_line(line, out))
			status = status_fail(TRIB_ERR_CONFIG, "%s has a malformed line: %s", path,
			                     line);
	fclose(file);
	if (status == TRIB_OK)
		fabric_deal(out);
	return status;
}
