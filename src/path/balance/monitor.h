/* SPDX-License-Identifier: Apache-2.0 */
/*
 * balance owns what a sender knows about its paths to one peer (monitor), and which path takes
 * the next chunk (balancer). Pure: no I/O, no allocation, and time is an argument. It must not
 * touch sockets, packets or windows.
 *
 * monitor: estimates from events. What is acknowledged or lost gives bandwidth, latency and loss.
 * Silence gives death, and probes find out when a dead path is back.
 */
#ifndef TRIB_PATH_BALANCE_MONITOR_H
#define TRIB_PATH_BALANCE_MONITOR_H

#include <stdbool.h>
#include <stdint.h>

#define PATHS_MAX 16u
#define MONITOR_SPAN_NS 20000000ull    /* 20 ms: the shortest interval that gives a rate */
#define MONITOR_LEAST_NS 5000000000ull /* 5 s: the least round trip is of this or the last one */
#define MONITOR_QUEUE_NS 10000000ull   /* 10 ms in queues: the path is congested */
#define MONITOR_HEAVY_LOSS 0.1         /* loss ratio: the path is congested */
#define MONITOR_SILENCES 3u            /* timeouts in a row: the path is dead */
#define MONITOR_DEAD_PROBE_NS \
	100000000ull /* 100 ms between probes of a path that has not answered */
#define MONITOR_IDLE_PROBE_NS 500000000ull /* 500 ms without packets: an idle path is probed */
#define MONITOR_PEAKS 8u                   /* intervals that PEAK looks back */

/* PATH_UNKNOWN: no packet of it was ever answered. */
enum path_state { PATH_UNKNOWN, PATH_GOOD, PATH_CONGESTED, PATH_DEAD };

struct path_estimate {
	enum path_state state;
	uint64_t bps;             /* what the path carries; 0: unknown */
	uint64_t rtt_ns;          /* smoothed round trip; 0: unknown */
	uint64_t least_rtt_ns;    /* least round trip of the last 5 to 10 s; 0: unknown */
	double loss;              /* smoothed share of the bytes that are lost */
	uint64_t delivered, lost; /* bytes since the start */

	/* The rest is the monitor's own. */
	uint64_t in_flight; /* bytes sent, neither acknowledged nor lost */
	uint64_t since;     /* start of the interval */
	uint64_t taken;     /* bytes acknowledged in it */
	bool queued;        /* packets waited in queues in it */
	bool paused;        /* nothing was in flight for a part of it */
	uint64_t arrived, missed,
		judged; /* bytes of either kind since the loss was estimated then */
	uint64_t least_now_ns, least_since; /* least round trip since then; 0: none */
	uint64_t least_before_ns;           /* least round trip of the time before; 0: none */
	uint64_t used, heard, probed;       /* last packet, answer and probe; 0: none */
	unsigned silences;                  /* timeouts since the last answer */
	uint64_t peaks[MONITOR_PEAKS];      /* ring of rates, for MONITOR_PEAK */
	unsigned n_peaks;
};

/*
 * How the rates of intervals become one estimate. If the sender paused, or no packet waited in a
 * queue, an interval says only that the path carries that much or more. MONITOR_SMOOTH: an average
 * that forgets; it follows other traffic on the path. MONITOR_PEAK: the highest rate of the last
 * MONITOR_PEAKS intervals; a sender that pauses often still finds the path's rate.
 */
enum monitor_kind { MONITOR_SMOOTH, MONITOR_PEAK };

struct monitor {
	enum monitor_kind kind;
	unsigned n;
	struct path_estimate paths[PATHS_MAX];
};

/* `n` paths, at most PATHS_MAX. The kind is MONITOR_SMOOTH; the caller may set it afterwards. */
void monitor_init(struct monitor *monitor, unsigned n, uint64_t now);
/* A path appeared. Returns its index, or PATHS_MAX: there is no place for it. */
unsigned monitor_add(struct monitor *monitor, uint64_t now);

/* Events of data packets. `rtt_ns` 0: the answer says nothing about latency. */
void monitor_sent(struct monitor *monitor, unsigned path, uint64_t now, uint32_t bytes);
void monitor_acked(struct monitor *monitor, unsigned path, uint64_t now, uint32_t bytes,
                   uint64_t rtt_ns);
void monitor_lost(struct monitor *monitor, unsigned path, uint64_t now, uint32_t bytes);
/* A timeout: packets or a probe were sent, and no answer came. */
void monitor_silent(struct monitor *monitor, unsigned path, uint64_t now);

/*
 * Is a probe due? A path without an answer so far, and a dead one, every 100 ms; others after 500
 * ms without packets. An only path that works is never probed. The answer to a probe is a
 * monitor_acked of 0 bytes; no answer is a monitor_silent.
 */
bool monitor_wants_probe(const struct monitor *monitor, unsigned path, uint64_t now);
void monitor_probed(struct monitor *monitor, unsigned path, uint64_t now);

const char *path_state_name(enum path_state state);

#endif
