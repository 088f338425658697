/* SPDX-License-Identifier: Apache-2.0 */
/* Lanes of engines with functions (engine/engines.h): the engine decides, the carrier sends. */
#ifndef TRIB_PLANE_LANE_ENGINE_LANE_H
#define TRIB_PLANE_LANE_ENGINE_LANE_H

#include "plane/lane/lane_kind.h"

extern const struct lane_kind lane_of_engine;

#endif
