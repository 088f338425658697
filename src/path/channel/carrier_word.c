/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What both sides tell each other about the carrier of a path. Every word is the sender's full
 * state with a serial number, so loss, duplication and delay are harmless.
 */
#include "path/channel/carried.h"
#include "path/channel/channel_state.h"

#define ASK_NS 50000000ull /* 50 ms between two CARRIERs of a path that are not answered */

void carried_tell(struct channel *channel, unsigned path, const struct path_carrier *own)
{
	struct channel_path *p = &channel->paths[path];
	uint32_t serial = p->own.serial + 1;

	p->own = *own;
	p->own.serial = serial;
	p->owes_carrier = true;
}

const struct path_carrier *carried_heard(const struct channel *channel, unsigned path)
{
	const struct path_carrier *heard = &channel->paths[path].heard;

	return heard->serial ? heard : NULL;
}

bool carrier_is_due(const struct channel *channel, const struct channel_path *p, uint64_t now)
{
	return channel->config.carried && p->phase == PHASE_OPEN && p->own.serial &&
	       !channel_has_ended(channel) &&
	       (p->owes_carrier ||
	        (p->heard.heard != p->own.serial && now >= p->carrier_at + ASK_NS));
}

bool carrier_take(struct channel *channel, unsigned path, const struct path_carrier *came,
                  size_t bytes)
{
	struct channel_path *p = &channel->paths[path];

	if (!channel->config.carried || bytes != sizeof(*came) || !came->serial)
		return false;
	if ((int32_t)(came->serial - p->heard.serial) < 0)
		return true; /* an older one that is late */
	p->heard = *came;
	p->owes_carrier |= came->asks;
	return true;
}
