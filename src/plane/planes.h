/* SPDX-License-Identifier: Apache-2.0 */
/* The planes that an aggregator can be started with. */
#ifndef TRIB_PLANE_PLANES_H
#define TRIB_PLANE_PLANES_H

#include "plane/core/carrier.h"
#include "plane/core/kernel.h"

struct plane {
	const char *name;
	const struct carrier *carrier;
	const struct kernel_ops *kernel; /* NULL: no kernel part */
	/* Engines that take the place of the usual ones on this plane, by number. NULL: none. */
	const struct engine *const *engines;
	const char *about; /* of these engines, for people */
	bool may_fail;     /* without its kernel part the plane is as good as was asked for */
};

/* `name` NULL: the default, udp. Gives NULL if there is no such plane. */
const struct plane *plane_find(const char *name);

#endif
