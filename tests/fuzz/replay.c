/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay: a main function for fuzz targets without libFuzzer. Runs the target once with every file
 * given, and with every file in each folder given.
 */
#include <dirent.h>
#include <err.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INPUT_MAX (1 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void replay_file(const char *path)
{
	FILE *file = fopen(path, "rb");
	if (!file)
		err(1, "%s", path);
	uint8_t *all = malloc(INPUT_MAX);
	if (!all)
		err(1, "%s", path);
	size_t size = fread(all, 1, INPUT_MAX, file);
	if (ferror(file))
		err(1, "%s", path);
	fclose(file);
	/* A copy of the exact size, so that a sanitizer detects reads beyond the end. */
	uint8_t *data = malloc(size ? size : 1);
	if (!data)
		err(1, "%s", path);
	memcpy(data, all, size);
	LLVMFuzzerTestOneInput(data, size);
	free(data);
	free(all);
}

static unsigned replay(const char *path)
{
	DIR *folder = opendir(path);
	if (!folder && errno == ENOTDIR) {
		replay_file(path);
		return 1;
	}
	if (!folder)
		err(1, "%s", path);
	unsigned n = 0;
	for (struct dirent *entry; (entry = readdir(folder));) {
		char name[4096];
		if (entry->d_name[0] == '.')
			continue;
		snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
		n += replay(name);
	}
	closedir(folder);
	return n;
}

int main(int argc, char **argv)
{
	unsigned n = 0;
	for (int i = 1; i < argc; i++)
		n += replay(argv[i]);
	printf("replayed %u inputs\n", n);
	return n ? 0 : 1;
}
