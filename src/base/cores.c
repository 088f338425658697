/* SPDX-License-Identifier: Apache-2.0 */
#include "base/cores.h"

#include "base/log.h"

#include <sched.h>
#include <stdlib.h>

void cores_pin(pthread_t thread, const char *list, unsigned index)
{
	char *end;
	cpu_set_t set;

	for (; list && *list; list = *end ? end + 1 : end) {
		unsigned long core = strtoul(list, &end, 10);

		if (end == list)
			return;
		if (index-- > 0)
			continue;
		CPU_ZERO(&set);
		CPU_SET(core, &set);
		if (pthread_setaffinity_np(thread, sizeof(set), &set))
			log_warn("cannot pin a thread to core %lu", core);
		return;
	}
}
