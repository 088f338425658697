/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The border between a communicator and the engines of its lanes: the worker's side of
 * engine/engines.h. A trunk names an entry, and its JOIN has the entry's number. Other files call a
 * lane through its entry, and never ask which engine it runs. transport/lane_engine_table.h has the
 * entries.
 *
 * Each lane has a thread of its own. Lanes of small vectors are also driven by the user's thread
 * while it waits for a request.
 */
#ifndef TRIB_WORKER_COMM_LANE_ENGINE_H
#define TRIB_WORKER_COMM_LANE_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

#include <tributary.h>

struct comm_config;
struct lane;
struct trib_comm;
struct trib_request;

struct lane_engine {
	const char *name;
	uint8_t number;     /* in JOIN and WELCOME, see engine/engines.h */
	bool any_cells;     /* the aggregator may grant any number; false: a power of two */
	bool small;         /* for small vectors only: the thread that waits drives the lanes */
	unsigned lanes_max; /* of a trunk */
	/* What a JOIN asks of the aggregator's pool. `bytes`: of a full packet. */
	uint64_t (*pool_bytes)(const struct comm_config *config, uint32_t bytes);
	/* Starts the thread. The trunk is joined, and the lane is in the communicator's list. */
	trib_status (*start)(struct lane *lane);
	/* A round was posted. Any thread. */
	void (*posted)(struct lane *lane);
	/* The thread has ended; NULL: nothing to do. */
	void (*stopped)(const struct lane *lane);
	/* Frees lane->own, also if `start` failed or was never called; NULL: there is none. */
	void (*close)(struct lane *lane);

	/* If `small`; other engines leave them NULL. */
	/* Sends what was just posted, unless another thread is about to. */
	void (*push)(struct trib_comm *comm);
	/* Takes what has come, and sends what is due, unless another thread does. */
	void (*poll)(struct trib_comm *comm);
	/*
	 * Drives the lanes until the request has ended, or something else has to be waited for. It
	 * may return early: the caller waits for the request in any case. Takes and gives the time:
	 * looking at the clock is a part of what a small call costs.
	 */
	uint64_t (*drive)(struct trib_comm *comm, const struct trib_request *request, uint64_t now,
	                  uint64_t deadline);
};

#endif
