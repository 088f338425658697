/* SPDX-License-Identifier: Apache-2.0 */
/* For builds without BPF programs. */
#include "net/relay.h"

trib_status relay_start(const struct cluster *cluster, bool plain, unsigned wait_us,
                        struct relay *out)
{
	(void)cluster;
	(void)plain;
	(void)wait_us;
	out->n = 0;
	return status_fail(TRIB_ERR_CONFIG,
	                   "this build has no XDP; it needs clang, bpftool and libbpf");
}

void relay_end(struct relay *relay)
{
	(void)relay;
}

trib_status relay_place(const struct cluster *cluster, unsigned i, unsigned in, unsigned out)
{
	(void)cluster;
	(void)i;
	(void)in;
	(void)out;
	return TRIB_OK;
}
