/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metrics: what Prometheus reads.
 *
 * This folder owns the text format (prometheus) and a listener for /metrics on a tribd that is no
 * controller (metrics_server). It reads an aggregator's statistics and changes nothing. The
 * controller's own metrics are in api/api_metrics.c. docs/metrics.md lists the names.
 */
#ifndef TRIB_CONTROL_METRICS_PROMETHEUS_H
#define TRIB_CONTROL_METRICS_PROMETHEUS_H

#include "control/control.h"
#include "path/udp.h"

#include <stdio.h>

struct aggregator;

#define METRICS_PORT (CONTROL_PORT + 1)
#define METRICS_TYPE "text/plain; version=0.0.4; charset=utf-8"

/* Writes the header lines of a metric; names of counters end in _total. */
void metrics_name(FILE *out, const char *name, const char *type, const char *help);
/* Writes one sample; labels are pairs of name and value, ended by NULL. */
void metrics_put(FILE *out, const char *name, double value, ...) __attribute__((sentinel));
/* Writes all metrics of an aggregator, and those of the paths that its host uses. */
void metrics_aggregator(FILE *out, struct aggregator *aggregator);
void metrics_paths(FILE *out);

/*
 * A listener for /metrics only. If the user did not ask for it (`unasked`), it is on loopback and
 * creates no files; it requires the token if there is one.
 */
struct metrics_options {
	struct udp_address listen;
	const char *state; /* the state folder, with token and key; NULL: the default */
	bool plain;        /* allow HTTP without TLS beyond loopback */
	bool unasked;
	struct aggregator *aggregator;
};

struct metrics_server;
trib_status metrics_start(const struct metrics_options *options, struct metrics_server **out);
void metrics_stop(struct metrics_server *server);
uint16_t metrics_port(const struct metrics_server *server);
/* Does it require a token? */
bool metrics_asks(const struct metrics_server *server);

#endif
