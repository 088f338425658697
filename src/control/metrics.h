/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics in Prometheus' text format. docs/metrics.md lists the names. */
#ifndef TRIB_CONTROL_METRICS_H
#define TRIB_CONTROL_METRICS_H

#include "control/control.h"
#include "path/udp.h"

#include <stdio.h>

struct aggregator;

#define METRICS_PORT (CONTROL_PORT + 1)
#define METRICS_TYPE "text/plain; version=0.0.4; charset=utf-8"

/* The lines that stand before the samples of a name; counters end in _total. */
void metrics_name(FILE *out, const char *name, const char *type, const char *help);
/* One sample; labels are pairs of name and value, ended by NULL. */
void metrics_put(FILE *out, const char *name, double value, ...) __attribute__((sentinel));
/* All of an aggregator. */
void metrics_aggregator(FILE *out, struct aggregator *aggregator);

/*
 * A listener for /metrics alone, on tribds that are no controller. One that
 * nobody asked for is on loopback, and makes no file: it asks for the token
 * where there is one.
 */
struct metrics_options {
	struct udp_address listen;
	const char *state; /* the folder of the token and the key; NULL: the usual one */
	bool plain;        /* HTTP without TLS also beyond loopback */
	bool unasked;
	struct aggregator *aggregator;
};

struct metrics_server;
trib_status metrics_start(const struct metrics_options *options, struct metrics_server **out);
void metrics_stop(struct metrics_server *server);
uint16_t metrics_port(const struct metrics_server *server);
/* Does it ask for a token? */
bool metrics_asks(const struct metrics_server *server);

#endif
