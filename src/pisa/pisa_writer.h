/* SPDX-License-Identifier: Apache-2.0 */
/* Inside pisa only: how programs write their steps. */
#ifndef TRIB_PISA_PISA_WRITER_H
#define TRIB_PISA_PISA_WRITER_H

#include "pisa/pisa.h"

#define K(constant) PISA_CONST(constant)

/* A program that is being written: the next steps have this stage and this condition. */
struct pisa_writer {
	struct pisa_step *steps;
	uint32_t room, n_steps; /* n_steps above room: the program is too long */
	uint8_t stage, when;
	const void *of; /* the sizes that the program is written for */
};

static inline void put(struct pisa_writer *w, struct pisa_step step)
{
	step.stage = w->stage;
	step.when = w->when;
	if (w->n_steps < w->room)
		w->steps[w->n_steps] = step;
	w->n_steps++;
}

static inline void compute(struct pisa_writer *w, enum pisa_op op, unsigned dst,
                           struct pisa_operand a, struct pisa_operand b)
{
	put(w, (struct pisa_step){ .op = (uint8_t)op, .dst = (uint8_t)dst, .a = a, .b = b });
}

static inline void set(struct pisa_writer *w, unsigned dst, struct pisa_operand a)
{
	compute(w, PISA_MOVE, dst, a, K(0));
}

/* `dst` becomes 1 if one of them is. */
static inline void either(struct pisa_writer *w, unsigned dst, struct pisa_operand a)
{
	compute(w, PISA_OR, dst, PISA_FIELD(dst), a);
}

static inline void look_up(struct pisa_writer *w, unsigned table, unsigned dst,
                           struct pisa_operand row)
{
	put(w, (struct pisa_step){
		       .op = PISA_LOOKUP, .table = (uint8_t)table, .dst = (uint8_t)dst, .a = row });
}

/* One action on an array with entries of up to 32 bits. */
static inline void entry_act(struct pisa_writer *w, unsigned array, struct pisa_operand index,
                             enum pisa_action action, unsigned dst, struct pisa_operand a,
                             struct pisa_operand b)
{
	put(w, (struct pisa_step){ .op = PISA_REGISTER,
	                           .array = (uint8_t)array,
	                           .index = index,
	                           .actions = { (uint8_t)action },
	                           .n_actions = 1,
	                           .dst = (uint8_t)dst,
	                           .a = a,
	                           .b = b });
}

static inline void fate(struct pisa_writer *w, enum pisa_op op, struct pisa_operand to)
{
	put(w, (struct pisa_step){ .op = (uint8_t)op, .a = to });
}

static inline void again(struct pisa_writer *w, unsigned pass)
{
	put(w, (struct pisa_step){ .op = PISA_RECIRCULATE, .pass = (uint8_t)pass });
}

static inline struct pisa_pass write_pass(struct pisa_writer *w, const char *name,
                                          void (*body)(struct pisa_writer *))
{
	uint32_t start = w->n_steps;

	w->stage = w->when = 0;
	body(w);
	return (struct pisa_pass){ name, w->steps + start, w->n_steps - start };
}

/* The least power of two that is not below: its logarithm. */
static inline unsigned log2_above(uint32_t n)
{
	return n > 1 ? 32u - (unsigned)__builtin_clz(n - 1) : 0;
}

#endif
