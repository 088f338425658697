/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/comm/residual.h"

#include "base/status.h"
#include "worker/comm/comm.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct residual *residual_new(const char *name, size_t count)
{
	struct residual *residual = calloc(1, sizeof(*residual) + count * sizeof(float));
	char *copy = strdup(name);

	if (!residual || !copy) {
		free(residual);
		free(copy);
		return NULL;
	}
	residual->name = copy;
	residual->count = count;
	return residual;
}

/* The place of the pointer to it, or of the end of the list. The caller holds `lock`. */
static struct residual **find(struct trib_comm *comm, const char *name)
{
	struct residual **at = &comm->residuals;

	while (*at && strcmp((*at)->name, name))
		at = &(*at)->next;
	return at;
}

static trib_status hold(struct trib_comm *comm, const char *name, size_t count,
                        struct residual **out)
{
	struct residual **at = find(comm, name), *residual = *at;

	if (!residual && !(residual = *at = residual_new(name, count)))
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for residual \"%s\"", name);
	if (residual->count != count)
		return status_fail(TRIB_ERR_ARGUMENT,
		                   "residual \"%s\" has %zu elements, and this call has %zu; "
		                   "trib_drop_residual frees it",
		                   name, residual->count, count);
	if (residual->held)
		return status_fail(TRIB_ERR_ARGUMENT,
		                   "residual \"%s\" is used by a request that has not ended", name);
	residual->held = true;
	*out = residual;
	return TRIB_OK;
}

trib_status residual_hold(struct trib_comm *comm, const char *name, size_t count,
                          struct residual **out)
{
	trib_status status;

	pthread_mutex_lock(&comm->lock);
	status = hold(comm, name, count, out);
	pthread_mutex_unlock(&comm->lock);
	return status;
}

void residual_feed(const struct residual *residual, const void *vector, float *out)
{
	memcpy(out, vector, residual->count * sizeof(*out));
	for (size_t i = 0; i < residual->count; i++) {
		float fed = out[i] + residual->values[i];

		/*
		 * A sum that overflows is the vector's alone. Without a residual, a denormal stays
		 * one, also if the process flushes them.
		 */
		if (residual->values[i] != 0 && isfinite(fed))
			out[i] = fed;
	}
}

static bool is_meant(const struct residual *residual, const char *name)
{
	return !name || strcmp(residual->name, name) == 0;
}

static trib_status drop(struct trib_comm *comm, const char *name)
{
	for (const struct residual *one = comm->residuals; one; one = one->next)
		if (is_meant(one, name) && one->held)
			return status_fail(
				TRIB_ERR_ARGUMENT,
				"residual \"%s\" is used by a request that has not ended",
				one->name);
	for (struct residual **at = &comm->residuals, *residual; (residual = *at);) {
		if (!is_meant(residual, name)) {
			at = &residual->next;
			continue;
		}
		*at = residual->next;
		free(residual->name);
		free(residual);
	}
	return TRIB_OK;
}

trib_status residual_drop(struct trib_comm *comm, const char *name)
{
	trib_status status;

	pthread_mutex_lock(&comm->lock);
	status = drop(comm, name);
	pthread_mutex_unlock(&comm->lock);
	return status;
}
