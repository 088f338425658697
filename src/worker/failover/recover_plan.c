/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/failover/recover_plan.h"

bool repair_next(const uint8_t *owner, const uint8_t *lacks, size_t blocks, size_t at,
                 struct repair *out)
{
	while (at < blocks && !lacks[at])
		at++;
	if (at == blocks)
		return false;
	*out = (struct repair){ .again = !owner[at],
		                .from = owner[at] ? owner[at] - 1u : 0,
		                .first = at };
	while (at < blocks && lacks[at] && owner[at] == owner[out->first])
		at++;
	out->count = at - out->first;
	return true;
}
