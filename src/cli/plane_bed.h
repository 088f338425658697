/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bed that a plane is measured in: hosts with links to one server (no
 * bridge), an aggregator on chosen cores of it, and a load from other cores.
 * The aggregator is that of tribd, started in this process, so that nothing
 * but this program is needed.
 *
 * All of the aggregator's work runs on its cores: its threads are pinned, and
 * so is the receive work of its ports (net/receive.h). What the hosts receive
 * is for the load's cores.
 */
#ifndef TRIB_CLI_PLANE_BED_H
#define TRIB_CLI_PLANE_BED_H

#include "cli/plane_cpu.h"
#include "cli/plane_load.h"

enum plane_offload {
	PLANE_SINGLY, /* packets cross singly, and are received so */
	PLANE_GRO,    /* ... the receiver may join them, as behind a NIC */
	PLANE_WHOLE,  /* up to 64 KB cross at once */
};

struct bed_options {
	unsigned children, lanes, elements, window;
	uint64_t pool_bytes;
	bool one_port; /* all children of a lane behind one port, else each behind its own */
	bool to_all, check, gso;
	bool copied; /* tcp, udp: a program that only passes is at the ports, so that veth copies
	                for them as it does for xdp */
	bool framed; /* packets come to the ports in pages, as to a NIC's driver (net/relay.h) */
	bool frames; /* xdp: frames as in a NIC's driver instead of datagrams; with one_port */
	bool urgent; /* before all others on the machine: receive work has real-time priority */
	enum plane_offload offload;
	unsigned aggregator_cores[LOAD_LANES_MAX], load_cores[LOAD_LANES_MAX];
	unsigned relay_cores[LOAD_LANES_MAX]; /* framed: of what makes frames of packets */
	bool shared_cores; /* both are the same cores: only threads tell whose time it was */
};

struct bed_figures {
	double seconds;
	struct load_counts counts; /* between the two looks */
	double payload_bytes;      /* that came to be in results */
	double busy_s;             /* of the aggregator's cores; < 0: not to be told apart */
	double threads_s;          /* of the aggregator's threads and its ports' receive threads */
	bool in_threads;           /* all of its work is in threads: busy_s can be checked */
	double program_ns; /* that the XDP program takes for a packet, by the kernel; 0: none */
	double others;     /* cores that others have used meanwhile */
	unsigned long long forks; /* ... and processes that they have started */
	double latency_50, latency_99;
	double lost;                 /* fragments without a result, of those sent */
	double retransmitted;        /* segments, of those sent */
	unsigned long long switches; /* of the aggregator's threads */
	uint64_t sent, taken;        /* packets of the whole run, and those that are in sums */
	uint64_t wrong;
};

struct bed;

trib_status bed_open(const struct bed_options *options, struct bed **out);
void bed_close(struct bed *bed);

/* An aggregator on this plane ("xdp", "udp", "tcp") with its load. */
trib_status bed_start(struct bed *bed, const char *plane);
void bed_stop(struct bed *bed);
/* `rate` in fragments a second and lane, or LOAD_... */
trib_status bed_measure(struct bed *bed, double rate, double seconds, struct bed_figures *out);

#endif
