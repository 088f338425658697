/* SPDX-License-Identifier: Apache-2.0 */
#include "pisa/pisa_sparse_program.h"

#include "pisa/pisa_writer.h"

#define F(name) PISA_FIELD(PUSH_F_##name)
#define N(number) PISA_FIELD((uint32_t)(number))

#define STAGE_NEXT 1
#define STAGE_END 11

static const struct pisa_sparse_layout *layout_of(const struct pisa_writer *w)
{
	return w->of;
}

/*
 * Two arrays with sums are in a stage. Sums by table: the first adders have stages 0 to 3, and the
 * others the four behind. Their sums follow.
 */
static uint8_t sum_stage(const struct pisa_sparse_layout *layout, unsigned array)
{
	return (uint8_t)((layout->kind == SPARSE_TABLE ? PISA_FLOAT_STAGES : 2) + array / 2);
}

static uint8_t durable_stage(const struct pisa_sparse_layout *layout)
{
	return layout->kind == SPARSE_TABLE ? 2 : sum_stage(layout, PISA_SPARSE_ARRAYS);
}

/* ---- parts of passes ---- */

static unsigned row_field(unsigned k)
{
	return PUSH_F_WORDS + k;
}

static unsigned piece_field(const struct pisa_writer *w)
{
	return PUSH_F_WORDS + (1u << layout_of(w)->group_bits);
}

static unsigned value_field(const struct pisa_writer *w, unsigned i)
{
	return piece_field(w) + 1 + i;
}

static void write_map(struct pisa_writer *w)
{
	entry_act(w, PUSH_A_MAP, K(0), PISA_ENTRY_READ, PUSH_F_MAP, K(0), K(0));
	compute(w, PISA_AND, PUSH_F_GENERATION, F(MAP), K(0xffff));
	compute(w, PISA_SHR, PUSH_F_BANK, F(MAP), K(PISA_SPARSE_BANK_SHIFT));
	compute(w, PISA_AND, PUSH_F_BANK, F(BANK), K(1));
	compute(w, PISA_SHR, PUSH_F_ASKS, F(MAP), K(PISA_SPARSE_ASKS_SHIFT));
	compute(w, PISA_ANDNOT, PUSH_F_ASKS, F(ASKS), F(APPROVED));
	compute(w, PISA_NE, PUSH_F_STALE, F(SCALE), F(GENERATION));
	set(w, PUSH_F_SEAT, F(CHILD));
}

/* Is the packet's sequence number in the window of the child's record? */
static void write_record(struct pisa_writer *w)
{
	put(w, (struct pisa_step){ .op = PISA_REGISTER,
	                           .array = PUSH_A_LOW,
	                           .index = F(SEAT),
	                           .actions = { PISA_ENTRY_READ },
	                           .n_actions = 1,
	                           .dst = PUSH_F_LOW,
	                           .dst_high = PUSH_F_OLDER });
	compute(w, PISA_SUB, PUSH_F_AHEAD, F(POS), F(LOW));
	compute(w, PISA_LT, PUSH_F_SEEN, F(POS), F(LOW));
	w->when = PUSH_F_OLDER;
	compute(w, PISA_SHR, PUSH_F_SEEN, F(AHEAD), K(31));
	w->when = 0;
	compute(w, PISA_GT, PUSH_F_BEYOND, F(AHEAD), K(SPARSE_WINDOW - 1));
	compute(w, PISA_ANDNOT, PUSH_F_BEYOND, F(BEYOND), F(SEEN));
}

/* Has the payload the form of so many rows? */
static void write_form(struct pisa_writer *w)
{
	look_up(w, PUSH_T_WINDOWS, PUSH_F_WINDOWS, F(N));
	look_up(w, PUSH_T_LENGTHS, PUSH_F_T, F(N));
	compute(w, PISA_NE, PUSH_F_WRONG, F(T), F(BYTES));
	compute(w, PISA_NE, PUSH_F_T, F(WIDTH), K(layout_of(w)->width));
	either(w, PUSH_F_WRONG, F(T));
	compute(w, PISA_NE, PUSH_F_T, F(UNUSED), K(0));
	either(w, PUSH_F_WRONG, F(T));
	compute(w, PISA_AND, PUSH_F_VOID, F(FROM), K(SPARSE_VOID));
	w->when = PUSH_F_VOID;
	compute(w, PISA_NE, PUSH_F_WRONG, F(BYTES), K(0));
	set(w, PUSH_F_WINDOWS, K(0));
	set(w, PUSH_F_STALE, K(0));
	set(w, PUSH_F_ASKS, K(0));
	w->when = 0;
}

/* Row numbers of the window ascend, and values are small. */
static void write_window(struct pisa_writer *w)
{
	for (unsigned k = 0; k < 1u << layout_of(w)->group_bits; k++) {
		compute(w, PISA_NE, PUSH_F_U, N(row_field(k)), K(PISA_SPARSE_NO_ROW));
		if (layout_of(w)->pieces > 1) { /* only with the first piece of a row */
			compute(w, PISA_EQ, PUSH_F_T, N(piece_field(w)), K(0));
			compute(w, PISA_AND, PUSH_F_U, F(U), F(T));
		}
		w->when = PUSH_F_U;
		compute(w, PISA_LT, PUSH_F_T, N(row_field(k)), F(LAST));
		either(w, PUSH_F_WRONG, F(T));
		compute(w, PISA_ADD, PUSH_F_LAST, N(row_field(k)), K(1));
		w->when = 0;
	}
	compute(w, PISA_GT, PUSH_F_T, F(LAST), K(layout_of(w)->rows));
	either(w, PUSH_F_WRONG, F(T));
	for (unsigned i = 0; layout_of(w)->kind == SPARSE_FIXED && i < PISA_SPARSE_ARRAYS; i++) {
		compute(w, PISA_ADD, PUSH_F_U, N(value_field(w, i)), K(SPARSE_LARGEST));
		compute(w, PISA_GT, PUSH_F_T, F(U), K(2 * (uint32_t)SPARSE_LARGEST));
		either(w, PUSH_F_WRONG, F(T));
	}
}

/* If nothing is against the packet and all of it was checked, it is entered into the record. */
static void write_commit(struct pisa_writer *w)
{
	compute(w, PISA_OR, PUSH_F_STOP, F(SEEN), F(BEYOND));
	either(w, PUSH_F_STOP, F(STALE));
	either(w, PUSH_F_STOP, F(WRONG));
	compute(w, PISA_ADD, PUSH_F_U, F(CHUNK), K(1));
	compute(w, PISA_LT, PUSH_F_MORE, F(U), F(WINDOWS));
	compute(w, PISA_OR, PUSH_F_T, F(STOP), F(MORE));
	compute(w, PISA_OR, PUSH_F_T, F(T), F(ASKS));
	compute(w, PISA_EQ, PUSH_F_COMMITS, F(T), K(0));
	w->stage = STAGE_NEXT;
	compute(w, PISA_SHL, PUSH_F_T, F(CHILD), K(8));
	compute(w, PISA_AND, PUSH_F_U, F(POS), K(SPARSE_WINDOW - 1));
	compute(w, PISA_OR, PUSH_F_INDEX, F(T), F(U));
	compute(w, PISA_ANDNOT, PUSH_F_BASE, F(POS), K(SPARSE_WINDOW - 1));
	compute(w, PISA_ADD, PUSH_F_NEXT, F(BASE), K(SPARSE_WINDOW));
	put(w, (struct pisa_step){ .op = PISA_REGISTER,
	                           .array = PUSH_A_NEXT,
	                           .index = F(INDEX),
	                           .actions = { PISA_ENTRY_READ, PISA_ENTRY_SWAP },
	                           .n_actions = 2,
	                           .select = PUSH_F_COMMITS,
	                           .dst = PUSH_F_OLD,
	                           .a = F(BASE),
	                           .b = F(NEXT) });
	compute(w, PISA_NE, PUSH_F_T, F(OLD), F(BASE));
	compute(w, PISA_ANDNOT, PUSH_F_T, F(T), F(BEYOND));
	either(w, PUSH_F_SEEN, F(T));
	either(w, PUSH_F_STOP, F(T));
	compute(w, PISA_ANDNOT, PUSH_F_COMMITS, F(COMMITS), F(T));
	set(w, PUSH_F_ACTS, F(COMMITS));
	set(w, PUSH_F_SCALE, F(GENERATION));
}

/* Group and index of each row in the window. */
static void write_places(struct pisa_writer *w)
{
	const struct pisa_sparse_layout *l = layout_of(w);
	const uint32_t groups = 1u << l->group_bits;

	compute(w, PISA_SHL, PUSH_F_U, F(BANK), K(l->cell_bits - 1));
	compute(w, PISA_OR, PUSH_F_U, F(U), N(piece_field(w)));
	for (unsigned k = 0; k < groups; k++) {
		unsigned group = PUSH_F_GROUP + k, cell = PUSH_F_CELLS + k;

		compute(w, PISA_SHR, cell, N(row_field(k)), K(l->group_bits));
		compute(w, PISA_SHL, cell, N(cell), K(l->piece_bits));
		compute(w, PISA_OR, cell, N(cell), F(U));
		compute(w, PISA_AND, group, N(row_field(k)), K(groups - 1));
		compute(w, PISA_NE, PUSH_F_T, N(row_field(k)), K(PISA_SPARSE_NO_ROW));
		w->when = PUSH_F_T;
		compute(w, PISA_OR, PUSH_F_NEEDS, F(NEEDS), K(1u << k));
		w->when = 0;
		compute(w, PISA_ANDNOT, PUSH_F_T, K(1u << k), F(NEEDS));
		compute(w, PISA_AND, PUSH_F_HIT, F(DONE), K(1u << k));
		either(w, PUSH_F_T, F(HIT));
		w->when = PUSH_F_T;
		set(w, group, K(groups)); /* none */
		w->when = 0;
	}
}

static unsigned group_words(const struct pisa_writer *w)
{
	return PISA_SPARSE_ARRAYS >> layout_of(w)->group_bits;
}

/*
 * A group of arrays adds the first row of the window that is its own and was not added yet. Its
 * place and values are looked for.
 */
static void write_choice(struct pisa_writer *w, unsigned g, bool place, bool values)
{
	unsigned words = group_words(w), addend = PUSH_F_ADDEND;

	if (layout_of(w)->kind == SPARSE_TABLE)
		addend += g * words;
	if (place)
		set(w, PUSH_F_WHO, K(0));
	for (unsigned k = 1u << layout_of(w)->group_bits; k-- > 0;) {
		compute(w, PISA_EQ, PUSH_F_T, N(PUSH_F_GROUP + k), K(g));
		w->when = PUSH_F_T;
		if (place) {
			set(w, PUSH_F_CELL, N(PUSH_F_CELLS + k));
			set(w, PUSH_F_WHO, K(1u << k));
		}
		for (unsigned j = 0; values && j < words; j++)
			set(w, addend + j, N(value_field(w, k * words + j)));
		w->when = 0;
	}
}

static void write_group(struct pisa_writer *w, unsigned g)
{
	unsigned words = group_words(w);

	w->stage = sum_stage(layout_of(w), g * words);
	write_choice(w, g, true, true);
	compute(w, PISA_NE, PUSH_F_HIT, F(WHO), K(0));
	compute(w, PISA_AND, PUSH_F_HIT, F(HIT), F(ACTS));
	w->when = PUSH_F_HIT;
	compute(w, PISA_OR, PUSH_F_DONE, F(DONE), F(WHO));
	for (unsigned j = 0; j < words; j++) {
		w->stage = sum_stage(layout_of(w), g * words + j);
		entry_act(w, PUSH_A_SUM + g * words + j, F(CELL), PISA_ENTRY_ADD, 0,
		          N(PUSH_F_ADDEND + j), K(0));
	}
	w->when = 0;
}

/* All rows of a pass, if values are integers. By table, each row takes passes of its own. */
static void write_sums(struct pisa_writer *w)
{
	write_places(w);
	for (unsigned g = 0;
	     layout_of(w)->kind == SPARSE_FIXED && g < 1u << layout_of(w)->group_bits; g++)
		write_group(w, g);
}

/* ---- sums by table ---- */

/* A stage of some adders, from the first one on. */
static void write_adders(struct pisa_writer *w, unsigned first, unsigned stage)
{
	for (unsigned i = 0; i < PISA_SPARSE_ADDERS; i++) {
		unsigned j = first + i;
		const struct pisa_float_adder adder = {
			.sum = (uint8_t)(PUSH_F_READ + j),
			.log = (uint8_t)(PUSH_F_LOG + j),
			.value = (uint8_t)(PUSH_F_ADDEND + j),
			.own = (uint8_t)(PUSH_F_OWN + i * PISA_FLOAT_OWN),
			.shared = PUSH_F_SHARED,
			.table = (uint8_t)(PUSH_T_FLOAT + j * PISA_FLOAT_TABLES),
		};

		pisa_float_write(w, &adder, stage);
	}
}

/* The new sum replaces the old one if that is still as it was read. Else it is read. */
static void write_swap(struct pisa_writer *w, unsigned j)
{
	compute(w, PISA_AND, PUSH_F_T, F(ADDED), K(1u << j));
	compute(w, PISA_EQ, PUSH_F_HIT, F(T), K(0));
	compute(w, PISA_NE, PUSH_F_T, F(WHO), K(0));
	compute(w, PISA_AND, PUSH_F_HIT, F(HIT), F(T));
	set(w, PUSH_F_T, K(0));
	w->when = PUSH_F_HIT;
	entry_act(w, PUSH_A_SUM + j, F(CELL), PISA_ENTRY_SWAP, PUSH_F_U, N(PUSH_F_READ + j),
	          N(PUSH_F_ADDEND + j));
	compute(w, PISA_EQ, PUSH_F_T, F(U), N(PUSH_F_READ + j));
	set(w, PUSH_F_READ + j, F(U));
	w->when = PUSH_F_T;
	compute(w, PISA_OR, PUSH_F_ADDED, F(ADDED), K(1u << j));
	w->when = 0;
}

/* Is the group's row added? Then the next one may follow. */
static void write_row_end(struct pisa_writer *w, unsigned g)
{
	unsigned words = group_words(w);
	uint32_t all = ((1u << words) - 1) << g * words;

	compute(w, PISA_AND, PUSH_F_T, F(ADDED), K(all));
	compute(w, PISA_EQ, PUSH_F_T, F(T), K(all));
	w->when = PUSH_F_T;
	compute(w, PISA_OR, PUSH_F_DONE, F(DONE), F(WHO));
	compute(w, PISA_ANDNOT, PUSH_F_ADDED, F(ADDED), K(all));
	for (unsigned j = 0; j < words; j++)
		set(w, PUSH_F_READ + g * words + j, K(0));
	w->when = 0;
}

/* The two arrays of a stage. */
static void write_swaps(struct pisa_writer *w, unsigned first)
{
	unsigned words = group_words(w);

	for (unsigned j = first; j < first + 2; j++) {
		if (j % words == 0)
			write_choice(w, j / words, true, false);
		write_swap(w, j);
		if ((j + 1) % words == 0)
			write_row_end(w, j / words);
	}
}

static void write_table_sums(struct pisa_writer *w)
{
	write_places(w);
	for (unsigned g = 0; g < 1u << layout_of(w)->group_bits; g++)
		write_choice(w, g, false, true);
	for (unsigned stage = 0; stage < 3 * PISA_FLOAT_STAGES; stage++) {
		w->stage = (uint8_t)stage;
		if (stage < 2 * PISA_FLOAT_STAGES)
			write_adders(w, stage / PISA_FLOAT_STAGES * PISA_SPARSE_ADDERS,
			             stage % PISA_FLOAT_STAGES);
		if (stage >= PISA_FLOAT_STAGES)
			write_swaps(w, 2 * (stage - PISA_FLOAT_STAGES));
	}
}

/* ---- the end of passes ---- */

static void write_durable(struct pisa_writer *w)
{
	w->stage = durable_stage(layout_of(w));
	entry_act(w, PUSH_A_DURABLE, F(SEAT), PISA_ENTRY_READ, PUSH_F_ACK, K(0), K(0));
}

/* What follows for a packet whose rows are added: the rest of the window, or the one before. */
static void write_rest(struct pisa_writer *w)
{
	w->stage = STAGE_END;
	w->when = PUSH_F_ACTS;
	set(w, PUSH_F_VERDICT, K(PUSH_ADDED));
	set(w, PUSH_F_FROM, K(0));
	set(w, PUSH_F_TO, K(WIRE_ALL));
	fate(w, PISA_TO_ONE, F(CHILD));
	w->when = 0;
	compute(w, PISA_ANDNOT, PUSH_F_T, F(NEEDS), F(DONE));
	compute(w, PISA_NE, PUSH_F_T, F(T), K(0));
	compute(w, PISA_AND, PUSH_F_T, F(T), F(ACTS));
	w->when = PUSH_F_T; /* two rows of one group */
	again(w, PUSH_P_ADD);
	w->when = 0;
	compute(w, PISA_NE, PUSH_F_U, F(CHUNK), K(0));
	compute(w, PISA_AND, PUSH_F_U, F(U), F(ACTS));
	compute(w, PISA_ANDNOT, PUSH_F_U, F(U), F(T));
	w->when = PUSH_F_U;
	compute(w, PISA_SUB, PUSH_F_CHUNK, F(CHUNK), K(1));
	set(w, PUSH_F_DONE, K(0));
	again(w, PUSH_P_ADD);
	w->when = 0;
}

static void write_refusal(struct pisa_writer *w, uint8_t when, enum sparse_refusal why)
{
	w->when = when;
	set(w, PUSH_F_TO, K(why));
	w->when = 0;
}

/* The answer to a packet that is not added, or its next pass. */
static void write_stop(struct pisa_writer *w)
{
	w->when = PUSH_F_STOP;
	set(w, PUSH_F_VERDICT, K(PUSH_REFUSED));
	set(w, PUSH_F_FROM, K(SPARSE_REFUSED));
	fate(w, PISA_TO_ONE, F(CHILD));
	write_refusal(w, PUSH_F_WRONG, SPARSE_BAD);
	write_refusal(w, PUSH_F_STALE, SPARSE_OTHER_MAP);
	write_refusal(w, PUSH_F_BEYOND, SPARSE_TOO_FAR);
	w->when = PUSH_F_SEEN;
	set(w, PUSH_F_VERDICT, K(PUSH_SEEN));
	set(w, PUSH_F_FROM, K(0));
	set(w, PUSH_F_TO, K(WIRE_ALL));
	w->when = 0;
	compute(w, PISA_ANDNOT, PUSH_F_MORE, F(MORE), F(STOP));
	compute(w, PISA_ANDNOT, PUSH_F_ASKS, F(ASKS), F(STOP));
	compute(w, PISA_ANDNOT, PUSH_F_ASKS, F(ASKS), F(MORE));
	w->when = PUSH_F_ASKS;
	set(w, PUSH_F_VERDICT, K(PUSH_ASKS));
	fate(w, PISA_TO_ONE, K(PISA_SPARSE_CPU));
	w->when = PUSH_F_MORE;
	compute(w, PISA_ADD, PUSH_F_CHUNK, F(CHUNK), K(1));
	again(w, PUSH_P_CHECK);
	w->when = 0;
}

/* ---- passes ---- */

static void write_first(struct pisa_writer *w)
{
	write_map(w);
	write_record(w);
	write_form(w);
	write_window(w);
	write_commit(w);
	write_sums(w);
	write_durable(w);
	write_rest(w);
	write_stop(w);
}

static void write_check(struct pisa_writer *w)
{
	write_map(w);
	write_window(w);
	write_commit(w);
	write_sums(w);
	write_durable(w);
	write_rest(w);
	write_stop(w);
}

static void write_add(struct pisa_writer *w)
{
	set(w, PUSH_F_ACTS, K(1));
	if (layout_of(w)->kind == SPARSE_TABLE)
		write_table_sums(w);
	else
		write_sums(w);
	write_rest(w);
}

/* ---- the whole program ---- */

struct pisa_sparse_layout pisa_sparse_lay_out(uint32_t width, uint32_t rows, unsigned children)
{
	struct pisa_sparse_layout l = { .width = width, .rows = rows };
	const unsigned array_bits = log2_above(PISA_SPARSE_ARRAYS), width_bits = log2_above(width);
	uint32_t per_array;

	l.pieces = (width + PISA_SPARSE_ARRAYS - 1) / PISA_SPARSE_ARRAYS;
	l.group_bits = width_bits < array_bits ? array_bits - width_bits : 0;
	l.piece_bits = log2_above(l.pieces);
	per_array = (rows + (1u << l.group_bits) - 1) >> l.group_bits;
	l.cell_bits = log2_above(per_array) + l.piece_bits + 1;
	l.child_bits = log2_above(children);
	return l;
}

uint32_t pisa_sparse_windows(const struct pisa_sparse_layout *layout, uint32_t n)
{
	return layout->group_bits ? (n + (1u << layout->group_bits) - 1) >> layout->group_bits
	                          : n * layout->pieces;
}

static void declare_fields(struct pisa_sparse_program *code)
{
	const struct pisa_sparse_layout *l = &code->layout;

	for (unsigned i = 1; i < PISA_SPARSE_FIELDS; i++)
		code->fields[i] = (struct pisa_field){ "value", 32 };
	code->fields[0] = (struct pisa_field){ "none", 0 };
	code->fields[PUSH_F_CHILD] = (struct pisa_field){ "child", 8 };
	code->fields[PUSH_F_SCALE] = (struct pisa_field){ "scale", 16 };
	code->fields[PUSH_F_SEAT] = (struct pisa_field){ "seat", (uint8_t)l->child_bits };
	code->fields[PUSH_F_INDEX] = (struct pisa_field){ "index", (uint8_t)(l->child_bits + 8) };
	code->fields[PUSH_F_CELL] = (struct pisa_field){ "cell", (uint8_t)l->cell_bits };
}

static void declare_arrays(struct pisa_sparse_program *code)
{
	static const char *const names[PISA_SPARSE_ARRAYS] = {
		"sum 0", "sum 1", "sum 2",  "sum 3",  "sum 4",  "sum 5",  "sum 6",  "sum 7",
		"sum 8", "sum 9", "sum 10", "sum 11", "sum 12", "sum 13", "sum 14", "sum 15"
	};
	const struct pisa_sparse_layout *l = &code->layout;
	uint32_t seats = 1u << l->child_bits;

	code->arrays[PUSH_A_MAP] = (struct pisa_array){ "map", 0, 32, 1 };
	code->arrays[PUSH_A_LOW] = (struct pisa_array){ "low", 0, 33, seats };
	code->arrays[PUSH_A_NEXT] =
		(struct pisa_array){ "next", STAGE_NEXT, 32, seats * SPARSE_WINDOW };
	code->arrays[PUSH_A_DURABLE] =
		(struct pisa_array){ "durable", durable_stage(l), 32, seats };
	for (unsigned j = 0; j < PISA_SPARSE_ARRAYS; j++)
		code->arrays[PUSH_A_SUM + j] =
			(struct pisa_array){ names[j], sum_stage(l, j), 32, 1u << l->cell_bits };
}

static void declare_tables(struct pisa_sparse_program *code, uint32_t payload,
                           const struct float_tables *tables)
{
	uint32_t n = sparse_rows_fit(payload, code->layout.width);

	for (uint32_t i = 0; i <= n; i++) {
		code->lengths[i] = sparse_rows_bytes(i, code->layout.width, 1);
		code->windows[i] = pisa_sparse_windows(&code->layout, i);
	}
	code->tables[PUSH_T_LENGTHS] =
		(struct pisa_table){ .name = "lengths", .rows = code->lengths, .n_rows = n + 1 };
	code->tables[PUSH_T_WINDOWS] =
		(struct pisa_table){ .name = "windows", .rows = code->windows, .n_rows = n + 1 };
	for (unsigned j = 0; code->layout.kind == SPARSE_TABLE && j < PISA_SPARSE_ARRAYS; j++)
		pisa_float_tables(&code->tables[PUSH_T_FLOAT + j * PISA_FLOAT_TABLES], tables,
		                  j / PISA_SPARSE_ADDERS * PISA_FLOAT_STAGES);
}

/*
 * All windows but the last are checked before. Then each row may take a pass of its own. A sum by
 * table takes two: to read it, and to replace it. The last check is no such pass.
 */
uint32_t pisa_sparse_recirculations(const struct pisa_sparse_layout *layout, uint32_t payload)
{
	uint32_t n = sparse_rows_fit(payload, layout->width);
	uint32_t windows = pisa_sparse_windows(layout, n);
	uint32_t adds = layout->group_bits ? n : windows;

	if (layout->kind == SPARSE_TABLE)
		return windows ? windows - 1 + 2 * adds : 0;
	return windows ? windows - 1 + adds - 1 : 0;
}

void pisa_sparse_write(struct pisa_sparse_program *code, const struct pisa_sparse_layout *layout,
                       uint32_t payload, const struct float_tables *tables)
{
	struct pisa_writer w = { .steps = code->steps,
		                 .room = PISA_SPARSE_STEPS,
		                 .of = &code->layout };

	code->layout = *layout;
	declare_tables(code, payload, tables);
	declare_fields(code);
	declare_arrays(code);
	code->passes[PUSH_P_FIRST] = write_pass(&w, "first", write_first);
	code->passes[PUSH_P_CHECK] = write_pass(&w, "check", write_check);
	code->passes[PUSH_P_ADD] = write_pass(&w, "add", write_add);
	code->program = (struct pisa_program){
		.name = "sparse",
		.fields = code->fields,
		.arrays = code->arrays,
		.tables = code->tables,
		.passes = code->passes,
		.n_fields = PISA_SPARSE_FIELDS,
		.n_arrays = PISA_SPARSE_ARRAYS_END,
		.n_tables = layout->kind == SPARSE_TABLE ? PISA_SPARSE_TABLES : PUSH_T_FLOAT,
		.n_passes = w.n_steps <= w.room ? PISA_SPARSE_PASSES : 0,
		.n_headers = PISA_SPARSE_HEADERS,
		.parse_field = PUSH_F_CHILD,
		.pass_if = PUSH_P_FIRST,
		.pass_else = PUSH_P_FIRST,
		.window = (uint8_t)pisa_sparse_window_words(layout),
		.first_word = PUSH_F_WORDS,
		.chunk_field = PUSH_F_CHUNK,
		.recirculations = pisa_sparse_recirculations(layout, payload),
	};
}
