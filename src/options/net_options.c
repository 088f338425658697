/* SPDX-License-Identifier: Apache-2.0 */
/* Options of links and faults, which `trib net up` and `trib bench` share. */
#include "base/settings.h"
#include "options/net_options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

trib_status net_probability_take(void *target, const char *text)
{
	char *end;
	double value = strtod(text, &end);

	if (end != text && *end == '%') {
		value /= 100;
		end++;
	}
	if (end == text || *end || !(value >= 0 && value <= 1))
		return status_fail(TRIB_ERR_ARGUMENT,
		                   "\"%s\" is not a probability from 0 to 1 (or 0%% to 100%%)",
		                   text);
	*(double *)target = value;
	return TRIB_OK;
}

trib_status net_fault_take(void *target, const char *text)
{
	const struct net_fault *fault = target;
	struct cluster_options *options = fault->options;
	const char *equals = strchr(text, '=');
	size_t length = equals ? (size_t)(equals - text) : 0;
	unsigned n = options->n_faulty;
	trib_status status;

	if (!equals)
		return net_probability_take(&options->faults[fault->kind], text);
	if (!length || length >= sizeof(options->faulty[n].link))
		return status_fail(TRIB_ERR_ARGUMENT,
		                   "\"%s\": expected LINK=P, as in leaf1-spine2=0.01", text);
	if (n == CLUSTER_FAULTY_MAX)
		return status_fail(TRIB_ERR_ARGUMENT, "more than %d links with faults of their own",
		                   CLUSTER_FAULTY_MAX);
	status = net_probability_take(&options->faulty[n].probability, equals + 1);
	if (status != TRIB_OK)
		return status;
	memcpy(options->faulty[n].link, text, length);
	options->faulty[n].link[length] = '\0';
	options->faulty[n].kind = fault->kind;
	options->n_faulty++;
	return TRIB_OK;
}

/* "1gbit" is for every link, "h2=500mbit" for that of h2. */
trib_status net_link_take(void *target, const char *text)
{
	struct cluster_options *options = target;
	const char *equals = strchr(text, '=');
	char host[sizeof(options->unlike[0].host)];
	uint64_t rate;
	trib_status status = parse_rate(equals ? equals + 1 : text, &rate);

	if (status != TRIB_OK)
		return status;
	if (rate && rate < CLUSTER_RATE_MIN)
		return status_fail(TRIB_ERR_ARGUMENT,
		                   "\"%s\": expected a rate of at least 8kbit, or 0 for no limit",
		                   text);
	if (!equals) {
		options->rate_bps = rate;
		return TRIB_OK;
	}
	if (equals == text || (size_t)(equals - text) >= sizeof(host))
		return status_fail(TRIB_ERR_ARGUMENT,
		                   "\"%s\": expected HOST=RATE, as in h2=500mbit", text);
	if (options->n_unlike == CLUSTER_HOSTS_MAX)
		return status_fail(TRIB_ERR_ARGUMENT, "more than %d links", CLUSTER_HOSTS_MAX);
	snprintf(host, sizeof(host), "%.*s", (int)(equals - text), text);
	memcpy(options->unlike[options->n_unlike].host, host, sizeof(host));
	options->unlike[options->n_unlike++].rate_bps = rate;
	return TRIB_OK;
}

/* Takes the first word as false, the second as true. */
static trib_status word_take(bool *target, const char *text, const char *no, const char *yes)
{
	*target = strcmp(text, yes) == 0;
	if (*target || strcmp(text, no) == 0)
		return TRIB_OK;
	return status_fail(TRIB_ERR_ARGUMENT, "\"%s\": expected %s or %s", text, no, yes);
}

trib_status net_route_take(void *target, const char *text)
{
	return word_take(&((struct cluster_fabric *)target)->is_static, text, "ecmp", "static");
}

trib_status net_hash_take(void *target, const char *text)
{
	return word_take(&((struct cluster_fabric *)target)->hash_l3, text, "l4", "l3");
}
