/* SPDX-License-Identifier: Apache-2.0 */
#include "control/jobs/job_state.h"

#include "base/clock.h"
#include "plan/tree/ring_seats.h"

#define MEMBER_SILENT_NS (60 * NSEC_PER_SEC)

/* Has a member of the newest plan given a sign of life lately? Ranks on a ring give none. */
static bool is_heard(const struct membership *membership, uint64_t now)
{
	if (ring_seats_are(membership->plan))
		return true;
	for (uint64_t here = membership->members & ~membership->left; here; here &= here - 1)
		if (now < membership->seats[__builtin_ctzll(here)].seen_at + MEMBER_SILENT_NS)
			return true;
	return false;
}

enum job_state job_state(const struct job_entry *entry, uint64_t now)
{
	const struct membership_entry *at = entry->memberships;

	if (entry->hosting.hosts && !entry->hosting.placed)
		return JOB_QUEUED;
	while (at && at->membership.key)
		at = at->next;
	if (!at || (!at->membership.generation && !membership_waiting(&at->membership, now)))
		return JOB_NEW;
	if (!at->membership.generation)
		return JOB_STARTING;
	if (membership_waiting(&at->membership, now))
		return JOB_RUNNING;
	if (membership_is_over(&at->membership))
		return JOB_ENDED;
	return is_heard(&at->membership, now) ? JOB_RUNNING : JOB_SILENT;
}

const char *job_state_name(enum job_state state)
{
	static const char *const names[] = {
		[JOB_QUEUED] = "queued",   [JOB_NEW] = "new",       [JOB_STARTING] = "starting",
		[JOB_RUNNING] = "running", [JOB_SILENT] = "silent", [JOB_ENDED] = "ended"
	};

	return names[state];
}
