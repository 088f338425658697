/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The XDP program and user space agree on the verdict and the effect of each packet, for many
 * nearly valid packets.
 *
 *   test_xdp_agree [SEED [PACKETS]]
 */
#include "base/clock.h"
#include "xdp_script.h"

/* Packets until the lane is cleared. With a parent the window is soon stuck. */
#define ROUND (has_parent ? 250u : 1000u)

static uint8_t byte(void *source)
{
	return (uint8_t)(rig_random(source) >> 40);
}

/* The fates of the packets. */
struct tally {
	uint64_t taken[XDP_VERDICTS], passed, left;
};

static void run(struct rig *rig, bool has_parent, uint64_t packets, uint64_t *random,
                struct tally *tally)
{
	static struct script script;

	script = (struct script){ .rig = rig, .byte = byte, .source = random };
	for (uint64_t i = 0; i < packets; i++) {
		int how;

		if (i % ROUND == 0)
			script_clear(rig, has_parent);
		how = script_step(&script);
		if (how == TAKEN_NOT)
			tally->passed++;
		else if (how == TAKEN_LEFT)
			tally->left++;
		else
			tally->taken[how]++;
	}
	printf("%s: passed %llu, left %llu; taken, by verdict, the last corrupted:",
	       has_parent ? "with a parent" : "without a parent", (unsigned long long)tally->passed,
	       (unsigned long long)tally->left);
	for (unsigned i = 0; i <= (unsigned)TAKEN_CORRUPTED; i++)
		printf(" %llu", (unsigned long long)tally->taken[i]);
	printf("\n");
}

int main(int argc, char **argv)
{
	uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : clock_now();
	uint64_t packets = argc > 2 ? strtoull(argv[2], NULL, 0) : test_cases("packets", 300000);
	static struct tally root, middle;
	static struct rig rig;
	uint64_t random = seed;

	printf("seed %llu, %llu packets\n", (unsigned long long)seed, (unsigned long long)packets);
	fflush(stdout);
	rig_load(&rig, SCRIPT_PAYLOAD);
	script_lane(&rig);
	run(&rig, false, packets, &random, &root);
	run(&rig, true, packets, &random, &middle);
	/* Every fate occurs often enough to prove something. */
	demand(root.passed > packets / 100 && root.taken[TAKEN_CORRUPTED] > packets / 100);
	demand(middle.passed > packets / 100 && middle.taken[TAKEN_CORRUPTED] > packets / 100);
	for (unsigned i = 0; i <= DENSE_LOWER; i++) {
		demand(root.taken[i] > packets / 1000);
		demand(i == DENSE_AHEAD || middle.taken[i] > packets / 2000);
	}
	demand(middle.taken[DENSE_SUMMED] > packets / 1000 && middle.left > packets / 2000);
	printf("by the queue: %llu\n", (unsigned long long)rig.counts.queued);
	demand(rig.counts.queued > packets / 100 && !rig.counts.full);
	demand(rig.counts.lowered == middle.taken[DENSE_COMPLETE]);
	rig_unload(&rig);
	return 0;
}
