/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fault: injects faults on links with a small tc program (bpf/fault.bpf.c) at one end. It
 * acts on incoming packets, after XDP, or on outgoing ones. It affects only UDP over IPv4, so
 * that a test's control connections stay intact, but for `loses_all`. Each decision depends on the
 * seed and the packet's number on its link only, so a run can be repeated.
 */
#ifndef TRIB_NET_FAULT_H
#define TRIB_NET_FAULT_H

#include "net/bpf/fault_counts.h"
#include "net/cluster.h"
#include "net/kernel/link.h"

struct fault_rates {
	double of[FAULT_KINDS]; /* probabilities */
	uint64_t seed;
	bool loses_all; /* loss strikes TCP, too */
};

enum fault_way { FAULT_IN, FAULT_OUT };

/* False in a build without clang, bpftool or libbpf. */
bool fault_available(void);
/* `stream` makes the random sequences of links independent. */
trib_status fault_attach(const struct link_end *end, enum fault_way way,
                         const struct fault_rates *rates, uint64_t stream);
/* False: the interface has no fault program. */
bool fault_read(const char *namespace, const char *link, enum fault_way way,
                struct fault_counts *out);

#endif
