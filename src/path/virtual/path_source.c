/* SPDX-License-Identifier: Apache-2.0 */
#include "path/virtual/path_source.h"
#include "path/virtual/discovery.h"
#include "path/virtual/ecmp.h"
#include "path/virtual/hop_probe.h"

#include "base/clock.h"
#include "base/settings.h"
#include "path/balance/monitor.h"

#include <poll.h>
#include <string.h>
#include <unistd.h>

static bool is_free(struct virtual_path *path)
{
	int fd;

	if (hop_probe_open(path, &fd))
		return false;
	close(fd);
	return true;
}

bool path_source_compute(struct virtual_path *path, unsigned paths, unsigned k)
{
	uint32_t least = ECMP_PORT_MIN;
	uint16_t port;

	while (least <= UINT16_MAX &&
	       (port = ecmp_port(&path->from, &path->to, paths, k, (uint16_t)least))) {
		udp_set_port(&path->from, port);
		if (is_free(path))
			return true;
		least = port + 1u;
	}
	return false;
}

/* The router behind the first one, for a new port; unknown: it does not answer. */
static struct path_hop ask(struct virtual_path *path)
{
	const struct timespec wait = clock_span(SOURCE_WAIT_NS);
	struct path_hop told = { { 0 } };
	struct pollfd answer;

	if (hop_probe_open(path, &answer.fd) != TRIB_OK)
		return told;
	answer.events = 0; /* errors are always told */
	if (hop_probe_send(answer.fd, 1) && ppoll(&answer, 1, &wait, NULL) == 1 &&
	    hop_probe_take(answer.fd, 1, &told) != HOP_TOLD)
		told = (struct path_hop){ { 0 } };
	close(answer.fd);
	return told;
}

/* The address of `like` comes first: if the fabric routes by address, it is the right one. */
static bool search(const struct udp_address *to, const struct virtual_path *like,
                   struct udp_address *from)
{
	struct udp_address own[PATHS_MAX], first = like->from;
	unsigned n = discovery_own(to, own, PATHS_MAX), at = 0, silent = 0;

	udp_set_port(&first, 0);
	for (unsigned i = 0; i < n; i++)
		if (udp_same(&own[i], &first))
			at = i;
	for (unsigned i = 0; n && i < SOURCE_TRIES && silent < SOURCE_SILENT; i++) {
		struct virtual_path path = { .from = own[(at + i) % n], .to = *to };
		struct path_hop told = ask(&path);

		*from = path.from;
		if (memcmp(&told, &like->hops[1], sizeof(told)) == 0)
			return true;
		silent += !path_hop_is_known(&told);
	}
	return false;
}

bool path_source_find(const struct udp_address *to, const struct virtual_path *like,
                      struct udp_address *from)
{
	struct virtual_path path = { .from = like->from, .to = *to };
	enum path_search kind;
	unsigned paths;
	bool found;

	if (setting_paths(&kind, &paths) != TRIB_OK || kind == PATHS_OFF)
		return false;
	if (kind == PATHS_PROBED && path_hop_is_known(&like->hops[1]))
		return search(to, like, from);
	udp_set_port(&path.from, 0);
	found = kind != PATHS_XOR ||
	        path_source_compute(&path, paths, ecmp_xor(&like->from, &like->to) % paths);
	*from = path.from;
	return found;
}
