/* SPDX-License-Identifier: Apache-2.0 */
/* Reads or draws the hosts of trib plan. */
#include "base/status.h"
#include "cli/plan/plan_command.h"
#include "options/text.h"
#include "plan/cluster/draw.h"
#include "plan/cluster/hosts.h"

#include <stdlib.h>
#include <string.h>

static trib_status no_memory(unsigned n)
{
	return status_fail(TRIB_ERR_NO_MEMORY, "no memory for %u hosts", n);
}

static unsigned lines_count(const char *text)
{
	unsigned n = 1;

	for (; (text = strchr(text, '\n')); text++)
		n++;
	return n < PLAN_HOSTS_MAX ? n : PLAN_HOSTS_MAX;
}

trib_status cluster_read(const char *path, struct plan_cluster *cluster)
{
	char *text;
	uint32_t *order;
	unsigned most;
	trib_status status = text_read(path, &text);

	*cluster = (struct plan_cluster){ .text = text };
	if (status != TRIB_OK || !text)
		return status;
	most = lines_count(text);
	order = calloc(most, sizeof(*order));
	cluster->hosts = calloc(most, sizeof(*cluster->hosts));
	if (!order || !cluster->hosts)
		status = no_memory(most);
	else if ((status = hosts_parse(text, cluster->hosts, most, order, &cluster->n)) != TRIB_OK)
		status_fail(status, "%s: %s", path, trib_last_error());
	free(order);
	return status;
}

trib_status cluster_draw(uint64_t seed, unsigned n, struct plan_cluster *cluster)
{
	*cluster = (struct plan_cluster){ .n = n };
	cluster->hosts = calloc(n, sizeof(*cluster->hosts));
	cluster->text = calloc(n, 2 * (size_t)DRAW_NAME);
	if (!cluster->hosts || !cluster->text)
		return no_memory(n);
	draw_cluster(seed, n, cluster->hosts, cluster->text);
	return TRIB_OK;
}

void cluster_free(struct plan_cluster *cluster)
{
	free(cluster->hosts);
	free(cluster->text);
}
