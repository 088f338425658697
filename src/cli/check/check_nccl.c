/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks the plugin for NCCL: does it load, which versions of NCCL's tables has it, and would NCCL
 * sum with it? It does what NCCL does before it connects.
 */
#include "../../../adapters/nccl/common/nccl_abi.h"
#include "base/settings.h"
#include "cli/check/finding.h"
#include "launch/nccl_plugin.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VERSION_OLDEST 6 /* that NCCL still looks for */
#define VERSION_NEWEST 11
#define SPEED_LEAST 960 /* Mb/s; NCCL leaves slower devices without CollNet */

static char last_line[256]; /* of the plugin's log */

static void line_keep(int level, unsigned long flags, const char *file, int line,
                      const char *format, ...)
{
	va_list args;

	(void)level;
	(void)flags;
	(void)file;
	(void)line;
	va_start(args, format);
	vsnprintf(last_line, sizeof(last_line), format, args);
	va_end(args);
}

/* NCCL takes a path, a file name, or NAME for libnccl-net-NAME.so. */
static void *plugin_open(char *path, size_t room)
{
	const char *named = getenv("NCCL_NET_PLUGIN");
	void *library;

	if (!named) {
		nccl_plugin_find(path, room);
		return dlopen(path, RTLD_NOW | RTLD_LOCAL);
	}
	snprintf(path, room, "%s", named);
	library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (library || strchr(named, '/'))
		return library;
	snprintf(path, room, "libnccl-net-%s.so", named);
	return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

/* "11, 10, 9"; "" if it has none. */
static void versions_list(void *library, const char *table, char *out, size_t room)
{
	size_t used = 0;

	*out = '\0';
	for (int version = VERSION_NEWEST; version >= VERSION_OLDEST; version--) {
		char symbol[64];

		snprintf(symbol, sizeof(symbol), "%s_v%d", table, version);
		if (dlsym(library, symbol) && used < room)
			used += (size_t)snprintf(out + used, room - used, "%s%d", used ? ", " : "",
			                         version);
	}
}

static void check_versions(struct check *check, void *library)
{
	char net[64], coll[64];

	versions_list(library, "ncclNetPlugin", net, sizeof(net));
	versions_list(library, "ncclCollNetPlugin", coll, sizeof(coll));
	if (!*net || !*coll)
		check_tell(check, CHECK_FAIL, "nccl versions",
		           "name libnccl-net-tributary.so in NCCL_NET_PLUGIN", "it has no table %s",
		           *net ? "ncclCollNetPlugin" : "ncclNetPlugin");
	else
		check_tell(check, CHECK_OK, "nccl versions", NULL, "ncclNet %s; ncclCollNet %s",
		           net, coll);
}

static bool net_look(const struct nccl_net_v11 *net, struct nccl_properties_v11 *out)
{
	struct nccl_comm_config config = { .traffic_class = -1 };
	void *context = NULL;
	int n = 0;
	bool is_good = net->init(&context, 0, &config, line_keep, NULL) == NCCL_SUCCESS;

	is_good = is_good && net->devices(&n) == NCCL_SUCCESS && n > 0 &&
	          net->get_properties(0, out) == NCCL_SUCCESS;
	if (context)
		net->finalize(context);
	return is_good;
}

/* The number of devices that can sum; 0: no aggregator is named; -1: an error. */
static int coll_look(const struct nccl_collnet_v11 *coll, struct nccl_properties_v11 *out)
{
	void *context = NULL;
	int n = 0;
	bool is_good = coll->init(&context, 0, line_keep) == NCCL_SUCCESS;

	is_good = is_good && coll->devices(&n) == NCCL_SUCCESS &&
	          (n < 1 || coll->get_properties(0, out) == NCCL_SUCCESS);
	if (context)
		coll->finalize(context);
	return is_good ? n : -1;
}

static void check_devices(struct check *check, void *library)
{
	const struct nccl_net_v11 *net = dlsym(library, "ncclNetPlugin_v11");
	const struct nccl_collnet_v11 *coll = dlsym(library, "ncclCollNetPlugin_v11");
	struct nccl_properties_v11 one = { 0 }, other = { 0 };
	int n;

	if (!net || !coll)
		return;
	if (!net_look(net, &one)) {
		check_tell(check, CHECK_FAIL, "nccl device", NULL, "the plugin has none: %s",
		           *last_line ? last_line : "it does not say why");
		return;
	}
	n = coll_look(coll, &other);
	if (n < 0)
		check_tell(check, CHECK_FAIL, "nccl device", NULL, "%s cannot sum: %s", one.name,
		           *last_line ? last_line : "the plugin does not say why");
	else if (n && (strcmp(one.name, other.name) != 0 || other.speed < SPEED_LEAST))
		check_tell(check, CHECK_WARN, "nccl device", NULL,
		           "%s at %d Mb/s: NCCL sums only with a device of at least %d Mb/s",
		           one.name, other.speed, SPEED_LEAST);
	else
		check_tell(check, CHECK_OK, "nccl device", NULL, "%s, %d Mb/s", one.name,
		           one.speed);
}

/* Where ranks would sum, as the library chooses. */
static void check_place(struct check *check)
{
	static const enum setting_id places[] = { SETTING_TREES, SETTING_AGGREGATOR,
		                                  SETTING_CONTROLLER };

	for (unsigned i = 0; i < sizeof(places) / sizeof(*places); i++) {
		const char *origin, *text = setting_text(places[i], &origin);

		if (!text)
			continue;
		check_tell(check, CHECK_OK, "nccl sums", NULL, "at %s (%s, %s)", text,
		           settings[places[i]].name, origin);
		return;
	}
	check_tell(check, CHECK_WARN, "nccl sums", "set TRIB_AGGREGATOR, or use trib run --nccl",
	           "no aggregator is named: NCCL would use rings over the plugin's connections");
}

static void check_variables(struct check *check, const char *path)
{
	const char *enabled = getenv("NCCL_COLLNET_ENABLE");
	char fix[640];

	snprintf(fix, sizeof(fix),
	         "trib run --nccl sets them; or: export NCCL_NET_PLUGIN=%.512s "
	         "NCCL_COLLNET_ENABLE=1",
	         path);
	if (getenv("NCCL_NET_PLUGIN") && enabled && !strcmp(enabled, "1"))
		check_tell(check, CHECK_OK, "nccl settings", NULL,
		           "NCCL_NET_PLUGIN and NCCL_COLLNET_ENABLE are set");
	else
		check_tell(check, CHECK_WARN, "nccl settings", fix,
		           "this environment does not tell NCCL to use the plugin");
}

void check_nccl(struct check *check)
{
	char path[4096];
	void *library = plugin_open(path, sizeof(path));

	if (!library) {
		check_tell(check, CHECK_FAIL, "nccl plugin",
		           "install it, or name its path in NCCL_NET_PLUGIN", "%s", dlerror());
		return;
	}
	check_tell(check, CHECK_OK, "nccl plugin", NULL, "%s loads", path);
	check_versions(check, library);
	check_devices(check, library);
	check_place(check);
	check_variables(check, path);
	dlclose(library);
}
