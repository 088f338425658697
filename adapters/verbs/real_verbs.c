/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"
#include "tribverbs.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#define VERSION "IBVERBS_1.1"

struct real_verbs real;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void *find(const char *name, const char *version)
{
	void *symbol = dlvsym(RTLD_NEXT, name, version);

	if (!symbol)
		symbol = dlsym(RTLD_NEXT, name);
	if (!symbol) {
		fprintf(stderr, "libtribverbs.so: libibverbs has no %s\n", name);
		abort();
	}
	return symbol;
}

static void load(void)
{
	const char *level = getenv("TRIB_VERBS_LOG");

	real.get_device_list = find("ibv_get_device_list", VERSION);
	real.open_device = find("ibv_open_device", VERSION);
	real.create_cq = find("ibv_create_cq", VERSION);
	real.destroy_cq = find("ibv_destroy_cq", VERSION);
	real.create_qp = find("ibv_create_qp", VERSION);
	real.destroy_qp = find("ibv_destroy_qp", VERSION);
	real.modify_qp = find("ibv_modify_qp", VERSION);
	real.reg_mr = find("ibv_reg_mr", VERSION);
	real.reg_mr_iova2 = find("ibv_reg_mr_iova2", "IBVERBS_1.8");
	real.dereg_mr = find("ibv_dereg_mr", VERSION);
	log_set_prefix("libtribverbs");
	if (level && log_set_level_name(level) != 0)
		log_warn("TRIB_VERBS_LOG is \"%s\": error, warn, notice, info or debug", level);
}

void real_find(void)
{
	pthread_once(&once, load);
}
