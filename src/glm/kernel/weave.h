/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bit-weaved layout of a row of low-precision features.
 *
 * A feature is a code of `bits` bits (1 to 8). Columns stand in groups of GLM_GROUP. A group is
 * `bits` planes, the highest bit first, and a plane is 16 bytes: bit k of byte i of plane p belongs
 * to column 16*k + i of the group. So shifts and masks alone turn the planes of a group into bytes,
 * 16 neighbouring columns in a register, and a row takes `bits` bits a column of memory traffic.
 *
 * The last group of a row is padded with zeros. Pure: no allocation, no input or output.
 */
#ifndef TRIB_GLM_WEAVE_H
#define TRIB_GLM_WEAVE_H

#include <stdint.h>

#define GLM_GROUP 128u             /* columns of a group */
#define GLM_PLANE (GLM_GROUP / 8u) /* bytes of a plane */
#define GLM_BITS_MAX 8u            /* bits of a code, at most */

/* Groups of a row. */
static inline uint32_t weave_groups(uint32_t columns)
{
	return columns / GLM_GROUP + (columns % GLM_GROUP != 0);
}

/* Bytes of a row. */
uint64_t weave_row_bytes(uint32_t columns, uint32_t bits);
/* `codes` has one byte a column. Bits of a code above `bits` are ignored. */
void weave_row(uint8_t *to, const uint8_t *codes, uint32_t columns, uint32_t bits);
void unweave_row(uint8_t *codes, const uint8_t *from, uint32_t columns, uint32_t bits);
/* One code of a row. */
uint8_t weave_code(const uint8_t *row, uint32_t column, uint32_t bits);

#endif
