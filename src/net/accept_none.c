/* SPDX-License-Identifier: Apache-2.0 */
/* For builds that could not compile a BPF program. */
#include "net/accept.h"

trib_status accept_frames(const struct cluster *cluster)
{
	(void)cluster;
	return status_fail(TRIB_ERR_CONFIG,
	                   "this build has no XDP; it needs clang, bpftool and libbpf");
}
