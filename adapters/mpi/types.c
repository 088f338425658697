/* SPDX-License-Identifier: Apache-2.0 */
#include "tribmpi.h"

#define TYPES_MAX 48u

/* A type of MPI's, as numbers of libtributary. */
struct known_type {
	MPI_Datatype type;
	trib_type number;
	unsigned per_item; /* 2: complex */
};

static struct known_type types[TYPES_MAX];
static unsigned n_types;

static void add(MPI_Datatype type, trib_type number, unsigned per_item)
{
	int size = 0;

	/* Fortran's types may be missing. */
	if (type == MPI_DATATYPE_NULL || PMPI_Type_size(type, &size) != MPI_SUCCESS ||
	    (size_t)size != trib_type_size(number) * per_item || n_types == TYPES_MAX)
		return;
	types[n_types++] = (struct known_type){ type, number, per_item };
}

void types_begin(void)
{
	/* C's and Fortran's types differ between machines: the one that has their size is taken. */
	const struct {
		MPI_Datatype type;
		trib_type shorter, longer;
		unsigned per_item;
	} all[] = {
		{ MPI_FLOAT, TRIB_F32, TRIB_F64, 1 },
		{ MPI_DOUBLE, TRIB_F32, TRIB_F64, 1 },
		{ MPI_REAL, TRIB_F32, TRIB_F64, 1 },
		{ MPI_DOUBLE_PRECISION, TRIB_F32, TRIB_F64, 1 },
		{ MPI_REAL4, TRIB_F32, TRIB_F64, 1 },
		{ MPI_REAL8, TRIB_F32, TRIB_F64, 1 },
		{ MPI_INT, TRIB_I32, TRIB_I64, 1 },
		{ MPI_LONG, TRIB_I32, TRIB_I64, 1 },
		{ MPI_LONG_LONG, TRIB_I32, TRIB_I64, 1 },
		{ MPI_INT32_T, TRIB_I32, TRIB_I64, 1 },
		{ MPI_INT64_T, TRIB_I32, TRIB_I64, 1 },
		{ MPI_AINT, TRIB_I32, TRIB_I64, 1 },
		{ MPI_COUNT, TRIB_I32, TRIB_I64, 1 },
		{ MPI_OFFSET, TRIB_I32, TRIB_I64, 1 },
		{ MPI_INTEGER, TRIB_I32, TRIB_I64, 1 },
		{ MPI_INTEGER4, TRIB_I32, TRIB_I64, 1 },
		{ MPI_INTEGER8, TRIB_I32, TRIB_I64, 1 },
		{ MPI_UNSIGNED, TRIB_U32, TRIB_U64, 1 },
		{ MPI_UNSIGNED_LONG, TRIB_U32, TRIB_U64, 1 },
		{ MPI_UNSIGNED_LONG_LONG, TRIB_U32, TRIB_U64, 1 },
		{ MPI_UINT32_T, TRIB_U32, TRIB_U64, 1 },
		{ MPI_UINT64_T, TRIB_U32, TRIB_U64, 1 },
		{ MPI_SIGNED_CHAR, TRIB_I8, TRIB_I32, 1 },
		{ MPI_INT8_T, TRIB_I8, TRIB_I32, 1 },
		{ MPI_UNSIGNED_CHAR, TRIB_U8, TRIB_U32, 1 },
		{ MPI_UINT8_T, TRIB_U8, TRIB_U32, 1 },
		{ MPI_C_FLOAT_COMPLEX, TRIB_F32, TRIB_F64, 2 },
		{ MPI_C_DOUBLE_COMPLEX, TRIB_F32, TRIB_F64, 2 },
		{ MPI_COMPLEX, TRIB_F32, TRIB_F64, 2 },
		{ MPI_DOUBLE_COMPLEX, TRIB_F32, TRIB_F64, 2 },
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		add(all[i].type, all[i].shorter, all[i].per_item);
		add(all[i].type, all[i].longer, all[i].per_item);
	}
}

static const struct known_type *known(MPI_Datatype type)
{
	for (unsigned i = 0; i < n_types; i++)
		if (types[i].type == type)
			return &types[i];
	return NULL;
}

trib_op type_op(MPI_Op op)
{
	return op == MPI_MIN ? TRIB_MIN : op == MPI_MAX ? TRIB_MAX : TRIB_SUM;
}

static bool is_named(MPI_Datatype type)
{
	int integers, addresses, more, combiner;

	return type != MPI_DATATYPE_NULL &&
	       PMPI_Type_get_envelope(type, &integers, &addresses, &more, &combiner) ==
	               MPI_SUCCESS &&
	       combiner == MPI_COMBINER_NAMED;
}

static bool is_own_op(MPI_Op op)
{
	return op == MPI_SUM || op == MPI_MIN || op == MPI_MAX || op == MPI_PROD ||
	       op == MPI_LAND || op == MPI_LOR || op == MPI_LXOR || op == MPI_BAND ||
	       op == MPI_BOR || op == MPI_BXOR || op == MPI_MINLOC || op == MPI_MAXLOC;
}

static size_t type_extent(MPI_Datatype type)
{
	MPI_Aint low = 0, extent = 0;

	PMPI_Type_get_extent(type, &low, &extent);
	return extent > 0 ? (size_t)extent : 0;
}

size_t type_bytes(MPI_Datatype type, int count)
{
	int size = 0;

	if (type == MPI_DATATYPE_NULL || count <= 0 || PMPI_Type_size(type, &size) != MPI_SUCCESS)
		return 0;
	return size > 0 ? (size_t)size * (size_t)count : 0;
}

bool type_is_plain(MPI_Datatype type)
{
	int size = 0;

	if (known(type))
		return true;
	return is_named(type) && PMPI_Type_size(type, &size) == MPI_SUCCESS &&
	       (size_t)size == type_extent(type);
}

struct call_shape type_shape(MPI_Datatype type, MPI_Op op, size_t count, int ranks)
{
	const struct known_type *own = known(type);
	struct call_shape shape = {
		.is_predefined = is_own_op(op) && (own || is_named(type)),
		.is_sum = op == MPI_SUM,
		.least = adapter.least,
		.ranks = ranks,
	};

	shape.has_op = op == MPI_SUM || op == MPI_MIN || op == MPI_MAX;
	if (own) {
		shape.has_type = true;
		shape.type = own->number;
		shape.count = count * own->per_item;
		shape.bytes = shape.count * trib_type_size(own->number);
		/* Complex numbers have no order. */
		shape.is_predefined = shape.is_predefined &&
		                      (own->per_item == 1 || op == MPI_SUM || op == MPI_PROD);
	} else if (shape.is_predefined) {
		shape.bytes = count * type_extent(type);
	}
	return shape;
}
