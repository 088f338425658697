/* SPDX-License-Identifier: Apache-2.0 */
/* Where NCCL finds the plugin of adapters/nccl, and the settings with which NCCL uses it. */
#ifndef TRIB_LAUNCH_NCCL_PLUGIN_H
#define TRIB_LAUNCH_NCCL_PLUGIN_H

#include <stdbool.h>
#include <stddef.h>

#define NCCL_PLUGIN_FILE "libnccl-net-tributary.so"

/*
 * The plugin that was built or installed with this trib. False: there is none there, and `out` is
 * its bare name, which the dynamic linker looks for.
 */
bool nccl_plugin_find(char *out, size_t room);

#define NCCL_SETTINGS_MAX 11
#define NCCL_SETTING_BYTES 512

/* A job whose ranks call NCCL. */
struct nccl_job {
	unsigned size;
	const char *address; /* of rank 0 */
	unsigned port;       /* where its store may listen */
	bool is_local;       /* all ranks are on this machine, and use loopback */
};

/*
 * "NAME=VALUE" for the environment of a rank, so that NCCL uses the plugin and torch.distributed
 * finds its ranks. Every rank counts as a node of its own. What the user has set stays. Returns how
 * many.
 */
unsigned nccl_settings(const struct nccl_job *job, unsigned rank,
                       char out[NCCL_SETTINGS_MAX][NCCL_SETTING_BYTES]);

#endif
