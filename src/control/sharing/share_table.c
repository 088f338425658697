/* SPDX-License-Identifier: Apache-2.0 */
#include "control/sharing/share_table.h"

#include "base/clock.h"
#include "base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AGREE_START_NS 1000000ull /* 1 ms: assumed until ranks have agreed on a first turn */

static struct sharing_group *group_find(struct controller *controller, const char *address)
{
	struct sharing_group *group = controller->groups;

	while (group && strcmp(group->address, address))
		group = group->next;
	return group;
}

static struct sharing_group *group_make(struct controller *controller, const char *address)
{
	struct sharing_group *group = group_find(controller, address);

	if (group)
		return group;
	group = calloc(1, sizeof(*group));
	if (!group)
		return NULL;
	group->agree_ns = AGREE_START_NS;
	snprintf(group->address, sizeof(group->address), "%s", address);
	group->next = controller->groups;
	controller->groups = group;
	return group;
}

struct sharer *share_table_find(struct controller *controller, uint16_t job, uint64_t key,
                                uint32_t generation, uint32_t star, struct sharing_group **in)
{
	for (struct sharing_group *group = controller->groups; group; group = group->next)
		EACH_SHARER(sharer, group)
	if (sharer->job == job && sharer->key == key && sharer->generation == generation &&
	    sharer->star == star) {
		*in = group;
		return sharer;
	}
	return NULL;
}

/* Loses the shares of plans with a lower generation. */
static void lose_older(struct controller *controller, uint16_t job, bool all_keys, uint64_t key,
                       uint32_t below)
{
	for (struct sharing_group *group = controller->groups; group; group = group->next)
		EACH_SHARER(sharer, group)
	if (sharer->job == job && (all_keys || sharer->key == key) && sharer->generation < below)
		turns_lose(&sharer->share);
}

/* The share of an older plan that the communicator still holds: at most one; NULL: none. */
static const struct turns_share *older_held(const struct controller *controller, uint16_t job,
                                            uint64_t key)
{
	for (struct sharing_group *group = controller->groups; group; group = group->next)
		EACH_SHARER(sharer, group)
	if (sharer->job == job && sharer->key == key && sharer->share.held)
		return &sharer->share;
	return NULL;
}

void share_table_end_job(struct controller *controller, uint16_t job)
{
	lose_older(controller, job, true, 0, UINT32_MAX);
}

struct sharer *share_table_newest(struct controller *controller,
                                  const struct membership_entry *entry)
{
	const struct membership *membership = &entry->membership;
	struct sharing_group *group;
	struct sharer *sharer = share_table_find(controller, membership->job, membership->key,
	                                         membership->generation, membership->star, &group);

	return sharer && !sharer->share.lost ? sharer : NULL;
}

struct sharer *share_table_add(struct controller *controller, const struct job_entry *job,
                               const struct membership *membership, bool restored)
{
	char address[TREE_NAME_MAX];
	struct sharing_group *group;
	struct sharer *sharer;
	const struct turns_share *before;
	unsigned ranks = 0;

	if (!plan_shared(membership->plan, address))
		return NULL;
	group = group_make(controller, address);
	sharer = group ? calloc(1, sizeof(*sharer)) : NULL;
	if (!sharer) {
		log_error("job %u gets no turns at %s: no memory", job->job.id, address);
		return NULL;
	}
	for (uint64_t seats = membership->members; seats; seats &= seats - 1)
		sharer->nonces[ranks++] = membership->seats[__builtin_ctzll(seats)].nonce;
	before = older_held(controller, job->job.id, membership->key);
	turns_add(&group->turns, &sharer->share, ranks, controller->session, restored, clock_now());
	sharer->share.before = before;
	sharer->heard_at = clock_now();
	sharer->job = job->job.id;
	sharer->cookie = job->cookie;
	sharer->key = membership->key;
	sharer->generation = membership->generation;
	sharer->star = membership->star;
	return sharer;
}

void share_table_take_plan(struct controller *controller, const struct job_entry *job,
                           const struct membership *membership, bool restored)
{
	lose_older(controller, job->job.id, false, membership->key, membership->generation);
	share_table_add(controller, job, membership, restored);
}

void share_table_free(struct controller *controller)
{
	while (controller->groups) {
		struct sharing_group *group = controller->groups;

		controller->groups = group->next;
		EACH_SHARER(sharer, group)
		free(sharer);
		free(group);
	}
}

static void forget_before(struct controller *controller, const struct turns_share *gone)
{
	for (struct sharing_group *group = controller->groups; group; group = group->next)
		EACH_SHARER(sharer, group)
	if (sharer->share.before == gone)
		sharer->share.before = NULL;
}

void share_table_remove(struct controller *controller, struct sharing_group *group,
                        struct sharer *sharer)
{
	turns_remove(&group->turns, &sharer->share);
	forget_before(controller, &sharer->share);
	free(sharer);
}
