/* SPDX-License-Identifier: Apache-2.0 */
/*
 * channel owns reliable messages between two processes over several paths: chunks, packets,
 * acknowledgements, windows, and the order of delivery. It must not touch sockets or clocks: the
 * caller carries the packets and says what time it is. channel_io.h does that with UDP sockets.
 *
 * A message becomes chunks. The balancer gives each chunk a path, and the path sends it as packets
 * of one unit of data each. What is lost on one path goes again on any path. Messages arrive in the
 * order of sending, each exactly once, and each directly in the receiver's memory.
 */
#ifndef TRIB_PATH_CHANNEL_H
#define TRIB_PATH_CHANNEL_H

#include "base/status.h"
#include "path/balance/balancer.h"
#include "wire/path_packet.h"

#include <stddef.h>

#define CHANNEL_MESSAGES 256u           /* messages in flight at most, in each direction */
#define CHANNEL_LINGER_NS 1000000000ull /* 1 s: closing ends, also if the peer is silent */
#define CHANNEL_UNIT_MIN 512u
#define CHANNEL_UNIT_MAX 8944u
#define CHANNEL_NAME 64u
/* Bytes of a packet's headers, without those of IP and UDP. */
#define CHANNEL_HEADER ((uint32_t)sizeof(struct path_data))

struct channel_events {
	void *user;
	/*
	 * The first packet of a message has come. Returns where the message goes, `bytes` of memory
	 * until it is delivered. NULL: it is not wanted, and the channel fails. Messages may be
	 * placed in another order than they are delivered.
	 */
	void *(*place)(void *user, uint32_t message, uint32_t bytes);
	/* The message is whole, and all before it are. NULL: ask channel_delivered. */
	void (*deliver)(void *user, uint32_t message, void *memory, uint32_t bytes);
	/* Memory that was placed, and that no message will fill. NULL: it needs no care. */
	void (*unplace)(void *user, void *memory);
};

struct channel_config {
	bool connects;           /* this side sends HELLO */
	uint64_t id;             /* random, not 0; the side that is called learns it from HELLO */
	uint64_t key;            /* secret of both sides */
	uint32_t self, peer;     /* numbers of both processes, e.g. their ranks */
	char name[CHANNEL_NAME]; /* the peer in error messages: "rank 3 (10.0.0.3)" */
	uint32_t unit;           /* bytes of data in a packet; a multiple of 8 */
	uint32_t chunk;          /* bytes of a chunk; TRIB_CHUNK */
	uint32_t longest;        /* bytes of the longest message that may come */
	uint32_t credit;         /* messages that may come before channel_grant is called */
	uint64_t timeout;        /* ns of silence after which the peer counts as dead */
	/* Messages travel by a carrier (carried.h): so many at a time on each path. 0: all travel
	 * as packets. */
	unsigned carried;
	/* Bytes of the shortest message that the carrier takes. It takes them while there is only
	 * one path; all others travel as packets. 0: the carrier takes all. */
	uint32_t carried_from;
	/* Messages are short, and the peer answers them: acknowledgements go with the answers. */
	bool patient;
	enum balancer_kind balancer;
	enum monitor_kind monitor;
	struct channel_events events;
};

enum channel_state {
	CHANNEL_OPENING, /* no path is open yet */
	CHANNEL_OPEN,
	CHANNEL_CLOSING, /* BYE is sent until it is echoed */
	CHANNEL_CLOSED,
	CHANNEL_FAILED, /* channel_status says why */
};

struct channel_counters {
	uint64_t packets, bytes; /* DATA sent, repeats included; bytes of data */
	uint64_t repeated;       /* DATA sent again */
	uint64_t received;       /* DATA received, duplicates included */
	uint64_t duplicates;     /* DATA that had come before */
	uint64_t dropped;        /* packets that were corrupt, foreign or not allowed */
	uint64_t deaths;         /* times that a path was left */
};

struct channel;

/* NULL: no memory. */
struct channel *channel_new(const struct channel_config *config, uint64_t now);
void channel_free(struct channel *channel);

/*
 * The side that connects opens a path to the peer's address `at`. The other side adds the path
 * when a HELLO comes on it (channel_receive). False: there is no such place, or it is in use.
 */
bool channel_open_path(struct channel *channel, unsigned path, const struct path_address *at,
                       uint64_t now);
/* The addresses that the side which is called tells in WELCOME. */
void channel_set_addresses(struct channel *channel, const struct path_address *own, unsigned n);
/* The addresses that the peer has told; 0: none so far. */
unsigned channel_peer_addresses(const struct channel *channel, const struct path_address **own);

/*
 * A HELLO that nobody was waiting for yet. True: well formed; *header and *hello point into it. A
 * packet of another version gives false and *version.
 */
bool channel_hello(const void *packet, size_t bytes, const struct path_control **header,
                   const struct path_hello **hello, unsigned *version);

/* Would a HELLO with this id be taken: has the peer not called yet, or with the same id? */
bool channel_is_called_by(const struct channel *channel, uint64_t id);

/*
 * Sends a message. The caller keeps the memory until channel_sent has passed its number. Numbers
 * count from 0. TRIB_ERR_ARGUMENT: CHANNEL_MESSAGES are in flight (see channel_room), or the
 * message is longer than the peer takes.
 */
trib_status channel_send(struct channel *channel, const void *data, uint32_t bytes);
/* Messages that channel_send takes now. */
uint32_t channel_room(const struct channel *channel);
/* Messages that were sent and have arrived: all numbers below this one. */
uint32_t channel_sent(const struct channel *channel);
/* Messages that were delivered here: all numbers below this one. */
uint32_t channel_delivered(const struct channel *channel);
/* `more` messages may come. At most CHANNEL_MESSAGES that are not delivered are allowed. */
void channel_grant(struct channel *channel, uint32_t more);

/* The packets that follow have waited so many ns for the caller. */
void channel_set_late(struct channel *channel, unsigned path, uint64_t late);
/* A packet has come on a path. It may be hostile. `packet` is 8-byte aligned. */
void channel_receive(struct channel *channel, unsigned path, uint64_t now, const void *packet,
                     size_t bytes);
/* Time passes: a peer that is silent for too long is dead. channel_output does it, too. */
void channel_tick(struct channel *channel, uint64_t now);
/* Data of packets that stays in the messages. */
struct channel_bodies {
	const uint8_t *data;
	unsigned packets;
};
/*
 * Writes the next packets of a path, side by side, into 8-byte aligned memory. All are *segment
 * bytes long, the last may be shorter. Returns the bytes; 0: the path has nothing to send now.
 * Output of one path can give work to another: call it for all paths until all give 0.
 *
 * With `bodies`, the first packets get only their headers, and room. Their data lies side by side
 * in the messages, and is valid until the next channel_receive.
 */
uint32_t channel_output(struct channel *channel, unsigned path, uint64_t now, void *buffer,
                        uint32_t room, uint32_t *segment, struct channel_bodies *bodies);
/* The path's socket is full: no chunk goes there until it has room again. */
void channel_set_blocked(struct channel *channel, unsigned path, bool blocked);
/* When channel_output should be called again, also if no packet comes. */
uint64_t channel_wake(const struct channel *channel, uint64_t now);

/*
 * Closes the channel when all that was sent has arrived. Go on calling the functions above until
 * the state is CHANNEL_CLOSED; it is CHANNEL_LINGER_NS after the last arrival at the latest. If the
 * peer closes first, the state becomes CHANNEL_CLOSED here, too: it does not want what has not
 * arrived (channel_sent).
 */
void channel_close(struct channel *channel, uint64_t now);
/* The peer has closed its socket, as it seems. A channel that is to close ends: at once if all has
 * arrived, else if the peer has been silent for CHANNEL_LINGER_NS. */
void channel_refused(struct channel *channel);
/* Ends a channel at once. True: it was open, and the next output of each path is a BYE. */
bool channel_abandon(struct channel *channel);
enum channel_state channel_state(const struct channel *channel);
/* TRIB_OK, or the error that ended the channel. It names the peer. */
trib_status channel_status(const struct channel *channel);

/* Has the peer been silent for half the time after which it counts as dead, or longer? */
bool channel_is_silent(const struct channel *channel, uint64_t now);
/* Bytes of data in a packet: as agreed, or as this side would have it. */
uint32_t channel_unit(const struct channel *channel);
/* The number by which both sides know the channel; 0: this side was not called yet. */
uint64_t channel_id(const struct channel *channel);
/* Is this the side that calls? */
bool channel_calls(const struct channel *channel);
const struct monitor *channel_monitor(const struct channel *channel);
struct channel_counters channel_counters(const struct channel *channel);

#endif
