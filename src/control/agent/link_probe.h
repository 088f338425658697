/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures the link between two agents by filling it for a moment: first one side sends as much as
 * the connection takes, then the other. TCP leaves other traffic its part, so a link is credited
 * with all bytes that its interface carried meanwhile. A probe ends as soon as the rate is near the
 * claimed one.
 *
 * Each agent listens for probes, and starts probes when the controller tells it to. The side that
 * asks has to know the secret.
 */
#ifndef TRIB_CONTROL_AGENT_LINK_PROBE_H
#define TRIB_CONTROL_AGENT_LINK_PROBE_H

#include "base/secret.h"
#include "control/policy/node_table.h"
#include "path/udp.h"

struct link_probe;

/* A probe that the controller has ordered. */
struct link_probe_request {
	char self[TREE_NAME_MAX], with[TREE_NAME_MAX]; /* names of nodes in plans */
	struct udp_address at; /* where the other agent listens; length 0: unknown */
	uint64_t enough_bps;
	bool may_stay; /* it may go over loopback: for tests */
};

/*
 * Listens by TCP at the address, at any port. `done` is called from the probe's thread when there
 * is a new sample.
 */
trib_status link_probe_open(const struct udp_address *listen, void (*done)(void *context),
                            void *context, struct link_probe **out);
void link_probe_close(struct link_probe *probe);
uint16_t link_probe_port(const struct link_probe *probe);
/* Without a secret, no probe is served. */
void link_probe_set_secret(struct link_probe *probe, const struct secret *secret);
/* Starts a probe in the probe's thread. Probes run one at a time; the last request wins. */
void link_probe_ask(struct link_probe *probe, const struct link_probe_request *request);
/* Drops samples older than `before`. */
void link_probe_forget(struct link_probe *probe, uint64_t before);
/* The samples so far; the newest is first. */
unsigned link_probe_samples(struct link_probe *probe, struct link_sample out[LINK_SAMPLES_MAX]);

#endif
