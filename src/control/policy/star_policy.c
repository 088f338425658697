/* SPDX-License-Identifier: Apache-2.0 */
#include "control/policy/star_policy.h"

#include "control/policy/topology.h"
#include "plan/fabric/tree_share.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(STAR_POLICY_NONE == ASSIGN_NONE, "none is none");

/* A fabric with one level of switches above one pod: each tree is just its root. */
struct table {
	struct fabric fabric;
	struct assign assign;
	struct groups groups;
	struct share share;
	uint32_t *serves; /* capacity of each site */
	uint32_t *own;    /* of each job: the sites it may use */
	uint32_t *trees;  /* of each job: its site */
	uint32_t pod;
	void *assign_work, *groups_work;
	double *want;
	uint32_t scratch;
};

static void table_free(struct table *table)
{
	free(table->serves);
	free(table->own);
	free(table->trees);
	free(table->want);
	free(table->assign_work);
	free(table->groups_work);
}

static trib_status table_make(struct table *table, const struct star_policy_site *sites,
                              uint32_t n_sites, uint32_t n)
{
	struct fabric *fabric = &table->fabric;
	trib_status status;

	memset(table, 0, sizeof(*table));
	table->serves = calloc(n_sites, sizeof(uint32_t));
	table->own = calloc((size_t)n_sites * n, sizeof(uint32_t));
	table->trees = calloc(n, sizeof(uint32_t));
	table->want = calloc(n_sites, sizeof(double));
	*fabric = (struct fabric){ .levels = 1, .down = { 1 }, .up = { n_sites } };
	for (uint32_t i = 0; i < n_sites; i++)
		if (sites[i].capacity > fabric->switch_jobs)
			fabric->switch_jobs = sites[i].capacity;
	if ((status = fabric_complete(fabric)) != TRIB_OK)
		return status;
	table->assign_work = malloc(assign_bytes(fabric, n));
	table->groups_work = malloc(groups_bytes(n, fabric->resources));
	if (!table->serves || !table->own || !table->trees || !table->want || !table->assign_work ||
	    !table->groups_work)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for the trees of %u jobs", n);
	for (uint32_t i = 0; i < n_sites; i++)
		table->serves[i] = sites[i].capacity;
	fabric->serves = table->serves;
	assign_init(&table->assign, fabric, n, table->assign_work);
	groups_init(&table->groups, n, fabric->resources, table->groups_work);
	table->share = (struct share){ .fabric = fabric,
		                       .groups = &table->groups,
		                       .want = table->want,
		                       .tree = &table->scratch };
	return TRIB_OK;
}

static bool is_above(const struct star_policy_site *site, const struct star_policy_job *job)
{
	return !job->rack || rack_is_below(job->rack, site->above);
}

/* Lists the sites above the job and returns their number. Its present site is first, because others
 * can make room there without a migration of this job. Then come the closest. */
static uint32_t candidates(const struct star_policy_site *sites, uint32_t n_sites,
                           const struct star_policy_job *job, uint32_t *own)
{
	uint32_t n = 0;

	if (job->root != STAR_POLICY_NONE && is_above(&sites[job->root], job))
		own[n++] = job->root;
	for (unsigned names = RACK_NAMES_MAX + 1; names-- > 0;)
		for (uint32_t i = 0; i < n_sites; i++)
			if (i != job->root && rack_names(sites[i].above) == names &&
			    is_above(&sites[i], job))
				own[n++] = i;
	return n;
}

static bool may_have(const struct assign *assign, uint32_t slot, uint32_t root)
{
	for (uint32_t i = 0; i < assign_roots(assign, slot); i++)
		if (assign_root(assign, slot, i) == root)
			return true;
	return false;
}

/*
 * No job loses its site to one that is worth more: turns balance that, request by request. So each
 * job is entered with infinite worth. Only the job that is being served gets its real worth, which
 * limits what migrations of others may cost.
 */
static void jobs_enter(struct table *table, const struct star_policy_site *sites, uint32_t n_sites,
                       const struct star_policy_job *jobs, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		const struct footprint footprint = { .level = 1,
			                             .n = { 0, 1 },
			                             .pods = &table->pod };
		uint32_t *own = table->own + (size_t)i * n_sites;

		assign_enter(&table->assign, i, &footprint, INFINITY,
		             jobs[i].stays ? INFINITY : jobs[i].migration_s, 0);
		assign_limit(&table->assign, i, own, candidates(sites, n_sites, &jobs[i], own));
		if (jobs[i].root != STAR_POLICY_NONE && may_have(&table->assign, i, jobs[i].root))
			assign_keep(&table->assign, i, jobs[i].root);
	}
}

#define FIRST_TO_GO 1e300 /* large but finite: the search picks this job first */

/* The search asks only the least worthy job of a site to go. So each one is made that, in turn. */
static void job_serve(struct assign *assign, const struct star_policy_job *job, uint32_t slot,
                      uint32_t n)
{
	bool is_new = job->root == STAR_POLICY_NONE;
	bool done = assign->jobs[slot].root != ASSIGN_NONE ||
	            (!is_new && (job->stays || job->worth <= job->migration_s));

	assign->jobs[slot].worth = is_new ? job->worth : job->worth - job->migration_s;
	done = done || assign_serve(assign, slot, false);
	for (uint32_t i = 0; i < n && !done; i++) {
		uint32_t root = assign->jobs[i].root;

		if (root == ASSIGN_NONE || assign->fabric->serves[root] < 2 ||
		    !may_have(assign, slot, root))
			continue;
		assign->jobs[i].worth = FIRST_TO_GO;
		done = assign_serve(assign, slot, false);
		assign->jobs[i].worth = INFINITY;
	}
	assign->jobs[slot].worth = INFINITY;
}

static void job_join(struct table *table, const struct star_policy_job *job, uint32_t slot,
                     uint32_t root)
{
	table->trees[slot] = root;
	groups_join(&table->groups, slot, &table->trees[slot], root != STAR_POLICY_NONE);
	share_want(&table->share, &table->trees[slot], root != STAR_POLICY_NONE, job->demand, 1);
}

/* Finds the best shared site for a job that has none of its own. */
static void job_share(struct table *table, const struct star_policy_job *job, uint32_t slot)
{
	uint32_t root = table->trees[slot];
	const struct share_job asks = { .root = root,
		                        .demand = job->demand,
		                        .worth = job->worth,
		                        .migration_s = job->migration_s };

	if (table->assign.jobs[slot].root != ASSIGN_NONE ||
	    (root != STAR_POLICY_NONE && job->stays))
		return;
	share_want(&table->share, &table->trees[slot], root != STAR_POLICY_NONE, job->demand, -1);
	groups_leave(&table->groups, slot);
	job_join(table, job, slot, share_root(&table->share, &table->assign, slot, &asks));
}

/* New jobs first: where they go must not depend on migrations of others. */
static void jobs_share(struct table *table, const struct star_policy_job *jobs, uint32_t n,
                       uint32_t *roots)
{
	const struct assign *assign = &table->assign;

	for (uint32_t i = 0; i < n; i++) {
		bool keeps = jobs[i].root != STAR_POLICY_NONE && may_have(assign, i, jobs[i].root);
		uint32_t own = assign->jobs[i].root;

		job_join(table, &jobs[i], i, own == ASSIGN_NONE && keeps ? jobs[i].root : own);
	}
	for (uint32_t i = 0; i < n; i++)
		if (jobs[i].root == STAR_POLICY_NONE)
			job_share(table, &jobs[i], i);
	for (uint32_t i = 0; i < n; i++)
		if (jobs[i].root != STAR_POLICY_NONE)
			job_share(table, &jobs[i], i);
	memcpy(roots, table->trees, n * sizeof(*roots));
}

trib_status star_policy_assign(const struct star_policy_site *sites, uint32_t n_sites,
                               const struct star_policy_job *jobs, uint32_t n, uint32_t *roots)
{
	struct table table;
	trib_status status;

	for (uint32_t i = 0; i < n; i++)
		roots[i] = STAR_POLICY_NONE;
	if (!n || !n_sites)
		return TRIB_OK;
	status = table_make(&table, sites, n_sites, n);
	if (status == TRIB_OK) {
		jobs_enter(&table, sites, n_sites, jobs, n);
		for (uint32_t i = 0; i < n; i++)
			if (jobs[i].root == STAR_POLICY_NONE)
				job_serve(&table.assign, &jobs[i], i, n);
		for (uint32_t i = 0; i < n; i++)
			job_serve(&table.assign, &jobs[i], i, n);
		jobs_share(&table, jobs, n, roots);
	}
	table_free(&table);
	return status;
}
