/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside pisa only: a sum by table (number/float_table.h) as steps of a pass. An adder has the
 * seven tables for itself, as a pass looks up a table once, and takes four stages:
 *
 *   0  the logarithm tables, of one of both numbers
 *   1  exp_dm, which ends that logarithm; the distance of both logarithms
 *   2  mid
 *   3  exp; then what needs no table: differences of close numbers, zeros, infinities
 *
 * The action of a register cannot look up a table. So a pass computes the new sum from the old one
 * as it was last read, and a register replaces the old one only if it is still the same. The first
 * pass takes it for zero. Meanwhile the tables give the logarithm of the addend, which is kept. So
 * one set of tables serves both numbers.
 */
#ifndef TRIB_PISA_PISA_FLOAT_PROGRAM_H
#define TRIB_PISA_PISA_FLOAT_PROGRAM_H

#include "number/float_table.h"
#include "pisa/pisa_writer.h"

#define PISA_FLOAT_STAGES 4u
#define PISA_FLOAT_TABLES 7u
#define PISA_FLOAT_OWN 3u     /* fields between the stages of an adder */
#define PISA_FLOAT_SHARED 10u /* fields within a stage */

/* Numbers of fields, and of a table. */
struct pisa_float_adder {
	uint8_t sum;    /* a header: the sum as it was read; 0: it was not */
	uint8_t log;    /* a header: the logarithm of the addend, once a pass had no sum */
	uint8_t value;  /* the addend; it becomes the new sum */
	uint8_t own;    /* the first of PISA_FLOAT_OWN fields */
	uint8_t shared; /* the first of PISA_FLOAT_SHARED fields, also of other adders */
	uint8_t table;  /* the first of PISA_FLOAT_TABLES tables */
};

/* The tables of an adder whose stages begin with `stage`. */
void pisa_float_tables(struct pisa_table to[PISA_FLOAT_TABLES], const struct float_tables *tables,
                       unsigned stage);

/* Steps of one of the adder's stages, which is the writer's present one. */
void pisa_float_write(struct pisa_writer *w, const struct pisa_float_adder *adder, unsigned stage);

#endif
