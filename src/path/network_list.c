/* SPDX-License-Identifier: Apache-2.0 */
#include "path/network_list.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool network_parse(struct network *network, char *text)
{
	char *slash = strchr(text, '/'), *end;
	unsigned long prefix;

	if (slash)
		*slash = '\0';
	if (inet_pton(AF_INET, text, network->raw) == 1)
		network->bytes = 4;
	else if (inet_pton(AF_INET6, text, network->raw) == 1)
		network->bytes = 16;
	else
		return false;
	prefix = slash ? strtoul(slash + 1, &end, 10) : 8ul * network->bytes;
	if (slash && (slash[1] < '0' || slash[1] > '9' || *end))
		return false;
	network->prefix = (uint8_t)prefix;
	return prefix <= 8ul * network->bytes;
}

trib_status network_list_parse(struct network_list *list, const char *text)
{
	char copy[1024], *next = copy, *one;

	list->n = 0;
	if ((size_t)snprintf(copy, sizeof(copy), "%s", text) >= sizeof(copy))
		return status_fail(TRIB_ERR_ARGUMENT, "the list of networks is too long");
	while ((one = strsep(&next, ","))) {
		if (list->n == NETWORKS_MAX)
			return status_fail(TRIB_ERR_ARGUMENT, "more than %u networks",
			                   NETWORKS_MAX);
		if (!network_parse(&list->all[list->n++], one))
			return status_fail(TRIB_ERR_ARGUMENT,
			                   "\"%.60s\" is not a network like 10.0.0.0/8", one);
	}
	return TRIB_OK;
}

static bool network_has(const struct network *network, const uint8_t *raw, size_t size)
{
	unsigned whole = network->prefix / 8, rest = network->prefix % 8;

	if (size != network->bytes || memcmp(raw, network->raw, whole))
		return false;
	return !rest || (raw[whole] ^ network->raw[whole]) >> (8 - rest) == 0;
}

bool network_list_has(const struct network_list *list, const struct udp_address *address)
{
	size_t size;
	const uint8_t *raw = udp_raw(address, &size);

	for (unsigned i = 0; i < list->n; i++)
		if (network_has(&list->all[i], raw, size))
			return true;
	return false;
}
