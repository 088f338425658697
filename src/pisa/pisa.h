/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pisa owns the model of a programmable switch (protocol independent switch architecture), and the
 * programs for it. Pure: no socket, no clock, no allocation. The caller owns packets and memory. It
 * must not touch planes or lanes.
 *
 * A switch is a row of stages, and a packet goes through them once, in order: a pass. Register
 * arrays live in stages. A program is data, not C: for each kind of pass a straight list of steps.
 * A step may have a condition (`when`, `unless`), and there are no loops. The rules:
 *
 *   stages         a program has no more stages than the switch
 *   memory         the arrays of a stage take no more of its memory than the budget, and its large
 *                  match tables no more than the rest
 *   one access     a pass accesses an array at most once, at one index, with one action; it looks
 *                  up a large match table at most once
 *   home stage     an array or large match table is accessed only in the stage that it lives in
 *   forward        the stages of a pass's steps never go back
 *   operation      integers of up to 32 bits: no multiplication, division, floats, or shifts by a
 *                  variable. Wider entries are pairs of halves: only read, write, or, and, swap
 *   index          an index is within its array
 *   actions        an array has at most four different actions
 *   recirculation  a packet that needs another pass is recirculated, up to a limit
 *   form           numbers of fields, arrays, tables and passes exist
 *
 * pisa_load() checks a program, and refuses one that breaks a rule with a sentence that names
 * program, rule, pass, stage and register. pisa_run() checks each access again: a packet that
 * breaks a rule is dropped, counted and named.
 *
 * A pass is atomic: packets keep their order in all stages. Several passes of a packet are not:
 * other packets may pass between them. Recirculated packets keep their order.
 *
 * What is not modelled: how many integer operations a stage has, and that steps of a stage run at
 * the same time. Small match tables take no memory.
 */
#ifndef TRIB_PISA_PISA_H
#define TRIB_PISA_PISA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PISA_ARRAYS_MAX 64u
#define PISA_FIELDS_MAX 224u
#define PISA_PASSES_MAX 16u
#define PISA_TABLES_MAX 128u
#define PISA_ACTIONS_MAX 4u /* different actions of an array */
#define PISA_WHY_MAX 256u   /* bytes of a sentence */

enum pisa_rule {
	PISA_OBEYS,
	PISA_RULE_STAGES,
	PISA_RULE_MEMORY,
	PISA_RULE_ONE_ACCESS,
	PISA_RULE_HOME_STAGE,
	PISA_RULE_FORWARD,
	PISA_RULE_OPERATION,
	PISA_RULE_INDEX,
	PISA_RULE_ACTIONS,
	PISA_RULE_RECIRCULATION,
	PISA_RULE_FORM,
	PISA_RULES_END,
};

/* What a step does. `a` and `b` are fields or constants, `dst` is a field. */
enum pisa_op {
	PISA_MOVE, /* dst = a */
	PISA_ADD,
	PISA_SUB,
	PISA_AND,
	PISA_ANDNOT, /* dst = a & ~b */
	PISA_OR,
	PISA_XOR,
	PISA_SHL, /* `b` has to be a constant */
	PISA_SHR,
	PISA_EQ, /* dst = 1 if it is so, else 0 */
	PISA_NE,
	PISA_LT, /* unsigned */
	PISA_GT,
	PISA_LT_SIGNED,
	PISA_GT_SIGNED,
	PISA_LOOKUP,   /* dst = the row `a` of a table; 0: there is no such row */
	PISA_REGISTER, /* an action on a register array */
	PISA_DROP,     /* the packet's fate; the last one that a pass sets holds */
	PISA_TO_ONE,   /* to child `a` */
	PISA_TO_SOME,  /* to the children in the bitmap `a`: replicated to all, and filtered */
	PISA_TO_ALL,
	PISA_RECIRCULATE, /* another pass: number `pass` */
	PISA_REFUSE,      /* the program cannot serve the packet: `text` says why */
	PISA_HAS_END,     /* a switch lacks all below */
	PISA_MULTIPLY,
	PISA_DIVIDE,
	PISA_REMAINDER,
	PISA_ADD_FLOAT,
	PISA_OPS_END,
};

/* What a register action does with the entry e. */
enum pisa_action {
	PISA_ENTRY_READ,    /* dst = e */
	PISA_ENTRY_WRITE,   /* dst = e = a */
	PISA_ENTRY_ADD,     /* dst = e = e + a */
	PISA_ENTRY_OR,      /* dst = e = e | a */
	PISA_ENTRY_AND,     /* dst = e = e & a */
	PISA_ENTRY_MAX,     /* dst = e = the greater of e and a, signed */
	PISA_ENTRY_SWAP,    /* dst = e; if e = a, then e = b */
	PISA_ENTRY_HAS_END, /* a switch lacks all below */
	PISA_ENTRY_MULTIPLY,
	PISA_ENTRY_ADD_FLOAT,
	PISA_ENTRY_END,
};

/* A field of the packet, or a constant. */
struct pisa_operand {
	uint32_t value; /* the constant, or the number of the field */
	bool is_field;
};

struct pisa_step {
	struct pisa_operand a, b;
	struct pisa_operand ah, bh; /* entries of more than 32 bits: the high halves */
	struct pisa_operand index;  /* PISA_REGISTER */
	const char *text;           /* PISA_REFUSE */
	uint8_t op, stage;
	uint8_t when, unless; /* fields: the step is done when it is not 0, unless it is not 0;
	                         0: no condition */
	uint8_t dst, dst_high;
	uint8_t array, n_actions; /* PISA_REGISTER */
	uint8_t actions[PISA_ACTIONS_MAX];
	uint8_t select; /* field: which of several actions */
	uint8_t table;  /* PISA_LOOKUP */
	uint8_t pass;   /* PISA_RECIRCULATE */
};

/* To write steps: the fields of a step by name follow. */
#define PISA_FIELD(number) ((struct pisa_operand){ (number), true })
#define PISA_CONST(constant) ((struct pisa_operand){ (constant), false })

/* Field 0 is no field: it is always 0, and nobody writes it. */
struct pisa_field {
	const char *name;
	uint8_t bits; /* at most 32; longer values are cut */
};

struct pisa_array {
	const char *name;
	uint8_t stage;
	uint8_t bits; /* of an entry, at most 64 */
	uint32_t entries;
};

/*
 * A match table. A large one lives in a stage, takes memory of it, and a pass looks it up at most
 * once. Small ones (`bits` is 0) take no memory, and every stage may have a copy.
 */
struct pisa_table {
	const char *name;
	const uint32_t *rows;
	const uint16_t *halves; /* the rows, if they have 16 bits: `rows` is NULL */
	uint32_t n_rows;
	uint8_t stage;
	uint8_t bits; /* of a row */
};

struct pisa_pass {
	const char *name;
	const struct pisa_step *steps;
	uint32_t n_steps;
};

struct pisa_program {
	const char *name;
	const struct pisa_field *fields;
	const struct pisa_array *arrays;
	const struct pisa_table *tables;
	const struct pisa_pass *passes;
	uint32_t n_fields, n_arrays, n_tables, n_passes;
	/* Fields below are headers, and survive a recirculation. The others begin as 0. */
	uint32_t n_headers;
	/* The parser chooses the first pass by one field. */
	uint8_t parse_field;
	uint32_t parse_mask;
	uint8_t pass_if, pass_else;
	/* The parser also reads `window` words of the payload into fields from `first_word` on,
	   beginning at word window * chunk. A pass ends with writing them back. 0: it does not. */
	uint8_t window, first_word, chunk_field;
	uint32_t recirculations; /* of a packet, at most */
};

/* What a switch has. */
struct pisa_limits {
	uint32_t stages;
	uint32_t blocks;     /* of register memory in a stage */
	uint32_t budget;     /* blocks of a stage that a program may use */
	uint32_t block_bits; /* an array takes as many blocks as its bits need, and a spare one */
	uint32_t recirculations;
	bool trusts; /* load without checks: for tests of those in pisa_run() */
};

/*
 * P4SGD, section IV-B: 4 stages, 64 K slots, 70.83 % of a stage's memory. The paper does not give
 * the size of a stage. An array of 64 K words of 32 bits takes 16 blocks of 16 KiB and a spare one.
 * The paper's 12 arrays, 3 in a stage, take 51 blocks: 70.83 % of 72.
 */
struct pisa_limits pisa_limits_default(void);

enum pisa_fate {
	PISA_DROPPED,
	PISA_ONE,
	PISA_SOME,
	PISA_ALL,
	PISA_AGAIN,   /* only of pisa_pass(): it was recirculated */
	PISA_REFUSED, /* pisa_packet.why: what the program cannot do */
	PISA_BROKEN,  /* pisa_packet.why: the rule that the packet broke */
};

struct pisa_packet {
	uint32_t field[PISA_FIELDS_MAX];
	uint32_t *words;       /* the payload */
	uint32_t n_words;      /* of the packet that came; words behind are read as 0 */
	uint32_t room;         /* words that can be written */
	uint32_t to;           /* PISA_ONE: the child; PISA_SOME: children as bits */
	uint32_t recirculated; /* times */
	uint8_t pass;          /* the pass that is next, once it was recirculated */
	const char *why;
};

struct pisa_counters {
	uint64_t packets, passes, recirculations, drops, refused, broken;
	uint64_t broke[PISA_RULES_END]; /* packets that broke each rule */
};

struct pisa_switch {
	const struct pisa_program *program;
	struct pisa_limits limits;
	uint64_t *registers[PISA_ARRAYS_MAX];
	struct pisa_counters counters;
	char why[PISA_WHY_MAX]; /* of the last packet that broke a rule */
};

const char *pisa_rule_name(enum pisa_rule rule);

/* Does a program obey the rules? If not, `why` is a sentence of up to PISA_WHY_MAX bytes. */
enum pisa_rule pisa_check(const struct pisa_program *program, const struct pisa_limits *limits,
                          char *why);

/* Blocks that the arrays of a stage take, and those of its match tables. */
uint32_t pisa_stage_blocks(const struct pisa_program *program, const struct pisa_limits *limits,
                           unsigned stage);
uint32_t pisa_table_blocks(const struct pisa_program *program, const struct pisa_limits *limits,
                           unsigned stage);
/* "stage 2: 70.83 % of its memory", up to `size` bytes. */
void pisa_stage_tell(const struct pisa_program *program, const struct pisa_limits *limits,
                     unsigned stage, char *text, size_t size);

/* Bytes of memory that the model needs for a program's registers. */
size_t pisa_memory(const struct pisa_program *program);

/*
 * Checks a program and puts it into a switch. Program and memory stay the caller's and have to
 * outlive the switch. All registers begin as 0.
 */
enum pisa_rule pisa_load(struct pisa_switch *sw, const struct pisa_program *program,
                         const struct pisa_limits *limits, void *memory, char *why);

/* A packet begins: its header fields and payload are set, and the rest is cleared. */
void pisa_begin(struct pisa_switch *sw, struct pisa_packet *packet);
/* One pass of a packet. PISA_AGAIN: it has to pass again. */
enum pisa_fate pisa_pass(struct pisa_switch *sw, struct pisa_packet *packet);
/* A packet from its start to its fate. */
enum pisa_fate pisa_run(struct pisa_switch *sw, struct pisa_packet *packet);

/* The entry of a register, for the control plane and for tests. A value that is written is cut to
   the bits of the entry. */
uint64_t pisa_peek(const struct pisa_switch *sw, unsigned array, uint32_t index);
void pisa_poke(struct pisa_switch *sw, unsigned array, uint32_t index, uint64_t value);

#endif
