/* SPDX-License-Identifier: Apache-2.0 */
#include "call_way.h"

static bool is_float(trib_type type)
{
	return type == TRIB_F32 || type == TRIB_F64;
}

enum call_way call_way(const struct call_shape *shape, enum mpi_exact exact)
{
	bool ours = shape->has_type && shape->has_op;

	if (!shape->is_predefined || !shape->bytes || shape->bytes < shape->least)
		return WAY_MPI;
	if (ours && !is_float(shape->type))
		return WAY_SUM;
	if (shape->bytes <= GATHER_BYTES / (unsigned)shape->ranks)
		return WAY_GATHER;
	if (!ours)
		return WAY_MPI;
	if (!shape->is_sum || exact == EXACT_NONE)
		return WAY_SUM;
	if (shape->type == TRIB_F64)
		return WAY_SCALED;
	return exact == EXACT_ALL ? WAY_MPI : WAY_SUM;
}
