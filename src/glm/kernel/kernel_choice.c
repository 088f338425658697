/* SPDX-License-Identifier: Apache-2.0 */
#include "glm/kernel/kernel_choice.h"

#include <string.h>

/* The best ones first. */
static const struct glm_loops *const all[] = {
#if defined(HAVE_GLM_AVX512)
	&glm_loops_avx512,
#endif
#if defined(HAVE_GLM_AVX2)
	&glm_loops_avx2,
#endif
#if defined(HAVE_GLM_NEON_DOT)
	&glm_loops_neon_dot,
#endif
#if defined(HAVE_GLM_NEON)
	&glm_loops_neon,
#endif
	&glm_loops_plain,
};

static const struct glm_loops *chosen; /* NULL: not yet */

const struct glm_loops *kernel_loops(void)
{
	const struct glm_loops *loops = __atomic_load_n(&chosen, __ATOMIC_RELAXED);

	if (loops)
		return loops;
	/* Threads that come here at the same time choose the same. */
	loops = &glm_loops_plain;
	for (size_t i = sizeof(all) / sizeof(all[0]); i-- > 0;)
		if (all[i]->usable())
			loops = all[i];
	__atomic_store_n(&chosen, loops, __ATOMIC_RELAXED);
	return loops;
}

const char *kernel_name(void)
{
	return kernel_loops()->name;
}

bool kernel_use(const char *name)
{
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		if (!strcmp(all[i]->name, name) && all[i]->usable()) {
			__atomic_store_n(&chosen, all[i], __ATOMIC_RELAXED);
			return true;
		}
	}
	return false;
}
