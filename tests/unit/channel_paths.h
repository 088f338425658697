/* SPDX-License-Identifier: Apache-2.0 */
/* What tests ask about the paths of a channel. */
#ifndef TRIB_TESTS_CHANNEL_PATHS_H
#define TRIB_TESTS_CHANNEL_PATHS_H

#include "path/channel/channel_state.h"

/* Is this path open and alive? */
static inline bool channel_path_works(const struct channel *channel, unsigned path)
{
	return path < channel->n_paths && channel->paths[path].phase == PHASE_OPEN &&
	       !channel_is_dead(channel, path);
}

#endif
