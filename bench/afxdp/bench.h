/* SPDX-License-Identifier: Apache-2.0 */
/*
 * afxdp: where to add? Compares ways to get UDP packets of ours from a veth
 * into a pool of sums (or, as a worker does, into floats). One process: the
 * sender is a thread on core 0 in a namespace of its own, the receiver one on
 * core 1, and main.c watches both. Owns no protocol: packets carry the header
 * of wire/packet.h, but neither checksum nor members are looked at.
 */
#ifndef BENCH_AFXDP_H
#define BENCH_AFXDP_H

#include "wire/packet.h"

#define BENCH_PORT 5000
#define BENCH_WORDS 358u
#define BENCH_PAYLOAD (BENCH_WORDS * 4u)
#define BENCH_DATAGRAM (WIRE_HEADER + BENCH_PAYLOAD)
#define BENCH_FRAME (14u + 20u + 8u + BENCH_DATAGRAM)
#define BENCH_CELLS 46863u /* 64 MB of payloads */

/* Between send_frames.c and the program `emit`. */
struct bench_knobs {
	uint32_t cells, interface, burst;
	uint16_t ip_length, ip_check, udp_length, udp_check; /* as they are on the wire */
	uint32_t window;
	uint64_t gap_ns;
};

struct bench_state {
	uint64_t received, sent, due, burst;
	uint64_t arrived; /* written by the receiver's side, for the window */
	uint64_t lost, blocked_since;
};

#ifndef __bpf__
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

enum bench_work { WORK_ADD, WORK_FLOATS, WORK_NONE };

struct bench {
	/* what to do */
	const char *receiver;
	const char *device;    /* that packets arrive at, in this namespace */
	const char *sender_ns; /* the sender's namespace, as a file */
	const char *address;
	enum bench_work work;
	uint32_t cells;
	uint32_t batch;
	uint64_t rate;    /* packets a second; 0: as fast as it goes */
	uint64_t window;  /* packets under way at most; 0: no limit */
	bool gso;         /* the sender hands 44 packets to the kernel as one */
	bool frames;      /* the sender is send_frames.c */
	bool checksum;    /* which then fills in UDP's */
	char object[512]; /* sum.bpf.o */
	uint8_t mac[6];   /* the receiver's */
	bool defer;       /* the NAPI may gather packets for up to 200 us */
	bool huge;        /* the pool is in huge pages */
	double seconds;

	/* what happened */
	uint32_t *pool; /* cells of BENCH_WORDS */
	atomic_bool stop;
	_Atomic uint64_t sent;
	_Atomic uint64_t received;
	_Atomic uint64_t wakeups; /* times that the receiver asked the kernel */
	volatile uint64_t *received_by_bpf;
	volatile struct bench_state *emitter;
	int napi_thread; /* its process id, or 0 */
};

uint64_t bench_received(struct bench *bench);
void bench_count(struct bench *bench, uint64_t packets);
void bench_take(struct bench *bench, const void *datagram, size_t bytes);
void bench_pin(int core);
_Noreturn void bench_die(const char *what);

void *send_run(void *bench);
void *send_frames_run(void *bench);

/* A receiver: prepares before the sender starts, then runs until told to stop. */
struct receiver {
	const char *name;
	void (*prepare)(struct bench *);
	void (*run)(struct bench *); /* NULL: the kernel does it all */
};

extern const struct receiver receivers_xdp[], receivers_afxdp[], receivers_udp[];

/* Loads sum.bpf.o, attaches one of its programs, brings the NAPI thread to core 1. */
struct bpf_object *xdp_attach(struct bench *bench, const char *program, bool generic);
void xdp_detach(void);
void napi_to_core_1(struct bench *bench);
void device_set(const struct bench *bench, const char *file, const char *value);

#endif
#endif
