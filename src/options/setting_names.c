/* SPDX-License-Identifier: Apache-2.0 */
#include "options/setting_names.h"

#include "base/settings.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define NAME_MAX_BYTES 48u
#define NEAR 3u /* letters that may differ in a misspelt name */

/* Names that are no settings, but mean something to adapters, tests, examples or trib job new. */
static bool is_other(const char *name)
{
	static const char *const names[] = { "TRIB_CONFIG",  "TRIB_DATA",  "TRIB_HOSTS",
		                             "TRIB_LIBRARY", "TRIB_MNIST", "TRIB_MPI4PY",
		                             "TRIB_SEED" };

	for (unsigned i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(name, names[i]))
			return true;
	return !strncmp(name, "TRIB_TEST_", 10) || !strncmp(name, "TRIB_VERBS_", 11);
}

/* Letters to add, take out or change, to make b of a. */
static unsigned distance(const char *a, const char *b)
{
	unsigned row[NAME_MAX_BYTES + 1], n = (unsigned)strlen(b);

	if (n > NAME_MAX_BYTES)
		return n;
	for (unsigned j = 0; j <= n; j++)
		row[j] = j;
	for (unsigned i = 1; *a; a++, i++) {
		unsigned corner = row[0];

		row[0] = i;
		for (unsigned j = 1; j <= n; j++) {
			unsigned best = corner + (*a != b[j - 1]);

			corner = row[j];
			if (row[j] + 1 < best)
				best = row[j] + 1;
			if (row[j - 1] + 1 < best)
				best = row[j - 1] + 1;
			row[j] = best;
		}
	}
	return row[n];
}

static void name_check(const char *name, setting_name_tell *tell, void *context)
{
	unsigned best = NEAR + 1;
	char hint[128] = "trib show config lists all settings";

	for (int i = 0; i < SETTINGS_N; i++) {
		unsigned far = distance(name, settings[i].name);

		if (!far)
			return;
		if (far < best) {
			best = far;
			snprintf(hint, sizeof(hint), "do you mean %s?", settings[i].name);
		}
	}
	tell(context, name, hint);
}

void setting_names_check(setting_name_tell *tell, void *context)
{
	for (char **at = environ; at && *at; at++) {
		char name[NAME_MAX_BYTES + 1];
		size_t length = strcspn(*at, "=");

		if (strncmp(*at, "TRIB_", 5) != 0 || length > NAME_MAX_BYTES)
			continue;
		snprintf(name, sizeof(name), "%.*s", (int)length, *at);
		if (!is_other(name))
			name_check(name, tell, context);
	}
}
