/* SPDX-License-Identifier: Apache-2.0 */
/* The data of the training example: valid, broken and hostile files, and drawing. */
#include "digits.h"
#include "idx.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#ifdef HAVE_ZLIB
#include <zlib.h>
#endif

enum { COUNT = 5, IMAGES_HEADER = 16, LABELS_HEADER = 8 };
enum { IMAGES_SIZE = IMAGES_HEADER + COUNT * DIGITS_PIXELS, LABELS_SIZE = LABELS_HEADER + COUNT };

#define IMAGES "train-images-idx3-ubyte"
#define LABELS "train-labels-idx1-ubyte"

static char folder[64];
static uint8_t images[IMAGES_SIZE], labels[LABELS_SIZE];

static void put32(uint8_t *to, uint32_t value)
{
	for (int i = 0; i < 4; i++)
		to[i] = (uint8_t)(value >> (24 - 8 * i));
}

static const char *path_of(const char *name)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

static void file_write(const char *name, const void *bytes, size_t size)
{
	FILE *file = fopen(path_of(name), "wb");

	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, size, file), size);
	assert_int_equal(fclose(file), 0);
}

/* A valid pair of files in an empty folder, for each test to break. */
static int good_pair(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/test_digits.XXXXXX");
	assert_non_null(mkdtemp(folder));
	put32(images, 0x803);
	put32(images + 4, COUNT);
	put32(images + 8, DIGITS_SIDE);
	put32(images + 12, DIGITS_SIDE);
	put32(labels, 0x801);
	put32(labels + 4, COUNT);
	for (int i = 0; i < COUNT * DIGITS_PIXELS; i++)
		images[IMAGES_HEADER + i] = (uint8_t)(i * 7);
	for (int i = 0; i < COUNT; i++)
		labels[LABELS_HEADER + i] = (uint8_t)(9 - i);
	file_write(IMAGES, images, IMAGES_SIZE);
	file_write(LABELS, labels, LABELS_SIZE);
	return 0;
}

static int pair_remove(void **state)
{
	static const char *const names[] = { IMAGES, LABELS, IMAGES ".gz", LABELS ".gz" };

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		unlink(path_of(names[i]));
	return rmdir(folder);
}

static void expect_good(void)
{
	struct digits set;
	char why[DIGITS_WHY] = "";

	if (digits_load(&set, folder, "train", why) != 0)
		fail_msg("%s", why);
	assert_int_equal(set.count, COUNT);
	assert_memory_equal(set.pixels, images + IMAGES_HEADER, COUNT * DIGITS_PIXELS);
	assert_memory_equal(set.labels, labels + LABELS_HEADER, COUNT);
	digits_cut(&set, COUNT + 1);
	assert_int_equal(set.count, COUNT);
	digits_cut(&set, 2);
	assert_int_equal(set.count, 2);
	digits_free(&set);
	assert_null(set.pixels);
}

static void expect_refused(const char *part)
{
	struct digits set;
	char why[DIGITS_WHY] = "";

	assert_int_equal(digits_load(&set, folder, "train", why), -1);
	assert_null(set.pixels);
	assert_null(set.labels);
	if (!strstr(why, part))
		fail_msg("'%s' does not say '%s'", why, part);
}

static void test_good_files_load(void **state)
{
	(void)state;
	expect_good();
}

static void test_every_truncation_is_refused(void **state)
{
	(void)state;
	for (size_t size = 0; size < IMAGES_SIZE; size += size < 40 ? 1 : 97) {
		file_write(IMAGES, images, size);
		expect_refused(size < IMAGES_HEADER ? "inside its header" : "truncated");
	}
	file_write(IMAGES, images, IMAGES_SIZE);
	for (size_t size = 0; size < LABELS_SIZE; size++) {
		file_write(LABELS, labels, size);
		expect_refused(size < LABELS_HEADER ? "inside its header" : "truncated");
	}
}

static void test_longer_file_is_refused(void **state)
{
	uint8_t longer[LABELS_SIZE + 1] = { 0 };

	(void)state;
	memcpy(longer, labels, LABELS_SIZE);
	file_write(LABELS, longer, sizeof(longer));
	expect_refused("longer");
}

static void test_wrong_magic_is_refused(void **state)
{
	(void)state;
	put32(images, 0x801);
	file_write(IMAGES, images, IMAGES_SIZE);
	expect_refused("0x00000801 where 0x00000803");
	put32(images, 0x0d03); /* floats */
	file_write(IMAGES, images, IMAGES_SIZE);
	expect_refused("magic");
}

static void test_wrong_shape_is_refused(void **state)
{
	(void)state;
	put32(images + 8, DIGITS_SIDE / 2);
	put32(images + 12, DIGITS_SIDE * 2);
	file_write(IMAGES, images, IMAGES_SIZE);
	expect_refused("14 x 56");
}

static void test_unequal_counts_are_refused(void **state)
{
	(void)state;
	put32(labels + 4, COUNT - 1);
	file_write(LABELS, labels, LABELS_SIZE - 1);
	expect_refused("5 train pictures have 4 labels");
}

static void test_label_beyond_nine_is_refused(void **state)
{
	(void)state;
	labels[LABELS_HEADER + 3] = 10;
	file_write(LABELS, labels, LABELS_SIZE);
	expect_refused("label 3");
}

static void test_missing_files_are_named(void **state)
{
	(void)state;
	unlink(path_of(LABELS));
	expect_refused(LABELS);
	unlink(path_of(IMAGES));
	expect_refused(IMAGES);
}

static void test_zero_and_huge_sizes_are_refused(void **state)
{
	static const uint32_t sizes[] = { 0, 1u << 25, 1u << 31, UINT32_MAX };

	(void)state;
	for (int dimension = 0; dimension < 3; dimension++)
		for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
			uint8_t bad[IMAGES_SIZE];

			memcpy(bad, images, sizeof(bad));
			put32(bad + 4 + 4 * dimension, sizes[i]);
			file_write(IMAGES, bad, sizeof(bad));
			expect_refused("claims a size");
		}
}

/* Each size alone is valid, but together they are 256 TB. Memory must follow the content. */
static void test_lying_header_takes_no_memory(void **state)
{
	struct rusage before, after;

	(void)state;
	put32(images + 4, 1 << 24);
	put32(images + 8, 1 << 12);
	put32(images + 12, 1 << 12);
	file_write(IMAGES, images, IMAGES_SIZE);
	getrusage(RUSAGE_SELF, &before);
	expect_refused("truncated");
	getrusage(RUSAGE_SELF, &after);
	assert_in_range(after.ru_maxrss - before.ru_maxrss, 0, 16 << 10); /* KiB */
}

#ifdef HAVE_ZLIB
static void gzip_write(const char *name, const void *bytes, size_t size)
{
	gzFile file = gzopen(path_of(name), "wb");

	assert_non_null(file);
	assert_int_equal(gzwrite(file, bytes, (unsigned)size), (int)size);
	assert_int_equal(gzclose(file), Z_OK);
}

static void test_gzipped_files_load(void **state)
{
	(void)state;
	unlink(path_of(IMAGES));
	unlink(path_of(LABELS));
	gzip_write(IMAGES ".gz", images, IMAGES_SIZE);
	gzip_write(LABELS ".gz", labels, LABELS_SIZE);
	expect_good();
}

/* One changed byte is detected, or makes no difference. */
static void test_damaged_gzip_never_gives_wrong_data(void **state)
{
	uint8_t packed[IMAGES_SIZE];
	struct digits set;
	char why[DIGITS_WHY];
	FILE *file;
	size_t size;

	(void)state;
	gzip_write(IMAGES ".gz", images, IMAGES_SIZE);
	unlink(path_of(IMAGES));
	file = fopen(path_of(IMAGES ".gz"), "rb");
	assert_non_null(file);
	size = fread(packed, 1, sizeof(packed), file);
	fclose(file);
	assert_in_range(size, 40, sizeof(packed) - 1);
	file_write(IMAGES ".gz", packed, size / 2);
	expect_refused(IMAGES);
	for (size_t i = 0; i < size; i++) {
		packed[i] ^= 0x55;
		file_write(IMAGES ".gz", packed, size);
		packed[i] ^= 0x55;
		if (digits_load(&set, folder, "train", why) != 0)
			continue;
		assert_memory_equal(set.pixels, images + IMAGES_HEADER, COUNT * DIGITS_PIXELS);
		digits_free(&set);
	}
}
#endif

static struct digits draw(size_t count, uint64_t seed)
{
	struct digits set;
	char why[DIGITS_WHY] = "";

	if (digits_draw(&set, count, seed, why) != 0)
		fail_msg("%s", why);
	assert_int_equal(set.count, count);
	return set;
}

static void test_drawing_follows_the_seed(void **state)
{
	struct digits a = draw(300, 7), b = draw(100, 7), c = draw(100, 8);

	(void)state;
	assert_memory_equal(a.pixels, b.pixels, 100 * DIGITS_PIXELS);
	assert_memory_equal(a.labels, b.labels, 100);
	assert_memory_not_equal(b.pixels, c.pixels, 100 * DIGITS_PIXELS);
	digits_free(&a);
	digits_free(&b);
	digits_free(&c);
}

static void test_drawn_digits_are_all_there(void **state)
{
	struct digits set = draw(2000, 1);
	int seen[DIGITS_CLASSES] = { 0 };

	(void)state;
	for (size_t i = 0; i < set.count; i++) {
		const uint8_t *picture = set.pixels + i * DIGITS_PIXELS;
		int inked = 0;

		assert_in_range(set.labels[i], 0, DIGITS_CLASSES - 1);
		seen[set.labels[i]]++;
		for (int p = 0; p < DIGITS_PIXELS; p++)
			inked += picture[p] > 100;
		assert_in_range(inked, 8, DIGITS_PIXELS / 2);
	}
	for (int i = 0; i < DIGITS_CLASSES; i++)
		assert_in_range(seen[i], 140, 260);
	digits_free(&set);
}

#define FILE_TEST(name) cmocka_unit_test_setup_teardown(name, good_pair, pair_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		FILE_TEST(test_good_files_load),
		FILE_TEST(test_every_truncation_is_refused),
		FILE_TEST(test_longer_file_is_refused),
		FILE_TEST(test_wrong_magic_is_refused),
		FILE_TEST(test_wrong_shape_is_refused),
		FILE_TEST(test_unequal_counts_are_refused),
		FILE_TEST(test_label_beyond_nine_is_refused),
		FILE_TEST(test_missing_files_are_named),
		FILE_TEST(test_zero_and_huge_sizes_are_refused),
		FILE_TEST(test_lying_header_takes_no_memory),
#ifdef HAVE_ZLIB
		FILE_TEST(test_gzipped_files_load),
		FILE_TEST(test_damaged_gzip_never_gives_wrong_data),
#endif
		cmocka_unit_test(test_drawing_follows_the_seed),
		cmocka_unit_test(test_drawn_digits_are_all_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
