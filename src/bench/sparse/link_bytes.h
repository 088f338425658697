/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes that a virtual host has received, by the kernel's counters of its links. */
#ifndef TRIB_BENCH_SPARSE_LINK_BYTES_H
#define TRIB_BENCH_SPARSE_LINK_BYTES_H

#include "net/cluster.h"

/* NaN: unknown. */
double link_bytes_received(const struct cluster_host *host);

/* Sums the received bytes of all links but lo. The text is that of /proc/net/dev. Pure. */
double link_bytes_parse(const char *text);

#endif
