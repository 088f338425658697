/* SPDX-License-Identifier: Apache-2.0 */
/* Fabrics: their size, the trees that jobs may have, and the text format. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "plan/fabric/fabric.h"

#include <stdlib.h>
#include <string.h>

static void fat_tree_is_mina(void **state)
{
	struct fabric fabric = { .link_jobs = 1, .switch_jobs = 1 };

	(void)state;
	assert_int_equal(fabric_fat_tree(&fabric, 16, 1), TRIB_OK);
	assert_int_equal(fabric.hosts, 1024);
	assert_int_equal(fabric.switches, 320);
	assert_int_equal(fabric.ways[1], 1);
	assert_int_equal(fabric.ways[2], 8);
	assert_int_equal(fabric.ways[3], 64);
	/* 128 switches on each of the first two levels have 8 links upward each. */
	assert_int_equal(fabric.links, 2048);
	assert_int_equal(fabric.resources, 2048 + 320);
	assert_int_equal(fabric_fat_tree(&fabric, 16, 4), TRIB_OK);
	assert_int_equal(fabric.ways[3], 4);
	assert_int_not_equal(fabric_fat_tree(&fabric, 15, 1), TRIB_OK);
	assert_int_not_equal(fabric_fat_tree(&fabric, 16, 9), TRIB_OK);
}

/* The parent of a node on the path to a root, digit by digit as the header describes it. */
static void walk(const struct fabric *fabric, uint32_t host, unsigned level, uint32_t root,
                 uint8_t *used)
{
	uint32_t digits = 0, weight = 1;

	for (unsigned l = 0; l < level; l++) {
		uint32_t digit = root / weight % fabric->up[l];

		if (l) /* the link above a switch of level l */
			used[fabric->link_base[l] + host / fabric->size[l] * fabric->ways[l + 1] +
			     digits + digit * weight] = 1;
		digits += digit * weight;
		weight *= fabric->up[l];
		used[fabric->switch_base[l + 1] + host / fabric->size[l + 1] * fabric->ways[l + 1] +
		     digits] = 1;
	}
}

static void tree_check(const struct fabric *fabric, const uint32_t *hosts, uint32_t n)
{
	uint32_t pods[64], tree[128];
	struct footprint footprint;
	uint8_t *used = calloc(fabric->resources, 1);

	assert_non_null(used);
	footprint_fill(&footprint, fabric, hosts, n, pods);
	for (uint32_t root = 0; root < fabric->ways[footprint.level]; root++) {
		uint32_t count = fabric_tree(fabric, &footprint, root, tree), all = 0;

		assert_int_equal(count, footprint_resources(&footprint, fabric));
		memset(used, 0, fabric->resources);
		for (uint32_t i = 0; i < n; i++)
			walk(fabric, hosts[i], footprint.level, root, used);
		for (uint32_t i = 0; i < fabric->resources; i++)
			all += used[i];
		assert_int_equal(all, count);
		for (uint32_t i = 0; i < count; i++) {
			assert_true(used[tree[i]]);
			assert_true(!i || tree[i] > tree[i - 1]);
		}
	}
	free(used);
}

/*
 * For every set of hosts of a small fabric: a tree consists of everything between its hosts and the
 * root.
 */
static void trees_are_ways_to_the_root(void **state)
{
	static const struct fabric fabrics[] = {
		{ .levels = 3, .down = { 2, 2, 3 }, .up = { 1, 2, 3 } },
		{ .levels = 2, .down = { 3, 4 }, .up = { 1, 3 } },
		{ .levels = 3, .down = { 2, 2, 2 }, .up = { 2, 1, 2 } },
		{ .levels = 1, .down = { 5 }, .up = { 1 } },
	};

	(void)state;
	for (unsigned f = 0; f < sizeof(fabrics) / sizeof(fabrics[0]); f++) {
		struct fabric fabric = fabrics[f];

		fabric.link_jobs = fabric.switch_jobs = 1;
		assert_int_equal(fabric_complete(&fabric), TRIB_OK);
		for (uint32_t mask = 1; mask < 1u << fabric.hosts; mask++) {
			uint32_t hosts[32], n = 0;

			for (uint32_t h = 0; h < fabric.hosts; h++)
				if (mask >> h & 1)
					hosts[n++] = h;
			tree_check(&fabric, hosts, n);
		}
	}
}

static void text_is_read(void **state)
{
	struct fabric fabric = { .link_jobs = 1 };

	(void)state;
	assert_int_equal(fabric_parse(&fabric, "# ours\nlevel 16 1\n\nlevel 8 4 # spines\n"
	                                       "switch 2\nlink 0"),
	                 TRIB_OK);
	assert_int_equal(fabric.hosts, 128);
	assert_int_equal(fabric.ways[2], 4);
	assert_int_equal(fabric.switch_jobs, 2);
	assert_int_equal(fabric.link_jobs, 0);
	assert_int_equal(fabric.resources, 12);
}

static void bad_text_names_its_line(void **state)
{
	static const struct {
		const char *text, *says;
	} bad[] = {
		{ "level 16 1\nlevel x 1\n", "2: expected" },
		{ "level 16 1\n\n#\nhosts 3\n", "4: expected" },
		{ "level 16\n", "1: expected" },
		{ "level 16 1 1 1 1\n", "1: more than" },
		{ "# nothing\n", "no \"level" },
		{ "level 0 1\n", "at least 1" },
		{ "level 100000 1\nlevel 100000 1", "more than" },
		{ "level 1 1\nlevel 1 1\nlevel 1 1\nlevel 1 1\nlevel 1 1\nlevel 1 1",
		  "6: more than" },
	};
	struct fabric fabric = { 0 };

	(void)state;
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_not_equal(fabric_parse(&fabric, bad[i].text), TRIB_OK);
		assert_non_null(strstr(trib_last_error(), bad[i].says));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fat_tree_is_mina),
		cmocka_unit_test(trees_are_ways_to_the_root),
		cmocka_unit_test(text_is_read),
		cmocka_unit_test(bad_text_names_its_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
