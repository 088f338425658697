/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The packets of a channel: messages between two processes over several paths. docs/wire/paths.md
 * describes them. All fields are little-endian, and every datagram is a multiple of 8 bytes.
 *
 * DATA omits the channel's id. The checksum covers it and the side (struct wire_unsent: proof
 * and pos), so that packets of another channel fail verification.
 */
#ifndef TRIB_WIRE_PATH_PACKET_H
#define TRIB_WIRE_PATH_PACKET_H

#include "wire/packet.h"

#define PATH_MAGIC 0x3150u /* "P1": the name and the version */
#define PATH_MAGIC_NAME 0x50u
#define PATH_ADDRESSES 16u  /* addresses in a WELCOME */
#define PATH_ACK_BITS 1024u /* sequence numbers that an ACK tells about */

enum path_kind {
	PATH_DATA = 1, /* a unit of a message */
	PATH_ACK,      /* which packets of this path have come; credit */
	PATH_PROBE,    /* asks for an ACK; also the heartbeat */
	PATH_HELLO,    /* opens a path */
	PATH_WELCOME,  /* the answer to HELLO */
	PATH_BYE,      /* the channel is closed; echoed */
	PATH_CARRIER,  /* the queue pair or the TCP port of a path */
	PATH_KINDS_END,
};

enum path_flag {
	PATH_WANTS_ACK = 0x40, /* DATA, in `kind`: the last packet of a burst; answer at once */
	PATH_ANSWERS = 0x80,   /* in `kind`: the sender is the side that was called */
};

struct __attribute__((may_alias)) path_data {
	_Alignas(8) uint16_t magic;
	uint8_t kind; /* enum path_kind and flags */
	uint8_t path;
	uint32_t check;    /* over the datagram with this field 0; see wire/checksum.h */
	uint32_t sequence; /* of this path and direction */
	uint32_t message;  /* number of the message, from 0 */
	uint32_t unit;     /* the data's place in the message, in units */
	uint32_t bytes;    /* of the whole message */
};

/* The header of all other kinds. */
struct __attribute__((may_alias)) path_control {
	_Alignas(8) uint16_t magic;
	uint8_t kind;
	uint8_t path;
	uint32_t check;
	uint32_t sequence;  /* PROBE: its own; ACK: the newest that has come */
	uint32_t delivered; /* messages that have arrived whole, in their order */
	uint32_t credit;    /* messages below this number may be sent */
	uint32_t held;      /* ACK: nanoseconds since the newest packet came */
	uint64_t id;        /* the channel's */
	uint64_t unused;
};

struct __attribute__((may_alias)) path_ack {
	/* Bit i: sequence - i has come. */
	_Alignas(8) uint64_t came[PATH_ACK_BITS / 64];
};

#define PATH_PHASE_TCP 3u /* in `phase` of CARRIER: `qpn` is a TCP port */

/* The body of CARRIER: the sender's full state of this path. */
struct __attribute__((may_alias)) path_carrier {
	_Alignas(8) uint32_t serial; /* grows with each change */
	uint32_t heard;              /* the newest serial of the receiver; 0: none */
	uint32_t qpn, psn;           /* number of the queue pair, and of its first packet */
	uint32_t epoch;              /* grows each time that the path is opened again */
	uint16_t phase;              /* enum pact_phase, or PATH_PHASE_TCP */
	uint16_t asks;               /* 1: the sender does not know that it was heard */
};

#define PATH_GREETING 0x31435450u

/* The first bytes of a TCP connection that carries messages, from the side that connects. */
struct __attribute__((may_alias)) path_greeting {
	_Alignas(8) uint32_t magic; /* PATH_GREETING */
	uint32_t epoch;             /* of the port, as CARRIER has it */
	uint64_t id;                /* the channel's */
};

/* The head of a message on such a connection. The message follows, without padding. */
struct __attribute__((may_alias)) path_frame {
	_Alignas(8) uint32_t message; /* its number */
	uint32_t bytes;               /* its length, at least 1 */
	uint32_t delivered, credit;   /* as in struct path_control */
};

struct __attribute__((may_alias)) path_address {
	uint8_t raw[16];
	uint16_t port;
	uint8_t size; /* 4 or 16; 0: none */
	uint8_t unused;
};

/* The body of HELLO and WELCOME. Padding follows up to the length of the longest DATA. */
struct __attribute__((may_alias)) path_hello {
	_Alignas(8) uint64_t key; /* a secret of both sides */
	uint32_t from;            /* the sender's number, e.g. its rank */
	uint32_t to;              /* the receiver's */
	uint32_t unit;            /* bytes of a message in a full DATA, at most */
	uint32_t longest;         /* bytes of the longest message that the sender takes */
	uint32_t addresses;       /* WELCOME: how many follow */
	struct path_address at;   /* HELLO: where it is sent to */
	struct path_address own[PATH_ADDRESSES]; /* WELCOME: the sender's */
};

#endif
