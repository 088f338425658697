/* SPDX-License-Identifier: Apache-2.0 */
#include "glm/exchange/exchange.h"

#include "base/status.h"
#include "glm/exchange/narrow_sums.h"

#include <string.h>

static trib_status exchange_find(const char *name, const struct glm_exchange **ops)
{
	if (!strcmp(name, exchange_local.name))
		*ops = &exchange_local;
	else if (!strcmp(name, exchange_tributary.name))
		*ops = &exchange_tributary;
	else if (!strcmp(name, "mpi"))
		return exchange_module(name, ops);
	else
		return status_fail(TRIB_ERR_ARGUMENT,
		                   "there is no exchange \"%s\": it is local, tributary or mpi",
		                   name);
	return TRIB_OK;
}

static trib_status exchange_failed(struct exchange *x, trib_status status)
{
	return status < 0 ? status_fail(status, "%s", x->error) : status;
}

trib_status exchange_open(struct exchange *x, const char *name, trib_comm *comm, uint32_t slots)
{
	trib_status status;

	*x = (struct exchange){ .rank = 0, .size = 1, .slots = slots };
	status = exchange_find(name ? name : comm ? "tributary" : "local", &x->ops);
	if (status == TRIB_OK)
		status = exchange_failed(x, x->ops->open(x, comm));
	if (status != TRIB_OK)
		x->ops = NULL;
	return status;
}

void exchange_close(struct exchange *x)
{
	if (x->ops)
		x->ops->close(x);
	x->ops = NULL;
}

trib_status exchange_post(struct exchange *x, uint32_t slot, int64_t *data, size_t n)
{
	return exchange_failed(x, x->ops->post(x, slot, data, n));
}

trib_status exchange_wait(struct exchange *x, uint32_t slot)
{
	return exchange_failed(x, x->ops->wait(x, slot));
}

trib_status exchange_sum(struct exchange *x, int64_t *data, size_t n)
{
	return exchange_failed(x, x->ops->sum(x, data, n));
}

trib_status exchange_sum_small(struct exchange *x, int64_t *data, size_t n, int32_t *scratch)
{
	trib_status status;

	if (x->size == 1 || x->size > NARROW_WORKERS || x->wide)
		return exchange_sum(x, data, n);
	narrow_fill(data, n, scratch);
	status = exchange_failed(x, x->ops->sum32(x, scratch, n + 1));
	if (status != TRIB_OK || narrow_read(scratch, n, data))
		return status;
	x->wide = true;
	return exchange_sum(x, data, n);
}
