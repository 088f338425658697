/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's verifier accepts the programs for every cell size. The test prints the number of
 * instructions walked; the limit is a million. Exit code 77: no permission to load them.
 */
#include "base/clock.h"
#include "base/log.h"
#include "xdp_rig.h"

#include <bpf/bpf.h>
#include <string.h>
#include <unistd.h>

#define WALK_MAX 1000000u

/*
 * Prints the verifier's numbers for programs with a higher id than `before`. Returns the highest
 * id.
 */
static uint32_t programs_show(uint32_t before)
{
	uint32_t id = before, bytes;

	while (bpf_prog_get_next_id(id, &id) == 0) {
		struct bpf_prog_info info = { 0 };
		int fd = bpf_prog_get_fd_by_id(id);

		before = id;
		if (fd < 0)
			continue;
		bytes = sizeof(info);
		demand(bpf_obj_get_info_by_fd(fd, &info, &bytes) == 0);
		printf("  %s: %u instructions walked, %u bytes\n", info.name, info.verified_insns,
		       info.xlated_prog_len);
		demand(info.verified_insns < WALK_MAX);
		close(fd);
	}
	return before;
}

/* A lane of the engine loads its program. */
static void load_engine(struct xdp_plane *plane, const struct engine *engine, uint32_t payload)
{
	const struct xdp_lane_options options = { .comm = RIG_COMM,
		                                  .lane = RIG_LANE,
		                                  .cells = 8,
		                                  .payload = payload,
		                                  .children = 2,
		                                  .engine = engine,
		                                  .engine_cells = 8 };
	struct dense_lane *dense;
	struct dense_pool pool;
	struct xdp_handle *handle = xdp_handle_open(plane, &options, &dense, &pool);

	demand(handle);
	xdp_handle_close(handle);
}

int main(void)
{
	static const uint32_t payloads[] = { WIRE_PAYLOAD_MIN, 1448, XDP_PAYLOAD_MAX };
	uint32_t last = 0;

	log_set_level(LOG_INFO); /* shows the verifier's log */
	while (bpf_prog_get_next_id(last, &last) == 0)
		;
	/* A sanitizer does not change the kernel: once is enough. */
	for (unsigned n = test_is_short() ? 4 : 0; n < 2 * countof(payloads); n++) {
		unsigned i = n / 2;
		struct xdp_options options = { .port = RIG_PORT,
			                       .lanes = RIG_LANES,
			                       .payload = payloads[i],
			                       .again = payloads[i] == WIRE_PAYLOAD_MIN,
			                       .tc = n % 2 };

		if (options.tc && payloads[i] == XDP_PAYLOAD_MAX)
			options.payload = WIRE_PAYLOAD_MAX; /* tribd sums the longer packets */
		uint64_t start = clock_now();
		struct xdp_plane *plane;

		if (xdp_load(&options, &plane) != TRIB_OK) {
			printf("payload %u: %s\n", payloads[i], trib_last_error());
			return strstr(trib_last_error(), "no right") ? 77 : 1;
		}
		load_engine(plane, &engine_slot, payloads[i]);
		if (!options.tc)
			load_engine(plane, &engine_sparse, payloads[i]);
		printf("payload %u%s: %.2f s\n", payloads[i], options.tc ? ", tc" : "",
		       (double)(clock_now() - start) / 1e9);
		last = programs_show(last);
		xdp_close(plane);
	}
	return 0;
}
