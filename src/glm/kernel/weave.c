/* SPDX-License-Identifier: Apache-2.0 */
#include "glm/kernel/weave.h"

#include <string.h>

uint64_t weave_row_bytes(uint32_t columns, uint32_t bits)
{
	return (uint64_t)weave_groups(columns) * bits * GLM_PLANE;
}

/* One plane: `shift` is the place of its bit in a code. */
static void plane_weave(uint8_t *plane, const uint8_t codes[GLM_GROUP], uint32_t shift)
{
	memset(plane, 0, GLM_PLANE);
	for (uint32_t k = 0; k < 8; k++)
		for (uint32_t i = 0; i < GLM_PLANE; i++)
			plane[i] |= (uint8_t)((codes[k * GLM_PLANE + i] >> shift & 1u) << k);
}

static void plane_unweave(uint8_t codes[GLM_GROUP], const uint8_t *plane, uint32_t shift)
{
	for (uint32_t k = 0; k < 8; k++)
		for (uint32_t i = 0; i < GLM_PLANE; i++)
			codes[k * GLM_PLANE + i] |= (uint8_t)((plane[i] >> k & 1u) << shift);
}

void weave_row(uint8_t *to, const uint8_t *codes, uint32_t columns, uint32_t bits)
{
	while (columns) {
		uint32_t now = columns < GLM_GROUP ? columns : GLM_GROUP;
		uint8_t group[GLM_GROUP] = { 0 };

		memcpy(group, codes, now);
		for (uint32_t p = 0; p < bits; p++, to += GLM_PLANE)
			plane_weave(to, group, bits - 1 - p);
		codes += now;
		columns -= now;
	}
}

void unweave_row(uint8_t *codes, const uint8_t *from, uint32_t columns, uint32_t bits)
{
	while (columns) {
		uint32_t now = columns < GLM_GROUP ? columns : GLM_GROUP;
		uint8_t group[GLM_GROUP] = { 0 };

		for (uint32_t p = 0; p < bits; p++, from += GLM_PLANE)
			plane_unweave(group, from, bits - 1 - p);
		memcpy(codes, group, now);
		codes += now;
		columns -= now;
	}
}

uint8_t weave_code(const uint8_t *row, uint32_t column, uint32_t bits)
{
	const uint8_t *group = row + (uint64_t)(column / GLM_GROUP) * bits * GLM_PLANE;
	uint32_t byte = column % GLM_PLANE, bit = column % GLM_GROUP / GLM_PLANE, code = 0;

	for (uint32_t p = 0; p < bits; p++)
		code = code << 1 | (group[p * GLM_PLANE + byte] >> bit & 1u);
	return (uint8_t)code;
}
