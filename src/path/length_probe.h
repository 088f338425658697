/* SPDX-License-Identifier: Apache-2.0 */
/*
 * length_probe: finds the longest payload that passes both ways on a path. Pure.
 *
 * A probe of some length is sent, and its answer has the same length. The full length, which
 * follows from the MTU, is tried first. If no probe of full length is answered, every third probe
 * is shorter. If a shorter one is the first to be answered, the full length is tried a few times
 * more: the other end may have started in between.
 */
#ifndef TRIB_PATH_LENGTH_PROBE_H
#define TRIB_PATH_LENGTH_PROBE_H

#include <stdbool.h>
#include <stdint.h>

#define LENGTH_PROBE_PATIENT 8u /* probes of full length before shorter ones are tried */
#define LENGTH_PROBE_AGAIN 4u   /* probes of full length after a shorter one was answered */

struct length_probe {
	uint32_t full;        /* payload that the route should carry */
	uint32_t asked;       /* payload of the last probe */
	uint32_t came;        /* longest payload that was answered; 0: none */
	uint32_t settled;     /* payload that will be used; 0: not decided */
	unsigned asks, again; /* again: probes of full length since an answer */
};

/* The payload of a packet that fills the MTU: a multiple of 8, at most `most`. */
static inline uint32_t length_probe_full(unsigned mtu, unsigned overhead, uint32_t most)
{
	uint32_t payload = mtu > overhead ? (mtu - overhead) & ~7u : 0;

	return payload > most ? most : payload;
}

static inline uint32_t length_probe_shorter(struct length_probe *probe)
{
	static const uint32_t shorter[] = { 4016, 1448, 1416, 1368, 1248, 1040, 528 };

	for (;;) {
		unsigned k = probe->asks++;
		uint32_t payload;

		if (k < LENGTH_PROBE_PATIENT || (k - LENGTH_PROBE_PATIENT) % 3)
			return probe->full;
		payload = shorter[(k - LENGTH_PROBE_PATIENT) / 3 %
		                  (sizeof(shorter) / sizeof(shorter[0]))];
		if (payload <= probe->full)
			return payload;
	}
}

/* The payload of the next probe. */
static inline uint32_t length_probe_next(struct length_probe *probe)
{
	if (!probe->settled && probe->came && probe->again++ == LENGTH_PROBE_AGAIN)
		probe->settled = probe->came;
	if (probe->settled)
		probe->asked = probe->settled;
	else
		probe->asked = probe->came ? probe->full : length_probe_shorter(probe);
	return probe->asked;
}

/*
 * An answer with room for a payload of this length has come. It may be to an earlier, shorter
 * probe, so the shorter of probe and answer counts. True: ask again at once.
 */
static inline bool length_probe_passes(struct length_probe *probe, uint32_t payload)
{
	bool at_once;

	if (payload > probe->asked)
		payload = probe->asked;
	if (probe->settled || payload <= probe->came)
		return false;
	if (payload == probe->full)
		probe->settled = payload;
	at_once = !probe->came || probe->settled;
	probe->came = payload;
	return at_once;
}

#endif
