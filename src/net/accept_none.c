/* SPDX-License-Identifier: Apache-2.0 */
/* For builds without BPF programs. */
#include "net/accept.h"

trib_status accept_frames(const struct cluster *cluster, const bool *aggregates,
                          struct accepted *out)
{
	(void)cluster;
	(void)aggregates;
	out->n = 0;
	return status_fail(TRIB_ERR_CONFIG,
	                   "this build has no XDP; it needs clang, bpftool and libbpf");
}

trib_status accept_at_servers(const struct cluster *cluster, struct accepted *out)
{
	return accept_frames(cluster, NULL, out);
}

void accept_end(struct accepted *accepted)
{
	(void)accepted;
}
