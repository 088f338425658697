/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/cluster/hosts.h"
#include "plan/cluster/sort.h"

#include "base/settings.h"
#include "base/status.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BLANKS " \t\r"
#define CORES_MAX 1e6
#define ROUND_MAX 1e9

static bool number_parse(const char *text, double most, double *value)
{
	char *end;

	/* strtod would accept blanks, signs, "nan" and "inf". */
	if (!isdigit((unsigned char)*text))
		return false;
	*value = strtod(text, &end);
	return !*end && *value <= most;
}

/* Reads "10gbit" or "10gbit/5gbit" (in/out). */
static trib_status link_parse(char *text, struct plan_host *host)
{
	char *slash = strchr(text, '/');
	uint64_t in, out;
	trib_status status;

	if (slash)
		*slash = 0;
	if ((status = parse_rate(text, &in)) != TRIB_OK)
		return status;
	out = in;
	if (slash && (status = parse_rate(slash + 1, &out)) != TRIB_OK)
		return status;
	if (!in || !out)
		return status_fail(TRIB_ERR_CONFIG, "the rate of a link must be above 0");
	host->in_bps = (double)in;
	host->out_bps = (double)out;
	return TRIB_OK;
}

/* Reads "64G", "16G/64G" or "-". */
static trib_status memory_parse(char *text, struct plan_host *host)
{
	char *slash = strchr(text, '/');
	trib_status status = TRIB_OK;

	if (!strcmp(text, "-"))
		return TRIB_OK;
	if (slash) {
		*slash = 0;
		status = parse_bytes(text, &host->memory_used);
		text = slash + 1;
	}
	if (status == TRIB_OK)
		status = parse_bytes(text, &host->memory_total);
	if (status == TRIB_OK && host->memory_used > host->memory_total)
		return status_fail(TRIB_ERR_CONFIG, "more memory is used than the host has");
	return status;
}

static trib_status rank_parse(const char *text, struct plan_host *host)
{
	double rank;

	host->rank = -1;
	if (!strcmp(text, "-"))
		return TRIB_OK;
	if (!number_parse(text, PLAN_HOSTS_MAX - 1, &rank) || rank != floor(rank))
		return status_fail(TRIB_ERR_CONFIG,
		                   "\"%.32s\" is no rank; give a number, or - for none", text);
	host->rank = (int)rank;
	return TRIB_OK;
}

/* An address must be valid in the text of trees. */
static trib_status address_check(const char *text)
{
	if (strlen(text) >= TREE_NAME_MAX)
		return status_fail(TRIB_ERR_CONFIG, "an address has less than %u characters",
		                   TREE_NAME_MAX);
	for (const char *at = text; *at; at++)
		if (!isalnum((unsigned char)*at) && !strchr(".:-_[]%", *at))
			return status_fail(TRIB_ERR_CONFIG, "\"%.64s\" is no address", text);
	return TRIB_OK;
}

static trib_status more_parse(const char *text, struct plan_host *host)
{
	if (!strcmp(text, "switch"))
		host->is_switch = true;
	else if (!strcmp(text, "never"))
		host->may_aggregate = false;
	else if (strncmp(text, "round=", 6) || !number_parse(text + 6, ROUND_MAX, &host->round_s))
		return status_fail(TRIB_ERR_CONFIG,
		                   "\"%.32s\" is none of switch, never, round=SECONDS", text);
	return TRIB_OK;
}

enum { NAME, ADDRESS, LINK, CORES, MEMORY, RANK, FIELDS };

static trib_status field_parse(unsigned field, char *text, struct plan_host *host)
{
	switch (field) {
	case NAME:
		host->name = text;
		return TRIB_OK;
	case ADDRESS:
		host->address = text;
		return address_check(text);
	case LINK:
		return link_parse(text, host);
	case CORES:
		if (!number_parse(text, CORES_MAX, &host->idle_cores))
			return status_fail(TRIB_ERR_CONFIG, "\"%.32s\" is no number of cores",
			                   text);
		return TRIB_OK;
	case MEMORY:
		return memory_parse(text, host);
	case RANK:
		return rank_parse(text, host);
	default:
		return more_parse(text, host);
	}
}

/* Parses a line. Sets *is_host to false for an empty line. */
static trib_status line_parse(char *line, struct plan_host *host, bool *is_host)
{
	unsigned field = 0;
	char *rest, *text;
	trib_status status;

	*host = (struct plan_host){ .rank = -1, .may_aggregate = true };
	line[strcspn(line, "#")] = 0;
	for (text = strtok_r(line, BLANKS, &rest); text; text = strtok_r(NULL, BLANKS, &rest))
		if ((status = field_parse(field++, text, host)) != TRIB_OK)
			return status;
	*is_host = field;
	if (field && field < FIELDS)
		return status_fail(
			TRIB_ERR_CONFIG,
			"a host has a name, an address, a rate, cores, memory and a rank");
	return TRIB_OK;
}

static bool address_before(const void *context, uint32_t a, uint32_t b)
{
	const struct plan_host *hosts = context;
	int order = strcmp(hosts[a].address, hosts[b].address);

	return order ? order < 0 : a < b;
}

static trib_status addresses_check(const struct plan_host *hosts, unsigned n, uint32_t *order)
{
	for (unsigned i = 0; i < n; i++)
		order[i] = i;
	sort_indices(order, n, address_before, hosts);
	for (unsigned i = 1; i < n; i++) {
		const struct plan_host *a = &hosts[order[i - 1]], *b = &hosts[order[i]];

		if (!strcmp(a->address, b->address))
			return status_fail(TRIB_ERR_CONFIG,
			                   "hosts %.32s and %.32s have the same address", a->name,
			                   b->name);
	}
	return TRIB_OK;
}

trib_status hosts_parse(char *text, struct plan_host *hosts, unsigned max, uint32_t *order,
                        unsigned *n)
{
	unsigned number = 1;

	*n = 0;
	for (char *next = text; (text = strsep(&next, "\n")); number++) {
		struct plan_host host;
		bool is_host;

		if (line_parse(text, &host, &is_host) != TRIB_OK)
			return status_fail(TRIB_ERR_CONFIG, "line %u: %s", number,
			                   trib_last_error());
		if (!is_host)
			continue;
		if (*n == max)
			return status_fail(TRIB_ERR_CONFIG, "line %u: more than %u hosts", number,
			                   max);
		hosts[(*n)++] = host;
	}
	return addresses_check(hosts, *n, order);
}
