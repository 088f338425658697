/* SPDX-License-Identifier: Apache-2.0 */
/* The place in a tree that a JOIN describes: valid, invalid and equivalent ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "plane/core/join_check.h"

#include <string.h>

#define PORT 7700 /* of the aggregator */
#define PORTS 4u

static char why[300];

static struct wire_hop hop(uint64_t ranks, uint8_t last, uint16_t port)
{
	return (struct wire_hop){
		.ranks = ranks, .address = { 10, 255, 255, last }, .port = port, .family = 4
	};
}

/* Ranks 2 and 3 of 8 send here; the next aggregator has 0 to 3, the next all. */
static struct wire_join good(void)
{
	return (struct wire_join){ .rank = 3,
		                   .size = 8,
		                   .ranks = 0x0c,
		                   .hops = 2,
		                   .up = { hop(0x0f, 1, 7700), hop(0xff, 2, 7700) } };
}

static void refuses(struct wire_join join, const char *words)
{
	memset(why, 0, sizeof(why));
	assert_true(join_fault(PORT, PORTS, &join, why, sizeof(why)));
	if (!strstr(why, words))
		fail_msg("\"%s\" does not say \"%s\"", why, words);
}

#define REFUSES(words, ...)                     \
	do {                                    \
		struct wire_join join = good(); \
		__VA_ARGS__;                    \
		refuses(join, words);           \
	} while (0)

static void test_good(void **state)
{
	struct wire_join join = good(), star = { .rank = 63, .size = 64 };

	(void)state;
	assert_false(join_fault(PORT, PORTS, &join, why, sizeof(why)));
	assert_true(join_covers(&join) == 0x08 && join_ranks(&join) == 0x0c);
	join.covers = 0x0c;
	join.rank = 2;
	assert_false(join_fault(PORT, PORTS, &join, why, sizeof(why)));
	assert_false(join_fault(PORT, PORTS, &star, why, sizeof(why)));
	assert_true(join_covers(&star) == 1ull << 63 && join_ranks(&star) == ~0ull);
}

static void test_ranks(void **state)
{
	(void)state;
	REFUSES("claims ranks 3-4", join.covers = 0x18);         /* 4 does not come here */
	REFUSES("claims ranks 2-3", join.covers = 0x0c);         /* 3 is not the lowest */
	REFUSES("rank 1 of 8", join.rank = 1);                   /* not here at all */
	REFUSES("which is impossible", join.ranks = 0x10c);      /* beyond the size */
	REFUSES("only ranks 2-3 of 8", join.hops = 0);           /* a part, and nobody above */
	REFUSES("only ranks 0-3 of 8", join.hops = 1);           /* the top has not all */
	REFUSES("which has 0-1", join.up[0].ranks = 0x03);       /* not nested */
	REFUSES("come together below", join.up[1].ranks = 0xf0); /* not nested further up */
}

static void test_ways(void **state)
{
	(void)state;
	REFUSES("has no address", join.up[0].family = 5);
	REFUSES("has no address", join.up[1].port = 0);
	REFUSES("twice on the path up", join.up[1] = hop(0xff, 1, 7700));
	/* This machine's own address, at any of our ports; another port is another aggregator. */
	REFUSES("above itself", join.up[1] = hop(0xff, 1, 7703);
	        memcpy(join.up[1].address, (uint8_t[]){ 127, 0, 0, 1 }, 4));
	{
		struct wire_join join = good();

		join.up[1] = hop(0xff, 1, 7704);
		memcpy(join.up[1].address, (uint8_t[]){ 127, 0, 0, 1 }, 4);
		assert_false(join_fault(PORT, PORTS, &join, why, sizeof(why)));
	}
}

static void test_same_tree(void **state)
{
	struct wire_join a = good(), b = good();

	(void)state;
	b.rank = 2;
	b.nonce = 7;
	assert_true(join_same_tree(&a, &b));
	b.up[1].port++;
	assert_false(join_same_tree(&a, &b));
	b = good();
	b.hops = 1;
	assert_false(join_same_tree(&a, &b));
	b = good();
	b.ranks = 0x0e;
	assert_false(join_same_tree(&a, &b));
	/* Two encodings of "all ranks". */
	a = (struct wire_join){ .size = 8 };
	b = (struct wire_join){ .size = 8, .ranks = 0xff };
	assert_true(join_same_tree(&a, &b));
}

static void test_text(void **state)
{
	char out[64], tiny[12];

	(void)state;
	assert_string_equal(ranks_text(0x27, out, sizeof(out)), "0-2,5");
	assert_string_equal(ranks_text(~0ull, out, sizeof(out)), "0-63");
	assert_string_equal(ranks_text(0, out, sizeof(out)), "");
	ranks_text(0x5555555555555555ull, tiny, sizeof(tiny)); /* truncated and terminated */
	assert_true(strlen(tiny) < sizeof(tiny));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_good),
		                            cmocka_unit_test(test_ranks),
		                            cmocka_unit_test(test_ways),
		                            cmocka_unit_test(test_same_tree),
		                            cmocka_unit_test(test_text) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
