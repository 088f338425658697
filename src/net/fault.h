/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Faults on links, by a small tc program (bpf/fault.bpf.c) at one end: of what
 * comes in there, after XDP has seen it, or of what goes out. It touches UDP
 * over IPv4 only, so that connections that a test needs stay whole, and it
 * draws from the seed and the packet's number on its link.
 */
#ifndef TRIB_NET_FAULT_H
#define TRIB_NET_FAULT_H

#include "net/bpf/fault_counts.h"
#include "net/link.h"

struct fault_rates {
	double loss, dup, reorder, corrupt;
	uint64_t seed;
};

enum fault_way { FAULT_IN, FAULT_OUT };

/* False in a build without clang, bpftool or libbpf. */
bool fault_available(void);
/* `stream` parts the links' draws from one another. */
trib_status fault_attach(const struct link_end *end, enum fault_way way,
                         const struct fault_rates *rates, uint64_t stream);
/* False where no fault program is at that interface. */
bool fault_read(const char *namespace, const char *link, enum fault_way way,
                struct fault_counts *out);

#endif
