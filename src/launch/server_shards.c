/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/server_shards.h"

#include "launch/local_daemon.h"
#include "wire/packet.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PORT_TRIES 20

/* ---- hosts and ports ---- */

static const struct cluster_host *shard_host(const struct cluster *cluster, unsigned i)
{
	unsigned workers = 0, servers, skip = cluster->is_switch ? 1 : 0;

	if (!cluster->n)
		return NULL;
	while (workers < cluster->n && !cluster->hosts[workers].is_server)
		workers++;
	servers = cluster->n - workers;
	if (servers > skip) {
		unsigned n = servers - skip, first = skip ? 0 : 1;

		return &cluster->hosts[workers + skip + (i + first) % n];
	}
	return workers ? &cluster->hosts[workers - 1 - i % workers] : NULL;
}

static bool ports_apart(unsigned a, unsigned b)
{
	return (a < b ? b - a : a - b) >= WIRE_LANES_MAX;
}

/* Is the port far enough from those of aggregators and earlier shards on the host? */
static bool port_fits(const struct server_shards *shards, const struct server_shard *shard,
                      unsigned port, const struct tree_layout *trees)
{
	for (unsigned i = 0; i < trees->n_sites; i++)
		if (trees->sites[i].host == shard->host && trees->sites[i].port &&
		    !ports_apart(port, trees->sites[i].port))
			return false;
	for (const struct server_shard *other = shards->shards; other < shard; other++)
		if (other->host == shard->host && !ports_apart(port, other->port))
			return false;
	return true;
}

static trib_status shard_place(struct server_shards *shards, unsigned i,
                               const struct cluster *cluster, const struct tree_layout *trees)
{
	struct server_shard *shard = &shards->shards[i];
	const char *address;

	shard->host = shard_host(cluster, i);
	address = shard->host ? shard->host->address : "127.0.0.1";
	for (unsigned tries = 0; !shard->port && tries < PORT_TRIES; tries++) {
		unsigned port = daemon_port(shard->host, address, true);

		if (port && port_fits(shards, shard, port, trees))
			shard->port = port;
	}
	if (!shard->port)
		return status_fail(TRIB_ERR_SYSTEM, "there is no free port on %s", address);
	snprintf(shard->label, sizeof(shard->label), "shard %u", i);
	snprintf(shard->number, sizeof(shard->number), "%u/%u", i, shards->n);
	snprintf(shard->address, sizeof(shard->address), "%.48s:%u", address, shard->port);
	snprintf(shard->folder, sizeof(shard->folder), "%s/%u", shards->folder, i);
	return TRIB_OK;
}

/* ---- folders ---- */

static trib_status folder_make(struct server_shards *shards, const char *folder)
{
	const char *base = getenv("TMPDIR");

	shards->is_temporary = !folder;
	if (folder && strlen(folder) >= sizeof(shards->folder))
		return status_fail(TRIB_ERR_ARGUMENT, "--server-dir has more than %zu letters",
		                   sizeof(shards->folder) - 1);
	if (folder) {
		snprintf(shards->folder, sizeof(shards->folder), "%s", folder);
		if (!mkdir(folder, 0777) || errno == EEXIST)
			return TRIB_OK;
		return status_fail_errno("cannot make the folder %s", folder);
	}
	snprintf(shards->folder, sizeof(shards->folder), "%.200s/trib-servers-XXXXXX",
	         base && *base ? base : "/tmp");
	if (mkdtemp(shards->folder))
		return TRIB_OK;
	shards->is_temporary = false;
	return status_fail_errno("cannot make the folder %s", shards->folder);
}

static int entry_remove(const char *path, const struct stat *about, int kind, struct FTW *at)
{
	(void)about, (void)kind, (void)at;
	return remove(path);
}

void shards_end(struct server_shards *shards)
{
	if (shards->n && shards->is_temporary)
		nftw(shards->folder, entry_remove, 8, FTW_DEPTH | FTW_PHYS);
}

/* ---- the shards of a job ---- */

trib_status shards_plan(struct server_shards *out, unsigned n, const char *folder,
                        const struct cluster *cluster, const struct tree_layout *trees)
{
	trib_status status = folder_make(out, folder);
	size_t used;

	if (status != TRIB_OK)
		return status;
	out->n = n;
	self_find(out->program, sizeof(out->program));
	used = (size_t)snprintf(out->where, sizeof(out->where), "TRIB_SPARSE_SERVERS=");
	for (unsigned i = 0; status == TRIB_OK && i < n; i++) {
		status = shard_place(out, i, cluster, trees);
		used += (size_t)snprintf(out->where + used, sizeof(out->where) - used, "%s%s",
		                         i ? "," : "", out->shards[i].address);
	}
	return status;
}

void shards_command(struct server_shards *shards, const char *aggregators)
{
	snprintf(shards->aggregators, sizeof(shards->aggregators), "%s",
	         aggregators ? aggregators : "");
	for (unsigned i = 0; i < shards->n; i++) {
		struct server_shard *shard = &shards->shards[i];
		char **argv = shard->argv;

		*argv++ = shards->program;
		*argv++ = "sparse";
		*argv++ = "serve";
		*argv++ = "--listen";
		*argv++ = shard->address;
		*argv++ = "--dir";
		*argv++ = shard->folder;
		*argv++ = "--shard";
		*argv++ = shard->number;
		/* Rows in a temporary folder do not outlive the machine. */
		*argv++ = "--sync";
		*argv++ = shards->is_temporary ? "none" : "commit";
		if (shards->aggregators[0]) {
			*argv++ = "--aggregators";
			*argv++ = shards->aggregators;
		}
		*argv = NULL;
	}
}
