/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/tree_layout.h"

#include "plan/cluster/plan.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define UNSHAPED_BPS 10e9

/* ---- star, striped, planned ---- */

static uint64_t ranks_all(unsigned workers)
{
	return workers >= TREE_RANKS_MAX ? ~0ull : (1ull << workers) - 1;
}

static void star_add(struct forest *forest, const char *root, unsigned workers)
{
	struct tree *tree = &forest->trees[forest->n_trees++];

	tree_start(tree, 1, root);
	for (unsigned rank = 0; rank < workers; rank++)
		tree_add_rank(tree, 0, rank);
}

/* A star for each server, or for each worker's host if there are no servers; `most` at most. */
static trib_status stars_make(struct forest *forest, const struct cluster *cluster,
                              unsigned workers, unsigned most)
{
	unsigned servers = 0, wanted;
	char name[TREE_NAME_MAX];

	for (unsigned i = 0; i < cluster->n; i++)
		servers += cluster->hosts[i].is_server;
	wanted = servers ? servers : workers;
	if (most > 1 && wanted > FOREST_TREES_MAX)
		return status_fail(TRIB_ERR_ARGUMENT,
		                   "a star on each of %u hosts: %u trees are possible; name them",
		                   wanted, FOREST_TREES_MAX);
	forest->n_trees = 0;
	for (unsigned i = 0; i < wanted && i < most; i++) {
		snprintf(name, sizeof(name), "%c%u", servers ? 's' : 'h', i + 1);
		star_add(forest, name, workers);
	}
	return TRIB_OK;
}

/* Plans as a controller would: from the rates of links, with aggregators on all hosts. */
static trib_status planned_make(struct forest *forest, const struct cluster *cluster,
                                unsigned workers)
{
	struct plan_limits limits = PLAN_LIMITS_DEFAULT;
	struct plan_host hosts[CLUSTER_HOSTS_MAX] = { 0 };
	struct plan_verdict verdict;
	unsigned n = 0;
	size_t bytes;
	void *work;
	trib_status status;

	if (!cluster->n)
		return status_fail(TRIB_ERR_ARGUMENT,
		                   "trees: there are no links to plan for without a cluster");
	for (unsigned i = 0; i < cluster->n; i++) {
		const struct cluster_host *host = &cluster->hosts[i];
		double rate = host->rate_bps ? (double)host->rate_bps : UNSHAPED_BPS;

		if (!host->is_server && i >= workers)
			continue;
		hosts[n++] = (struct plan_host){ .name = host->name,
			                         .address = host->name,
			                         .in_bps = rate,
			                         .out_bps = rate,
			                         .idle_cores = 1,
			                         .rank = host->is_server ? -1 : (int)i,
			                         .may_aggregate = true,
			                         .is_switch = cluster->is_switch &&
			                                      strcmp(host->name, "s1") == 0 };
	}
	limits.multicast = true;
	bytes = plan_work_bytes(n, &limits);
	work = malloc(bytes);
	if (!work)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory to plan trees in");
	status = plan_stripes(hosts, n, &limits, work, bytes, forest, &verdict);
	free(work);
	return status;
}

/* ---- a file ---- */

/* Removes blanks, line ends, and comments that begin with #. */
static trib_status file_read(const char *path, char out[LAYOUT_TEXT])
{
	FILE *file = fopen(path, "re");
	bool comment = false;
	size_t used = 0;
	int c;

	if (!file)
		return status_fail_errno("trees are star, striped, planned, s1(0-3), or a file; "
		                         "cannot read %s",
		                         path);
	while ((c = getc(file)) != EOF && used + 1 < LAYOUT_TEXT) {
		comment = c != '\n' && (comment || c == '#');
		if (!comment && !isspace(c))
			out[used++] = (char)c;
	}
	out[used] = '\0';
	fclose(file);
	return c == EOF ? TRIB_OK
	                : status_fail(TRIB_ERR_ARGUMENT, "%s is too long for trees", path);
}

/* ---- places of aggregators ---- */

static const struct cluster_host *host_at(const struct cluster *cluster, const char *address)
{
	for (unsigned i = 0; i < cluster->n; i++)
		if (strcmp(cluster->hosts[i].address, address) == 0)
			return &cluster->hosts[i];
	return NULL;
}

static trib_status site_port(struct tree_site *site, const char *text)
{
	char *end;
	unsigned long port = strtoul(text, &end, 10);

	if (!isdigit((unsigned char)*text) || *end || port < 1 || port > 65535)
		return status_fail(TRIB_ERR_ARGUMENT, "trees: \"%s\" has no port after the colon",
		                   site->name);
	site->port = (unsigned)port;
	return TRIB_OK;
}

static trib_status site_find(struct tree_site *site, const struct cluster *cluster)
{
	const char *colon = strrchr(site->name, ':');
	size_t length = colon ? (size_t)(colon - site->name) : strlen(site->name);
	struct in_addr ignored;
	bool is_address;

	if (length >= sizeof(site->address))
		return status_fail(TRIB_ERR_ARGUMENT, "trees: there is no host %s", site->name);
	memcpy(site->address, site->name, length);
	if (colon && site_port(site, colon + 1) != TRIB_OK)
		return TRIB_ERR_ARGUMENT;
	is_address = inet_pton(AF_INET, site->address, &ignored) == 1;
	if (!cluster->n) {
		if (!is_address)
			snprintf(site->address, sizeof(site->address), "127.0.0.1");
		return TRIB_OK;
	}
	site->host =
		is_address ? host_at(cluster, site->address) : cluster_find(cluster, site->address);
	if (!site->host)
		return status_fail(TRIB_ERR_ARGUMENT,
		                   "trees: the cluster %s has no host %s; it has %s to %s",
		                   cluster->name, site->address, cluster->hosts[0].name,
		                   cluster->hosts[cluster->n - 1].name);
	snprintf(site->address, sizeof(site->address), "%s", site->host->address);
	return TRIB_OK;
}

static trib_status sites_collect(struct tree_layout *trees, const struct cluster *cluster)
{
	trees->n_sites = 0;
	for (unsigned t = 0; t < trees->forest.n_trees; t++) {
		const struct tree *tree = &trees->forest.trees[t];

		for (unsigned i = 0; i < tree->n_nodes; i++) {
			struct tree_site *site = &trees->sites[trees->n_sites];

			if (layout_site(trees, tree->nodes[i].name))
				continue;
			if (trees->n_sites == LAYOUT_SITES_MAX)
				return status_fail(TRIB_ERR_ARGUMENT,
				                   "trees: more than %u aggregators",
				                   LAYOUT_SITES_MAX);
			*site = (struct tree_site){ 0 };
			memcpy(site->name, tree->nodes[i].name, sizeof(site->name));
			if (site_find(site, cluster) != TRIB_OK)
				return TRIB_ERR_ARGUMENT;
			trees->n_sites++;
		}
	}
	return TRIB_OK;
}

/* ---- the interface ---- */

trib_status layout_read(struct tree_layout *trees, const char *wanted,
                        const struct cluster *cluster, unsigned workers)
{
	char text[LAYOUT_TEXT];
	trib_status status;

	if (workers > TREE_RANKS_MAX)
		return status_fail(TRIB_ERR_ARGUMENT, "trees can have %u workers at most, not %u",
		                   TREE_RANKS_MAX, workers);
	if (strcmp(wanted, "star") == 0) {
		status = stars_make(&trees->forest, cluster, workers, 1);
	} else if (strcmp(wanted, "striped") == 0) {
		status = stars_make(&trees->forest, cluster, workers, FOREST_TREES_MAX + 1);
	} else if (strcmp(wanted, "planned") == 0) {
		status = planned_make(&trees->forest, cluster, workers);
	} else if (!strchr(wanted, '(')) {
		status = file_read(wanted, text);
		if (status == TRIB_OK)
			status = forest_parse(&trees->forest, text);
	} else {
		status = forest_parse(&trees->forest, wanted);
	}
	if (status != TRIB_OK)
		return status;
	if (trees->forest.trees[0].nodes[0].ranks != ranks_all(workers))
		return status_fail(TRIB_ERR_ARGUMENT,
		                   "trees: each tree must have the ranks 0 to %u, and no others",
		                   workers - 1);
	return sites_collect(trees, cluster);
}

const struct tree_site *layout_site(const struct tree_layout *trees, const char *name)
{
	for (unsigned i = 0; i < trees->n_sites; i++)
		if (strcmp(trees->sites[i].name, name) == 0)
			return &trees->sites[i];
	return NULL;
}

trib_status layout_accept(const struct tree_layout *trees, const struct cluster *cluster,
                          bool framed, struct accepted *out)
{
	bool aggregates[CLUSTER_HOSTS_MAX] = { false };

	/* Servers are included: others may have started aggregators there. */
	for (unsigned i = 0; i < cluster->n; i++)
		aggregates[i] = cluster->hosts[i].is_server && !framed;
	for (unsigned i = 0; i < trees->n_sites; i++) {
		const struct cluster_host *host = trees->sites[i].host;

		if (host && !host->is_server)
			aggregates[host - cluster->hosts] = true;
	}
	return accept_frames(cluster, aggregates, out);
}

trib_status layout_text(const struct tree_layout *trees, char out[LAYOUT_TEXT])
{
	struct forest *named = malloc(sizeof(*named));
	size_t length;

	if (!named)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for the trees");
	*named = trees->forest;
	for (unsigned t = 0; t < named->n_trees; t++) {
		for (unsigned i = 0; i < named->trees[t].n_nodes; i++) {
			struct tree_node *node = &named->trees[t].nodes[i];
			const struct tree_site *site = layout_site(trees, node->name);

			snprintf(node->name, sizeof(node->name), "%s:%u", site->address,
			         site->port);
		}
	}
	length = forest_print(named, out, LAYOUT_TEXT);
	free(named);
	return length < LAYOUT_TEXT ? TRIB_OK
	                            : status_fail(TRIB_ERR_ARGUMENT, "the trees' text is too long");
}
