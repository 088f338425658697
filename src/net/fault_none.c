/* SPDX-License-Identifier: Apache-2.0 */
/* For builds without the fault program. */
#include "net/fault.h"

bool fault_available(void)
{
	return false;
}

trib_status fault_attach(const struct link_end *end, enum fault_way way,
                         const struct fault_rates *rates, uint64_t stream)
{
	(void)end, (void)way, (void)rates, (void)stream;
	return status_fail(TRIB_ERR_CONFIG,
	                   "this build has no fault injection; it needs clang, bpftool and libbpf");
}

bool fault_read(const char *namespace, const char *link, enum fault_way way,
                struct fault_counts *out)
{
	(void)namespace, (void)link, (void)way, (void)out;
	return false;
}
