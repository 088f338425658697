/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a channel, for the files of this folder. */
#ifndef TRIB_PATH_CHANNEL_STATE_H
#define TRIB_PATH_CHANNEL_STATE_H

#include "path/channel/arrivals.h"
#include "path/channel/channel.h"
#include "path/channel/messages.h"
#include "path/length_probe.h"
#include "path/path_window.h"
#include "path/channel/sent_packets.h"

#define CHANNEL_BURST 64u                  /* packets of one output at most */
#define CHANNEL_HELLO_NS 50000000ull       /* 50 ms between HELLOs of a path */
#define CHANNEL_HELLOS 28u                 /* HELLOs after which they are ten times as rare */
#define CHANNEL_BYE_NS 20000000ull         /* 20 ms between BYEs */
#define CHANNEL_SILENCE_NS 40000000ull     /* 40 ms, the least silence that the monitor is told */
#define CHANNEL_PAUSE_NS 20000000ull       /* 20 ms without a packet on any path: the peer pauses */
#define CHANNEL_STALL_NS 50000000ull       /* 50 ms without credit: ask for it */
#define CHANNEL_HEARTBEAT_NS 1000000000ull /* 1 s: the longest interval of heartbeats */
#define CHANNEL_TICK_NS 50000000ull        /* 50 ms: the longest sleep of an open channel */

enum path_phase { PHASE_NONE, PHASE_CALLING, PHASE_OPEN };

struct channel_path {
	enum path_phase phase;
	bool blocked; /* the socket is full */
	bool carries; /* its carrier takes messages (carried.h) */
	bool owes_carrier;
	struct path_address at;
	uint64_t called_at;          /* time of the last HELLO; 0: none */
	unsigned calls;              /* HELLOs so far */
	struct length_probe lengths; /* of HELLOs, while no unit is agreed */
	uint64_t bye_at;             /* time of the last BYE; 0: none */
	bool owes_welcome, owes_probe, owes_bye;
	struct sent_packets *sent;
	struct path_window window;
	uint64_t read_late; /* ns that the newest packets waited for the caller */
	struct arrivals arrivals;
	struct chunk pending; /* given to this path, not sent yet */
	uint64_t quiet_since; /* the last answer, or the first packet after it */
	uint64_t asked_at;    /* the last probe because of silence */
	unsigned asked;       /* such probes since the last answer */
	unsigned silences;    /* silences since the last answer */
	uint64_t received;    /* bytes of data */
	unsigned left;        /* times that it was left because it was dead */
	unsigned flying;      /* messages that its carrier has */
	uint64_t carrier_at;  /* time of the last CARRIER */
	struct path_carrier own, heard;
};

struct channel {
	struct channel_config config;
	enum channel_state state;
	uint64_t id;   /* 0: not called yet */
	uint32_t unit; /* bytes of data in a packet, as agreed; 0: not agreed */
	uint32_t chunk_units;
	uint32_t peer_longest; /* bytes of the longest message that the peer takes */
	uint64_t heard_at;     /* the last valid packet */
	unsigned heard_on;     /* its path */
	uint64_t beat_at;      /* the last heartbeat */
	uint64_t stalled_at;   /* the last question for credit */
	uint64_t ticked;       /* the last time that timers were looked at */
	bool closes;           /* channel_close was called */
	uint64_t close_by;     /* deadline of CHANNEL_CLOSING */
	struct monitor monitor;
	struct balancer balancer;
	unsigned n_paths; /* the highest path in use, plus 1 */
	struct channel_path paths[PATHS_MAX];

	uint32_t queued;         /* number of the next message */
	uint32_t fresh;          /* the first message with units that no path has got */
	uint32_t sent;           /* all messages below have arrived */
	uint32_t peer_credit;    /* messages below may be sent */
	uint32_t peer_delivered; /* messages below were delivered, as the peer says */
	bool wants_carrier;      /* a message was sent that the carrier could take */
	uint64_t carried_at;     /* the last time that a carrier had a path, or was not needed */
	uint64_t lost;           /* units that wait to be sent again */
	struct outgoing out[CHANNEL_MESSAGES];

	uint32_t delivered, granted;
	struct incoming in[CHANNEL_MESSAGES];

	unsigned n_peer_addresses, n_own_addresses;
	struct path_address peer_addresses[PATH_ADDRESSES], own_addresses[PATH_ADDRESSES];

	struct channel_counters counters;
	trib_status error;
	char why[256];
};

static inline struct outgoing *channel_outgoing(struct channel *channel, uint32_t message)
{
	return &channel->out[message % CHANNEL_MESSAGES];
}

/* Bytes of data in a packet: as agreed, or as this side would have it. */
static inline uint32_t unit_of(const struct channel *channel)
{
	return channel->unit ? channel->unit : channel->config.unit;
}

/* Do all messages travel by a carrier? */
static inline bool channel_needs_carrier(const struct channel *channel)
{
	return channel->config.carried && !channel->config.carried_from;
}

/* Is there a message that may be sent, and was not yet? Messages beyond the peer's credit wait. */
static inline bool channel_has_fresh(const struct channel *channel)
{
	return channel->fresh != channel->queued &&
	       (int32_t)(channel->peer_credit - channel->fresh) > 0;
}

/* Does the next fresh message take the carrier beside the packets? With several paths, messages
 * travel as packets over all of them. */
static inline bool channel_carries_next(const struct channel *channel)
{
	const struct outgoing *out = &channel->out[channel->fresh % CHANNEL_MESSAGES];

	return channel->config.carried_from && channel->n_paths == 1 && channel->paths[0].carries &&
	       channel_has_fresh(channel) && !out->next &&
	       out->bytes >= channel->config.carried_from;
}

/* Bytes of a piece of a message that is acknowledged as a whole. */
static inline uint32_t cut_of(const struct channel *channel)
{
	return channel_needs_carrier(channel) ? UINT32_MAX : channel->unit;
}

/* The flag in the packets of this side. */
static inline uint8_t channel_side(const struct channel *channel)
{
	return channel->config.connects ? 0 : PATH_ANSWERS;
}

static inline bool channel_is_dead(const struct channel *channel, unsigned path)
{
	return channel->monitor.paths[path].state == PATH_DEAD;
}

static inline bool channel_has_ended(const struct channel *channel)
{
	return channel->state == CHANNEL_CLOSED || channel->state == CHANNEL_FAILED;
}

/* The channel ends with an error. The first one counts. */
void channel_fail(struct channel *channel, trib_status status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* ---- channel_path.c ---- */

/* Makes the path known to the monitor. False: no memory; the channel has failed. */
bool path_start(struct channel *channel, unsigned path, enum path_phase phase, uint64_t now);
/* The agreed unit is known: messages can be cut. */
void channel_agree(struct channel *channel, uint32_t unit, uint32_t longest);
/* Looks for lost packets of a path. */
void path_find_lost(struct channel *channel, unsigned path, uint64_t now);
/* All messages below `number` have arrived. */
void channel_finish(struct channel *channel, uint32_t number);
/* Timers of a path: lost packets, silence, probes. */
void path_tick(struct channel *channel, unsigned path, uint64_t now);
uint64_t path_wake(const struct channel *channel, unsigned path, uint64_t now);

/* ---- channel_input.c ---- */

/* The peer tells which messages have arrived, and its credit. False: that cannot be. */
bool channel_take_counts(struct channel *channel, uint32_t delivered, uint32_t credit);
/* A packet, or a message, has come from the peer. */
void channel_heard(struct channel *channel, unsigned path, uint64_t now);
/* Hands over the messages that are whole, in their order. */
void channel_deliver(struct channel *channel);

/* ---- carrier_word.c ---- */

/* Has the path to tell, or to ask, about its carrier? */
bool carrier_is_due(const struct channel *channel, const struct channel_path *p, uint64_t now);
bool carrier_take(struct channel *channel, unsigned path, const struct path_carrier *came,
                  size_t bytes);

/* ---- carried.c ---- */

/* A message that no carrier takes for too long ends the channel. */
void carried_tick(struct channel *channel, uint64_t now);

/* ---- channel_control.c ---- */

/* When the next HELLO of a path that is not open yet is due. */
uint64_t hello_at(const struct channel_path *path);

/* The next control packet of a path; 0: none. `room` is that of one packet at least. */
uint32_t control_output(struct channel *channel, unsigned path, uint64_t now, void *buffer);
/* Has the path a control packet to send? */
bool control_is_due(const struct channel *channel, unsigned path, uint64_t now);

/* ---- chunks.c ---- */

/* The next chunk: a lost one, or else a fresh one. There is one. */
struct chunk chunks_take(struct channel *channel);
/* Gives chunks to paths while any has room. */
void chunks_assign(struct channel *channel, uint64_t now);
/* Packets of the chunk that the path has got. `bodies` NULL: data is copied behind headers. */
uint32_t chunks_output(struct channel *channel, unsigned path, uint64_t now, uint8_t *buffer,
                       uint32_t room, uint32_t *segment, struct channel_bodies *bodies);
/* Is there a chunk, and a path that has room for it? */
bool chunks_wait_for_path(const struct channel *channel);
/* Can the path send packets of its chunk? */
bool chunks_are_due(const struct channel *channel, unsigned path);

#endif
