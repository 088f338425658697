/* SPDX-License-Identifier: Apache-2.0 */
/* The table of engines, by the number that a JOIN names. */
#ifndef TRIB_ENGINE_ENGINE_TABLE_H
#define TRIB_ENGINE_ENGINE_TABLE_H

#include "engine/engines.h"

/* NULL: there is no such engine. */
const struct engine *engine_find(uint8_t number);
/* For tests: adds an engine. Its number must be free. False: it is not. */
int engine_add(const struct engine *engine);

#endif
