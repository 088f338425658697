/* SPDX-License-Identifier: Apache-2.0 */
/* Where trib plan has its hosts from. */
#include "base/status.h"
#include "cli/plan.h"
#include "plan/draw.h"
#include "plan/hosts.h"

#include <stdlib.h>
#include <string.h>

#define TEXT_MAX (16u << 20)
#define PIECE 65536u

static trib_status no_memory(unsigned n)
{
	return status_fail(TRIB_ERR_NO_MEMORY, "no memory for %u hosts", n);
}

static trib_status text_take(FILE *file, const char *path, char **text)
{
	size_t used = 0, got;

	do {
		char *more = realloc(*text, used + PIECE + 1);

		if (!more)
			return status_fail(TRIB_ERR_NO_MEMORY, "%s: no memory for it", path);
		*text = more;
		used += got = fread(more + used, 1, PIECE, file);
		more[used] = 0;
		/* Text ends at a 0; what is behind one would be left out without a word. */
		if (strlen(more) != used)
			return status_fail(TRIB_ERR_CONFIG, "%s is not a text", path);
		if (used > TEXT_MAX)
			return status_fail(TRIB_ERR_CONFIG, "%s has more than %u MB", path,
			                   TEXT_MAX >> 20);
	} while (got);
	return ferror(file) ? status_fail_errno("%s", path) : TRIB_OK;
}

/* All of a file, or of the standard input for "-", with a 0 behind it. */
static trib_status text_read(const char *path, char **text)
{
	FILE *file = strcmp(path, "-") ? fopen(path, "r") : stdin;
	trib_status status;

	*text = NULL;
	if (!file)
		return status_fail_errno("%s", path);
	status = text_take(file, path, text);
	if (file != stdin)
		fclose(file);
	return status;
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
	char *text, why[512];
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
	else if ((status = hosts_parse(text, cluster->hosts, most, order, &cluster->n)) !=
	         TRIB_OK) {
		snprintf(why, sizeof(why), "%s", trib_last_error());
		status_fail(status, "%s: %s", path, why);
	}
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
