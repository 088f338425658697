/* SPDX-License-Identifier: Apache-2.0 */
/* The content of test messages: it depends on the number of the message, a seed, and the place. */
#ifndef TRIB_TESTS_MESSAGE_WORDS_H
#define TRIB_TESTS_MESSAGE_WORDS_H

#include <stdint.h>
#include <string.h>

static inline uint64_t message_word(uint32_t number, uint32_t seed, uint32_t i)
{
	return ((uint64_t)number << 32 ^ (seed + i + 1u)) * 0x9e3779b97f4a7c15ull;
}

static inline void message_fill(uint8_t *data, uint32_t bytes, uint32_t number, uint32_t seed)
{
	uint64_t word;
	uint32_t i = 0;

	for (; i + sizeof(word) <= bytes; i += sizeof(word)) {
		word = message_word(number, seed, i);
		memcpy(data + i, &word, sizeof(word));
	}
	word = message_word(number, seed, i);
	memcpy(data + i, &word, bytes - i);
}

#endif
