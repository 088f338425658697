/* SPDX-License-Identifier: Apache-2.0 */
/* Inside plane/pisa only: what both engines tell of their switch. */
#ifndef TRIB_PLANE_PISA_SWITCH_COUNTS_H
#define TRIB_PLANE_PISA_SWITCH_COUNTS_H

#include "engine/engines.h"
#include "pisa/pisa.h"

/* Adds what was counted since the last call. `told` holds what was told before. */
static inline void switch_count(const struct pisa_switch *sw, struct pisa_counters *told,
                                struct engine_counts *to)
{
	const struct pisa_counters *now = &sw->counters;

	to->packets += now->packets - told->packets;
	to->passes += now->passes - told->passes;
	to->recirculations += now->recirculations - told->recirculations;
	to->refused += now->refused - told->refused;
	to->broken += now->broken - told->broken;
	*told = *now;
}

static inline void switch_use(const struct pisa_switch *sw, struct engine_use *to)
{
	*to = (struct engine_use){ .stages = sw->limits.stages };
	if (to->stages > ENGINE_STAGES_MAX)
		to->stages = ENGINE_STAGES_MAX;
	for (uint32_t i = 0; i < to->stages; i++)
		to->share[i] = 10000 *
		               (pisa_stage_blocks(sw->program, &sw->limits, i) +
		                pisa_table_blocks(sw->program, &sw->limits, i)) /
		               sw->limits.blocks;
}

#endif
