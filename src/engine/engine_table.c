/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/engine_table.h"

static const struct engine *engines[ENGINES_MAX] = {
	[ENGINE_SLOT] = &engine_slot, [ENGINE_SPARSE] = &engine_sparse
};

const struct engine *engine_find(uint8_t number)
{
	return number < ENGINES_MAX ? engines[number] : (const struct engine *)0;
}

int engine_add(const struct engine *engine)
{
	if (engine->number == ENGINE_DENSE || engine->number >= ENGINES_MAX ||
	    engines[engine->number])
		return 0;
	engines[engine->number] = engine;
	return 1;
}
