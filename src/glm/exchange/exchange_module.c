/* SPDX-License-Identifier: Apache-2.0 */
#include "glm/exchange/exchange.h"

#include "base/status.h"

#ifdef GLM_NO_MODULES

trib_status exchange_module(const char *name, const struct glm_exchange **ops)
{
	*ops = NULL;
	return status_fail(TRIB_ERR_CONFIG,
	                   "this program is static, and cannot load the exchange %s", name);
}

#else

#include "glm_modules.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The folder of this program, where a build has its modules too. */
static void program_folder(char *out, size_t room)
{
	ssize_t n = readlink("/proc/self/exe", out, room - 1);

	out[n > 0 ? n : 0] = 0;
	if (strrchr(out, '/'))
		*strrchr(out, '/') = 0;
}

trib_status exchange_module(const char *name, const struct glm_exchange **ops)
{
	char folder[512], path[700];
	void *module = NULL;

	program_folder(folder, sizeof(folder));
	for (unsigned i = 0; !module && i < 2; i++) {
		snprintf(path, sizeof(path), i ? "%s/glm-%s.so" : "%s/../glm/exchange/glm-%s.so",
		         i ? GLM_MODULES : folder, name);
		/* MPI's own plugins look for its symbols, so they are made global. */
		module = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
	}
	if (!module)
		return status_fail(
			TRIB_ERR_CONFIG,
			"the exchange %s is not there: %s (this build may have been made "
			"without MPI)",
			name, dlerror());
	*ops = dlsym(module, EXCHANGE_SYMBOL);
	if (!*ops)
		return status_fail(TRIB_ERR_CONFIG, "%s has no exchange in it", path);
	return TRIB_OK;
}

#endif
