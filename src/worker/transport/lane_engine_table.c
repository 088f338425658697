/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/transport/lane_engine_table.h"

#include <stddef.h>

static const struct lane_engine *const engines[ENGINES_MAX] = {
	[ENGINE_DENSE] = &lane_engine_dense,
	[ENGINE_SLOT] = &lane_engine_slot,
};

const struct lane_engine *lane_engine_find(uint8_t number)
{
	return number < ENGINES_MAX ? engines[number] : NULL;
}
