/* SPDX-License-Identifier: Apache-2.0 */
#include "plane/stats/totals.h"

static void add(struct counters *sum, const struct counters *one)
{
	const uint64_t *from = (const uint64_t *)one;
	uint64_t *to = (uint64_t *)sum;

	for (size_t i = 0; i < sizeof(*sum) / sizeof(uint64_t); i++)
		to[i] += from[i];
}

void totals_read(struct aggregator *aggregator, struct totals *totals)
{
	*totals = (struct totals){ 0 };
	for (unsigned i = 0; i < aggregator->n_threads; i++) {
		struct thread *thread = &aggregator->threads[i];

		pthread_mutex_lock(&thread->lock);
		add(&totals->sum, &thread->published);
		totals->cpu_s += thread->cpu_s;
		pthread_mutex_unlock(&thread->lock);
	}
	if (aggregator->kernel)
		aggregator->kernel->ops->count(aggregator->kernel, totals);
}

const char *plane_name(const struct aggregator *aggregator)
{
	const struct kernel *kernel = aggregator_kernel(aggregator);

	return kernel ? kernel->ops->plane : aggregator->plane_name;
}
