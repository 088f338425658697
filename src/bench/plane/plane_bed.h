/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The test bed of a plane: hosts with links to one server (no bridge), an
 * aggregator on chosen cores of the server, and a load from other cores. The
 * aggregator is tribd's, started in this process, so that no other program is
 * needed.
 *
 * All of the aggregator's work runs on its cores: its threads are pinned, and so is
 * the receive work of its ports (net/kernel/receive_core.h). What the hosts receive
 * is processed on the load's cores.
 */
#ifndef TRIB_BENCH_PLANE_PLANE_BED_H
#define TRIB_BENCH_PLANE_PLANE_BED_H

#include "bench/report/cpu_time.h"
#include "bench/load/load.h"

enum plane_offload {
	PLANE_SINGLY, /* packets cross and are received one by one */
	PLANE_GRO,    /* packets cross one by one; the receiver may join them, as behind a NIC */
	PLANE_WHOLE,  /* up to 64 KB cross at once */
};

struct bed_options {
	unsigned children, lanes, elements, window;
	uint64_t pool_bytes;
	bool one_port; /* all children of a lane are behind one port; else each has its own */
	bool to_all, check, gso;
	bool copied; /* tcp, udp: an XDP program that passes everything is at the ports, so that
	                veth copies packets as it does for xdp */
	bool framed; /* packets come to the ports in pages, as from a NIC's driver (net/relay.h) */
	bool frames; /* xdp: the load is frames, as in a NIC's driver; needs one_port */
	bool urgent; /* the test bed runs before all other processes: receive work has real-time
	                priority */
	enum plane_offload offload;
	unsigned aggregator_cores[LOAD_LANES_MAX], load_cores[LOAD_LANES_MAX];
	unsigned relay_cores[LOAD_LANES_MAX]; /* framed: cores of the relay */
	bool shared_cores; /* both sets are the same cores: only the time of threads can be told
	                      apart */
};

struct bed_figures {
	double seconds;
	struct load_counts counts; /* between the two samples */
	double payload_bytes;      /* bytes that are in results */
	double busy_s; /* busy time of the aggregator's cores; below 0: it cannot be told apart */
	double threads_s;  /* CPU time of the aggregator's threads and of its ports' receive threads
	                    */
	bool in_threads;   /* all of its work is in threads, so that busy_s can be checked */
	double program_ns; /* time of a packet in the XDP program, as the kernel counts it; 0: no
	                      program */
	double others;     /* cores that other processes used meanwhile */
	unsigned long long forks; /* processes that others started meanwhile */
	double latency_50, latency_99;
	double lost;                 /* share of the fragments sent that got no result */
	double retransmitted;        /* share of the segments sent */
	unsigned long long switches; /* context switches of the aggregator's threads */
	uint64_t sent, taken;        /* packets of the whole run, and packets that are in sums */
	uint64_t wrong;
};

struct bed;

trib_status bed_open(const struct bed_options *options, struct bed **out);
void bed_close(struct bed *bed);

/* Starts an aggregator on this plane ("xdp", "udp", "tcp"), and its load. */
trib_status bed_start(struct bed *bed, const char *plane);
void bed_stop(struct bed *bed);
/* `rate` is in fragments a second for each lane, or LOAD_UNLIMITED or LOAD_SILENT. */
trib_status bed_measure(struct bed *bed, double rate, double seconds, struct bed_figures *out);

#endif
