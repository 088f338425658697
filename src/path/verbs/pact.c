/* SPDX-License-Identifier: Apache-2.0 */
#include "path/verbs/pact.h"

#include <string.h>

#define MAGIC 0x42525654u /* "TVRB" */
#define VERSION 2u
#define HEAD_BYTES 80u
#define PATH_BYTES 32u
#define LEAVING 1u

_Static_assert(HEAD_BYTES + PATH_BYTES * PATHS_MAX <= PACT_BYTES_MAX, "a message must fit");

/* ---- bytes ---- */

static void put(uint8_t **at, uint64_t value, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		*(*at)++ = (uint8_t)(value >> 8 * i);
}

static uint64_t get(const uint8_t **at, unsigned bytes)
{
	uint64_t value = 0;

	for (unsigned i = 0; i < bytes; i++)
		value |= (uint64_t) * (*at)++ << 8 * i;
	return value;
}

size_t pact_write(const struct pact *pact, uint8_t *out)
{
	uint8_t *at = out;

	put(&at, MAGIC, 4);
	put(&at, VERSION, 1);
	put(&at, pact->leaving ? LEAVING : 0, 1);
	put(&at, pact->n_paths, 2);
	put(&at, pact->serial, 4);
	put(&at, pact->heard, 4);
	put(&at, pact->qpn, 4);
	put(&at, pact->peer, 4);
	put(&at, pact->nonce, 8);
	put(&at, pact->echo, 8);
	put(&at, pact->rings, 8);
	put(&at, pact->key, 4);
	put(&at, pact->notes, 4);
	put(&at, pact->receives, 4);
	put(&at, pact->via, 2);
	put(&at, pact->app.phase, 2);
	put(&at, pact->app.psn, 4);
	put(&at, pact->app.epoch, 4);
	put(&at, pact->consumed, 8);
	for (unsigned i = 0; i < pact->n_paths; i++) {
		const struct pact_path *path = &pact->paths[i];

		memcpy(at, path->address, sizeof(path->address));
		at += sizeof(path->address);
		put(&at, path->qpn, 4);
		put(&at, path->psn, 4);
		put(&at, path->epoch, 4);
		put(&at, path->phase, 4);
	}
	return (size_t)(at - out);
}

static trib_status parse_path(const uint8_t **at, unsigned i, struct pact_path *path)
{
	uint32_t phase;

	memcpy(path->address, *at, sizeof(path->address));
	*at += sizeof(path->address);
	path->qpn = (uint32_t)get(at, 4);
	path->psn = (uint32_t)get(at, 4);
	path->epoch = (uint32_t)get(at, 4);
	phase = (uint32_t)get(at, 4);
	if (path->qpn >> 24 || path->psn >> 24 || phase > PACT_FAILED)
		return status_fail(TRIB_ERR_MISMATCH, "path %u has QP %u, packet %u and phase %u",
		                   i, path->qpn, path->psn, phase);
	path->phase = (enum pact_phase)phase;
	return TRIB_OK;
}

static trib_status check(const struct pact *pact)
{
	if (pact->qpn >> 24 || pact->peer >> 24 || !pact->serial || !pact->nonce)
		return status_fail(TRIB_ERR_MISMATCH, "QP %u to QP %u with serial %u", pact->qpn,
		                   pact->peer, pact->serial);
	if (!pact->notes || pact->notes > PACT_NOTES_MAX || pact->notes & (pact->notes - 1) ||
	    !pact->receives || pact->receives > pact->notes)
		return status_fail(TRIB_ERR_MISMATCH, "%u notes for %u receives", pact->notes,
		                   pact->receives);
	if (pact->app.phase > PACT_FAILED || pact->app.psn >> 24 || pact->via >= PATHS_MAX)
		return status_fail(TRIB_ERR_MISMATCH, "the QP has phase %u, packet %u and path %u",
		                   pact->app.phase, pact->app.psn, pact->via);
	return TRIB_OK;
}

trib_status pact_parse(const uint8_t *bytes, size_t n, struct pact *pact)
{
	const uint8_t *at = bytes;
	trib_status status;
	uint8_t flags;

	*pact = (struct pact){ 0 };
	if (n < HEAD_BYTES || get(&at, 4) != MAGIC)
		return status_fail(TRIB_ERR_MISMATCH, "%zu bytes that are no message about a QP",
		                   n);
	if (get(&at, 1) != VERSION)
		return status_fail(TRIB_ERR_MISMATCH, "a message of another version");
	flags = (uint8_t)get(&at, 1);
	pact->leaving = flags & LEAVING;
	pact->n_paths = (unsigned)get(&at, 2);
	if (pact->n_paths > PATHS_MAX || n != HEAD_BYTES + PATH_BYTES * pact->n_paths)
		return status_fail(TRIB_ERR_MISMATCH, "%u paths in %zu bytes", pact->n_paths, n);
	pact->serial = (uint32_t)get(&at, 4);
	pact->heard = (uint32_t)get(&at, 4);
	pact->qpn = (uint32_t)get(&at, 4);
	pact->peer = (uint32_t)get(&at, 4);
	pact->nonce = get(&at, 8);
	pact->echo = get(&at, 8);
	pact->rings = get(&at, 8);
	pact->key = (uint32_t)get(&at, 4);
	pact->notes = (uint32_t)get(&at, 4);
	pact->receives = (uint32_t)get(&at, 4);
	pact->via = (unsigned)get(&at, 2);
	pact->app.phase = (enum pact_phase)get(&at, 2);
	pact->app.psn = (uint32_t)get(&at, 4);
	pact->app.epoch = (uint32_t)get(&at, 4);
	pact->consumed = get(&at, 8);
	status = check(pact);
	for (unsigned i = 0; i < pact->n_paths && status == TRIB_OK; i++)
		status = parse_path(&at, i, &pact->paths[i]);
	return status;
}

/* ---- epochs ---- */

bool pact_is_usable(const struct pact_path *own, const struct pact_path *peer)
{
	return own->phase == PACT_OPEN && peer->phase == PACT_OPEN && own->epoch == peer->epoch;
}

/* Has the peer left own's epoch? */
static bool is_left(const struct pact_path *own, const struct pact_path *peer)
{
	return peer->epoch > own->epoch ||
	       (peer->epoch == own->epoch && peer->phase == PACT_FAILED);
}

enum pact_step pact_next(struct pact_path *own, const struct pact_path *peer, bool drained)
{
	if (own->phase == PACT_OPEN && is_left(own, peer)) {
		own->phase = PACT_FAILED;
		return PACT_FAIL;
	}
	/* If both sides have left an epoch, nothing that was sent in it arrives any more. */
	if (is_left(own, peer) &&
	    (own->phase == PACT_FRESH || (own->phase == PACT_FAILED && drained))) {
		own->epoch = peer->epoch > own->epoch ? peer->epoch : own->epoch + 1;
		own->phase = PACT_FRESH;
		return PACT_RENEW;
	}
	if (own->phase == PACT_FRESH && peer->epoch == own->epoch && peer->phase != PACT_FAILED) {
		own->phase = PACT_OPEN;
		return PACT_JOIN;
	}
	return PACT_STAY;
}
