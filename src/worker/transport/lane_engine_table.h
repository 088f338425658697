/* SPDX-License-Identifier: Apache-2.0 */
/* The table of the engines that a worker's lanes can run, by the number that a JOIN names. */
#ifndef TRIB_WORKER_TRANSPORT_LANE_ENGINE_TABLE_H
#define TRIB_WORKER_TRANSPORT_LANE_ENGINE_TABLE_H

#include "engine/engines.h"
#include "worker/comm/lane_engine.h"

extern const struct lane_engine lane_engine_dense, lane_engine_slot;

/* NULL: no lane can run it. src/sparse speaks the sparse engine, and has no lanes. */
const struct lane_engine *lane_engine_find(uint8_t number);

#endif
