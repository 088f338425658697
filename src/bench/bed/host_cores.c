/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/bed/host_cores.h"

#include "net/cluster_plan.h"
#include "net/kernel/receive_core.h"
#include "net/relay.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- reading ---- */

static bool range_take(const char **text, cpu_set_t *set)
{
	char *end;
	unsigned long first = strtoul(*text, &end, 10), last = first;

	if (end == *text)
		return false;
	if (*end == '-') {
		const char *from = end + 1;

		last = strtoul(from, &end, 10);
		if (end == from)
			return false;
	}
	if (last < first || last >= CPU_SETSIZE)
		return false;
	for (; first <= last; first++)
		CPU_SET(first, set);
	*text = end;
	return true;
}

trib_status cores_parse(const char *text, struct bench_cores *out)
{
	const char *at = strchr(text, '=');
	size_t length = at ? (size_t)(at - text) : 0;
	bool right = length && length < sizeof(out->host);

	CPU_ZERO(&out->set);
	snprintf(out->host, sizeof(out->host), "%.*s", (int)(right ? length : 0), text);
	while (right) {
		at++;
		right = *at >= '0' && *at <= '9' && range_take(&at, &out->set);
		if (*at != ',')
			break;
	}
	if (right && *at == '\0')
		return TRIB_OK;
	return status_fail(TRIB_ERR_ARGUMENT, "\"%s\" is not HOST=CORES, as in s1=1 or h2=2-4,6",
	                   text);
}

/* ---- sharing ---- */

static bool cores_overlap(const cpu_set_t *a, const cpu_set_t *b)
{
	cpu_set_t both;

	CPU_AND(&both, a, b);
	return CPU_COUNT(&both) > 0;
}

trib_status cores_share(const struct bench_cores *given, unsigned n, const struct cluster *cluster,
                        cpu_set_t *out)
{
	cpu_set_t all, rest;

	if (sched_getaffinity(0, sizeof(all), &all) < 0)
		return status_fail_errno("cannot ask for the cores of this machine");
	rest = all;
	for (unsigned i = 0; i < cluster->n; i++)
		CPU_ZERO(&out[i]);
	for (unsigned k = 0; k < n; k++) {
		const struct cluster_host *host = cluster_find(cluster, given[k].host);
		cpu_set_t *mine;

		if (!host)
			return status_fail(TRIB_ERR_ARGUMENT, "--cores: there is no host %s",
			                   given[k].host);
		mine = &out[host - cluster->hosts];
		CPU_OR(mine, mine, &given[k].set);
		CPU_AND(&rest, &given[k].set, &all);
		if (!CPU_EQUAL(&rest, &given[k].set))
			return status_fail(
				TRIB_ERR_ARGUMENT,
				"--cores: this machine does not have all the cores of %s",
				given[k].host);
	}
	rest = all;
	for (unsigned i = 0; i < cluster->n; i++) {
		cpu_set_t both;

		CPU_AND(&both, &rest, &out[i]);
		CPU_XOR(&rest, &rest, &both);
	}
	for (unsigned i = 0; i < cluster->n; i++) {
		if (CPU_COUNT(&out[i]))
			continue;
		if (!CPU_COUNT(&rest))
			return status_fail(TRIB_ERR_ARGUMENT, "--cores leaves no core for %s",
			                   cluster->hosts[i].name);
		out[i] = rest;
	}
	return TRIB_OK;
}

/* The k-th core of the set; after the last core, counting starts again at the first. */
static unsigned core_pick(const cpu_set_t *set, unsigned k)
{
	unsigned core = 0;

	for (k %= (unsigned)CPU_COUNT(set);; core++)
		if (CPU_ISSET(core, set) && k-- == 0)
			return core;
}

bool cores_spread(unsigned workers, cpu_set_t *out)
{
	cpu_set_t all;

	if (sched_getaffinity(0, sizeof(all), &all) < 0 || workers < (unsigned)CPU_COUNT(&all))
		return false;
	for (unsigned i = 0; i < workers; i++) {
		CPU_ZERO(&out[i]);
		CPU_SET(core_pick(&all, i), &out[i]);
	}
	return true;
}

void cores_of_servers(const cpu_set_t *cores, const struct cluster *cluster, cpu_set_t *out)
{
	CPU_ZERO(out);
	for (unsigned i = 0; i < cluster->n; i++)
		if (cluster->hosts[i].is_server)
			CPU_OR(out, out, &cores[i]);
	for (unsigned i = 0; i < cluster->n; i++) {
		if (!cluster->hosts[i].is_server && cores_overlap(out, &cores[i])) {
			CPU_ZERO(out);
			return;
		}
	}
}

/* ---- receive work ---- */

trib_status cores_receive(const cpu_set_t *cores, const struct cluster *cluster, bool framed)
{
	unsigned server = 0; /* the first server: a switch, if there is one */
	unsigned servers;
	trib_status status = TRIB_OK;
	struct link_end end;
	struct receive unused;
	char ports[64];

	while (server + 1 < cluster->n && !cluster->hosts[server].is_server)
		server++;
	servers = cluster->n - server;
	for (unsigned i = 0; i < cluster->n && status == TRIB_OK; i++) {
		const struct cluster_host *host = &cluster->hosts[i];
		const cpu_set_t *hub = &cores[cluster->is_switch || !server ? server : i % server];

		if (cluster->is_switch && i == server)
			continue;
		plan_host_end(cluster, i, &end);
		status = receive_place(host->ns, end.name, core_pick(&cores[i], i), false, &unused);
		/* What workers send into a bridge is forwarded on the workers' cores anyway. */
		if (status != TRIB_OK || (!cluster->is_switch && !host->is_server))
			continue;
		plan_port_end(cluster, i, &end);
		plan_port_namespace(cluster, i, ports);
		status = receive_place(ports, end.name, core_pick(hub, i), false, &unused);
		/*
		 * The port and both directions of the relay get a core each, if there are
		 * enough.
		 */
		if (status == TRIB_OK && framed && plan_is_relayed(cluster, i))
			status = relay_place(cluster, i, core_pick(hub, i + 2 * servers),
			                     core_pick(hub, i + servers));
	}
	return status;
}
