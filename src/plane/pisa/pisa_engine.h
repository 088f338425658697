/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plane/pisa: engines on a model of a programmable switch (src/pisa), as entries for the table of
 * engines: slot and sparse. It owns the model of each lane. It must not touch sockets, children or
 * communicators: packets go to a lane as on the UDP plane, and plane/lane sends the answers.
 *
 * Each lane has a switch of its own, with the limits of pisa_limits_default() for slots and
 * pisa_sparse_limits() for rows. Only thread 0 has such lanes.
 */
#ifndef TRIB_PLANE_PISA_PISA_ENGINE_H
#define TRIB_PLANE_PISA_PISA_ENGINE_H

#include "engine/engines.h"

extern const struct engine engine_slot_pisa;
extern const struct engine engine_sparse_pisa;
/* By number: the engines that run on the switch. */
extern const struct engine *const pisa_engines[ENGINES_MAX];

#endif
