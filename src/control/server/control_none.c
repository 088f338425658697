/* SPDX-License-Identifier: Apache-2.0 */
/* Stands in for the control plane in a build without its libraries: each start fails. */
#include "control/agent/heartbeat.h"
#include "control/server/controller.h"
#include "control/metrics/prometheus.h"

bool control_is_built(void)
{
	return false;
}

static trib_status fail(const char *what)
{
	return status_fail(TRIB_ERR_CONFIG,
	                   "%s: the control plane was left out of this build; install "
	                   "libmicrohttpd-dev, libjansson-dev, libsqlite3-dev, "
	                   "libcurl4-gnutls-dev and libgnutls28-dev, and build again",
	                   what);
}

trib_status controller_start(const struct controller_options *options, struct controller **out)
{
	(void)options;
	(void)out;
	return fail("--controller");
}

void controller_stop(struct controller *controller)
{
	(void)controller;
}

const char *controller_address(const struct controller *controller)
{
	(void)controller;
	return "";
}

trib_status agent_start(const struct agent_options *options, struct agent **out)
{
	(void)options;
	(void)out;
	return fail("--join");
}

void agent_stop(struct agent *agent)
{
	(void)agent;
}

void controller_set_aggregator(struct controller *controller, struct aggregator *aggregator)
{
	(void)controller;
	(void)aggregator;
}

trib_status metrics_start(const struct metrics_options *options, struct metrics_server **out)
{
	(void)options;
	(void)out;
	return fail("--http");
}

void metrics_stop(struct metrics_server *server)
{
	(void)server;
}

uint16_t metrics_port(const struct metrics_server *server)
{
	(void)server;
	return 0;
}

bool metrics_asks(const struct metrics_server *server)
{
	(void)server;
	return true;
}
