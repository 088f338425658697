/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file of training data, also compressed. The first bytes choose the rules. Every file is loaded
 * or refused with a sentence that names it. Both passes agree, and every value is finite.
 */
#include "fuzz.h"
#include "glm/data/glm_load.h"
#include "glm_values.h"

#include <math.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define FUZZ_COLUMNS 2000u

static void shard_try(const struct glm_source *source, const struct glm_rules *rules,
                      const struct glm_stats *stats, struct glm_shard shard)
{
	static float low[FUZZ_COLUMNS], step[FUZZ_COLUMNS], values[FUZZ_COLUMNS];
	struct glm_problem problem;
	struct glm_matrix matrix;
	float *labels;
	uint32_t row, j;

	if (shard.bits)
		quantize_plan(stats, shard.first, shard.count, shard.bits, low, step);
	shard.low = low;
	shard.step = step;
	/* The first pass took the file, so the second takes it too. */
	demand(glm_load(source, rules, stats, &shard, &matrix, &labels, &problem) == TRIB_OK);
	for (row = 0; row < matrix.rows; row++) {
		demand(isfinite(labels[row]));
		matrix_row_values(&matrix, row, low, step, values);
		for (j = 0; j < shard.count; j++)
			demand(isfinite(values[j]));
	}
	matrix_free(&matrix);
	free(labels);
}

static void file_try(const struct glm_source *source, const struct glm_rules *rules, uint8_t choice)
{
	static struct glm_stats stats;
	struct glm_problem problem;
	struct glm_shard shard = { .workers = 1 + choice % 2 };

	if (glm_scan(source, rules, &stats, &problem) != TRIB_OK) {
		demand(*trib_last_error());
		demand(strstr(trib_last_error(), source->path));
	} else {
		demand(stats.rows && stats.columns && stats.columns <= FUZZ_COLUMNS);
		shard.count = (stats.columns + 1) / 2;
		shard.first = stats.columns - shard.count;
		shard_try(source, rules, &stats, shard);
		shard.layout = GLM_DENSE;
		shard_try(source, rules, &stats, shard);
		shard.bits = 1 + choice / 32;
		shard.layout = GLM_WEAVED;
		shard_try(source, rules, &stats, shard);
		shard.layout = GLM_SPARSE;
		shard_try(source, rules, &stats, shard);
	}
	demand(problem.kept <= GLM_PROBLEMS_KEPT);
	glm_stats_free(&stats);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char delimiters[] = { 0, 0, ',', ' ' };
	static const char *const labels[] = { NULL, "-1", "y", "2" };
	struct glm_source source = { 0 };
	struct glm_rules rules = {
		.columns_max = FUZZ_COLUMNS - 1, .line_max = 5000, .twice = true, .quantized = true
	};
	char path[64];
	int file;

	if (size < 3)
		return 0;
	source.format = (enum glm_format)(data[0] % 3);
	source.base = (enum glm_base)(data[0] / 3 % 3);
	source.header = (enum glm_header)(data[0] / 9 % 3);
	source.missing = (enum glm_missing)(data[0] / 27 % 2);
	rules.skip = data[1] & 1;
	rules.task = (enum glm_task)(data[1] / 2 % 4);
	source.delimiter = delimiters[data[1] / 8 % 4];
	source.label = labels[data[1] / 32 % 4];
	file = memfd_create("rows", MFD_CLOEXEC);
	demand(file >= 0 && write(file, data + 3, size - 3) == (ssize_t)(size - 3));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	source.path = path;
	file_try(&source, &rules, data[2]);
	close(file);
	return 0;
}
