/* SPDX-License-Identifier: Apache-2.0 */
/* The text of the slot program. pisa_slot.h explains it. */
#ifndef TRIB_PISA_PISA_SLOT_PROGRAM_H
#define TRIB_PISA_PISA_SLOT_PROGRAM_H

#include "pisa/pisa.h"

#define PISA_SLOT_WORDS 8u /* of 32 bits a pass, as in P4SGD */
#define PISA_SLOT_STEPS 512u

/* Fields of the packet. Those before PISA_SLOT_HEADERS survive a recirculation. */
enum pisa_slot_field {
	SLOT_F_CHILD = 1,
	SLOT_F_FLAGS,
	SLOT_F_OP,
	SLOT_F_POS,
	SLOT_F_ACK,
	SLOT_F_SCALE,
	SLOT_F_FROM,
	SLOT_F_TO,
	SLOT_F_BYTES,
	SLOT_F_MEMBERS, /* set by the control plane */
	SLOT_F_LEFT,    /* set by the control plane */
	SLOT_F_VERDICT, /* enum slot_verdict */
	SLOT_F_LOW,
	SLOT_F_MOVES,   /* passes that moved `low` */
	SLOT_F_CLEARED, /* the acknowledged operation's slot is clear */
	SLOT_F_ARRIVED, /* as it was judged */
	SLOT_F_GRADE,   /* scale and bytes of the slot, as they were judged */
	SLOT_F_NEXT,    /* the new `arrived` */
	SLOT_F_SELECT,  /* the action on the sum */
	SLOT_F_CHUNK,   /* which eight words */
	SLOT_F_READS,   /* the sum is only read */
	PISA_SLOT_HEADERS,
	SLOT_F_BIT = PISA_SLOT_HEADERS, /* the child's, 0: a stranger */
	SLOT_F_INDEX,                   /* the slot */
	SLOT_F_CELL,                    /* the entry in the arrays of words */
	SLOT_F_BASE,
	SLOT_F_POSITION,
	SLOT_F_FORM,
	SLOT_F_OWN_FORM,
	SLOT_F_OWN_GRADE,
	SLOT_F_ACKED,
	SLOT_F_OLD_GRADE,
	SLOT_F_OLD_ARRIVED,
	SLOT_F_ACTS, /* this pass changes or reads the sum */
	SLOT_F_LOST, /* this pass has to be judged again */
	SLOT_F_MASK,
	SLOT_F_WIDE,
	SLOT_F_CARRY,
	SLOT_F_SUM,
	SLOT_F_AGAIN,
	SLOT_F_VECTOR, /* the packet has one */
	/* Conditions and values for a few steps. */
	SLOT_F_SAME,
	SLOT_F_OLD,
	SLOT_F_HIT,
	SLOT_F_T,
	SLOT_F_U,
	SLOT_F_WORD,
	PISA_SLOT_FIELDS = SLOT_F_WORD + PISA_SLOT_WORDS,
};

enum pisa_slot_array {
	SLOT_A_POSITION,
	SLOT_A_MARK,
	SLOT_A_FORM,
	SLOT_A_ACKED,
	SLOT_A_LOW,
	SLOT_A_WORD,
	PISA_SLOT_ARRAYS = SLOT_A_WORD + PISA_SLOT_WORDS,
};

enum pisa_slot_table { SLOT_T_BIT, SLOT_T_KIND, SLOT_T_MASK, SLOT_T_WIDE, PISA_SLOT_TABLES };

enum pisa_slot_pass {
	SLOT_P_ACK,
	SLOT_P_CLEAR,
	SLOT_P_LOW,
	SLOT_P_JUDGE,
	SLOT_P_COMMIT,
	SLOT_P_WORDS,
	PISA_SLOT_PASSES,
};

struct pisa_slot_program {
	struct pisa_program program;
	struct pisa_field fields[PISA_SLOT_FIELDS];
	struct pisa_array arrays[PISA_SLOT_ARRAYS];
	struct pisa_pass passes[PISA_SLOT_PASSES];
	struct pisa_step steps[PISA_SLOT_STEPS];
};

/* `slots` is a power of two; `payload` is in bytes. Steps point into the struct. */
void pisa_slot_write(struct pisa_slot_program *code, uint32_t slots, uint32_t payload,
                     unsigned children);

/* Can the program combine vectors with this enum wire_op? */
bool pisa_slot_combines(uint8_t op);

#endif
