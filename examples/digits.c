/* SPDX-License-Identifier: Apache-2.0 */
#include "digits.h"
#include "idx.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* MNIST archives differ in one character of the file names, and some are gzipped. */
static int file_find(char *path, size_t size, const char *folder, const char *name,
                     const char *what, int dims)
{
	for (int form = 0; form < 4; form++) {
		int length = snprintf(path, size, "%s/%s-%s%cidx%d-ubyte%s", folder, name, what,
		                      form & 1 ? '.' : '-', dims, form & 2 ? ".gz" : "");

		if (length < (int)size && access(path, R_OK) == 0)
			return 0;
	}
	return -1;
}

static uint8_t *part_read(const char *folder, const char *name, const char *what, int dims,
                          size_t *sizes, char *why)
{
	char path[PATH_MAX];

	if (file_find(path, sizeof(path), folder, name, what, dims) != 0) {
		snprintf(why, DIGITS_WHY, "%s: no readable %s-%s-idx%d-ubyte or .gz of it", folder,
		         name, what, dims);
		return NULL;
	}
	return idx_read(path, dims, sizes, why, DIGITS_WHY);
}

static int labels_check(const struct digits *set, const char *folder, const char *name, char *why)
{
	for (size_t i = 0; i < set->count; i++)
		if (set->labels[i] >= DIGITS_CLASSES) {
			snprintf(why, DIGITS_WHY, "%s: label %zu of %s is %u, which is no digit",
			         folder, i, name, set->labels[i]);
			return -1;
		}
	return 0;
}

int digits_load(struct digits *set, const char *folder, const char *name, char *why)
{
	size_t shape[IDX_IMAGES] = { 0 }, labels = 0;

	*set = (struct digits){ 0 };
	set->pixels = part_read(folder, name, "images", IDX_IMAGES, shape, why);
	if (!set->pixels)
		return -1;
	if (shape[1] != DIGITS_SIDE || shape[2] != DIGITS_SIDE) {
		snprintf(why, DIGITS_WHY, "%s: the %s pictures are %zu x %zu, not %d x %d", folder,
		         name, shape[1], shape[2], DIGITS_SIDE, DIGITS_SIDE);
		goto fail;
	}
	set->labels = part_read(folder, name, "labels", IDX_LABELS, &labels, why);
	if (!set->labels)
		goto fail;
	if (labels != shape[0]) {
		snprintf(why, DIGITS_WHY, "%s: %zu %s pictures have %zu labels", folder, shape[0],
		         name, labels);
		goto fail;
	}
	set->count = labels;
	if (labels_check(set, folder, name, why) == 0)
		return 0;
fail:
	digits_free(set);
	return -1;
}

void digits_free(struct digits *set)
{
	free(set->pixels);
	free(set->labels);
	*set = (struct digits){ 0 };
}

void digits_cut(struct digits *set, size_t count)
{
	if (count < set->count)
		set->count = count;
}
