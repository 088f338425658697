/* SPDX-License-Identifier: Apache-2.0 */
/*
 * daemon: the program tribd. It is an aggregator for workers that have the cookie,
 * an agent that aggregates for the jobs of a controller, a controller, or agent and
 * controller in one. Or it is a parameter server.
 *
 * This file reads options and starts these roles; it must not know how they work.
 */
#include "base/log.h"
#include "base/settings.h"
#include "control/agent/heartbeat.h"
#include "control/metrics/prometheus.h"
#include "control/policy/topology.h"
#include "control/server/controller.h"
#include "options/access.h"
#include "options/options.h"
#include "plane/aggregator.h"
#include "sparse/service/shard_service.h"
#include "wire/packet.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RECEIVE_BYTES (32 << 20)
#define SEND_BYTES (512 << 10)
#define QUEUE_MAX (1 << 30)
#define EACH_POOL 4u /* by default a communicator gets up to a quarter of the memory for pools */
/* Addresses that no router of the Internet forwards. */
#define PARENTS                                                                                 \
	"127.0.0.0/8,10.0.0.0/8,172.16.0.0/12,192.168.0.0/16,100.64.0.0/10,169.254.0.0/16,::1," \
	"fc00::/7,fe80::/10"

/* The options of the command line. */
struct tribd_options {
	const char *listen, *plane, *parents;
	uint64_t threads, memory, capacity, queue;
	const char *interfaces;
	bool generic;
	const char *controller, *join, *state, *name, *http, *rack, *above;
	uint64_t link, exit_below;
	bool agent, plain, is_switch, version;
	bool open;                   /* without a cookie, serve other machines too */
	struct service_options rows; /* with a folder: be a parameter server */
};

/* The roles that run; NULL: not wanted. */
struct roles {
	struct aggregator_options options;
	struct aggregator *aggregator;
	struct controller *controller;
	struct agent *agent;
	struct metrics_server *metrics;
};

/* Whom the aggregator lets in. An agent verifies cookies by its controller's secret. */
static trib_status configure_access(struct aggregator_options *options,
                                    const struct tribd_options *wanted)
{
	bool agent = wanted->join || wanted->agent;
	const char *listen = wanted->listen;
	trib_status status = setting_count(SETTING_COOKIE, &options->cookie);

	if (!listen)
		listen = options->cookie || agent || wanted->open ? ":7700" : "127.0.0.1:7700";
	options->open = !agent;
	if (status == TRIB_OK)
		status = udp_resolve(listen, UDP_DEFAULT_PORT, &options->listen);
	if (status != TRIB_OK || agent)
		return status;
	status = access_check(&options->listen, options->cookie, wanted->open);
	if (status == TRIB_OK && !options->cookie)
		log_warn("TRIB_COOKIE is not set: %s may join",
		         udp_is_loopback(&options->listen) ? "every process of this machine"
		                                           : "anyone who reaches this port");
	return status;
}

/* Half of what the machine has. */
static uint64_t memory_default(void)
{
	long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGE_SIZE);

	return pages > 0 && size > 0 ? (uint64_t)pages * (uint64_t)size / 2 : 1ull << 30;
}

static trib_status configure(struct aggregator_options *options, const struct tribd_options *wanted)
{
	uint64_t busy_poll, offload, multicast;
	const char *pin = setting_text(SETTING_PIN, NULL);
	trib_status status;

	if ((status = configure_access(options, wanted)) ||
	    (status = setting_count(SETTING_BUSY_POLL, &busy_poll)) ||
	    (status = setting_count(SETTING_OFFLOAD, &offload)) ||
	    (status = setting_count(SETTING_MULTICAST, &multicast)))
		return status;
	if (wanted->threads < 1 || wanted->threads > WIRE_LANES_MAX)
		return status_fail(TRIB_ERR_CONFIG, "--threads %llu: expected 1 to %u",
		                   (unsigned long long)wanted->threads, WIRE_LANES_MAX);
	options->threads = (unsigned)wanted->threads;
	options->pool_bytes = wanted->memory ? wanted->memory : memory_default();
	options->each_pool_bytes = wanted->memory ? 0 : options->pool_bytes / EACH_POOL;
	if ((status = network_list_parse(&options->parents, wanted->parents)))
		return status;
	options->link_bps = wanted->link;
	options->capacity = (unsigned)wanted->capacity;
	options->plane = wanted->plane;
	if (wanted->capacity && !strcmp(wanted->plane, "auto"))
		options->plane = "udp"; /* it counts which jobs have sums in flight */
	options->interfaces = wanted->interfaces;
	options->native = !wanted->generic;
	options->queue_bytes = (uint32_t)wanted->queue;
	options->multicast = multicast;
	options->pin = pin && strcmp(pin, "off") ? pin : NULL;
	options->socket = (struct udp_options){ .offload = offload,
		                                .busy_poll = (unsigned)busy_poll,
		                                .receive_bytes = RECEIVE_BYTES,
		                                .send_bytes = SEND_BYTES };
	return TRIB_OK;
}

static trib_status start_controller(struct roles *roles, const struct tribd_options *wanted)
{
	struct controller_options options = { .state = wanted->state,
		                              .plain = wanted->plain,
		                              .exit_below = wanted->exit_below <= 100
		                                                    ? (int)wanted->exit_below
		                                                    : -1 };
	trib_status status = udp_resolve(wanted->controller, CONTROL_PORT, &options.listen);

	if (status == TRIB_OK)
		status = controller_start(&options, &roles->controller);
	if (status == TRIB_OK)
		printf("tribd: controller ready, TRIB_CONTROLLER=%s\n",
		       controller_address(roles->controller));
	return status;
}

static trib_status start_aggregator(struct roles *roles, const struct tribd_options *wanted)
{
	trib_status status = configure(&roles->options, wanted);
	char address[64];

	if (status == TRIB_OK)
		status = aggregator_start(&roles->options, &roles->aggregator);
	if (status != TRIB_OK)
		return status;
	udp_set_port(&roles->options.listen, aggregator_port(roles->aggregator));
	printf("tribd: ready on %s, plane %s\n",
	       udp_text(&roles->options.listen, address, sizeof(address)),
	       aggregator_plane(roles->aggregator));
	return TRIB_OK;
}

static trib_status start_agent(struct roles *roles, const struct tribd_options *wanted)
{
	const struct agent_options options = {
		.controller = wanted->join ? wanted->join : controller_address(roles->controller),
		.state = wanted->state,
		.name = wanted->name,
		.link_bps = wanted->link,
		.is_switch = wanted->is_switch,
		.listen = roles->options.listen,
		.threads = roles->options.threads,
		.capacity = roles->options.capacity,
		.rack = wanted->rack,
		.above = wanted->above,
		.aggregator = roles->aggregator,
	};

	return agent_start(&options, &roles->agent);
}

/* Where an aggregator serves /metrics. NULL: nowhere, or the controller in this process does. */
static const char *metrics_place(const struct tribd_options *wanted)
{
	if (wanted->http)
		return strcmp(wanted->http, "off") ? wanted->http : NULL;
	return wanted->controller || !control_is_built() ? NULL : "127.0.0.1";
}

static trib_status start_metrics(struct roles *roles, const struct tribd_options *wanted,
                                 const char *place)
{
	struct metrics_options options = { .state = wanted->state,
		                           .plain = wanted->plain,
		                           .unasked = !wanted->http,
		                           .aggregator = roles->aggregator };
	trib_status status = udp_resolve(place, METRICS_PORT, &options.listen);

	if (status == TRIB_OK)
		status = metrics_start(&options, &roles->metrics);
	if (status == TRIB_OK)
		printf("tribd: /metrics on port %u%s%s\n", metrics_port(roles->metrics),
		       wanted->http ? "" : " of loopback",
		       metrics_asks(roles->metrics) ? "" : ", no token needed");
	if (status == TRIB_OK || wanted->http)
		return status;
	/*
	 * Nobody asked for /metrics explicitly, and another tribd on this machine may have the
	 * port.
	 */
	log_notice("no /metrics: %s (--http HOST:PORT chooses another address, --http off none)",
	           trib_last_error());
	return TRIB_OK;
}

static trib_status start_roles(struct roles *roles, const struct tribd_options *wanted)
{
	const char *place = metrics_place(wanted);
	trib_status status = TRIB_OK;

	if (wanted->controller)
		status = start_controller(roles, wanted);
	if (status == TRIB_OK && (!wanted->controller || wanted->agent || wanted->join))
		status = start_aggregator(roles, wanted);
	if (status == TRIB_OK && (wanted->agent || wanted->join))
		status = start_agent(roles, wanted);
	if (status == TRIB_OK && roles->aggregator && roles->controller)
		controller_set_aggregator(roles->controller, roles->aggregator);
	fflush(stdout); /* tribd is ready and joins without waiting for /metrics */
	if (status == TRIB_OK && roles->aggregator && place)
		status = start_metrics(roles, wanted, place);
	fflush(stdout);
	return status;
}

/* Stops the agent first, so that the controller does not assign jobs to what is about to end. */
static void stop_roles(struct roles *roles)
{
	uint64_t counters = 0;
	char text[4096];

	agent_stop(roles->agent);
	if (roles->aggregator)
		aggregator_drain_all(roles->aggregator, "tribd was told to stop");
	metrics_stop(roles->metrics);
	if (roles->controller)
		controller_stop(roles->controller);
	if (roles->aggregator) {
		aggregator_stop(roles->aggregator);
		if (setting_count(SETTING_COUNTERS, &counters) == TRIB_OK && counters) {
			aggregator_describe(roles->aggregator, text, sizeof(text));
			puts(text);
		}
		aggregator_free(roles->aggregator);
	}
}

/* ---- a parameter server ---- */

/* Address and memory have other defaults in this role. */
static void rows_settle(struct tribd_options *wanted)
{
	wanted->rows.open = wanted->open;
	if (wanted->listen)
		wanted->rows.listen = wanted->listen;
	if (wanted->memory)
		wanted->rows.memory = wanted->memory;
}

/* What is wrong with the options of a parameter server; NULL: nothing. */
static const char *rows_fault(const struct tribd_options *wanted)
{
	if (wanted->controller || wanted->join)
		return "--serve-rows is a role of its own: start another tribd for --controller or "
		       "--join";
	return service_fault(&wanted->rows);
}

_Static_assert(RACK_NAMES_MAX == 4, "as options_fault says");

/* What is wrong with the options; NULL: nothing. */
static const char *options_fault(const struct tribd_options *wanted)
{
	if (wanted->agent && !wanted->controller)
		return "--agent needs --controller; to be an agent of another controller, use "
		       "--join";
	if (wanted->agent && wanted->join)
		return "--agent joins the controller in this process, --join another one: give one "
		       "of them";
	if (wanted->open && (wanted->join || wanted->controller))
		return "--open is for an aggregator without a controller: an agent lets in the "
		       "jobs of its controller";
	if (wanted->capacity > WIRE_CHILDREN_MAX)
		return "--capacity is 64 at most";
	if (wanted->capacity && (!strcmp(wanted->plane, "xdp") || !strcmp(wanted->plane, "tc")))
		return "--capacity needs --plane udp or tcp: the kernel does not count which jobs "
		       "have sums in flight";
	if (wanted->queue > QUEUE_MAX)
		return "--check-queue is 1G at most";
	if (wanted->exit_below != UINT64_MAX && wanted->exit_below > 100)
		return "--exit-below is a percentage, 0 to 100";
	if (wanted->name && !wanted->join && !wanted->agent)
		return "--name is for a controller: it needs --join";
	if (wanted->is_switch && !wanted->join && !wanted->agent)
		return "--switch is for the plans of a controller: it needs --join";
	if ((wanted->rack || wanted->above) && !wanted->join && !wanted->agent)
		return "--rack and --above are for a controller: they need --join";
	if (wanted->above && !wanted->capacity)
		return "--above needs --capacity: plans use other aggregators wherever they are";
	if ((wanted->rack && (!*wanted->rack || !rack_is_good(wanted->rack))) ||
	    (wanted->above && !rack_is_good(wanted->above)))
		return "--rack and --above are up to 4 names of letters, digits and "
		       ".-_ with slashes between them";
	return wanted->rows.folder ? rows_fault(wanted) : NULL;
}

/* ---- the table of options ---- */

static struct tribd_options asked = {
	.threads = 4,
	.parents = PARENTS,
	.exit_below = UINT64_MAX,
	.queue = AGGREGATOR_QUEUE_BYTES,
	.rows = { SERVICE_DEFAULTS("tribd", NULL) },
};

static const struct option_row rows[] = {
	{ "listen", 'l', OPTION_TEXT, &asked.listen, "HOST:PORT",
	  "address for workers; lane n listens on PORT + n (default :7700, without a cookie "
	  "127.0.0.1:7700; with --serve-rows port 7800)",
	  "10.0.0.1:7700" },
	{ "open", 0, OPTION_FLAG, &asked.open, NULL, ACCESS_HELP, NULL },
	{ "threads", 't', OPTION_COUNT, &asked.threads, "N",
	  "lanes that a job may have; each lane has a thread (default 4)", "8" },
	{ "memory", 'm', OPTION_BYTES, &asked.memory, "SIZE",
	  "most memory for the pools of all jobs (default: half of the machine's, and a quarter of "
	  "that for one communicator); with --serve-rows: memory "
	  "for hot rows, asked for at the aggregator (default 1M)",
	  "8G" },
	{ "parents", 0, OPTION_TEXT, &asked.parents, "NET,...",
	  "networks in which the aggregators above this one may be (default: private ones)",
	  "10.0.0.0/8,192.0.2.7" },
	{ "capacity", 0, OPTION_COUNT, &asked.capacity, "N",
	  "jobs that may sum at the same time; more jobs take turns, which needs a controller "
	  "(default: any number)",
	  "1" },
	{ "plane", 'p', OPTION_TEXT, &asked.plane, "PLANE",
	  "where sums are made: auto (tc if possible, else udp), udp (in user space), tc (as udp, "
	  "but "
	  "small vectors in the kernel), "
	  "xdp (all in the kernel, or udp if XDP is not possible), tcp, for comparison, or pisa "
	  "(small vectors on a model of a switch) (default: TRIB_PLANE, auto)",
	  "xdp" },
	{ "interface", 'i', OPTION_TEXT, &asked.interfaces, "NAME,...",
	  "tc and xdp: interfaces that lead to workers (default: those with the listen address)",
	  "eth0" },
	{ "generic", 0, OPTION_FLAG, &asked.generic, NULL,
	  "xdp: use generic mode even if the driver supports XDP", NULL },
	{ "check-queue", 0, OPTION_BYTES, &asked.queue, "SIZE",
	  "xdp: size of each thread's queue for packets that the kernel leaves to tribd (default "
	  "1M; 0: use the socket)",
	  "4M" },
	{ "join", 'j', OPTION_TEXT, &asked.join, "CONTROLLER",
	  "be an agent of this controller; CONTROLLER is what it prints as TRIB_CONTROLLER",
	  "10.0.0.1:7600#sha256//..." },
	{ "name", 'n', OPTION_TEXT, &asked.name, "NAME",
	  "agent: name in lists (default: the host name)", "rack3-7" },
	{ "link", 0, OPTION_RATE, &asked.link, "RATE",
	  "rate of this machine's link, which workers share (default: as the device reports)",
	  "10gbit" },
	{ "switch", 0, OPTION_FLAG, &asked.is_switch, NULL,
	  "agent: this machine is a switch with a port of that rate for each neighbour", NULL },
	{ "rack", 0, OPTION_TEXT, &asked.rack, "PATH",
	  "agent: jobs may be placed on this machine; PATH is its place in the network, widest "
	  "part first (default: no jobs are placed here)",
	  "pod1/rack2" },
	{ "above", 0, OPTION_TEXT, &asked.above, "PATH",
	  "agent with --capacity: serve only jobs whose hosts are all below PATH (default: all "
	  "jobs)",
	  "pod1" },
	{ "http", 0, OPTION_TEXT, &asked.http, "HOST:PORT",
	  "serve /metrics at this address; off: do not serve it; a controller serves it at its own "
	  "address (default: 127.0.0.1:7601 if it is free)",
	  ":7601" },
	{ "controller", 'c', OPTION_TEXT, &asked.controller, "HOST:PORT",
	  "be a controller at this address, and not an aggregator", ":7600" },
	{ "agent", 0, OPTION_FLAG, &asked.agent, NULL,
	  "controller: be an aggregator too, as an agent of this controller", NULL },
	{ "state", 0, OPTION_TEXT, &asked.state, "FOLDER",
	  "folder for what has to survive a restart (default: TRIB_STATE)", "/var/lib/tributary" },
	{ "exit-below", 0, OPTION_COUNT, &asked.exit_below, "PERCENT",
	  "controller: if communication takes less than this share of a job's steps, the job gives "
	  "up aggregators on machines other than its workers' (default: TRIB_EXIT_BELOW, 10; 0: "
	  "never)",
	  "5" },
	{ "plain", 0, OPTION_FLAG, &asked.plain, NULL,
	  "use HTTP without TLS even beyond this machine: others can read the token", NULL },
	{ "serve-rows", 0, OPTION_TEXT, &asked.rows.folder, "DIR",
	  "be a parameter server for sparse training, and nothing else; DIR has the log and the "
	  "snapshots of its rows; the options below are for this role",
	  "/var/lib/tributary/shard0" },
	SERVICE_ROWS(asked.rows),
	{ "version", 'V', OPTION_FLAG, &asked.version, NULL, "print the version", NULL },
	{ 0 }
};

static const struct options usage = {
	.usage = "tribd [OPTION]...",
	.about =
		"Aggregates vectors for workers that have the cookie in TRIB_COOKIE; trib cookie\n"
		"draws one. Without a cookie it serves this machine alone. With --join it is an\n"
		"agent, and aggregates for the jobs of a controller. With --controller it is the\n"
		"controller. With --serve-rows it is a parameter server, as trib sparse serve is.\n"
		"Runs until SIGTERM or SIGINT. With TRIB_COUNTERS=on, an aggregator then prints\n"
		"its counters as a line of JSON.",
	.example = "TRIB_COOKIE=$(cat cookie) tribd --listen 10.0.0.1:7700\n"
		   "  tribd --controller 10.0.0.1:7600\n"
		   "  TRIB_TOKEN_FILE=token tribd --join '10.0.0.1:7600#sha256//...' --rack "
		   "pod1/rack2\n"
		   "  TRIB_TOKEN_FILE=token tribd --join '10.0.0.1:7600#sha256//...' "
		   "--capacity 1 --above pod1\n"
		   "  TRIB_COOKIE=$(cat cookie) tribd --serve-rows /var/lib/tributary/shard0 "
		   "--shard 0/2 "
		   "--aggregators 10.0.0.1:7700",
	.rows = rows,
};

/* Runs until a signal ends it. */
static int serve(const struct tribd_options *wanted)
{
	struct roles roles = { 0 };
	int code = EXIT_SUCCESS, caught;
	sigset_t signals;

	/* Threads inherit the mask, so signals reach only sigwait below. */
	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	if (start_roles(&roles, wanted) == TRIB_OK) {
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
	rows_settle(&asked);
	if ((fault = options_fault(&asked)))
		return options_fail(&usage, "%s", fault);
	return asked.rows.folder ? service_run(&asked.rows) : serve(&asked);
}
