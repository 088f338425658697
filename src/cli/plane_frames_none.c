/* SPDX-License-Identifier: Apache-2.0 */
/* For builds that could not compile a BPF program. */
#include "cli/plane_frames.h"

trib_status frames_open(const struct frames_options *options, struct frames **out)
{
	(void)options;
	(void)out;
	return status_fail(TRIB_ERR_CONFIG,
	                   "this build has no XDP; it needs clang, bpftool and libbpf");
}

void frames_close(struct frames *frames)
{
	(void)frames;
}

trib_status frames_prepare(struct frames *frames, uint64_t first, uint64_t behind, uint64_t sum,
                           frames_packet *packet, void *context)
{
	(void)frames;
	(void)first;
	(void)behind;
	(void)sum;
	(void)packet;
	(void)context;
	return TRIB_ERR_CONFIG;
}

trib_status frames_run(struct frames *frames)
{
	(void)frames;
	return TRIB_ERR_CONFIG;
}

void frames_end(struct frames *frames)
{
	(void)frames;
}

struct frames_state *frames_state(struct frames *frames)
{
	(void)frames;
	return NULL;
}
