/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/plan_exact.h"

#include "base/status.h"

bool exact_available(void)
{
	return false;
}

trib_status exact_rate(const struct plan_host *hosts, unsigned n, const struct plan_limits *limits,
                       double *bps)
{
	(void)hosts;
	(void)n;
	(void)limits;
	(void)bps;
	return status_fail(TRIB_ERR_CONFIG,
	                   "this build has no linear programs: it was built without GLPK "
	                   "(Debian: libglpk-dev)");
}
