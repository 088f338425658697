/* SPDX-License-Identifier: Apache-2.0 */
/*
 * note: what one side writes into the memory of the other by RDMA, in a ring with a place for each
 * receive. The memory is hostile: the checksum tells a whole note from a torn or an older one.
 *
 * The receiver of SENDs writes where receive number n is (its address, key and length). The sender
 * of a split request writes how many bytes have come for receive n.
 */
#ifndef TRIB_PATH_VERBS_NOTE_H
#define TRIB_PATH_VERBS_NOTE_H

#include "base/random_bits.h"

#include <stdbool.h>
#include <stdint.h>

struct note {
	uint64_t receive; /* number of the receive, from 0 */
	uint64_t address;
	uint32_t key, length;
	uint64_t check;
};

static inline uint64_t note_check(const struct note *note, uint64_t secret)
{
	uint64_t sum = bits_mix(secret + note->receive);

	sum = bits_mix(sum ^ note->address);
	return bits_mix(sum ^ ((uint64_t)note->key << 32 | note->length));
}

static inline struct note note_make(uint64_t secret, uint64_t receive, uint64_t address,
                                    uint32_t key, uint32_t length)
{
	struct note note = { .receive = receive, .address = address, .key = key, .length = length };

	note.check = note_check(&note, secret);
	return note;
}

/* The note about receive number `receive`, if it is there. `from`: its place in the ring. */
static inline bool note_read(const volatile struct note *from, uint64_t secret, uint64_t receive,
                             struct note *note)
{
	*note = (struct note){ .receive = from->receive,
		               .address = from->address,
		               .key = from->key,
		               .length = from->length,
		               .check = from->check };
	return note->receive == receive && note->check == note_check(note, secret);
}

#endif
