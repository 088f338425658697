/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/crc.h"

#include "wire/packet.h"

#if defined(__aarch64__) && defined(__ARM_FEATURE_CRC32)
#include <arm_acle.h>
#define HAVE_CRC_INSTRUCTION 1
static inline uint32_t crc_word(uint32_t crc, uint64_t word)
{
	return __crc32cd(crc, word);
}
#elif defined(__x86_64__) && defined(__SSE4_2__)
#include <nmmintrin.h>
#define HAVE_CRC_INSTRUCTION 1
static inline uint32_t crc_word(uint32_t crc, uint64_t word)
{
	return (uint32_t)_mm_crc32_u64(crc, word);
}
#endif

#define STREAMS 4
/* magic, type, flags are in the low half of word 0, the crc field in the high half */
#define WORD0_MASK 0xffffffffull

static inline uint32_t crc_word_portable(uint32_t crc, uint64_t word)
{
	static const uint32_t nibble[16] = {
		0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3,
		0x61c69362, 0x7198540d, 0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9,
		0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
	};

	for (int i = 0; i < 16; i++) {
		crc = crc >> 4 ^ nibble[(crc ^ word) & 15];
		word >>= 4;
	}
	return crc;
}

/*
 * CRCs are linear: joined as they are, the same error in two streams would
 * cancel out, such as two floats that have changed places. This has an
 * inverse, so an error in one stream alone still shows for certain.
 */
static inline uint32_t scatter(uint32_t crc, uint32_t stream)
{
	crc += (stream + 1) * 0x9e3779b9u;
	crc = (crc ^ crc >> 16) * 0x7feb352du;
	crc = (crc ^ crc >> 15) * 0x846ca68bu;
	return crc ^ crc >> 16;
}

/* Written once, for both ways of taking in a word. */
#define DEFINE_CRC(name, word_function)                                           \
	uint32_t name(const void *data, size_t bytes)                             \
	{                                                                         \
		const uint64_t *words = data;                                     \
		size_t n = bytes / 8, i = STREAMS;                                \
		uint32_t s[STREAMS];                                              \
                                                                                  \
		/* Every datagram has at least a header: five words. */           \
		s[0] = word_function(~0u, words[0] & WORD0_MASK);                 \
		for (unsigned k = 1; k < STREAMS; k++)                            \
			s[k] = word_function(~0u, words[k]);                      \
		for (; i + STREAMS <= n; i += STREAMS) {                          \
			s[0] = word_function(s[0], words[i]);                     \
			s[1] = word_function(s[1], words[i + 1]);                 \
			s[2] = word_function(s[2], words[i + 2]);                 \
			s[3] = word_function(s[3], words[i + 3]);                 \
		}                                                                 \
		for (; i < n; i++)                                                \
			s[i % STREAMS] = word_function(s[i % STREAMS], words[i]); \
		for (uint32_t k = 0; k < STREAMS; k++)                            \
			s[k] = scatter(s[k], k);                                  \
		uint32_t crc = word_function(~0u, (uint64_t)s[1] << 32 | s[0]);   \
		return ~word_function(crc, (uint64_t)s[3] << 32 | s[2]);          \
	}

DEFINE_CRC(wire_crc_portable, crc_word_portable)

#ifdef HAVE_CRC_INSTRUCTION
DEFINE_CRC(wire_crc, crc_word)
#else
uint32_t wire_crc(const void *data, size_t bytes)
{
	return wire_crc_portable(data, bytes);
}
#endif
