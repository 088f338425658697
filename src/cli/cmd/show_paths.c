/* SPDX-License-Identifier: Apache-2.0 */
/* trib show paths: the paths that a search from here to a peer finds. */
#include "base/clock.h"
#include "cli/cmd/cmd.h"
#include "options/json_writer.h"
#include "options/options.h"
#include "path/balance/monitor.h"
#include "path/virtual/discovery.h"

#include <net/if.h>
#include <poll.h>
#include <stdio.h>

static void paths_search(struct discovery *discovery, uint64_t span)
{
	uint64_t end = clock_now() + span, now;

	while ((now = clock_now()) < end && discovery_fd(discovery) >= 0) {
		uint64_t wake = discovery_wake(discovery);
		struct pollfd answers = { .fd = discovery_fd(discovery), .events = POLLIN };
		struct timespec wait = clock_span(clock_since(wake < end ? wake : end, now));

		ppoll(&answers, 1, &wait, NULL);
		discovery_step(discovery, clock_now());
	}
}

/* NULL: for people. */
static void path_print(const struct virtual_path *path, unsigned i, struct json_writer *json)
{
	char from[64], to[64], hops[VIRTUAL_HOPS_TEXT], name[IF_NAMESIZE] = "";

	udp_text(&path->from, from, sizeof(from));
	udp_text(&path->to, to, sizeof(to));
	virtual_path_hops(path, hops);
	if (path->interface)
		if_indextoname(path->interface, name);
	if (!json) {
		printf("%4u  %-22s %-22s %-10s %s\n", i, from, to, name, hops);
		return;
	}
	json_open_object(json, NULL);
	json_put_count(json, "path", i);
	json_put_text(json, "from", from);
	json_put_text(json, "to", to);
	json_put_text(json, "interface", name);
	json_put_text(json, "hops", hops);
	json_close(json);
}

static void paths_print(const struct discovery *discovery, bool is_json)
{
	struct json_writer json = { .out = stdout };

	if (is_json) {
		json_open_object(&json, NULL);
		json_open_list(&json, "paths");
	} else {
		printf("%4s  %-22s %-22s %-10s %s\n", "PATH", "FROM", "TO", "INTERFACE", "ROUTERS");
	}
	for (unsigned i = 0; i < discovery_count(discovery); i++)
		path_print(discovery_path(discovery, i), i, is_json ? &json : NULL);
	if (is_json) {
		json_close(&json);
		json_close(&json);
	}
}

static trib_status paths_show(char **addresses, unsigned n, double seconds, bool json)
{
	struct udp_address to[PATHS_MAX];
	struct discovery *discovery;
	trib_status status = TRIB_OK;

	for (unsigned i = 0; i < n && status == TRIB_OK; i++)
		status = udp_resolve(addresses[i], UDP_DEFAULT_PORT, &to[i]);
	if (status == TRIB_OK)
		status = discovery_start(&to[0], &discovery);
	if (status != TRIB_OK)
		return status;
	discovery_tell(discovery, to, n, clock_now());
	paths_search(discovery, (uint64_t)(seconds * 1e9));
	paths_print(discovery, json);
	discovery_stop(discovery);
	return TRIB_OK;
}

int cli_show_paths(int argc, char **argv)
{
	double seconds = 1;
	bool json = false;
	const struct option_row rows[] = {
		{ "seconds", 0, OPTION_SECONDS, &seconds, "TIME", "how long to search", "5" },
		{ "json", 0, OPTION_JSON, &json, "FILE", "print JSON, or write it to FILE", NULL },
		{ 0 },
	};
	const struct options options = {
		"trib show paths [OPTION]... PEER [ADDRESS]...",
		"Searches for paths to a host, as TRIB_PATHS says, and shows them. ADDRESS is a "
		"further\n"
		"address of the same host.",
		"trib show paths 10.84.0.2 10.85.0.2",
		rows,
	};
	int code, first = options_parse(&options, argc, argv, &code);

	if (first < 0)
		return code;
	if (first == argc || argc - first > (int)PATHS_MAX)
		return options_fail(&options, "expected 1 to %u addresses of a host", PATHS_MAX);
	if (paths_show(argv + first, (unsigned)(argc - first), seconds, json) == TRIB_OK)
		return 0;
	fprintf(stderr, "trib show paths: %s\n", trib_last_error());
	return 1;
}
