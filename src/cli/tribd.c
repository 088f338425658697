/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tribd: the daemon. It aggregates, for whoever shows the cookie; as an agent
 * also for the jobs of a controller; or it is that controller, or both.
 */
#include "base/log.h"
#include "base/settings.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "control/agent.h"
#include "control/controller.h"
#include "control/metrics.h"
#include "control/racks.h"
#include "plane/core/aggregator.h"
#include "wire/packet.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RECEIVE_BYTES (32 << 20)
#define SEND_BYTES (512 << 10)
#define QUEUE_MAX (1 << 30)

/* As the command line has them. */
struct wishes {
	const char *listen, *plane;
	uint64_t threads, memory, capacity, queue;
	const char *interfaces;
	bool generic;
	const char *controller, *join, *state, *name, *http, *rack, *above;
	uint64_t link, exit_below;
	bool agent, plain, is_switch, version;
};

/* What runs; a part that is not wanted is NULL. */
struct roles {
	struct aggregator_options options;
	struct aggregator *aggregator;
	struct controller *controller;
	struct agent *agent;
	struct metrics_server *metrics;
};

static trib_status configure(struct aggregator_options *options, const struct wishes *wishes)
{
	uint64_t busy_poll, offload, multicast;
	const char *pin = setting_text(SETTING_PIN, NULL);
	trib_status status;

	if ((status = udp_resolve(wishes->listen, UDP_DEFAULT_PORT, &options->listen)) ||
	    (status = setting_count(SETTING_COOKIE, &options->cookie)) ||
	    (status = setting_count(SETTING_BUSY_POLL, &busy_poll)) ||
	    (status = setting_count(SETTING_OFFLOAD, &offload)) ||
	    (status = setting_count(SETTING_MULTICAST, &multicast)))
		return status;
	if (wishes->threads < 1 || wishes->threads > WIRE_LANES_MAX)
		return status_fail(TRIB_ERR_CONFIG, "%llu threads: 1 to %u are possible",
		                   (unsigned long long)wishes->threads, WIRE_LANES_MAX);
	options->threads = (unsigned)wishes->threads;
	options->pool_bytes = wishes->memory;
	options->link_bps = wishes->link;
	options->capacity = (unsigned)wishes->capacity;
	options->plane = wishes->plane;
	options->interfaces = wishes->interfaces;
	options->native = !wishes->generic;
	options->queue_bytes = (uint32_t)wishes->queue;
	options->multicast = multicast;
	options->pin = pin && strcmp(pin, "off") ? pin : NULL;
	options->socket = (struct udp_options){ .offload = offload,
		                                .busy_poll = (unsigned)busy_poll,
		                                .receive_bytes = RECEIVE_BYTES,
		                                .send_bytes = SEND_BYTES };
	return TRIB_OK;
}

static trib_status start_controller(struct roles *roles, const struct wishes *wishes)
{
	struct controller_options options = { .state = wishes->state,
		                              .plain = wishes->plain,
		                              .exit_below = wishes->exit_below <= 100
		                                                    ? (int)wishes->exit_below
		                                                    : -1 };
	trib_status status = udp_resolve(wishes->controller, CONTROL_PORT, &options.listen);

	if (status == TRIB_OK)
		status = controller_start(&options, &roles->controller);
	if (status == TRIB_OK)
		printf("tribd: controller ready, TRIB_CONTROLLER=%s\n",
		       controller_address(roles->controller));
	return status;
}

static trib_status start_aggregator(struct roles *roles, const struct wishes *wishes)
{
	trib_status status = configure(&roles->options, wishes);
	char address[64];

	if (status == TRIB_OK)
		status = aggregator_start(&roles->options, &roles->aggregator);
	if (status != TRIB_OK)
		return status;
	if (!roles->options.cookie && !wishes->join && !wishes->agent)
		log_warn("TRIB_COOKIE is not set: anyone who reaches this port may join");
	udp_set_port(&roles->options.listen, aggregator_port(roles->aggregator));
	printf("tribd: ready on %s, plane %s\n",
	       udp_text(&roles->options.listen, address, sizeof(address)),
	       aggregator_plane(roles->aggregator));
	return TRIB_OK;
}

static trib_status start_agent(struct roles *roles, const struct wishes *wishes)
{
	const struct agent_options options = {
		.controller = wishes->join ? wishes->join : controller_address(roles->controller),
		.state = wishes->state,
		.name = wishes->name,
		.link_bps = wishes->link,
		.is_switch = wishes->is_switch,
		.listen = roles->options.listen,
		.threads = roles->options.threads,
		.capacity = roles->options.capacity,
		.rack = wishes->rack,
		.above = wishes->above,
		.aggregator = roles->aggregator,
	};

	return agent_start(&options, &roles->agent);
}

/* Where an aggregator serves /metrics; NULL: nowhere, or its process's controller does. */
static const char *metrics_place(const struct wishes *wishes)
{
	if (wishes->http)
		return strcmp(wishes->http, "off") ? wishes->http : NULL;
	return wishes->controller || !control_is_built() ? NULL : "127.0.0.1";
}

static trib_status start_metrics(struct roles *roles, const struct wishes *wishes,
                                 const char *place)
{
	struct metrics_options options = { .state = wishes->state,
		                           .plain = wishes->plain,
		                           .unasked = !wishes->http,
		                           .aggregator = roles->aggregator };
	trib_status status = udp_resolve(place, METRICS_PORT, &options.listen);

	if (status == TRIB_OK)
		status = metrics_start(&options, &roles->metrics);
	if (status == TRIB_OK)
		printf("tribd: /metrics on port %u%s%s\n", metrics_port(roles->metrics),
		       wishes->http ? "" : " of loopback",
		       metrics_asks(roles->metrics) ? "" : ", no token is asked for");
	if (status == TRIB_OK || wishes->http)
		return status;
	/* Nobody asked for it: another tribd on this machine may have the port. */
	log_notice("no /metrics: %s (--http HOST:PORT: elsewhere; --http off: none is wanted)",
	           trib_last_error());
	return TRIB_OK;
}

static trib_status start_roles(struct roles *roles, const struct wishes *wishes)
{
	const char *place = metrics_place(wishes);
	trib_status status = TRIB_OK;

	if (wishes->controller)
		status = start_controller(roles, wishes);
	if (status == TRIB_OK && (!wishes->controller || wishes->agent || wishes->join))
		status = start_aggregator(roles, wishes);
	if (status == TRIB_OK && (wishes->agent || wishes->join))
		status = start_agent(roles, wishes);
	if (status == TRIB_OK && roles->aggregator && roles->controller)
		controller_set_aggregator(roles->controller, roles->aggregator);
	fflush(stdout); /* it is ready, and joins: neither waits for /metrics */
	if (status == TRIB_OK && roles->aggregator && place)
		status = start_metrics(roles, wishes, place);
	fflush(stdout);
	return status;
}

/* The agent first: the controller should not give out what is about to end. */
static void stop_roles(struct roles *roles)
{
	char text[4096];

	agent_stop(roles->agent);
	if (roles->aggregator)
		aggregator_leave_all(roles->aggregator, "tribd was told to stop");
	metrics_stop(roles->metrics);
	if (roles->controller)
		controller_stop(roles->controller);
	if (roles->aggregator) {
		aggregator_stop(roles->aggregator);
		aggregator_describe(roles->aggregator, text, sizeof(text));
		puts(text);
		aggregator_free(roles->aggregator);
	}
}

_Static_assert(RACK_NAMES_MAX == 4, "as wishes_fault says");

/* What is wrong with the options, or NULL. */
static const char *wishes_fault(const struct wishes *wishes)
{
	if (wishes->agent && !wishes->controller)
		return "--agent goes with --controller; an agent of another "
		       "controller is --join";
	if (wishes->agent && wishes->join)
		return "--agent joins this process's own controller, --join "
		       "another one";
	if (wishes->capacity > WIRE_CHILDREN_MAX)
		return "--capacity is 64 at most";
	if (wishes->capacity && wishes->plane && !strcmp(wishes->plane, "xdp"))
		return "--capacity goes with --plane udp or tcp: who has sums "
		       "under way is not counted in the kernel";
	if (wishes->queue > QUEUE_MAX)
		return "--check-queue is 1G at most";
	if (wishes->exit_below != UINT64_MAX && wishes->exit_below > 100)
		return "--exit-below is percent, 0 to 100";
	if (wishes->name && !wishes->join && !wishes->agent)
		return "--name is for a controller: it goes with --join";
	if (wishes->is_switch && !wishes->join && !wishes->agent)
		return "--switch is for the plans of a controller: it goes with "
		       "--join";
	if ((wishes->rack || wishes->above) && !wishes->join && !wishes->agent)
		return "--rack and --above are for a controller: they go with "
		       "--join";
	if (wishes->above && !wishes->capacity)
		return "--above goes with --capacity: plans use other "
		       "aggregators wherever they are";
	if ((wishes->rack && (!*wishes->rack || !rack_is_good(wishes->rack))) ||
	    (wishes->above && !rack_is_good(wishes->above)))
		return "--rack and --above are up to 4 names of letters, digits and "
		       ".-_ with slashes between them";
	return NULL;
}

/* ---- what may be asked for ---- */

static struct wishes asked = {
	.listen = ":7700", .threads = 4, .exit_below = UINT64_MAX, .queue = AGGREGATOR_QUEUE_BYTES
};

static const struct option_row rows[] = {
	{ "listen", 'l', OPTION_TEXT, &asked.listen, "HOST:PORT",
	  "where workers find it; lane n is at PORT + n (default :7700)", "10.0.0.1:7700" },
	{ "threads", 't', OPTION_COUNT, &asked.threads, "N",
	  "how many lanes a job may have, each with a thread (default 4)", "8" },
	{ "memory", 'm', OPTION_BYTES, &asked.memory, "SIZE",
	  "the most that all jobs' pools may take (default: no limit)", "8G" },
	{ "capacity", 0, OPTION_COUNT, &asked.capacity, "N",
	  "sum for so many jobs at once: with a controller they take turns (default: any "
	  "number)",
	  "1" },
	{ "plane", 'p', OPTION_TEXT, &asked.plane, "PLANE",
	  "where sums are made: udp (in user space), xdp (in the kernel, where it lets us, "
	  "else udp), or tcp to compare with (default: TRIB_PLANE, udp)",
	  "xdp" },
	{ "interface", 'i', OPTION_TEXT, &asked.interfaces, "NAME,...",
	  "xdp: the interfaces that lead to workers (default: those with the address)", "eth0" },
	{ "generic", 0, OPTION_FLAG, &asked.generic, NULL,
	  "xdp: not in the driver, though it could", NULL },
	{ "check-queue", 0, OPTION_BYTES, &asked.queue, "SIZE",
	  "xdp: how much each thread's queue for what the kernel leaves to it holds (default 1M; "
	  "0: its socket does)",
	  "4M" },
	{ "join", 'j', OPTION_TEXT, &asked.join, "CONTROLLER",
	  "be an agent of this controller, as its TRIB_CONTROLLER line says",
	  "10.0.0.1:7600#sha256//..." },
	{ "name", 'n', OPTION_TEXT, &asked.name, "NAME",
	  "agent: its name in lists (default: the host's)", "rack3-7" },
	{ "link", 0, OPTION_RATE, &asked.link, "RATE",
	  "how fast its link is, which workers share (default: found out)", "10gbit" },
	{ "switch", 0, OPTION_FLAG, &asked.is_switch, NULL,
	  "agent: it is a switch, with a port of that rate for each neighbour", NULL },
	{ "rack", 0, OPTION_TEXT, &asked.rack, "PATH",
	  "agent: jobs may be placed on this machine, which is there in the network, from "
	  "its widest part to the narrowest (default: jobs are placed elsewhere)",
	  "pod1/rack2" },
	{ "above", 0, OPTION_TEXT, &asked.above, "PATH",
	  "agent with --capacity: it is for jobs whose hosts are all below that (default: "
	  "for all)",
	  "pod1" },
	{ "http", 0, OPTION_TEXT, &asked.http, "HOST:PORT",
	  "serve /metrics there, or nowhere: off; a controller does so at its own address "
	  "(default: 127.0.0.1:7601 if it is free)",
	  ":7601" },
	{ "controller", 'c', OPTION_TEXT, &asked.controller, "HOST:PORT",
	  "be a controller, there, and no aggregator", ":7600" },
	{ "agent", 0, OPTION_FLAG, &asked.agent, NULL,
	  "controller: be an aggregator as well, and its own agent", NULL },
	{ "state", 0, OPTION_TEXT, &asked.state, "FOLDER",
	  "where a controller keeps what survives it (default: TRIB_STATE)", "/var/lib/tributary" },
	{ "exit-below", 0, OPTION_COUNT, &asked.exit_below, "PERCENT",
	  "controller: jobs whose communication takes less of a step give up machines that "
	  "are not their workers' (default: TRIB_EXIT_BELOW, 10; 0: never)",
	  "5" },
	{ "plain", 0, OPTION_FLAG, &asked.plain, NULL,
	  "HTTP without TLS also beyond this machine: others can read the token", NULL },
	{ "version", 'V', OPTION_FLAG, &asked.version, NULL, "which tribd this is", NULL },
	{ 0 }
};

static const struct options usage = {
	.usage = "tribd [OPTION]...",
	.about = "Aggregates vectors for the workers that show the cookie in TRIB_COOKIE. "
		 "With --join it is one of\nmany, for the jobs of a controller; with "
		 "--controller it is the controller. Runs until SIGTERM or\nSIGINT; an "
		 "aggregator then prints its counters as a line of JSON.",
	.example = "TRIB_COOKIE=5eed tribd --listen 10.0.0.1:7700\n"
		   "  tribd --controller 10.0.0.1:7600\n"
		   "  TRIB_TOKEN_FILE=token tribd --join '10.0.0.1:7600#sha256//...' --rack "
		   "pod1/rack2\n"
		   "  TRIB_TOKEN_FILE=token tribd --join '10.0.0.1:7600#sha256//...' "
		   "--capacity 1 --above pod1",
	.rows = rows,
};

/* Until a signal says that it is enough. */
static int serve(const struct wishes *wishes)
{
	struct roles roles = { 0 };
	int code = EXIT_SUCCESS, caught;
	sigset_t signals;

	/* Threads inherit the mask: signals come to sigwait below and nowhere else. */
	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	if (start_roles(&roles, wishes) == TRIB_OK) {
		sigwait(&signals, &caught);
	} else {
		fprintf(stderr, "tribd: %s\n", trib_last_error());
		code = EXIT_FAILURE;
	}
	stop_roles(&roles);
	return code;
}

int main(int argc, char **argv)
{
	const char *level = setting_text(SETTING_LOG, NULL), *fault;
	int code;

	log_set_prefix("tribd");
	asked.plane = setting_text(SETTING_PLANE, NULL);
	if (!options_parse_all(&usage, argc, argv, &code))
		return code;
	if (asked.version) {
		printf("tribd " TRIB_VERSION "\n");
		return 0;
	}
	if (level && log_set_level_name(level)) {
		fprintf(stderr,
		        "tribd: TRIB_LOG=\"%s\": expected error, warn, notice, info or debug\n",
		        level);
		return EXIT_USAGE;
	}
	if ((fault = wishes_fault(&asked)))
		return options_fail(&usage, "%s", fault);
	return serve(&asked);
}
