/* SPDX-License-Identifier: Apache-2.0 */
#include "glm/train/checkpoint.h"

#include "glm/model/model_bytes.h"

#include <stdlib.h>

static const char magic[8] = "TRIBCKP\n";
#define VERSION 1u
#define CLASSES_MAX 1024u
#define COLUMNS_MAX (1u << 26)
#define EPOCH_BYTES 48u

trib_status checkpoint_write(const struct checkpoint *state, const char *path)
{
	size_t n = (size_t)state->classes * state->columns;
	struct bytes_writer out;
	trib_status status = bytes_create(&out, path);

	if (status != TRIB_OK)
		return status;
	bytes_put(&out, magic, sizeof(magic));
	bytes_put_u32(&out, VERSION);
	bytes_put_u32(&out, state->h ? 1 : 0);
	bytes_put_u64(&out, state->fingerprint);
	bytes_put_u32(&out, state->classes);
	bytes_put_u32(&out, state->columns);
	bytes_put_u32(&out, state->epochs);
	bytes_put_u32(&out, 0);
	for (uint32_t i = 0; i < state->epochs; i++) {
		const struct checkpoint_epoch *epoch = &state->history[i];

		bytes_put_f64(&out, epoch->train_loss);
		bytes_put_f64(&out, epoch->train_accuracy);
		bytes_put_f64(&out, epoch->test_loss);
		bytes_put_f64(&out, epoch->test_accuracy);
		bytes_put_f64(&out, epoch->seconds);
		bytes_put_u64(&out, epoch->saturated);
	}
	bytes_put_floats(&out, state->bias, 2 * (size_t)state->classes);
	bytes_put_floats(&out, state->x, n);
	if (state->h)
		bytes_put_floats(&out, state->h, n);
	return bytes_commit(&out);
}

static trib_status damaged(const char *what)
{
	return status_fail(TRIB_ERR_ARGUMENT, "the checkpoint is damaged: %s", what);
}

static void history_parse(struct bytes_reader *in, struct checkpoint *state)
{
	for (uint32_t i = 0; i < state->epochs; i++) {
		struct checkpoint_epoch *epoch = &state->history[i];

		epoch->train_loss = bytes_get_f64(in);
		epoch->train_accuracy = bytes_get_f64(in);
		epoch->test_loss = bytes_get_f64(in);
		epoch->test_accuracy = bytes_get_f64(in);
		epoch->seconds = bytes_get_f64(in);
		epoch->saturated = bytes_get_u64(in);
	}
}

trib_status checkpoint_parse(const uint8_t *bytes, size_t n, struct checkpoint *state)
{
	struct bytes_reader in;
	trib_status status = bytes_open(&in, "checkpoint of trib glm", magic, bytes, n);
	uint32_t version, has_h;
	size_t weights;

	*state = (struct checkpoint){ 0 };
	if (status != TRIB_OK)
		return status;
	version = bytes_get_u32(&in);
	has_h = bytes_get_u32(&in);
	if (version != VERSION)
		return status_fail(
			TRIB_ERR_ARGUMENT,
			"the checkpoint has version %u, and this program knows version %u", version,
			VERSION);
	state->fingerprint = bytes_get_u64(&in);
	state->classes = bytes_get_u32(&in);
	state->columns = bytes_get_u32(&in);
	state->epochs = bytes_get_u32(&in);
	bytes_get_u32(&in);
	if (in.failed || has_h > 1 || !state->classes || state->classes > CLASSES_MAX ||
	    state->columns > COLUMNS_MAX ||
	    state->epochs > (uint64_t)(in.end - in.at) / EPOCH_BYTES) {
		state->epochs = 0;
		return damaged("its head is wrong");
	}
	state->history = calloc((size_t)state->epochs + 1, sizeof(*state->history));
	if (!state->history)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for a checkpoint");
	history_parse(&in, state);
	weights = (size_t)state->classes * state->columns;
	state->bias = bytes_get_floats(&in, 2 * (uint64_t)state->classes);
	state->x = bytes_get_floats(&in, weights);
	state->h = has_h ? bytes_get_floats(&in, weights) : NULL;
	if (in.failed || in.at != in.end)
		return damaged("its length is wrong");
	if (!state->bias || !state->x || (has_h && !state->h))
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for a checkpoint");
	return TRIB_OK;
}

trib_status checkpoint_read(const char *path, struct checkpoint *state)
{
	uint8_t *bytes;
	size_t n;
	trib_status status = bytes_load(path, &bytes, &n);

	*state = (struct checkpoint){ 0 };
	if (status == TRIB_OK) {
		status = checkpoint_parse(bytes, n, state);
		if (status != TRIB_OK)
			status_fail(status, "%s: %s", path, trib_last_error());
	}
	free(bytes);
	return status;
}

void checkpoint_free(struct checkpoint *state)
{
	free(state->history);
	free(state->x);
	free(state->h);
	free(state->bias);
	*state = (struct checkpoint){ 0 };
}
