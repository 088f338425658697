/* SPDX-License-Identifier: Apache-2.0 */
#include "path/channel/channel_state.h"
#include "path/channel/io_state.h"

#include <string.h>

static void show_addresses(const struct channel_io *io, unsigned i, struct page_path *path)
{
	const struct virtual_path *found = channel_io_path(io, i);

	if (found)
		memcpy(path->hops, found->hops, sizeof(path->hops));
	if (path->is_open) {
		path_address_of_socket(io->sockets[i].fd, &path->from, &path->to);
	} else if (found && found->from.length) {
		path->from = path_address_of(&found->from);
		path->to = path_address_of(&found->to);
	}
}

static void show_path(const struct channel_io *io, unsigned i, struct page_path *path)
{
	const struct channel_path *state = &io->channel->paths[i];
	const struct path_estimate *estimate = &io->channel->monitor.paths[i];

	*path = (struct page_path){ .is_open = io->sockets[i].fd >= 0 };
	show_addresses(io, i, path);
	path->left = state->left;
	path->received = state->received;
	if (i >= io->channel->monitor.n)
		return;
	path->state = (uint8_t)estimate->state;
	path->sent = estimate->delivered;
	path->lost = estimate->lost;
	path->carries_bps = estimate->bps;
	path->rtt_ns = estimate->rtt_ns;
	path->least_rtt_ns = estimate->least_rtt_ns;
	path->loss = estimate->loss;
}

void channel_show(const struct channel_io *io, struct page_peer *peer)
{
	peer->rank = io->peer;
	peer->n = io->n_tried > io->n_sockets ? io->n_tried : io->n_sockets;
	peer->found = io->listener    ? FOUND_BY_PEER
	              : io->discovery ? discovery_found(io->discovery)
	                              : FOUND_GIVEN;
	for (unsigned i = 0; i < peer->n; i++)
		show_path(io, i, &peer->paths[i]);
}
