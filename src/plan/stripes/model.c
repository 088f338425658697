/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/stripes/model.h"
#include "plan/cluster/candidates.h"
#include "plan/cluster/sort.h"

#include "base/status.h"

#define NOBODY UINT32_MAX

static trib_status host_check(const struct plan_host *host)
{
	const double rates[] = { host->in_bps, host->out_bps };

	for (unsigned i = 0; i < 2; i++)
		if (!(rates[i] > 0 && isfinite(rates[i])))
			return status_fail(TRIB_ERR_ARGUMENT,
			                   "the link of host %s has no rate %s: give one above 0",
			                   host->name, i ? "out" : "in");
	if (!(host->idle_cores >= 0 && isfinite(host->idle_cores)))
		return status_fail(TRIB_ERR_ARGUMENT, "host %s cannot have %g idle cores",
		                   host->name, host->idle_cores);
	if (host->is_switch && host->rank >= 0)
		return status_fail(TRIB_ERR_ARGUMENT,
		                   "host %s is a switch and has rank %d: a switch is no worker",
		                   host->name, host->rank);
	return TRIB_OK;
}

/* Checks that the ranks are 0 to workers - 1, each on one host. */
static trib_status ranks_find(struct model *model)
{
	for (unsigned i = 0; i < model->n; i++)
		model->workers += model->hosts[i].rank >= 0;
	if (!model->workers)
		return status_fail(TRIB_ERR_ARGUMENT,
		                   "none of the %u hosts has a rank: "
		                   "there is nothing to sum",
		                   model->n);
	for (unsigned r = 0; r < model->workers; r++)
		model->ranks[r] = NOBODY;
	for (unsigned i = 0; i < model->n; i++) {
		const struct plan_host *host = &model->hosts[i];

		if (host->rank < 0)
			continue;
		if ((unsigned)host->rank >= model->workers)
			return status_fail(TRIB_ERR_ARGUMENT,
			                   "host %s has rank %d, but %u hosts have ranks: they are "
			                   "0 to %u",
			                   host->name, host->rank, model->workers,
			                   model->workers - 1);
		if (model->ranks[host->rank] != NOBODY)
			return status_fail(TRIB_ERR_ARGUMENT, "hosts %s and %s both have rank %d",
			                   model->hosts[model->ranks[host->rank]].name, host->name,
			                   host->rank);
		model->ranks[host->rank] = i;
	}
	return TRIB_OK;
}

static bool round_before(const void *context, uint32_t a, uint32_t b)
{
	const struct model *model = context;
	double at = model->hosts[model->ranks[a]].round_s;
	double bt = model->hosts[model->ranks[b]].round_s;

	return at != bt ? at < bt : a < b;
}

trib_status model_fill(struct model *model, const struct plan_limits *limits)
{
	trib_status status;

	for (unsigned i = 0; i < model->n; i++) {
		const struct plan_host *host = &model->hosts[i];
		struct model_host *caps = &model->caps[i];

		if ((status = host_check(host)) != TRIB_OK)
			return status;
		caps->in = host->in_bps;
		caps->out = host->out_bps;
		caps->cpu = candidate_fits(host, limits) ? host->idle_cores * limits->core_bps : 0;
		caps->kind = host->is_switch   ? MODEL_SWITCH
		             : host->rank >= 0 ? MODEL_WORKER
		                               : MODEL_SERVER;
	}
	if ((status = ranks_find(model)) != TRIB_OK)
		return status;
	for (unsigned r = 0; r < model->workers; r++)
		model->order[r] = r;
	sort_indices(model->order, model->workers, round_before, model);
	model->children = limits->children < model->workers ? limits->children : model->workers;
	if (model->children < 2)
		model->children = 2;
	model->depth = limits->depth;
	model->trees = limits->trees;
	model->multicast = limits->multicast;
	return TRIB_OK;
}

double model_worker_rate(const struct model *model, unsigned *slowest)
{
	double rate = INFINITY;

	for (unsigned r = 0; r < model->workers; r++) {
		const struct model_host *host = &model->caps[model->ranks[r]];
		double link = fmin(host->in, host->out);

		if (link < rate) {
			rate = link;
			*slowest = model->ranks[r];
		}
	}
	return rate;
}
