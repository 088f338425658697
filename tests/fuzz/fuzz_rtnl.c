/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers of the kernel about routes and queues. Whatever the bytes, the result is an interface, a
 * queue with a terminated name, or an error. It is the same if the bytes arrive in two datagrams.
 */
#include "fuzz.h"
#include "path/rtnl.h"

#include <string.h>

static void look_at(const struct rtnl_qdisc *qdisc, int result)
{
	demand(result <= 1 && result > -4096);
	demand(memchr(qdisc->kind, 0, sizeof(qdisc->kind)));
	demand(qdisc->fair <= qdisc->leaves);
	if (rtnl_is_fair(qdisc))
		demand(!strcmp(qdisc->kind, "fq") || qdisc->fair);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input input = { data, data + size };
	int index = fuzz_byte(&input), result;
	size_t left = (size_t)(input.end - input.at), half = fuzz_byte(&input) * left / 256;
	struct rtnl_qdisc qdisc = { 0 }, parts = { 0 };
	struct rtnl_route route;

	left = (size_t)(input.end - input.at);
	half = half < left ? half : left;
	look_at(&qdisc, rtnl_take_qdiscs(&qdisc, index, input.at, left));
	if (rtnl_take_qdiscs(&parts, index, input.at, half) > 0)
		look_at(&parts, rtnl_take_qdiscs(&parts, index, input.at + half, left - half));
	result = rtnl_read_route(input.at, left, &route);
	demand(result <= 0 && result > -4096 && (result || route.interface));
	demand(route.gateway_size == 0 || route.gateway_size == 4 || route.gateway_size == 16);
	return 0;
}
