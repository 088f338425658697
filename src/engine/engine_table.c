/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/engine_table.h"

/* Its functions are inline, in dense.h and uplink.h: lanes of streams call them for each packet. */
static const struct engine engine_dense = {
	.name = "dense",
	.number = ENGINE_DENSE,
	.any_cells = 1,
	.calls = 1,
	.streams = 1,
};

static const struct engine *engines[ENGINES_MAX] = {
	[ENGINE_DENSE] = &engine_dense,
	[ENGINE_SLOT] = &engine_slot,
	[ENGINE_SPARSE] = &engine_sparse,
};

const struct engine *engine_find(uint8_t number)
{
	return number < ENGINES_MAX ? engines[number] : (const struct engine *)0;
}

int engine_add(const struct engine *engine)
{
	if (engine->number >= ENGINES_MAX || engines[engine->number])
		return 0;
	engines[engine->number] = engine;
	return 1;
}
