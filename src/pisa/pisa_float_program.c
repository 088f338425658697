/* SPDX-License-Identifier: Apache-2.0 */
#include "pisa/pisa_float_program.h"

#define N(number) PISA_FIELD((uint32_t)(number))
#define MAGNITUDE (~FLOAT_TABLE_SIGN)
#define FRACTION (FLOAT_TABLE_NORMAL - 1)

enum { EXPONENT, LOG_M, LOG_DM, LOG_MLN2, EXP_DM, MID, EXP };

void pisa_float_tables(struct pisa_table to[PISA_FLOAT_TABLES], const struct float_tables *tables,
                       unsigned stage)
{
	const struct {
		const char *name;
		const uint16_t *rows;
		uint32_t n;
		unsigned stage;
	} all[PISA_FLOAT_TABLES] = {
		[EXPONENT] = { "exponent", tables->exponent, 256, 0 },
		[LOG_M] = { "log m", tables->log_m, 4096, 0 },
		[LOG_DM] = { "log dm", tables->log_dm, 4096, 0 },
		[LOG_MLN2] = { "log m ln2", tables->log_mln2, 4096, 0 },
		[EXP_DM] = { "exp dm", tables->exp_dm, 65536, 1 },
		[MID] = { "mid", tables->mid, 65536, 2 },
		[EXP] = { "exp", tables->exp, 65536, 3 },
	};

	for (unsigned i = 0; i < PISA_FLOAT_TABLES; i++)
		to[i] = (struct pisa_table){ .name = all[i].name,
			                     .halves = all[i].rows,
			                     .n_rows = all[i].n,
			                     .stage = (uint8_t)(stage + all[i].stage),
			                     .bits = 16 };
}

/* dst = a op constant */
static void with(struct pisa_writer *w, enum pisa_op op, unsigned dst, unsigned a,
                 uint32_t constant)
{
	compute(w, op, dst, N(a), K(constant));
}

/* dst = dst op a */
static void into(struct pisa_writer *w, enum pisa_op op, unsigned dst, unsigned a)
{
	compute(w, op, dst, N(dst), N(a));
}

/* Do the signs of both numbers differ? */
static void write_differ(struct pisa_writer *w, const struct pisa_float_adder *it, unsigned dst)
{
	compute(w, PISA_XOR, dst, N(it->sum), N(it->value));
	with(w, PISA_SHR, dst, dst, 31);
}

/* The logarithm of the sum, or of the addend if there is no sum, without what exp_dm gives. */
static void write_logs(struct pisa_writer *w, const struct pisa_float_adder *it)
{
	unsigned log = it->own, key = it->own + 1u;
	unsigned bits = it->shared, t = it->shared + 1u, u = it->shared + 2u;

	set(w, bits, N(it->value));
	w->when = it->sum;
	set(w, bits, N(it->sum));
	w->when = 0;
	with(w, PISA_SHR, t, bits, 23);
	with(w, PISA_AND, t, t, 0xff);
	look_up(w, it->table + EXPONENT, t, N(t));
	with(w, PISA_ADD, t, t, FLOAT_TABLE_BIAS);
	with(w, PISA_AND, t, t, 0xffff);
	with(w, PISA_SHL, log, t, FLOAT_TABLE_LOG_BITS);
	with(w, PISA_SHR, t, bits, 12);
	with(w, PISA_AND, t, t, 0x7ff);
	with(w, PISA_OR, t, t, 0x800);
	look_up(w, it->table + LOG_M, u, N(t));
	into(w, PISA_ADD, log, u);
	look_up(w, it->table + LOG_MLN2, u, N(t));
	with(w, PISA_AND, t, bits, 0xfff);
	look_up(w, it->table + LOG_DM, key, N(t));
	with(w, PISA_ADD, key, key, 2u << FLOAT_TABLE_STEP);
	into(w, PISA_SUB, key, u);
	with(w, PISA_AND, key, key, 0xffff);
}

/* The larger logarithm, and the key of mid: how far the other one is below. */
static void write_distance(struct pisa_writer *w, const struct pisa_float_adder *it)
{
	unsigned log = it->own, key = it->own + 1u, is_far = it->own + 2u;
	unsigned t = it->shared, u = it->shared + 1u, larger = it->shared + 2u;

	look_up(w, it->table + EXP_DM, t, N(key));
	into(w, PISA_ADD, log, t);
	with(w, PISA_EQ, t, it->sum, 0);
	w->when = (uint8_t)t;
	set(w, it->log, N(log));
	w->when = 0;
	with(w, PISA_AND, t, it->sum, MAGNITUDE);
	with(w, PISA_AND, u, it->value, MAGNITUDE);
	compute(w, PISA_GT, t, N(t), N(u));
	set(w, larger, N(it->log));
	compute(w, PISA_SUB, key, N(it->log), N(log));
	w->when = (uint8_t)t;
	set(w, larger, N(log));
	compute(w, PISA_SUB, key, N(log), N(it->log));
	w->when = 0;
	set(w, log, N(larger));
	with(w, PISA_SHR, t, key, 31);
	w->when = (uint8_t)t; /* rounding has changed the order */
	set(w, key, K(0));
	w->when = 0;
	with(w, PISA_ADD, key, key, 1u << (FLOAT_TABLE_MID - 1));
	with(w, PISA_SHR, key, key, FLOAT_TABLE_MID);
	with(w, PISA_GT, is_far, key, FLOAT_TABLE_FAR - 1);
	write_differ(w, it, t);
	w->when = (uint8_t)t;
	with(w, PISA_OR, key, key, FLOAT_TABLE_FAR);
	w->when = 0;
}

static void write_mid(struct pisa_writer *w, const struct pisa_float_adder *it)
{
	unsigned log = it->own, key = it->own + 1u, t = it->shared, u = it->shared + 1u;

	look_up(w, it->table + MID, t, N(key));
	with(w, PISA_ADD, t, t, 1);
	write_differ(w, it, u);
	w->when = (uint8_t)u;
	into(w, PISA_SUB, log, t);
	w->when = 0;
	with(w, PISA_EQ, u, u, 0);
	w->when = (uint8_t)u;
	into(w, PISA_ADD, log, t);
	w->when = 0;
}

/* Fields of the last stage, in the shared ones. */
struct last {
	unsigned result, x, y, sign, differ; /* x has the larger magnitude */
	unsigned t, u, v, exponent, is_close;
};

/* The magnitude by table: the exponential of the logarithm. */
static void write_exp(struct pisa_writer *w, const struct pisa_float_adder *it,
                      const struct last *at)
{
	unsigned log = it->own;

	with(w, PISA_AND, at->t, log, 0xffff);
	look_up(w, it->table + EXP, at->result, N(at->t));
	with(w, PISA_SHL, at->result, at->result, 7);
	with(w, PISA_SHR, at->t, log, FLOAT_TABLE_LOG_BITS);
	with(w, PISA_SHL, at->u, at->t, 23);
	into(w, PISA_OR, at->result, at->u);
	with(w, PISA_EQ, at->u, at->t, 0);
	w->when = (uint8_t)at->u;
	set(w, at->result, K(0));
	w->when = 0;
	with(w, PISA_GT, at->u, at->t, 254);
	w->when = (uint8_t)at->u;
	set(w, at->result, K(FLOAT_TABLE_INFINITY));
	w->when = 0;
}

static void write_order(struct pisa_writer *w, const struct pisa_float_adder *it,
                        const struct last *at)
{
	with(w, PISA_AND, at->x, it->value, MAGNITUDE);
	with(w, PISA_AND, at->y, it->sum, MAGNITUDE);
	with(w, PISA_AND, at->sign, it->value, FLOAT_TABLE_SIGN);
	compute(w, PISA_GT, at->t, N(at->y), N(at->x));
	w->when = (uint8_t)at->t;
	set(w, at->u, N(at->x));
	set(w, at->x, N(at->y));
	set(w, at->y, N(at->u));
	with(w, PISA_AND, at->sign, it->sum, FLOAT_TABLE_SIGN);
	w->when = 0;
	write_differ(w, it, at->differ);
}

/* The first 1 of the difference to bit 23. A difference of 25 bits is rounded, ties to even. */
static void write_normal(struct pisa_writer *w, const struct last *at)
{
	unsigned difference = at->v;

	with(w, PISA_SHR, at->t, difference, 24);
	w->when = (uint8_t)at->t;
	with(w, PISA_SHR, at->u, difference, 1);
	into(w, PISA_AND, difference, at->u);
	with(w, PISA_AND, difference, difference, 1);
	into(w, PISA_ADD, difference, at->u);
	with(w, PISA_ADD, at->exponent, at->exponent, 1);
	w->when = 0;
	for (unsigned step = 16; step; step /= 2) {
		with(w, PISA_SHR, at->t, difference, 24 - step);
		with(w, PISA_EQ, at->t, at->t, 0);
		w->when = (uint8_t)at->t;
		with(w, PISA_SHL, difference, difference, step);
		with(w, PISA_SUB, at->exponent, at->exponent, step);
		w->when = 0;
	}
}

/* If the signs differ and the exponents differ by 0 or 1: the exact difference. */
static void write_close(struct pisa_writer *w, const struct last *at)
{
	with(w, PISA_SHR, at->exponent, at->y, 23);
	with(w, PISA_SHR, at->u, at->x, 23);
	into(w, PISA_SUB, at->u, at->exponent);
	with(w, PISA_AND, at->v, at->x, FRACTION);
	with(w, PISA_OR, at->v, at->v, FLOAT_TABLE_NORMAL);
	w->when = (uint8_t)at->u;
	with(w, PISA_SHL, at->v, at->v, 1);
	w->when = 0;
	with(w, PISA_GT, at->u, at->u, 1);
	compute(w, PISA_ANDNOT, at->is_close, N(at->differ), N(at->u));
	with(w, PISA_AND, at->t, at->y, FRACTION);
	with(w, PISA_OR, at->t, at->t, FLOAT_TABLE_NORMAL);
	into(w, PISA_SUB, at->v, at->t);
	w->when = (uint8_t)at->is_close;
	set(w, at->result, K(0));
	w->when = 0;
	with(w, PISA_NE, at->t, at->v, 0);
	into(w, PISA_AND, at->is_close, at->t);
	write_normal(w, at);
	compute(w, PISA_GT_SIGNED, at->t, N(at->exponent), K(0));
	into(w, PISA_AND, at->is_close, at->t);
	w->when = (uint8_t)at->is_close;
	with(w, PISA_SHL, at->result, at->exponent, 23);
	with(w, PISA_AND, at->v, at->v, FRACTION);
	into(w, PISA_ADD, at->result, at->v);
	w->when = 0;
}

/* Infinite, NaN, zero and denormal operands. */
static void write_special(struct pisa_writer *w, const struct last *at)
{
	with(w, PISA_GT, at->u, at->x, FLOAT_TABLE_INFINITY - 1);
	with(w, PISA_LT, at->t, at->y, FLOAT_TABLE_NORMAL);
	into(w, PISA_OR, at->t, at->u);
	w->when = (uint8_t)at->t;
	compute(w, PISA_OR, at->result, N(at->x), N(at->sign));
	w->when = 0;
	with(w, PISA_LT, at->t, at->x, FLOAT_TABLE_NORMAL);
	w->when = (uint8_t)at->t;
	set(w, at->result, K(0));
	w->when = 0;
	with(w, PISA_EQ, at->t, at->y, FLOAT_TABLE_INFINITY);
	into(w, PISA_AND, at->t, at->differ);
	with(w, PISA_EQ, at->u, at->x, FLOAT_TABLE_INFINITY);
	into(w, PISA_AND, at->t, at->u);
	with(w, PISA_GT, at->u, at->x, FLOAT_TABLE_INFINITY);
	into(w, PISA_OR, at->t, at->u);
	w->when = (uint8_t)at->t;
	set(w, at->result, K(FLOAT_TABLE_NAN));
	w->when = 0;
}

static void write_last(struct pisa_writer *w, const struct pisa_float_adder *it)
{
	const unsigned first = it->shared;
	const struct last at = { .result = first,
		                 .x = first + 1,
		                 .y = first + 2,
		                 .sign = first + 3,
		                 .differ = first + 4,
		                 .t = first + 5,
		                 .u = first + 6,
		                 .v = first + 7,
		                 .exponent = first + 8,
		                 .is_close = first + 9 };

	write_exp(w, it, &at);
	write_order(w, it, &at);
	w->when = (uint8_t)(it->own + 2u); /* too far */
	set(w, at.result, N(at.x));
	w->when = 0;
	write_close(w, &at);
	with(w, PISA_NE, at.t, at.result, 0);
	w->when = (uint8_t)at.t;
	into(w, PISA_OR, at.result, at.sign);
	w->when = 0;
	write_special(w, &at);
	set(w, it->value, N(at.result));
}

void pisa_float_write(struct pisa_writer *w, const struct pisa_float_adder *adder, unsigned stage)
{
	static void (*const stages[PISA_FLOAT_STAGES])(struct pisa_writer *,
	                                               const struct pisa_float_adder *) = {
		write_logs, write_distance, write_mid, write_last
	};

	stages[stage](w, adder);
}
