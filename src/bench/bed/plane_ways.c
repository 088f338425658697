/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/bed/plane_ways.h"

#include "bench/bed/size_list.h"
#include "plane/planes.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The index of a word of the list, and what is behind it. An error names all that `option` takes.
 */
static trib_status word_take(const char **list, const char *const *names, const char *option,
                             unsigned *index)
{
	char word[16], all[128] = "";
	unsigned i = 0;

	*list = list_word_next(*list, word, sizeof(word));
	while (names[i] && strcmp(names[i], word) != 0)
		i++;
	*index = i;
	if (names[i])
		return TRIB_OK;
	for (i = 0; names[i]; i++) {
		size_t used = strlen(all);

		snprintf(all + used, sizeof(all) - used, "%s%s", i ? ", " : "", names[i]);
	}
	return status_fail(TRIB_ERR_ARGUMENT, "%s: \"%s\" is not one of %s", option, word, all);
}

static trib_status way_add(const struct plane_ways *table, unsigned way, const char *planes,
                           void *report)
{
	trib_status status;
	unsigned plane;

	do {
		status = word_take(&planes, table->planes, "--plane", &plane);
		if (status == TRIB_OK)
			status = table->add(report, way, table->planes[plane]);
	} while (*planes && way == 0 && status == TRIB_OK);
	return status;
}

trib_status plane_ways_choose(const struct plane_ways *table, const char *ways, const char *planes,
                              void *report)
{
	trib_status status = TRIB_OK;
	unsigned way;

	while (*ways && status == TRIB_OK) {
		status = word_take(&ways, table->ways, "--systems", &way);
		if (status == TRIB_OK)
			status = way_add(table, way, planes, report);
	}
	return status;
}

const char *plane_missing(const char *plane)
{
	static char why[64];

	if (!plane_find(plane))
		snprintf(why, sizeof(why), "this build has no plane %s", plane);
	else if (geteuid() != 0 && strcmp(plane, "xdp") == 0)
		return NEEDS_ROOT;
	else
		return NULL;
	return why;
}

void left_out_add(char list[LEFT_OUT_MAX], const char *name, const char *plane, const char *why)
{
	size_t used = strlen(list);

	snprintf(list + used, LEFT_OUT_MAX - used, "%s%s%s%s (%s)", used ? ", " : "", name,
	         plane ? " " : "", plane ? plane : "", why);
}
