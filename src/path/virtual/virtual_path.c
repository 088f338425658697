/* SPDX-License-Identifier: Apache-2.0 */
#include "path/virtual/virtual_path.h"

#include <arpa/inet.h>
#include <string.h>

bool path_hop_is_known(const struct path_hop *hop)
{
	static const struct path_hop unknown;

	return memcmp(hop, &unknown, sizeof(unknown)) != 0;
}

const char *virtual_path_hops(const struct virtual_path *path, char out[VIRTUAL_HOPS_TEXT])
{
	char text[INET6_ADDRSTRLEN], *end = out;

	*out = '\0';
	for (unsigned h = 0; h < VIRTUAL_HOPS; h++) {
		if (!path_hop_is_known(&path->hops[h]) ||
		    !inet_ntop(path->from.storage.ss_family, path->hops[h].raw, text, sizeof(text)))
			continue;
		if (end > out)
			*end++ = ' ';
		end = stpcpy(end, text);
	}
	return out;
}
