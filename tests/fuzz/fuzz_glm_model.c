/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of models and checkpoints. They are read, or refused with a sentence. The checksum would
 * keep most inputs from the parsers, so the fuzzer's bytes get a right one. The first byte chooses.
 */
#include "fuzz.h"
#include "glm/model/model_bytes.h"
#include "glm/model/model_file.h"
#include "glm/train/checkpoint.h"

#include <math.h>
#include <string.h>

static void model_try(const uint8_t *bytes, size_t n)
{
	static const uint32_t columns[] = { 0, 5 };
	static const float values[] = { 1, 2 };
	trib_glm_model *model;

	if (model_parse(bytes, n, &model) == TRIB_OK) {
		trib_glm_model_info info = { .struct_size = sizeof(info) };
		double scores[1024];

		demand(trib_glm_model_describe(model, &info) == TRIB_OK);
		demand(info.loss && info.vectors >= 1 && info.vectors <= 1024);
		trib_glm_model_score(model, columns, values, 2, scores);
		demand(isfinite(trib_glm_model_label(model, scores)));
		for (uint32_t j = 0; info.names && j < info.columns; j++)
			demand(strlen(info.names[j]) < n);
		trib_glm_model_free(model);
	} else {
		demand(!model && *trib_last_error());
	}
}

static void checkpoint_try(const uint8_t *bytes, size_t n)
{
	struct checkpoint state;

	if (checkpoint_parse(bytes, n, &state) == TRIB_OK)
		demand(state.x && state.bias && state.history);
	else
		demand(*trib_last_error());
	checkpoint_free(&state);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *bytes;
	uint64_t sum;

	if (size < 9)
		return 0;
	/* The input without its first byte, and a checksum behind it if that byte is odd. */
	bytes = malloc(size + 8);
	demand(bytes);
	memcpy(bytes, data + 1, size - 1);
	sum = bytes_sum(BYTES_SUM_START, bytes, size - 1);
	for (unsigned i = 0; i < 8; i++)
		bytes[size - 1 + i] = (uint8_t)(sum >> 8 * i);
	model_try(bytes, data[0] & 1 ? size + 7 : size - 1);
	checkpoint_try(bytes, data[0] & 1 ? size + 7 : size - 1);
	free(bytes);
	return 0;
}
