/* SPDX-License-Identifier: Apache-2.0 */
#include "control/admission.h"

#include "plan/placement.h"

#include <stdlib.h>

const char *admission_policy_name(enum admission_policy policy)
{
	static const char *const names[] = { [ADMISSION_SMART] = "smart",
		                             [ADMISSION_FIRST] = "first",
		                             [ADMISSION_RANDOM] = "random" };

	return names[policy];
}

uint32_t admission_count(const struct admission *admission, enum host_state state)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < admission->n; i++)
		n += admission->hosts[i].state == state;
	return n;
}

/* The fabric as it is now, and which host is where in it. */
struct ground {
	struct fabric fabric;
	struct placement placement;
	const char **racks;
	uint32_t *numbers; /* of a host */
	uint32_t *hosts;   /* of a number; UINT32_MAX: none is there */
	void *work;
};

static void ground_free(struct ground *ground)
{
	free(ground->racks);
	free(ground->numbers);
	free(ground->hosts);
	free(ground->work);
}

static void ground_mark(struct ground *ground, const struct admission *admission)
{
	for (uint32_t number = 0; number < ground->fabric.hosts; number++) {
		uint32_t host = ground->hosts[number];
		enum host_state state =
			host == UINT32_MAX ? HOST_AWAY : admission->hosts[host].state;

		if (state == HOST_AWAY)
			placement_lack(&ground->placement, &number, 1);
		else if (state == HOST_BUSY)
			placement_take(&ground->placement, &number, 1);
	}
}

/* Racks lie over the largest fabric that they fit into. */
static trib_status ground_make(struct ground *ground, const struct admission *admission,
                               uint32_t most, bool *is_cut)
{
	uint32_t n = admission->n;
	trib_status status;
	unsigned names, deepest = 0;

	*ground = (struct ground){ .racks = calloc(n, sizeof(*ground->racks)),
		                   .numbers = calloc(n, sizeof(*ground->numbers)) };
	if (!ground->racks || !ground->numbers)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for %u hosts", n);
	for (uint32_t i = 0; i < n; i++) {
		unsigned own = rack_names(admission->hosts[i].rack);

		ground->racks[i] = admission->hosts[i].rack;
		deepest = own > deepest ? own : deepest;
	}
	status = racks_number(ground->racks, n, &ground->fabric, ground->numbers, &names);
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
	placement_init(&ground->placement, &ground->fabric, admission->alpha, most, ground->work);
	ground_mark(ground, admission);
	return TRIB_OK;
}

static bool hosts_choose(struct placement *placement, enum admission_policy policy, uint32_t n,
                         uint64_t *seed, uint32_t *hosts)
{
	switch (policy) {
	case ADMISSION_FIRST:
		return placement_first(placement, n, hosts);
	case ADMISSION_RANDOM:
		return placement_random(placement, n, seed, hosts);
	default:
		return placement_smart(placement, n, hosts, NULL);
	}
}

trib_status admission_run(const struct admission *admission, const uint32_t *wants, unsigned n,
                          uint32_t *chosen, struct admission_result *result)
{
	uint32_t unused = admission_count(admission, HOST_FREE), most = 0, used = 0;
	uint64_t seed = admission->seed;
	struct ground ground;
	trib_status status;

	*result = (struct admission_result){ 0 };
	if (!n || wants[0] > unused)
		return TRIB_OK;
	for (unsigned i = 0; i < n; i++)
		if (wants[i] <= unused && wants[i] > most)
			most = wants[i];
	if (most > PLACEMENT_MOST)
		return status_fail(TRIB_ERR_CONFIG, "a job has at most %u hosts", PLACEMENT_MOST);
	status = ground_make(&ground, admission, most, &result->is_cut);
	while (status == TRIB_OK && result->admitted < n && wants[result->admitted] <= most &&
	       hosts_choose(&ground.placement, admission->policy, wants[result->admitted], &seed,
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
