/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The XDP program beside user space. An input is a datagram in a frame, then a script of nearly
 * valid packets, for a root and for an aggregator with a parent. Both must agree on each packet.
 * Exit code 77: no permission to load the program.
 */
#include "fuzz.h"
#include "xdp_script.h"

#define STEPS_MAX 64

static uint8_t byte(void *source)
{
	return fuzz_byte(source);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input input;
	static struct script script;
	static struct rig rig;

	if (!rig.plane) {
		rig_load(&rig, SCRIPT_PAYLOAD);
		script_lane(&rig);
	}
	for (unsigned with_parent = 0; with_parent < 2; with_parent++) {
		input = (struct fuzz_input){ data, data + size };
		script_clear(&rig, with_parent);
		script_datagram(&rig, data, size < UINT16_MAX ? (uint32_t)size : UINT16_MAX);
		script = (struct script){ .rig = &rig, .byte = byte, .source = &input };
		for (unsigned i = 0; i < STEPS_MAX && input.at < input.end; i++)
			script_step(&script);
	}
	return 0;
}
