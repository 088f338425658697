/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The checksum of a datagram: four CRC-32C over its 64-bit words, word i in
 * stream i mod 4, and one CRC-32C over the four, each scattered by a function
 * of its own. Four streams keep four instructions in flight where a plain CRC
 * waits for each. An error burst of up to 32 bits within a word is found with
 * certainty, any other error but for one in 2^32.
 */
#ifndef TRIB_WIRE_CRC_H
#define TRIB_WIRE_CRC_H

#include <stddef.h>
#include <stdint.h>

/* Over `bytes` (a multiple of 8) at 8-byte aligned `data`, its header's crc field taken as 0. */
uint32_t wire_crc(const void *data, size_t bytes);

/* The same by tables, for machines without the instruction, and for tests. */
uint32_t wire_crc_portable(const void *data, size_t bytes);

#endif
