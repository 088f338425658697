/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pact: what the two sides of a QP tell each other about its paths, and what each does next. Pure.
 *
 * Every message carries the sender's full state and a serial number, so loss, duplication and delay
 * are harmless. A path is a pair of hidden QPs. It lives in epochs: when it fails, both sides close
 * their QP, and open it again in the next epoch with new packet numbers. The application's QPs do
 * the same. They are connected again on a path that works.
 */
#ifndef TRIB_PATH_VERBS_PACT_H
#define TRIB_PATH_VERBS_PACT_H

#include "base/status.h"
#include "path/balance/monitor.h"

#include <stddef.h>

#define PACT_BYTES_MAX (96u + 40u * PATHS_MAX)
#define PACT_NOTES_MAX 65536u /* places of a ring of notes at most */

enum pact_phase {
	PACT_FRESH,  /* the QP is reset, and ready to connect */
	PACT_OPEN,   /* it is connected to the peer's QP of this epoch */
	PACT_FAILED, /* it is in its error state, and nothing that it sent arrives any more */
};

struct pact_path {
	uint8_t address[16]; /* its GID */
	uint32_t qpn, psn;   /* number of the hidden QP, and of its first packet */
	uint32_t epoch;
	enum pact_phase phase;
};

/* What one side says. */
struct pact {
	uint32_t serial;    /* grows with each change */
	uint32_t heard;     /* the newest serial of the other side; 0: none */
	uint32_t qpn, peer; /* the application's QPs: the sender's and the receiver's */
	uint64_t nonce;     /* random for each connection of the QP */
	uint64_t echo;      /* the nonce of the other side; 0: unknown */
	bool leaving;       /* the QP is destroyed */
	uint32_t notes;     /* places in each ring; a power of 2 */
	uint32_t receives;  /* outstanding receives at most */
	uint64_t rings;     /* address of both rings: receives, then lengths */
	uint32_t key;       /* of that memory */
	/*
	 * The application's QP lives in epochs, too. `consumed`: the receives that it has consumed
	 * in all epochs before this one. `via`: the path on which it is to be connected in this
	 * epoch; that of the side with the smaller nonce holds.
	 */
	struct pact_path app; /* without address and qpn */
	unsigned via;
	uint64_t consumed;
	unsigned n_paths;
	struct pact_path paths[PATHS_MAX];
};

/* Returns the bytes written, at most PACT_BYTES_MAX. */
size_t pact_write(const struct pact *pact, uint8_t *out);
/* Bytes of the network: an error says what is wrong. */
trib_status pact_parse(const uint8_t *bytes, size_t n, struct pact *pact);

enum pact_step {
	PACT_STAY,
	PACT_FAIL,  /* put the QP into its error state */
	PACT_RENEW, /* reset the QP, with a new psn; own->epoch is set */
	PACT_JOIN,  /* connect it to the peer's QP */
};

/*
 * What to do about a path. `drained`: all completions of the QP were taken. The call changes
 * own->phase and own->epoch; the caller acts, and tells the peer.
 */
enum pact_step pact_next(struct pact_path *own, const struct pact_path *peer, bool drained);
/* May data be sent? */
bool pact_is_usable(const struct pact_path *own, const struct pact_path *peer);

#endif
