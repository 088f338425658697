/* SPDX-License-Identifier: Apache-2.0 */
#include "query/remote.h"

#include <stdio.h>
#include <stdlib.h>

#define PATIENCE_S 5.0

trib_status remote_get(struct client *client, const char *path, json_t **answer)
{
	return client_call(client, "GET", path, NULL, PATIENCE_S, answer);
}

int remote_fail(const char *command)
{
	fprintf(stderr, "%s: %s\n", command, trib_last_error());
	return EXIT_FAILURE;
}

void remote_dump(const json_t *json)
{
	json_dumpf(json, stdout, JSON_COMPACT | JSON_REAL_PRECISION(6));
	putchar('\n');
}

const char *remote_text(const json_t *json, const char *name)
{
	const char *text = json_string_value(json_object_get(json, name));

	return text ? text : "";
}

double remote_number(const json_t *json, const char *name)
{
	return json_number_value(json_object_get(json, name));
}

void remote_plain(const json_t *json, const char *name, char *out, size_t size)
{
	snprintf(out, size, "%s", remote_text(json, name));
	for (char *p = out; *p; p++)
		if (*p < ' ' || *p > '~')
			*p = '.';
}

void remote_rate(double bits, char *out, size_t size)
{
	if (bits >= 1e9)
		snprintf(out, size, "%.3g Gb/s", bits / 1e9);
	else
		snprintf(out, size, "%.3g Mb/s", bits / 1e6);
}

void remote_ranks(const json_t *list, char *out, size_t size)
{
	size_t used = 0, n = json_array_size(list);

	out[0] = '\0';
	for (size_t i = 0; i < n && used < size; i++) {
		json_int_t first = json_integer_value(json_array_get(list, i)), last = first;

		while (i + 1 < n && json_integer_value(json_array_get(list, i + 1)) == last + 1)
			last++, i++;
		used += (size_t)snprintf(out + used, size - used,
		                         last > first ? "%s%lld-%lld" : "%s%lld", used ? "," : "",
		                         (long long)first, (long long)last);
	}
}
