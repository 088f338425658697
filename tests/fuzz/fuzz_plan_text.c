/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plan that arrives in parts, any parts in any order. Nothing is written beyond the buffer. A
 * plan that counts as complete ends where it should, and all its parts are of one plan.
 */
#include "worker/trees/plan_text.h"
#include "fuzz.h"

#define PLANS 4u

static uint32_t number(struct fuzz_input *input)
{
	uint32_t low = fuzz_byte(input);

	return low | (uint32_t)fuzz_byte(input) << 8;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input input = { data, data + size };
	static struct {
		struct plan_text plan;
		char behind[8];
	} held;
	char part[WIRE_PLAN_PART + 2];

	memset(&held, 0, sizeof(held));
	while (input.at < input.end) {
		struct wire_welcome welcome = { .generation = fuzz_byte(&input) % PLANS };
		uint32_t length;

		welcome.text_bytes = number(&input);
		welcome.text_from = fuzz_byte(&input) % 20 * WIRE_PLAN_PART;
		length = number(&input);
		/* In most cases, of the correct length and filled with the plan's number. */
		if (length % 4 && welcome.text_bytes > welcome.text_from)
			length = welcome.text_bytes - welcome.text_from;
		length = length < WIRE_PLAN_PART + 1 - length % 8 / 7 ? length : WIRE_PLAN_PART;
		memset(part, 'a' + (int)welcome.generation, length);
		part[length] = '\0';
		if (!plan_text_take(&held.plan, &welcome, part))
			continue;
		demand(strlen(held.plan.text) == welcome.text_bytes);
		demand(strspn(held.plan.text, (char[2]){ (char)('a' + welcome.generation) }) ==
		       welcome.text_bytes);
	}
	for (unsigned i = 0; i < sizeof(held.behind); i++)
		demand(!held.behind[i]);
	return 0;
}
