/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/nccl_plugin.h"

#include "launch/local_daemon.h"

#include <glob.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The first file that the pattern matches. */
static bool match_find(const char *pattern, char *out, size_t room)
{
	glob_t found;
	char *plain = NULL;

	if (glob(pattern, 0, NULL, &found) == 0) {
		plain = realpath(found.gl_pathv[0], NULL);
		globfree(&found);
	}
	if (plain)
		snprintf(out, room, "%s", plain);
	free(plain);
	return plain != NULL;
}

bool nccl_plugin_find(char *out, size_t room)
{
	/* trib is in build/src/cli, or installed in bin. Debian has a folder for each processor. */
	static const char *const folders[] = { "../../adapters/nccl/", "../lib/", "../lib64/",
		                               "../lib/*/" };
	char self[2048], pattern[4096], *slash;

	slash = self_find(self, sizeof(self)) ? strrchr(self, '/') : NULL;
	for (unsigned i = 0; slash && i < sizeof(folders) / sizeof(*folders); i++) {
		snprintf(pattern, sizeof(pattern), "%.*s/%s" NCCL_PLUGIN_FILE, (int)(slash - self),
		         self, folders[i]);
		if (match_find(pattern, out, room))
			return true;
	}
	snprintf(out, room, NCCL_PLUGIN_FILE);
	return false;
}

/* ---- settings ---- */

struct settings_list {
	char (*texts)[NCCL_SETTING_BYTES];
	unsigned n;
};

static void __attribute__((format(printf, 2, 3)))
setting_add(struct settings_list *list, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(list->texts[list->n++], NCCL_SETTING_BYTES, format, args);
	va_end(args);
}

/* The same for all ranks, unless the user has set it. */
static void setting_default(struct settings_list *list, const char *name, const char *value)
{
	if (!getenv(name))
		setting_add(list, "%s=%s", name, value);
}

unsigned nccl_settings(const struct nccl_job *job, unsigned rank,
                       char out[NCCL_SETTINGS_MAX][NCCL_SETTING_BYTES])
{
	struct settings_list list = { .texts = out };
	char plugin[NCCL_SETTING_BYTES - sizeof("NCCL_NET_PLUGIN=")];

	nccl_plugin_find(plugin, sizeof(plugin));
	setting_default(&list, "NCCL_NET_PLUGIN", plugin);
	setting_default(&list, "NCCL_COLLNET_ENABLE", "1");
	setting_default(&list, "NCCL_ALGO", "allreduce:collnetchain,ring");
	/* NCCL would take ranks of one machine for one node, and leave the network alone. */
	setting_add(&list, "NCCL_HOSTID=tributary-rank-%u", rank);
	setting_default(&list, "NCCL_MNNVL_ENABLE", "0");
	if (job->is_local)
		setting_default(&list, "NCCL_SOCKET_IFNAME", "lo");
	setting_add(&list, "RANK=%u", rank);
	setting_add(&list, "WORLD_SIZE=%u", job->size);
	setting_add(&list, "LOCAL_RANK=%u", rank); /* which GPU of this machine */
	setting_add(&list, "MASTER_ADDR=%s", job->address);
	setting_add(&list, "MASTER_PORT=%u", job->port);
	return list.n;
}
