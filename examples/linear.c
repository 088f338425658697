/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trains a linear model with <tributary/glm.h>, and predicts a row with it.
 *
 *     cc linear.c $(pkg-config --cflags --libs tributary-glm)
 *     ./a.out FILE                        one worker
 *     trib run -n 4 -- ./a.out FILE       four workers, each with a part of the columns
 */
#include <tributary/glm.h>

#include <err.h>
#include <stdio.h>
#include <stdlib.h>

static void epoch_print(void *context, const trib_glm_epoch *epoch)
{
	const int *rank = context;

	if (*rank == 0)
		printf("epoch %d of %d: loss %.6f, accuracy %.4f, %.3f s\n", epoch->epoch,
		       epoch->epochs, epoch->train.loss, epoch->train.accuracy,
		       epoch->total_seconds);
}

int main(int argc, char **argv)
{
	trib_glm_options options = TRIB_GLM_OPTIONS_INIT;
	trib_glm_model *model;
	trib_comm *comm = NULL;
	int rank = 0;

	if (argc != 2)
		errx(2, "usage: linear FILE");
	/* Inside of a job, all its workers train one model. */
	if (getenv("TRIB_RANK")) {
		if (trib_init(&comm, NULL) != TRIB_OK)
			errx(1, "%s", trib_last_error());
		rank = trib_rank(comm);
	}
	options.loss = "logistic";
	options.epochs = 5;
	options.on_epoch = epoch_print;
	options.context = &rank;
	if (trib_glm_train(comm, argv[1], &options, &model) != TRIB_OK)
		errx(1, "%s", trib_last_error());
	if (rank == 0) {
		const uint32_t columns[] = { 0, 2 };
		const float values[] = { 1, 0.5f };
		double score;

		trib_glm_model_score(model, columns, values, 2, &score);
		printf("a row with 1 and 0.5 in columns 0 and 2: label %g, probability %.3f\n",
		       trib_glm_model_label(model, &score), trib_glm_probability(score));
	}
	trib_glm_model_free(model);
	trib_finalize(comm);
	return 0;
}
