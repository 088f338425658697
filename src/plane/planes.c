/* SPDX-License-Identifier: Apache-2.0 */
#include "plane/planes.h"

#include "plane/pisa/pisa_engine.h"
#include "plane/tcp/connections.h"
#include "plane/udp/udp_carrier.h"
#include "plane/xdp/kernel_xdp.h"

#include <string.h>

static const struct plane planes[] = {
	{ .name = "udp", .carrier = &carrier_udp },
	{ .name = "tcp", .carrier = &carrier_tcp },
	{ .name = "xdp", .carrier = &carrier_udp, .kernel = &kernel_xdp },
	{ .name = "tc", .carrier = &carrier_udp, .kernel = &kernel_tc },
	{ .name = "auto", .carrier = &carrier_udp, .kernel = &kernel_tc, .may_fail = true },
	{ .name = "pisa",
	  .carrier = &carrier_udp,
	  .engines = pisa_engines,
	  .about = "small vectors on a model of a programmable switch" },
};

const struct plane *plane_find(const char *name)
{
	for (unsigned i = 0; i < sizeof(planes) / sizeof(planes[0]); i++)
		if (!name || strcmp(planes[i].name, name) == 0)
			return &planes[i];
	return NULL;
}
