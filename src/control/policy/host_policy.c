/* SPDX-License-Identifier: Apache-2.0 */
#include "control/policy/host_policy.h"

#include "plan/fabric/placement.h"

#include <stdlib.h>

const char *host_policy_name(enum host_policy policy)
{
	static const char *const names[] = { [HOST_POLICY_SMART] = "smart",
		                             [HOST_POLICY_FIRST] = "first",
		                             [HOST_POLICY_RANDOM] = "random" };

	return names[policy];
}

static uint32_t count_free(const struct host_policy_input *input)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < input->n; i++)
		n += input->hosts[i].state == HOST_FREE;
	return n;
}

/* The fabric as it is now, and where each host is in it. */
struct ground {
	struct fabric fabric;
	struct placement placement;
	const char **racks;
	uint32_t *numbers; /* index: host */
	uint32_t *hosts;   /* index: number; UINT32_MAX: padding */
	void *work;
};

static void ground_free(struct ground *ground)
{
	free(ground->racks);
	free(ground->numbers);
	free(ground->hosts);
	free(ground->work);
}

static void ground_mark(struct ground *ground, const struct host_policy_input *input)
{
	for (uint32_t number = 0; number < ground->fabric.hosts; number++) {
		uint32_t host = ground->hosts[number];
		enum host_state state = host == UINT32_MAX ? HOST_AWAY : input->hosts[host].state;

		if (state == HOST_AWAY)
			placement_lack(&ground->placement, &number, 1);
		else if (state == HOST_BUSY)
			placement_take(&ground->placement, &number, 1);
	}
}

/* Makes the smallest regular fabric that has room for all racks. */
static trib_status ground_make(struct ground *ground, const struct host_policy_input *input,
                               uint32_t most, bool *is_cut)
{
	uint32_t n = input->n;
	trib_status status;
	unsigned names, deepest = 0;

	*ground = (struct ground){ .racks = calloc(n, sizeof(*ground->racks)),
		                   .numbers = calloc(n, sizeof(*ground->numbers)) };
	if (!ground->racks || !ground->numbers)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for %u hosts", n);
	for (uint32_t i = 0; i < n; i++) {
		unsigned own = rack_names(input->hosts[i].rack);

		ground->racks[i] = input->hosts[i].rack;
		deepest = own > deepest ? own : deepest;
	}
	status = topology_number(ground->racks, n, &ground->fabric, ground->numbers, &names);
	if (status != TRIB_OK)
		return status;
	*is_cut = names < deepest;
	ground->hosts = malloc(ground->fabric.hosts * sizeof(*ground->hosts));
	ground->work = malloc(placement_bytes(&ground->fabric, most));
	if (!ground->hosts || !ground->work)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory to place jobs on %u hosts", n);
	for (uint32_t i = 0; i < ground->fabric.hosts; i++)
		ground->hosts[i] = UINT32_MAX;
	for (uint32_t i = 0; i < n; i++)
		ground->hosts[ground->numbers[i]] = i;
	placement_init(&ground->placement, &ground->fabric, input->alpha, most, ground->work);
	ground_mark(ground, input);
	return TRIB_OK;
}

static bool hosts_choose(struct placement *placement, enum host_policy policy, uint32_t n,
                         uint64_t *seed, uint32_t *hosts)
{
	switch (policy) {
	case HOST_POLICY_FIRST:
		return placement_first(placement, n, hosts);
	case HOST_POLICY_RANDOM:
		return placement_random(placement, n, seed, hosts);
	default:
		return placement_smart(placement, n, hosts, NULL);
	}
}

trib_status host_policy_run(const struct host_policy_input *input, const uint32_t *wants,
                            unsigned n, uint32_t *chosen, struct host_policy_result *result)
{
	uint32_t unused = count_free(input), most = 0, used = 0;
	uint64_t seed = input->seed;
	struct ground ground;
	trib_status status;

	*result = (struct host_policy_result){ 0 };
	if (!n || wants[0] > unused)
		return TRIB_OK;
	for (unsigned i = 0; i < n; i++)
		if (wants[i] <= unused && wants[i] > most)
			most = wants[i];
	if (most > PLACEMENT_MOST)
		return status_fail(TRIB_ERR_CONFIG, "a job has at most %u hosts", PLACEMENT_MOST);
	status = ground_make(&ground, input, most, &result->is_cut);
	while (status == TRIB_OK && result->admitted < n && wants[result->admitted] <= most &&
	       hosts_choose(&ground.placement, input->policy, wants[result->admitted], &seed,
	                    chosen + used)) {
		uint32_t *own = chosen + used, want = wants[result->admitted++];

		placement_take(&ground.placement, own, want);
		for (uint32_t i = 0; i < want; i++)
			own[i] = ground.hosts[own[i]];
		used += want;
	}
	ground_free(&ground);
	return status;
}
