/* SPDX-License-Identifier: Apache-2.0 */
/* Inside plane/pisa only: what lanes of both engines have, and what they tell of their switch. */
#ifndef TRIB_PLANE_PISA_SWITCH_LANE_H
#define TRIB_PLANE_PISA_SWITCH_LANE_H

#include "engine/engines.h"
#include "pisa/pisa.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(ENGINE_WHY_MAX >= PISA_WHY_MAX, "a loader's sentence fits");

/* The word of the lane that has the address of its switch. Engines leave it alone. */
#define SWITCH_WORD (ENGINE_LANE_WORDS - 1)

/* The first member of what a lane has. */
struct switch_lane {
	void *registers;           /* NULL: no program is loaded */
	struct pisa_counters told; /* what switch_count() has told of the switch's counters */
	char why[ENGINE_WHY_MAX];  /* of the last packet that was refused */
};

static inline void *switch_of(const struct engine_pool *pool)
{
	return (void *)(uintptr_t)pool->lane->own[SWITCH_WORD];
}

/* Memory for a lane of so many bytes, all zero; NULL: there is none. */
static inline void *switch_new(const struct engine_pool *pool, size_t bytes)
{
	void *it = calloc(1, bytes);

	pool->lane->own[SWITCH_WORD] = (uintptr_t)it;
	return it;
}

static inline void switch_close(const struct engine_pool *pool)
{
	struct switch_lane *it = switch_of(pool);

	pool->lane->own[SWITCH_WORD] = 0;
	if (it)
		free(it->registers);
	free(it);
}

static inline const char *switch_why(const struct engine_pool *pool)
{
	return ((const struct switch_lane *)switch_of(pool))->why;
}

/* Keeps `what` and the sentence, without its full stop. */
static inline enum engine_verdict switch_refuse(struct switch_lane *it, const char *what,
                                                const char *sentence)
{
	size_t length = strlen(sentence);

	if (length && sentence[length - 1] == '.')
		length--;
	snprintf(it->why, sizeof(it->why), "%s%.*s", what, (int)length, sentence);
	return ENGINE_REFUSED;
}

/* Adds what was counted since the last call. */
static inline void switch_count(const struct pisa_switch *sw, struct switch_lane *it,
                                struct engine_counts *to)
{
	const struct pisa_counters *now = &sw->counters, *told = &it->told;

	to->packets += now->packets - told->packets;
	to->passes += now->passes - told->passes;
	to->recirculations += now->recirculations - told->recirculations;
	to->refused += now->refused - told->refused;
	to->broken += now->broken - told->broken;
	it->told = *now;
}

static inline void switch_use(const struct pisa_program *program, const struct pisa_limits *limits,
                              struct engine_use *to)
{
	*to = (struct engine_use){ .stages = limits->stages };
	if (to->stages > ENGINE_STAGES_MAX)
		to->stages = ENGINE_STAGES_MAX;
	for (uint32_t i = 0; i < to->stages; i++)
		to->share[i] = 10000 *
		               (pisa_stage_blocks(program, limits, i) +
		                pisa_table_blocks(program, limits, i)) /
		               limits->blocks;
}

#endif
