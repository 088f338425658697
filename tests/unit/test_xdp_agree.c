/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The XDP program and user space agree on what each packet is and what it
 * does, over many packets that are nearly right.
 *
 * Usage: test_xdp_agree [SEED [PACKETS]]
 */
#include "base/clock.h"
#include "xdp_script.h"

#define ROUND 1000u /* packets until the lane is empty again */

static uint8_t byte(void *source)
{
	return (uint8_t)(rig_random(source) >> 40);
}

int main(int argc, char **argv)
{
	uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : clock_now();
	uint64_t packets = argc > 2 ? strtoull(argv[2], NULL, 0) : rig_is_short() ? 20000 : 300000;
	static uint64_t taken[XDP_VERDICTS], passed;
	static struct script script;
	static struct rig rig;
	uint64_t random = seed;

	printf("seed %llu, %llu packets\n", (unsigned long long)seed, (unsigned long long)packets);
	fflush(stdout);
	rig_load(&rig, SCRIPT_PAYLOAD);
	script_lane(&rig);
	script = (struct script){ .rig = &rig, .byte = byte, .source = &random };
	for (uint64_t i = 0; i < packets; i++) {
		int how;

		if (i % ROUND == 0)
			rig_clear(&rig);
		how = script_step(&script);
		if (how == TAKEN_NOT)
			passed++;
		else
			taken[how]++;
	}
	rig_unload(&rig);
	printf("passed %llu; taken, by verdict, the last corrupted:", (unsigned long long)passed);
	for (unsigned i = 0; i <= (unsigned)TAKEN_CORRUPTED; i++)
		printf(" %llu", (unsigned long long)taken[i]);
	printf("\n");
	/* None of them is rare, or this would prove little. */
	demand(passed > packets / 100 && taken[TAKEN_CORRUPTED] > packets / 100);
	for (unsigned i = 0; i <= DENSE_LOWER; i++)
		demand(taken[i] > packets / 1000);
	return 0;
}
