/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cores of a virtual host. Its programs run there, and packets that its links
 * receive are processed there, as on a machine of its own. So an aggregator's cost
 * is the time that its cores were busy, in programs and in the kernel.
 */
#ifndef TRIB_BENCH_BED_HOST_CORES_H
#define TRIB_BENCH_BED_HOST_CORES_H

#include "net/cluster.h"

#include <sched.h>

struct bench_cores {
	char host[16];
	cpu_set_t set;
};

/* "s1=1", "h2=2-4,6": HOST=LIST. */
trib_status cores_parse(const char *text, struct bench_cores *out);

/*
 * Cores of each host of the cluster. Hosts that are not named share the cores that are left
 * over.
 */
trib_status cores_share(const struct bench_cores *given, unsigned n, const struct cluster *cluster,
                        cpu_set_t *out);

/*
 * One core for each worker, in turn. The scheduler leaves ranks that wait by yielding where they
 * are: all on one core, it may be, while another one idles. False: a core would have no worker.
 */
bool cores_spread(unsigned workers, cpu_set_t *out);

/*
 * Assigns the receive work of each link to a core of its host; ports of a switch
 * take the switch's cores in turn. A bridge or a relay (`framed`) is no part of a
 * server: what servers send is forwarded on the workers' cores, on one core each if
 * there are enough.
 *
 * Lasts as long as the programs that are attached to the interfaces now.
 */
trib_status cores_receive(const cpu_set_t *cores, const struct cluster *cluster, bool framed);

/*
 * Cores of the servers. None if a worker shares one of them, since its work could not be told
 * apart.
 */
void cores_of_servers(const cpu_set_t *cores, const struct cluster *cluster, cpu_set_t *out);

#endif
