/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The switch with any packets: the slot program must break no rule, and must say what engine/slot.h
 * says. An input also makes small programs at random: what the loader accepts runs without a fault
 * that the loader should have found.
 */
#include "fuzz.h"
#include "pisa_reference.h"

#define STEPS_MAX 24u

static uint32_t fuzz_word(struct fuzz_input *input)
{
	uint32_t word = 0;

	for (int i = 0; i < 4; i++)
		word = word << 8 | fuzz_byte(input);
	return word;
}

/* ---- the slot program ---- */

/* Near the slots' operations. No child sends an operation before 0, where the two differ. */
static uint32_t position_of(struct reference *r, uint8_t step)
{
	uint64_t position = r->cells[step % r->lane.slots].position;

	if (step & 0x80)
		position += r->lane.slots;
	else if (step & 0x40 && position >= r->lane.slots)
		position -= r->lane.slots;
	return (uint32_t)position;
}

static void packet_give(struct reference *r, struct fuzz_input *input)
{
	struct wire_header packet = { .type = WIRE_DATA };
	uint64_t payload[REFERENCE_PAYLOAD / 8];
	uint32_t bytes;

	packet.pos = position_of(r, fuzz_byte(input));
	packet.ack = position_of(r, fuzz_byte(input));
	packet.from = fuzz_byte(input);
	packet.child = fuzz_byte(input) % 40;
	packet.op = fuzz_byte(input) % (WIRE_OPS_END + 2);
	packet.to = fuzz_byte(input) & 1 ? WIRE_ALL : 3;
	packet.flags = fuzz_byte(input) & (WIRE_RESENT | WIRE_AVERAGE);
	packet.scale = fuzz_byte(input) % 4;
	bytes = fuzz_byte(input) % (REFERENCE_PAYLOAD + 1);
	for (unsigned i = 0; i < REFERENCE_PAYLOAD / 8; i++)
		payload[i] = fuzz_byte(input) * 0x0101010181818181ull;
	if (packet.from & SLOT_BARE)
		bytes = 0;
	reference_both(r, &packet, payload, bytes);
	demand(r->slot.sw.counters.broken == 0);
}

static void slot_give(struct fuzz_input *input)
{
	static struct reference r;

	memset(&r, 0, sizeof(r));
	reference_start(&r, 1 + fuzz_byte(input) % 32, 1u << fuzz_byte(input) % 5,
	                8u * (1 + fuzz_byte(input) % 16), 0);
	while (input->at < input->end)
		packet_give(&r, input);
	reference_end(&r);
}

/* ---- any program ---- */

enum { FIELDS = 8, ARRAYS = 4, WINDOW = 2 };

static struct pisa_operand operand_give(struct fuzz_input *input)
{
	uint8_t what = fuzz_byte(input);

	return what & 0x80 ? PISA_CONST(what & 0x3f) : PISA_FIELD(what % (FIELDS + 1));
}

static struct pisa_step step_give(struct fuzz_input *input)
{
	struct pisa_step step = { .op = fuzz_byte(input) % (PISA_OPS_END + 1),
		                  .stage = fuzz_byte(input) % 5,
		                  .when = fuzz_byte(input) % FIELDS,
		                  .dst = fuzz_byte(input) % FIELDS,
		                  .a = operand_give(input),
		                  .b = operand_give(input) };

	step.array = fuzz_byte(input) % (ARRAYS + 1);
	step.index = operand_give(input);
	step.n_actions = fuzz_byte(input) % 4;
	for (unsigned i = 0; i < PISA_ACTIONS_MAX; i++)
		step.actions[i] = fuzz_byte(input) % (PISA_ENTRY_END + 1);
	step.select = fuzz_byte(input) % FIELDS;
	step.dst_high = fuzz_byte(input) % FIELDS;
	step.pass = fuzz_byte(input) % 3;
	step.table = fuzz_byte(input) % 3;
	return step;
}

/* Rules that follow from the program alone: no packet may break them once it is loaded. */
static void run_check(const struct pisa_program *program, const struct pisa_limits *limits,
                      struct fuzz_input *input)
{
	static uint64_t memory[4096];
	struct pisa_switch sw;
	struct pisa_packet packet;
	uint32_t words[4] = { 1, 2, 3, 4 };
	char why[PISA_WHY_MAX];

	if (pisa_memory(program) > sizeof(memory) ||
	    pisa_load(&sw, program, limits, memory, why) != PISA_OBEYS)
		return;
	for (unsigned i = 0; i < 8; i++) {
		memset(&packet, 0, sizeof(packet));
		packet.words = words;
		packet.n_words = packet.room = 4;
		for (unsigned f = 0; f < FIELDS; f++)
			packet.field[f] = fuzz_word(input);
		demand(pisa_run(&sw, &packet) != PISA_AGAIN);
		demand(packet.field[0] == 0 && packet.recirculated <= limits->recirculations);
	}
	demand(!sw.counters.broke[PISA_RULE_ONE_ACCESS] &&
	       !sw.counters.broke[PISA_RULE_HOME_STAGE] && !sw.counters.broke[PISA_RULE_FORWARD]);
	demand(sw.counters.passes == sw.counters.packets + sw.counters.recirculations);
}

static void program_give(struct fuzz_input *input)
{
	static const uint32_t rows[] = { 1, 2, 3 };
	static const uint16_t halves[] = { 4, 5 };
	static const struct pisa_table tables[] = {
		{ .name = "small", .rows = rows, .n_rows = 3 },
		{ .name = "large", .halves = halves, .n_rows = 2, .stage = 1, .bits = 16 },
	};
	static struct pisa_field fields[FIELDS];
	static struct pisa_array arrays[ARRAYS];
	static struct pisa_step steps[STEPS_MAX];
	uint32_t n = fuzz_byte(input) % STEPS_MAX, half = n / 2;
	const struct pisa_pass passes[] = { { "first", steps, half },
		                            { "second", steps + half, n - half } };
	const struct pisa_program program = { "fuzz", fields,
		                              arrays, tables,
		                              passes, FIELDS,
		                              ARRAYS, 2,
		                              2,      fuzz_byte(input) % (FIELDS + 2),
		                              1,      1,
		                              1,      0,
		                              WINDOW, FIELDS - WINDOW,
		                              2,      0 };
	struct pisa_limits limits = pisa_limits_default();

	limits.recirculations = 8;
	for (unsigned i = 0; i < FIELDS; i++)
		fields[i] = (struct pisa_field){ "field", i ? 2 + fuzz_byte(input) % 31 : 0 };
	for (unsigned i = 0; i < ARRAYS; i++)
		arrays[i] = (struct pisa_array){ "array", fuzz_byte(input) % 4,
			                         fuzz_byte(input) % 66, fuzz_byte(input) };
	for (uint32_t i = 0; i < n; i++)
		steps[i] = step_give(input);
	run_check(&program, &limits, input);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input input = { data, data + size };

	if (fuzz_byte(&input) & 1)
		slot_give(&input);
	else
		program_give(&input);
	return 0;
}
