/* SPDX-License-Identifier: Apache-2.0 */
/*
 * offload: a veth passes a batch of up to 64 KB unsegmented, which no wire does. Features are found
 * by name, because their bits differ between kernels.
 */
#include "net/kernel/link_shape.h"

#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

static int ethtool_call(const struct link_end *end, void *command)
{
	struct ifreq request = { .ifr_data = command };

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", end->name);
	return ioctl(end->ns->nl, SIOCETHTOOL, &request);
}

/* Checksum offload stays: it changes the cost of packets, not their number. */
static bool feature_merges(const char *name)
{
	static const char *const names[] = { "rx-gro", "rx-gro-list", "rx-udp-gro-forwarding" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return strstr(name, "-segmentation") || strcmp(name, "tx-gso-list") == 0;
}

static unsigned feature_count(const struct link_end *end)
{
	/* The header, followed by the one number that is requested. */
	union {
		struct ethtool_sset_info head;
		uint32_t words[sizeof(struct ethtool_sset_info) / 4 + 1];
	} info = { .head = { .cmd = ETHTOOL_GSSET_INFO, .sset_mask = 1u << ETH_SS_FEATURES } };
	unsigned count = sizeof(struct ethtool_sset_info) / 4;

	return ethtool_call(end, &info) < 0 || !info.head.sset_mask ? 0 : info.words[count];
}

trib_status shape_no_offload(const struct link_end *end)
{
	unsigned n = feature_count(end);
	unsigned blocks = (n + 31) / 32;
	struct ethtool_gstrings *names = calloc(1, sizeof(*names) + (size_t)n * ETH_GSTRING_LEN);
	struct ethtool_sfeatures *set =
		calloc(1, sizeof(*set) + blocks * sizeof(struct ethtool_set_features_block));
	trib_status status = TRIB_OK;

	if (!names || !set) {
		status = status_fail(TRIB_ERR_NO_MEMORY, "no memory for the features of %s",
		                     end->name);
	} else {
		names->cmd = ETHTOOL_GSTRINGS;
		names->string_set = ETH_SS_FEATURES;
		names->len = n;
		set->cmd = ETHTOOL_SFEATURES;
		set->size = blocks;
		if (!n || ethtool_call(end, names) < 0) {
			status = status_fail_errno("cannot list the offloads of %s in %s",
			                           end->name, end->ns->name);
		} else {
			for (unsigned i = 0; i < n; i++)
				if (feature_merges((char *)names->data + i * ETH_GSTRING_LEN))
					set->features[i / 32].valid |= 1u << (i % 32);
			if (ethtool_call(end, set) < 0)
				status = status_fail_errno("cannot switch off offloads of %s in %s",
				                           end->name, end->ns->name);
		}
	}
	free(names);
	free(set);
	return status;
}

trib_status shape_gro(const struct link_end *end)
{
	struct ethtool_value on = { .cmd = ETHTOOL_SGRO, .data = 1 };

	if (ethtool_call(end, &on) < 0)
		return status_fail_errno("cannot switch on GRO of %s in %s", end->name,
		                         end->ns->name);
	return TRIB_OK;
}
