/* SPDX-License-Identifier: Apache-2.0 */
#include "pisa/pisa_slot_program.h"

#include "engine/slot.h"
#include "pisa/pisa_writer.h"

#define F(name) PISA_FIELD(SLOT_F_##name)
#define CHUNK_SHIFT 5 /* bytes of the words of a pass, as a power of two */
_Static_assert(1u << CHUNK_SHIFT == PISA_SLOT_WORDS * sizeof(uint32_t), "chunk");

/* The actions on the sum, in the order of SLOT_F_SELECT. */
enum { SUM_WRITE, SUM_ADD, SUM_OR, SUM_MAX };

/* The last stage: what follows from all registers. */
#define STAGE_END 3

static const uint8_t word_stages[PISA_SLOT_WORDS] = { 1, 1, 2, 2, 2, 3, 3, 3 };

static const uint32_t bits[32] = {
	1u << 0,  1u << 1,  1u << 2,  1u << 3,  1u << 4,  1u << 5,  1u << 6,  1u << 7,
	1u << 8,  1u << 9,  1u << 10, 1u << 11, 1u << 12, 1u << 13, 1u << 14, 1u << 15,
	1u << 16, 1u << 17, 1u << 18, 1u << 19, 1u << 20, 1u << 21, 1u << 22, 1u << 23,
	1u << 24, 1u << 25, 1u << 26, 1u << 27, 1u << 28, 1u << 29, 1u << 30, 1u << 31,
};
/* How vectors are combined; 0: not at all. */
static const uint32_t kinds[WIRE_OPS_END] = {
	[WIRE_ADD32] = SUM_ADD,   [WIRE_ADD64] = SUM_ADD,   [WIRE_MIN_I32] = SUM_MAX,
	[WIRE_MIN_U32] = SUM_MAX, [WIRE_MAX_I32] = SUM_MAX, [WIRE_MAX_U32] = SUM_MAX,
	[WIRE_OR64] = SUM_OR,
};
/* What makes a signed maximum of it: bits to flip before and after. */
static const uint32_t masks[WIRE_OPS_END] = {
	[WIRE_MIN_I32] = 0xffffffffu,
	[WIRE_MIN_U32] = 0x7fffffffu,
	[WIRE_MAX_U32] = 0x80000000u,
};
/* Two words make one sum, with a carry. */
static const uint32_t wides[WIRE_OPS_END] = { [WIRE_ADD64] = 1 };

static const struct pisa_table tables[PISA_SLOT_TABLES] = {
	[SLOT_T_BIT] = { .name = "bit", .rows = bits, .n_rows = sizeof(bits) / sizeof(bits[0]) },
	[SLOT_T_KIND] = { .name = "kind", .rows = kinds, .n_rows = WIRE_OPS_END },
	[SLOT_T_MASK] = { .name = "mask", .rows = masks, .n_rows = WIRE_OPS_END },
	[SLOT_T_WIDE] = { .name = "wide", .rows = wides, .n_rows = WIRE_OPS_END },
};

bool pisa_slot_combines(uint8_t op)
{
	return op < WIRE_OPS_END && kinds[op];
}

/* ---- writing steps ---- */

/* What the program is written for. */
struct sizes {
	uint32_t slots, payload;
	unsigned chunk_bits;
};

static const struct sizes *sizes_of(const struct pisa_writer *w)
{
	return w->of;
}

/* An action on the packet's entry of an array. */
static void entry(struct pisa_writer *w, uint8_t array, enum pisa_action action, uint8_t dst,
                  struct pisa_operand a, struct pisa_operand b)
{
	entry_act(w, array, array == SLOT_A_LOW ? K(0) : F(INDEX), action, dst, a, b);
}

/* ---- parts of several passes ---- */

/* The sender's bit, and whether the packet has a vector. */
static void write_sender(struct pisa_writer *w)
{
	look_up(w, SLOT_T_BIT, SLOT_F_BIT, F(CHILD));
	compute(w, PISA_AND, SLOT_F_BIT, F(BIT), F(MEMBERS));
	compute(w, PISA_AND, SLOT_F_T, F(FROM), K(SLOT_BARE));
	compute(w, PISA_EQ, SLOT_F_VECTOR, F(T), K(0));
}

/* The slot of an operation. An operation's number is base and index. */
static void write_slot(struct pisa_writer *w, struct pisa_operand position)
{
	set(w, SLOT_F_INDEX, position);
	compute(w, PISA_AND, SLOT_F_BASE, position, K(~(sizes_of(w)->slots - 1)));
}

/* Reads which operation the slot is at. */
static void write_position(struct pisa_writer *w)
{
	entry(w, SLOT_A_POSITION, PISA_ENTRY_READ, SLOT_F_POSITION, K(0), K(0));
	compute(w, PISA_EQ, SLOT_F_SAME, F(BASE), F(POSITION));
	compute(w, PISA_SUB, SLOT_F_T, F(BASE), F(POSITION));
	compute(w, PISA_LT_SIGNED, SLOT_F_OLD, F(T), K(0));
}

static void write_mark_read(struct pisa_writer *w)
{
	put(w, (struct pisa_step){ .op = PISA_REGISTER,
	                           .array = SLOT_A_MARK,
	                           .index = F(INDEX),
	                           .actions = { PISA_ENTRY_READ },
	                           .n_actions = 1,
	                           .dst = SLOT_F_GRADE,
	                           .dst_high = SLOT_F_ARRIVED });
}

static void write_low_read(struct pisa_writer *w)
{
	w->stage = 1;
	entry(w, SLOT_A_LOW, PISA_ENTRY_READ, SLOT_F_LOW, K(0), K(0));
}

/* Which children get an answer is no part of it. */
static void write_address(struct pisa_writer *w)
{
	set(w, SLOT_F_CHILD, K(WIRE_ALL));
	set(w, SLOT_F_TO, K(WIRE_ALL));
}

/* An answer without a vector. */
static void write_note(struct pisa_writer *w, uint32_t kind, struct pisa_operand scale)
{
	set(w, SLOT_F_FROM, K(kind));
	set(w, SLOT_F_SCALE, scale);
	set(w, SLOT_F_ACK, F(LOW));
	set(w, SLOT_F_OP, K(0));
	set(w, SLOT_F_FLAGS, K(0));
	set(w, SLOT_F_BYTES, K(0));
	write_address(w);
}

/* ---- acknowledgements ---- */

static void write_ack(struct pisa_writer *w)
{
	write_sender(w);
	write_slot(w, F(ACK));
	write_position(w);
	write_mark_read(w);
	compute(w, PISA_NE, SLOT_F_T, F(BIT), K(0));
	compute(w, PISA_AND, SLOT_F_OLD, F(OLD), F(T));
	compute(w, PISA_AND, SLOT_F_SAME, F(SAME), F(T));
	compute(w, PISA_EQ, SLOT_F_U, F(ARRIVED), F(MEMBERS));
	compute(w, PISA_AND, SLOT_F_SAME, F(SAME), F(U)); /* the operation, and complete */
	w->stage = 1;
	w->when = SLOT_F_SAME;
	entry(w, SLOT_A_ACKED, PISA_ENTRY_OR, SLOT_F_ACKED, F(BIT), K(0));
	w->when = 0;
	write_low_read(w);
	compute(w, PISA_ANDNOT, SLOT_F_U, F(MEMBERS), F(ACKED));
	compute(w, PISA_ANDNOT, SLOT_F_U, F(U), F(LEFT));
	compute(w, PISA_EQ, SLOT_F_U, F(U), K(0));
	compute(w, PISA_AND, SLOT_F_U, F(U), F(SAME)); /* nobody needs the result any more */
	compute(w, PISA_OR, SLOT_F_CLEARED, F(U), F(OLD));
	w->when = SLOT_F_VECTOR;
	again(w, SLOT_P_JUDGE);
	w->when = SLOT_F_OLD;
	again(w, SLOT_P_LOW);
	w->when = SLOT_F_U;
	again(w, SLOT_P_CLEAR);
	w->when = 0;
}

static void write_clear(struct pisa_writer *w)
{
	write_slot(w, F(ACK));
	compute(w, PISA_ADD, SLOT_F_T, F(BASE), K(sizes_of(w)->slots));
	entry(w, SLOT_A_POSITION, PISA_ENTRY_SWAP, SLOT_F_POSITION, F(BASE), F(T));
	compute(w, PISA_EQ, SLOT_F_SAME, F(BASE), F(POSITION)); /* the first to clear it */
	w->when = SLOT_F_SAME;
	entry(w, SLOT_A_MARK, PISA_ENTRY_WRITE, 0, K(0), K(0));
	entry(w, SLOT_A_FORM, PISA_ENTRY_WRITE, 0, K(0), K(0));
	w->stage = 1;
	entry(w, SLOT_A_ACKED, PISA_ENTRY_WRITE, 0, K(0), K(0));
	w->when = 0;
	again(w, SLOT_P_LOW);
}

/* What a packet does when `low` has moved as far as it may. */
static void write_after_low(struct pisa_writer *w)
{
	write_sender(w);
	w->when = SLOT_F_VECTOR;
	again(w, SLOT_P_JUDGE);
	w->when = 0;
	compute(w, PISA_AND, SLOT_F_T, F(FROM), K(SLOT_WANTS));
	compute(w, PISA_NE, SLOT_F_T, F(T), K(0));
	compute(w, PISA_AND, SLOT_F_T, F(T), F(CLEARED));
	compute(w, PISA_ANDNOT, SLOT_F_T, F(T), F(VECTOR));
	compute(w, PISA_ANDNOT, SLOT_F_T, F(T), F(HIT));
	w->when = SLOT_F_T;
	set(w, SLOT_F_POS, F(ACK));
	fate(w, PISA_TO_ONE, F(CHILD));
	write_note(w, SLOT_CLEAR, K(0));
	w->when = SLOT_F_HIT;
	again(w, SLOT_P_LOW);
	w->when = 0;
}

static void write_low(struct pisa_writer *w)
{
	write_slot(w, F(LOW));
	entry(w, SLOT_A_POSITION, PISA_ENTRY_READ, SLOT_F_POSITION, K(0), K(0));
	compute(w, PISA_SUB, SLOT_F_T, F(POSITION), F(BASE));
	compute(w, PISA_GT_SIGNED, SLOT_F_HIT, F(T), K(0));
	w->stage = 1;
	compute(w, PISA_ADD, SLOT_F_U, F(LOW), K(1));
	w->when = SLOT_F_HIT;
	entry(w, SLOT_A_LOW, PISA_ENTRY_SWAP, SLOT_F_T, F(LOW), F(U));
	compute(w, PISA_EQ, SLOT_F_SAME, F(T), F(LOW));
	set(w, SLOT_F_LOW, F(T)); /* of a packet that came between */
	w->when = SLOT_F_SAME;
	set(w, SLOT_F_LOW, F(U));
	w->when = 0;
	w->stage = STAGE_END;
	compute(w, PISA_ADD, SLOT_F_MOVES, F(MOVES), K(1));
	compute(w, PISA_LT, SLOT_F_U, F(MOVES), K(2));
	compute(w, PISA_AND, SLOT_F_HIT, F(HIT), F(U));
	write_after_low(w);
}

/* ---- judging a vector ---- */

static void verdict_if(struct pisa_writer *w, uint8_t condition, enum slot_verdict verdict)
{
	w->when = condition;
	set(w, SLOT_F_VERDICT, K(verdict));
	w->when = 0;
}

/* The verdict about scale and bytes of a slot in use. */
static void write_judge_grade(struct pisa_writer *w)
{
	compute(w, PISA_AND, SLOT_F_T, F(ARRIVED), F(BIT));
	verdict_if(w, SLOT_F_T, SLOT_DUPLICATE);
	compute(w, PISA_AND, SLOT_F_T, F(GRADE), K(0xffff));
	compute(w, PISA_NE, SLOT_F_T, F(T), F(BYTES));
	verdict_if(w, SLOT_F_T, SLOT_MISMATCH);
	compute(w, PISA_SHR, SLOT_F_U, F(GRADE), K(16));
	compute(w, PISA_LT, SLOT_F_T, F(SCALE), F(U));
	verdict_if(w, SLOT_F_T, SLOT_LOWER);
	compute(w, PISA_GT, SLOT_F_T, F(SCALE), F(U));
	verdict_if(w, SLOT_F_T, SLOT_RAISED);
	compute(w, PISA_EQ, SLOT_F_T, F(ARRIVED), F(MEMBERS));
	verdict_if(w, SLOT_F_T, SLOT_FINISHED);
}

/* The tests of slot_judge(), the last one first: a later verdict replaces an earlier one. */
static void write_judge_verdict(struct pisa_writer *w)
{
	set(w, SLOT_F_VERDICT, K(SLOT_ADDED));
	write_judge_grade(w);
	compute(w, PISA_NE, SLOT_F_T, F(FORM), F(OWN_FORM));
	verdict_if(w, SLOT_F_T, SLOT_MISMATCH);
	compute(w, PISA_EQ, SLOT_F_T, F(ARRIVED), K(0));
	verdict_if(w, SLOT_F_T, SLOT_ADDED);
	compute(w, PISA_EQ, SLOT_F_T, F(SAME), K(0));
	verdict_if(w, SLOT_F_T, SLOT_AHEAD);
	verdict_if(w, SLOT_F_OLD, SLOT_STALE);
	compute(w, PISA_AND, SLOT_F_T, F(BYTES), K(7));
	verdict_if(w, SLOT_F_T, SLOT_MISMATCH);
	compute(w, PISA_GT, SLOT_F_T, F(BYTES), K(sizes_of(w)->payload));
	verdict_if(w, SLOT_F_T, SLOT_MISMATCH);
	compute(w, PISA_EQ, SLOT_F_T, F(BIT), K(0));
	verdict_if(w, SLOT_F_T, SLOT_STRANGER);
	compute(w, PISA_EQ, SLOT_F_T, F(VECTOR), K(0));
	verdict_if(w, SLOT_F_T, SLOT_VERDICTS_END);
}

/* A vector that the slot takes: what becomes of the bitmap and of the sum. */
static void write_judge_taken(struct pisa_writer *w)
{
	look_up(w, SLOT_T_KIND, SLOT_F_SELECT, F(OP));
	compute(w, PISA_EQ, SLOT_F_SAME, F(VERDICT), K(SLOT_RAISED));
	compute(w, PISA_EQ, SLOT_F_T, F(VERDICT), K(SLOT_ADDED));
	compute(w, PISA_OR, SLOT_F_HIT, F(SAME), F(T));
	compute(w, PISA_EQ, SLOT_F_U, F(SELECT), K(0));
	compute(w, PISA_AND, SLOT_F_U, F(U), F(HIT)); /* the operation is lacking */
	compute(w, PISA_NE, SLOT_F_T, F(BYTES), K(0));
	compute(w, PISA_AND, SLOT_F_U, F(U), F(T)); /* an empty vector needs none: a barrier */
	compute(w, PISA_OR, SLOT_F_NEXT, F(ARRIVED), F(BIT));
	compute(w, PISA_EQ, SLOT_F_T, F(ARRIVED), K(0));
	compute(w, PISA_OR, SLOT_F_SAME, F(SAME), F(T)); /* the first, or the first at its scale */
	w->when = SLOT_F_SAME;
	set(w, SLOT_F_NEXT, F(BIT));
	set(w, SLOT_F_SELECT, K(SUM_WRITE));
	w->when = SLOT_F_HIT;
	again(w, SLOT_P_COMMIT);
	w->when = SLOT_F_U;
	put(w, (struct pisa_step){ .op = PISA_REFUSE, .text = "the switch lacks the operation" });
	w->when = 0;
}

/* A vector that was late: the sender gets the result, or the scale. */
static void write_judge_late(struct pisa_writer *w)
{
	compute(w, PISA_SHR, SLOT_F_U, F(GRADE), K(16));
	compute(w, PISA_EQ, SLOT_F_HIT, F(VERDICT), K(SLOT_FINISHED));
	w->when = SLOT_F_HIT;
	set(w, SLOT_F_SCALE, F(U));
	compute(w, PISA_AND, SLOT_F_BYTES, F(GRADE), K(0xffff));
	set(w, SLOT_F_SELECT, K(SUM_OR)); /* with 0 */
	set(w, SLOT_F_READS, K(1));
	set(w, SLOT_F_NEXT, K(0));
	again(w, SLOT_P_WORDS);
	w->when = 0;
	compute(w, PISA_EQ, SLOT_F_HIT, F(VERDICT), K(SLOT_LOWER));
	w->when = SLOT_F_HIT;
	fate(w, PISA_TO_ONE, F(CHILD));
	write_note(w, SLOT_RAISE, F(U));
	w->when = 0;
}

static void write_own(struct pisa_writer *w)
{
	compute(w, PISA_ANDNOT, SLOT_F_T, F(FLAGS), K(WIRE_RESENT));
	compute(w, PISA_SHL, SLOT_F_T, F(T), K(8));
	compute(w, PISA_OR, SLOT_F_OWN_FORM, F(T), F(OP));
	compute(w, PISA_SHL, SLOT_F_T, F(TO), K(16));
	compute(w, PISA_OR, SLOT_F_OWN_FORM, F(OWN_FORM), F(T));
	compute(w, PISA_SHL, SLOT_F_T, F(SCALE), K(16));
	compute(w, PISA_OR, SLOT_F_OWN_GRADE, F(T), F(BYTES));
}

static void write_judge(struct pisa_writer *w)
{
	write_sender(w);
	write_slot(w, F(POS));
	write_own(w);
	write_position(w);
	write_mark_read(w);
	entry(w, SLOT_A_FORM, PISA_ENTRY_READ, SLOT_F_FORM, K(0), K(0));
	write_low_read(w);
	w->stage = STAGE_END;
	write_judge_verdict(w);
	write_judge_taken(w);
	write_judge_late(w);
}

/* ---- the sum ---- */

/* Word `j` of the pass: into its register, and the sum out of it. */
static void write_word(struct pisa_writer *w, unsigned j)
{
	uint8_t field = (uint8_t)(SLOT_F_WORD + j);
	bool high = j % 2;

	w->stage = word_stages[j];
	w->when = SLOT_F_READS;
	set(w, field, F(MASK)); /* so that the next step makes 0 of it */
	w->when = SLOT_F_ACTS;
	compute(w, PISA_XOR, field, PISA_FIELD(field), F(MASK));
	if (high) {
		w->when = SLOT_F_CARRY;
		compute(w, PISA_ADD, field, PISA_FIELD(field), K(1));
		w->when = SLOT_F_ACTS;
	}
	put(w, (struct pisa_step){ .op = PISA_REGISTER,
	                           .array = (uint8_t)(SLOT_A_WORD + j),
	                           .index = F(CELL),
	                           .actions = { PISA_ENTRY_WRITE, PISA_ENTRY_ADD, PISA_ENTRY_OR,
	                                        PISA_ENTRY_MAX },
	                           .n_actions = 4,
	                           .select = SLOT_F_SELECT,
	                           .dst = SLOT_F_SUM,
	                           .a = PISA_FIELD(field) });
	if (!high) {
		compute(w, PISA_LT, SLOT_F_CARRY, F(SUM), PISA_FIELD(field));
		compute(w, PISA_AND, SLOT_F_CARRY, F(CARRY), F(WIDE));
	}
	compute(w, PISA_XOR, field, F(SUM), F(MASK));
	w->when = 0;
}

static void write_sum(struct pisa_writer *w)
{
	compute(w, PISA_SHL, SLOT_F_T, F(INDEX), K(sizes_of(w)->chunk_bits));
	compute(w, PISA_OR, SLOT_F_CELL, F(T), F(CHUNK));
	look_up(w, SLOT_T_MASK, SLOT_F_MASK, F(OP));
	look_up(w, SLOT_T_WIDE, SLOT_F_WIDE, F(OP));
	compute(w, PISA_EQ, SLOT_F_T, F(SELECT), K(SUM_ADD));
	compute(w, PISA_AND, SLOT_F_WIDE, F(WIDE), F(T));
	compute(w, PISA_AND, SLOT_F_WIDE, F(WIDE), F(ACTS));
	for (unsigned j = 0; j < PISA_SLOT_WORDS; j++)
		write_word(w, j);
	w->stage = STAGE_END;
}

/* More words, or the answer. */
static void write_end(struct pisa_writer *w)
{
	compute(w, PISA_ADD, SLOT_F_T, F(CHUNK), K(1));
	compute(w, PISA_SHL, SLOT_F_U, F(T), K(CHUNK_SHIFT));
	compute(w, PISA_LT, SLOT_F_HIT, F(U), F(BYTES));
	compute(w, PISA_AND, SLOT_F_HIT, F(HIT), F(ACTS)); /* more */
	w->when = SLOT_F_HIT;
	set(w, SLOT_F_CHUNK, F(T));
	again(w, SLOT_P_WORDS);
	w->when = 0;
	compute(w, PISA_ANDNOT, SLOT_F_OLD, F(ACTS), F(HIT)); /* the last words */
}

static void write_raised(struct pisa_writer *w)
{
	compute(w, PISA_ANDNOT, SLOT_F_AGAIN, F(ARRIVED), F(BIT));
	compute(w, PISA_NE, SLOT_F_T, F(AGAIN), K(0));
	compute(w, PISA_EQ, SLOT_F_U, F(VERDICT), K(SLOT_RAISED));
	compute(w, PISA_AND, SLOT_F_T, F(T), F(U));
	compute(w, PISA_AND, SLOT_F_T, F(T), F(OLD));
	w->when = SLOT_F_T;
	write_note(w, SLOT_RAISE, F(SCALE));
	fate(w, PISA_TO_SOME, F(AGAIN));
	w->when = 0;
}

static void write_result(struct pisa_writer *w)
{
	compute(w, PISA_EQ, SLOT_F_T, F(NEXT), F(MEMBERS));
	compute(w, PISA_AND, SLOT_F_T, F(T), F(OLD)); /* complete */
	compute(w, PISA_AND, SLOT_F_U, F(READS), F(OLD));
	compute(w, PISA_OR, SLOT_F_HIT, F(T), F(U));
	w->when = SLOT_F_HIT;
	compute(w, PISA_ANDNOT, SLOT_F_FLAGS, F(FLAGS), K(WIRE_RESENT));
	set(w, SLOT_F_FROM, K(0));
	set(w, SLOT_F_ACK, F(LOW));
	w->when = SLOT_F_U;
	fate(w, PISA_TO_ONE, F(CHILD));
	w->when = SLOT_F_T;
	set(w, SLOT_F_VERDICT, K(SLOT_COMPLETE));
	fate(w, PISA_TO_ALL, K(0));
	w->when = SLOT_F_HIT;
	write_address(w);
	w->when = 0;
}

static void write_commit(struct pisa_writer *w)
{
	write_sender(w);
	write_slot(w, F(POS));
	write_own(w);
	write_position(w);
	w->when = SLOT_F_SAME;
	put(w, (struct pisa_step){ .op = PISA_REGISTER,
	                           .array = SLOT_A_MARK,
	                           .index = F(INDEX),
	                           .actions = { PISA_ENTRY_SWAP },
	                           .n_actions = 1,
	                           .dst = SLOT_F_OLD_GRADE,
	                           .dst_high = SLOT_F_OLD_ARRIVED,
	                           .a = F(GRADE),
	                           .ah = F(ARRIVED),
	                           .b = F(OWN_GRADE),
	                           .bh = F(NEXT) });
	w->when = 0;
	compute(w, PISA_EQ, SLOT_F_T, F(OLD_GRADE), F(GRADE));
	compute(w, PISA_EQ, SLOT_F_U, F(OLD_ARRIVED), F(ARRIVED));
	compute(w, PISA_AND, SLOT_F_ACTS, F(SAME), F(T));
	compute(w, PISA_AND, SLOT_F_ACTS, F(ACTS), F(U));
	compute(w, PISA_EQ, SLOT_F_LOST, F(ACTS), K(0));
	w->when = SLOT_F_ACTS;
	entry(w, SLOT_A_FORM, PISA_ENTRY_WRITE, 0, F(OWN_FORM), K(0));
	w->when = 0;
	write_sum(w);
	w->when = SLOT_F_LOST;
	again(w, SLOT_P_JUDGE);
	w->when = 0;
	write_end(w);
	write_raised(w);
	write_result(w);
}

static void write_words(struct pisa_writer *w)
{
	write_sender(w);
	write_slot(w, F(POS));
	set(w, SLOT_F_ACTS, K(1));
	write_sum(w);
	write_end(w);
	write_raised(w);
	write_result(w);
}

/* ---- the whole program ---- */

static unsigned log2_of(uint32_t power)
{
	return (unsigned)__builtin_ctz(power);
}

static void declare_fields(struct pisa_slot_program *code, unsigned slot_bits, unsigned cell_bits)
{
	static const struct pisa_field narrow[PISA_SLOT_HEADERS] = {
		[SLOT_F_CHILD] = { "child", 8 },  [SLOT_F_FLAGS] = { "flags", 8 },
		[SLOT_F_OP] = { "op", 8 },        [SLOT_F_SCALE] = { "scale", 16 },
		[SLOT_F_FROM] = { "from", 8 },    [SLOT_F_TO] = { "to", 8 },
		[SLOT_F_BYTES] = { "bytes", 16 },
	};

	for (unsigned i = 1; i < PISA_SLOT_FIELDS; i++)
		code->fields[i] = i < PISA_SLOT_HEADERS && narrow[i].bits
		                          ? narrow[i]
		                          : (struct pisa_field){ "value", 32 };
	code->fields[0] = (struct pisa_field){ "none", 0 };
	code->fields[SLOT_F_INDEX] = (struct pisa_field){ "index", (uint8_t)slot_bits };
	code->fields[SLOT_F_CELL] = (struct pisa_field){ "cell", (uint8_t)cell_bits };
}

static void declare_arrays(struct pisa_slot_program *code, uint32_t slots, unsigned cell_bits,
                           unsigned children)
{
	static const char *const words[PISA_SLOT_WORDS] = {
		"word 0", "word 1", "word 2", "word 3", "word 4", "word 5", "word 6", "word 7"
	};

	code->arrays[SLOT_A_POSITION] = (struct pisa_array){ "position", 0, 32, slots };
	code->arrays[SLOT_A_MARK] =
		(struct pisa_array){ "mark", 0, (uint8_t)(32 + children), slots };
	code->arrays[SLOT_A_FORM] = (struct pisa_array){ "form", 0, 24, slots };
	code->arrays[SLOT_A_ACKED] = (struct pisa_array){ "acked", 1, (uint8_t)children, slots };
	code->arrays[SLOT_A_LOW] = (struct pisa_array){ "low", 1, 32, 1 };
	for (unsigned j = 0; j < PISA_SLOT_WORDS; j++)
		code->arrays[SLOT_A_WORD + j] =
			(struct pisa_array){ words[j], word_stages[j], 32, 1u << cell_bits };
}

void pisa_slot_write(struct pisa_slot_program *code, uint32_t slots, uint32_t payload,
                     unsigned children)
{
	uint32_t chunks = (payload + (1u << CHUNK_SHIFT) - 1) >> CHUNK_SHIFT;
	const struct sizes sizes = { slots, payload, log2_above(chunks) };
	struct pisa_writer w = { .steps = code->steps, .room = PISA_SLOT_STEPS, .of = &sizes };
	unsigned cell_bits = log2_of(slots) + sizes.chunk_bits;

	declare_fields(code, log2_of(slots), cell_bits);
	declare_arrays(code, slots, cell_bits, children);
	code->passes[SLOT_P_ACK] = write_pass(&w, "ack", write_ack);
	code->passes[SLOT_P_CLEAR] = write_pass(&w, "clear", write_clear);
	code->passes[SLOT_P_LOW] = write_pass(&w, "low", write_low);
	code->passes[SLOT_P_JUDGE] = write_pass(&w, "judge", write_judge);
	code->passes[SLOT_P_COMMIT] = write_pass(&w, "commit", write_commit);
	code->passes[SLOT_P_WORDS] = write_pass(&w, "words", write_words);
	code->program = (struct pisa_program){
		.name = "slot",
		.fields = code->fields,
		.arrays = code->arrays,
		.tables = tables,
		.passes = code->passes,
		.n_fields = PISA_SLOT_FIELDS,
		.n_arrays = PISA_SLOT_ARRAYS,
		.n_tables = PISA_SLOT_TABLES,
		.n_passes = w.n_steps <= w.room ? PISA_SLOT_PASSES : 0,
		.n_headers = PISA_SLOT_HEADERS,
		.parse_field = SLOT_F_FROM,
		.parse_mask = SLOT_ACKS,
		.pass_if = SLOT_P_ACK,
		.pass_else = SLOT_P_JUDGE,
		.window = PISA_SLOT_WORDS,
		.first_word = SLOT_F_WORD,
		.chunk_field = SLOT_F_CHUNK,
		.recirculations = 4 + (chunks ? chunks : 1),
	};
}
