/* SPDX-License-Identifier: Apache-2.0 */
/* What the environment of mpirun, srun or torchrun says about a job. */
#include "base/launcher.h"
#include "base/settings.h"
#include "cli/check/finding.h"

void check_launcher(struct check *check)
{
	const char *rank = setting_text(SETTING_RANK, NULL);
	const char *size = setting_text(SETTING_SIZE, NULL);
	struct launcher_meeting meeting = launcher_meet();
	uint64_t cookie = 0;

	if (!rank || !size || !meeting.launcher)
		return;
	setting_count(SETTING_COOKIE, &cookie);
	if (!meeting.at[0])
		check_tell(check, CHECK_WARN, "launcher",
		           "to sum without an aggregator, set TRIB_RENDEZVOUS=host:port on all "
		           "ranks, to a free port of rank 0's host",
		           "rank %s of %s, from %s: %s", rank, size, meeting.launcher, meeting.why);
	else if (!cookie && !meeting.is_local && !meeting.is_secret)
		check_tell(check, CHECK_WARN, "launcher",
		           "set TRIB_COOKIE on all ranks, to what trib cookie draws",
		           "rank %s of %s, from %s; to meet at %s without an aggregator, ranks "
		           "need a cookie",
		           rank, size, meeting.launcher, meeting.at);
	else
		check_tell(check, CHECK_OK, "launcher", NULL,
		           "rank %s of %s, from %s; without an aggregator, ranks meet at %s", rank,
		           size, meeting.launcher, meeting.at);
}
