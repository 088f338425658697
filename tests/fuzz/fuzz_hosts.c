/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text of a cluster. Every text is parsed, or refused with a sentence. A parsed cluster gets a
 * plan whose trees are valid text, or a sentence that says why not.
 */
#include "fuzz.h"
#include "plan/cluster/hosts.h"

#include <math.h>
#include <string.h>

#define HOSTS_MAX 32u

static void plan_try(const struct plan_host *hosts, unsigned n, bool multicast)
{
	static struct forest forest, again;
	static char text[1 << 17];
	struct plan_limits limits = PLAN_LIMITS_DEFAULT;
	struct plan_verdict verdict;
	void *work;

	limits.multicast = multicast;
	limits.trees = 4;
	work = malloc(plan_work_bytes(n, &limits));
	demand(work);
	if (plan_stripes(hosts, n, &limits, work, plan_work_bytes(n, &limits), &forest, &verdict) ==
	    TRIB_OK) {
		demand(verdict.rate_bps > 0 && isfinite(verdict.rate_bps));
		demand(verdict.rate_bps <= verdict.bound_bps * (1 + 1e-6));
		demand(forest_print(&forest, text, sizeof(text)) < sizeof(text));
		demand(forest_parse(&again, text) == TRIB_OK);
	} else {
		demand(*trib_last_error());
	}
	free(work);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct plan_host hosts[HOSTS_MAX];
	uint32_t order[HOSTS_MAX];
	char *text = malloc(size + 1);
	unsigned n;

	demand(text);
	memcpy(text, data, size);
	text[size] = 0;
	if (hosts_parse(text, hosts, HOSTS_MAX, order, &n) == TRIB_OK) {
		plan_try(hosts, n, false);
		plan_try(hosts, n, true);
	} else {
		demand(*trib_last_error());
	}
	free(text);
	return 0;
}
