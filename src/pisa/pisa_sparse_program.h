/* SPDX-License-Identifier: Apache-2.0 */
/* The text of the sparse program. pisa_sparse.h explains it. */
#ifndef TRIB_PISA_PISA_SPARSE_PROGRAM_H
#define TRIB_PISA_PISA_SPARSE_PROGRAM_H

#include "pisa/pisa.h"
#include "pisa/pisa_float_program.h"
#include "wire/sparse_packet.h"

#define PISA_SPARSE_ARRAYS 16u /* register arrays with sums: the paper's m */
#define PISA_SPARSE_ADDERS 8u  /* sums by table: as many at once, the others after them */
#define PISA_SPARSE_STEPS 4608u
#define PISA_SPARSE_NO_ROW 0x10000u /* in the place of a row number: there is none */
#define PISA_SPARSE_CPU 0xffu       /* as a receiver: the processor of the switch */
/* Rows of the longest packet, of one value each. */
#define PISA_SPARSE_ROWS_MAX ((WIRE_PAYLOAD_MAX - 8) / 6 + 1)

/* Bits of the register `map`, above the generation. */
#define PISA_SPARSE_BANK_SHIFT 16u
#define PISA_SPARSE_ASKS_SHIFT 17u

/* What became of a PUSH. */
enum pisa_sparse_verdict {
	PUSH_SEEN, /* it was in the sums already */
	PUSH_ADDED,
	PUSH_REFUSED, /* `to` says why */
	PUSH_ASKS,    /* the processor has to judge it */
};

/* Fields of the packet. Those before PISA_SPARSE_HEADERS survive a recirculation. */
enum pisa_sparse_field {
	PUSH_F_CHILD = 1,
	PUSH_F_POS,
	PUSH_F_ACK,
	PUSH_F_SCALE,
	PUSH_F_FROM,
	PUSH_F_TO,
	PUSH_F_BYTES,
	PUSH_F_N, /* of the payload's head, as the next two */
	PUSH_F_WIDTH,
	PUSH_F_UNUSED,
	PUSH_F_APPROVED, /* the processor has judged it: no block is full */
	PUSH_F_CHUNK,    /* which window of rows */
	PUSH_F_WINDOWS,
	PUSH_F_LAST, /* one more than the last row number; 0: there was none */
	PUSH_F_DONE, /* rows of this window that were added, as bits */
	PUSH_F_BANK,
	PUSH_F_VERDICT, /* enum pisa_sparse_verdict */
	/* Sums by table: values that were added, as bits; sums as they were read; logarithms. */
	PUSH_F_ADDED,
	PUSH_F_READ,
	PUSH_F_LOG = PUSH_F_READ + PISA_SPARSE_ARRAYS,
	PISA_SPARSE_HEADERS = PUSH_F_LOG + PISA_SPARSE_ARRAYS,
	PUSH_F_MAP = PISA_SPARSE_HEADERS,
	PUSH_F_GENERATION,
	PUSH_F_SEAT, /* the child, as an index */
	PUSH_F_INDEX,
	PUSH_F_CELL,
	PUSH_F_LOW,
	PUSH_F_OLDER, /* `low` is at least 2^31: a number before it may have a larger half */
	PUSH_F_AHEAD,
	PUSH_F_VOID,
	PUSH_F_BASE,
	PUSH_F_NEXT,
	PUSH_F_OLD,
	/* Conditions. */
	PUSH_F_SEEN,
	PUSH_F_BEYOND,
	PUSH_F_STALE,
	PUSH_F_WRONG,
	PUSH_F_STOP, /* one of the four above */
	PUSH_F_ASKS,
	PUSH_F_MORE, /* windows that were not checked */
	PUSH_F_COMMITS,
	PUSH_F_ACTS,  /* this pass adds */
	PUSH_F_NEEDS, /* rows of this window, as bits */
	PUSH_F_WHO,   /* the row that a group of arrays adds, as a bit */
	PUSH_F_HIT,
	PUSH_F_T,
	PUSH_F_U,
	PUSH_F_GROUP,                                     /* of each row in the window */
	PUSH_F_CELLS = PUSH_F_GROUP + PISA_SPARSE_ARRAYS, /* its index */
	PUSH_F_ADDEND = PUSH_F_CELLS + PISA_SPARSE_ARRAYS,
	PUSH_F_OWN = PUSH_F_ADDEND + PISA_SPARSE_ARRAYS, /* of adders, and shared by them */
	PUSH_F_SHARED = PUSH_F_OWN + PISA_SPARSE_ADDERS * PISA_FLOAT_OWN,
	PUSH_F_WORDS = PUSH_F_SHARED + PISA_FLOAT_SHARED, /* the window: row numbers, the piece of
	                                                     the row, values */
	PISA_SPARSE_FIELDS = PUSH_F_WORDS + 2 * PISA_SPARSE_ARRAYS + 1,
};

_Static_assert(PISA_SPARSE_FIELDS <= PISA_FIELDS_MAX, "fields");

enum pisa_sparse_array {
	PUSH_A_MAP,
	PUSH_A_LOW,
	PUSH_A_NEXT,
	PUSH_A_DURABLE,
	PUSH_A_SUM,
	PISA_SPARSE_ARRAYS_END = PUSH_A_SUM + PISA_SPARSE_ARRAYS,
};

enum pisa_sparse_table {
	PUSH_T_LENGTHS,
	PUSH_T_WINDOWS,
	PUSH_T_FLOAT, /* of all adders */
	PISA_SPARSE_TABLES = PUSH_T_FLOAT + PISA_SPARSE_ARRAYS * PISA_FLOAT_TABLES,
};

_Static_assert(PISA_SPARSE_TABLES <= PISA_TABLES_MAX, "tables");

enum pisa_sparse_pass { PUSH_P_FIRST, PUSH_P_CHECK, PUSH_P_ADD, PISA_SPARSE_PASSES };

/* How rows lie in the arrays. All are powers of two, given as logarithms. */
struct pisa_sparse_layout {
	uint32_t width, rows;
	uint32_t kind;       /* enum sparse_sums */
	uint32_t pieces;     /* windows that a row takes; 1 unless it is longer than all arrays */
	unsigned group_bits; /* groups of arrays; as many rows fit a window */
	unsigned piece_bits; /* entries of a row in an array */
	unsigned cell_bits;  /* entries of an array, both banks */
	unsigned child_bits;
};

struct pisa_sparse_program {
	struct pisa_program program;
	struct pisa_sparse_layout layout;
	struct pisa_field fields[PISA_SPARSE_FIELDS];
	struct pisa_array arrays[PISA_SPARSE_ARRAYS_END];
	struct pisa_pass passes[PISA_SPARSE_PASSES];
	struct pisa_table tables[PISA_SPARSE_TABLES];
	uint32_t lengths[PISA_SPARSE_ROWS_MAX]; /* bytes of a payload with so many rows */
	uint32_t windows[PISA_SPARSE_ROWS_MAX]; /* that they take */
	struct pisa_step steps[PISA_SPARSE_STEPS];
};

/* How so many rows lie in the arrays. */
struct pisa_sparse_layout pisa_sparse_lay_out(uint32_t width, uint32_t rows, unsigned children);

/* Windows of n rows. */
uint32_t pisa_sparse_windows(const struct pisa_sparse_layout *layout, uint32_t n);

/* How often the longest packet is recirculated at most. */
uint32_t pisa_sparse_recirculations(const struct pisa_sparse_layout *layout, uint32_t payload);

/* Words of a window. */
static inline uint32_t pisa_sparse_window_words(const struct pisa_sparse_layout *layout)
{
	return (1u << layout->group_bits) + 1 + PISA_SPARSE_ARRAYS;
}

/*
 * `payload`: of the longest packet, bytes. `tables`: for sums by table. Steps and tables point into
 * the struct.
 */
void pisa_sparse_write(struct pisa_sparse_program *code, const struct pisa_sparse_layout *layout,
                       uint32_t payload, const struct float_tables *tables);

#endif
