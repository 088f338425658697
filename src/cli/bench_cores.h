/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cores of a virtual host. Programs on it run there, and what its links receive
 * is worked on there, as on a machine of its own: so what an aggregator costs is
 * how long its cores were busy, whoever did the work, and what it can do is what
 * they can.
 */
#ifndef TRIB_CLI_BENCH_CORES_H
#define TRIB_CLI_BENCH_CORES_H

#include "net/cluster.h"

#include <sched.h>

struct bench_cores {
	char host[16];
	cpu_set_t set;
};

/* "s1=1", "h2=2-4,6": HOST=LIST. */
trib_status cores_parse(const char *text, struct bench_cores *out);

/* For each host of the cluster; those that are not named share the cores that nobody was given. */
trib_status cores_share(const struct bench_cores *given, unsigned n, const struct cluster *cluster,
                        cpu_set_t *out);

/*
 * Receive work of each host's link goes to one of its cores, of a switch's ports to the switch's
 * in turn. Where a bridge is between the hosts, it passes on what servers send on workers' cores,
 * and so does the relay before servers, where links are `framed`: they are no part of a server, and
 * have a core each where there are enough.
 * Holds as long as the programs that are at the interfaces now.
 */
trib_status cores_receive(const cpu_set_t *cores, const struct cluster *cluster, bool framed);

/* Those of the servers; none where a worker has one of them too: it could not be told apart. */
void cores_of_servers(const cpu_set_t *cores, const struct cluster *cluster, cpu_set_t *out);

#endif
