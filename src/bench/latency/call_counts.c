/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/latency/call_counts.h"

unsigned call_count(uint64_t wanted, uint64_t least, uint64_t bytes)
{
	double share = bytes > CALL_COUNTS_BYTES ? (double)CALL_COUNTS_BYTES / (double)bytes : 1;
	uint64_t n = (uint64_t)((double)wanted * share);

	if (n < least)
		n = least < wanted ? least : wanted;
	return (unsigned)n;
}
