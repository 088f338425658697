/* SPDX-License-Identifier: Apache-2.0 */
#include "net/names.h"

#include "net/kernel/netns.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define NAME_BYTES 31

trib_status names_check(const char *name)
{
	size_t length = strlen(name);
	bool good = length > 0 && length <= NAME_BYTES && isalnum((unsigned char)name[0]);

	for (size_t i = 0; i < length; i++)
		good &= isalnum((unsigned char)name[i]) || name[i] == '-' || name[i] == '_';
	if (good)
		return TRIB_OK;
	return status_fail(TRIB_ERR_ARGUMENT,
	                   "\"%s\" cannot name a cluster: 1 to %d letters, digits, - and _, a "
	                   "letter or digit first",
	                   name, NAME_BYTES);
}

static bool is_host(const char *host)
{
	static const char *const kinds[] = { "h", "s", NAMES_LEAF, NAMES_SPINE };

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		size_t length = strlen(kinds[i]);

		if (strncmp(host, kinds[i], length) == 0 && host[length] &&
		    strspn(host + length, "0123456789") == strlen(host + length))
			return true;
	}
	return strcmp(host, NAMES_HUB) == 0;
}

void names_namespace(char out[64], const char *name, const char *host)
{
	snprintf(out, 64, "%s-%s", name, host);
}

/* Does the namespace belong to the cluster `name`, by its name? */
static bool owns(const char *name, const char *namespace)
{
	size_t length = strlen(name);

	return strncmp(namespace, name, length) == 0 && namespace[length] == '-' &&
	       is_host(namespace + length + 1);
}

trib_status names_each_namespace(const char *name,
                                 trib_status (*visit)(void *context, const char *namespace),
                                 void *context)
{
	trib_status status = TRIB_OK;
	struct dirent *entry;
	DIR *folder = opendir(NETNS_FOLDER);

	if (!folder)
		return errno == ENOENT ? TRIB_OK : status_fail_errno("cannot read " NETNS_FOLDER);
	while (status == TRIB_OK && (entry = readdir(folder)))
		if (owns(name, entry->d_name))
			status = visit(context, entry->d_name);
	closedir(folder);
	return status;
}

unsigned names_subnet_hint(const char *name)
{
	uint32_t hash = 2166136261u; /* FNV-1a */

	for (; *name; name++)
		hash = (hash ^ (uint8_t)*name) * 16777619u;
	return hash % 254 + 1;
}
