/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tributary GLM: generalized linear models on many workers. Each worker has a range of the columns
 * (model parallel) or a part of the rows (data parallel), and they sum integers through a
 * communicator of <tributary.h>.
 *
 *     #include <tributary/glm.h>
 *
 *     trib_glm_options options = TRIB_GLM_OPTIONS_INIT;
 *     trib_glm_model *model;
 *     options.loss = "logistic";
 *     if (trib_glm_train(comm, "train.svm", &options, &model) != TRIB_OK)
 *         errx(1, "%s", trib_last_error());
 *     trib_glm_model_write(model, "m.bin");
 *     trib_glm_model_free(model);
 *
 * The model has the same bits for every number of workers and threads, for both partitions, with
 * and without pipeline, and for every size of micro-batches. docs/glm.md says how, and describes
 * the files.
 *
 * Errors are statuses of <tributary.h>, and trib_last_error has the sentence. A sentence about data
 * begins with "FILE:LINE: ".
 */
#ifndef TRIBUTARY_GLM_H
#define TRIBUTARY_GLM_H

#include <tributary.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Loss and hits over rows. */
typedef struct {
	double loss;     /* mean; NaN: not measured */
	double accuracy; /* from 0 to 1; NaN in a regression */
} trib_glm_score;

/* What is known after an epoch. The same on all workers, but for the times. */
typedef struct {
	size_t struct_size;
	int epoch, epochs; /* from 1 */
	trib_glm_score
		train; /* of the rows as the epoch came to them, with the weights of that time */
	trib_glm_score test;  /* after the epoch; NaN without a test file */
	double seconds;       /* time of this epoch's training, without scoring */
	double total_seconds; /* of all epochs of this process */
	uint64_t saturated;   /* numbers that were too large for fixed point, so far */
} trib_glm_epoch;

/* A training as it was set up, before the first epoch. */
typedef struct {
	size_t struct_size;
	uint64_t rows, nonzeros;
	uint32_t columns;
	int classes; /* 0: regression */
	int rank, workers, threads;
	const char *layout;   /* "sparse", "dense" or "weaved" */
	const char *kernel;   /* the loops that this processor gets */
	const char *exchange; /* "local", "tributary" or "mpi" */
	double rate, decay, l1, l2;
	int batch, micro;
	uint64_t skipped_rows;
	double load_seconds;
	int first_epoch; /* above 1: resumed from a checkpoint */
} trib_glm_setup;

/*
 * Options of trib_glm_train. Initialize with TRIB_GLM_OPTIONS_INIT, which sets struct_size and
 * zeroes the rest. A field left at zero has the default. All workers must have the same options.
 */
typedef struct {
	size_t struct_size;
	const char *loss;     /* "logistic" (default), "linear", "hinge", "squared-hinge" */
	const char *update;   /* "adagrad" (default), "sgd" */
	const char *parallel; /* "model" (default), "data" */
	const char *exchange; /* default: "tributary" with a communicator, else "local"; "mpi" */
	int bits;             /* 1 to 8: precision of features; 0: float */
	int classes;          /* above 2: one against the rest; -1: as many as the file has; 0: 2 */
	int epochs;           /* 10 */
	int batch;            /* rows of a mini-batch: 64 */
	int micro;            /* rows of a micro-batch; 0: chosen, so that cutting pays */
	int no_pipeline;      /* nonzero: a mini-batch is exchanged as a whole */
	int threads;          /* 1 */
	int no_bias;          /* nonzero: no constant term */
	double rate;          /* 0: from the rows; see docs/glm.md */
	double decay; /* rate / (1 + decay * epochs); 0: 0 for adagrad, 0.1 for sgd; negative: none
	               */
	double l1;    /* 0: none */
	double l2;    /* 0: 1 / rows, as liblinear with -c 1; negative: none */
	uint64_t seed;
	int skip_bad_rows;  /* nonzero: leave bad rows out; zero: the first one is an error */
	const char *format; /* NULL: by content; "libsvm", "csv" */
	const char *label;  /* CSV: name or number of the label's column; NULL: the first */
	int base; /* libsvm: the index of the first column: 1 (also 0), -1: zero, -2: found */
	const char *test;       /* a file to score after each epoch; NULL: none */
	const char *checkpoint; /* a file that worker 0 replaces after each epoch; NULL: none */
	int resume;             /* nonzero: go on from the checkpoint, if it is there */
	void (*on_setup)(void *context, const trib_glm_setup *setup);
	void (*on_epoch)(void *context, const trib_glm_epoch *epoch);
	/* At most ten times a second. `done` of `total` rows, over all epochs. */
	void (*on_progress)(void *context, uint64_t done, uint64_t total);
	void *context;
	int missing_zero; /* CSV: nonzero: an empty field, NA, NaN, null or ? is 0; zero: a bad row
	                   */
} trib_glm_options;

#define TRIB_GLM_OPTIONS_INIT                           \
	{                                               \
		.struct_size = sizeof(trib_glm_options) \
	}

typedef struct trib_glm_model trib_glm_model;

/*
 * Trains on a file that every worker can read. All workers of `comm` call it; NULL: this process
 * alone. Every worker gets the whole model.
 */
trib_status trib_glm_train(trib_comm *comm, const char *path, const trib_glm_options *options,
                           trib_glm_model **model);

trib_status trib_glm_model_read(const char *path, trib_glm_model **model);
/* Writes beside the file and renames, so that there is never half a model. */
trib_status trib_glm_model_write(const trib_glm_model *model, const char *path);
void trib_glm_model_free(trib_glm_model *model);

/* What a model is and how it was trained; struct_size as in trib_glm_options. */
typedef struct {
	size_t struct_size;
	const char *loss, *update;
	uint32_t columns;
	uint32_t vectors; /* 1; one a class if there are more than two */
	uint32_t classes; /* 0: regression */
	const float *labels;
	const float *bias;        /* one a vector; zeros without bias */
	const float *weights;     /* vector after vector, `columns` each */
	const char *const *names; /* of the columns; NULL: none */
	int first_index;          /* of the first column in a libsvm file: 0 or 1 */
	int bits, batch, epochs;
	uint64_t rows, seed;
	double rate, decay, l1, l2;
	trib_glm_score train; /* the trained model on its rows */
} trib_glm_model_info;

trib_status trib_glm_model_describe(const trib_glm_model *model, trib_glm_model_info *info);

/*
 * The activations of one row, one a vector of the model. `columns` counts from 0 and need not be
 * sorted; columns that the model does not have are ignored.
 */
void trib_glm_model_score(const trib_glm_model *model, const uint32_t *columns, const float *values,
                          size_t n, double *scores);
/* The label for these activations; the number itself in a regression. */
double trib_glm_model_label(const trib_glm_model *model, const double *scores);
/* 1 / (1 + exp(-score)): the probability of the larger label, if the loss is logistic. */
double trib_glm_probability(double score);

/* A prediction of trib_glm_predict. */
typedef struct {
	size_t struct_size;
	uint64_t row; /* from 0 */
	double label; /* predicted */
	double given; /* in the file; NaN: it has none */
	const double *scores;
	uint32_t n_scores;
} trib_glm_prediction;

typedef struct {
	size_t struct_size;
	int skip_bad_rows;
	const char *format; /* NULL: by content */
	/*
	 * CSV: the label's column; "none": the file has no labels. NULL: the first; none if the
	 * model was trained on CSV, and the file has as many columns as the model has features.
	 */
	const char *label;
	void (*on_row)(void *context, const trib_glm_prediction *prediction); /* may be NULL */
	void *context;
	int missing_zero; /* as in trib_glm_options */
} trib_glm_predict_options;

#define TRIB_GLM_PREDICT_INIT                                   \
	{                                                       \
		.struct_size = sizeof(trib_glm_predict_options) \
	}

typedef struct {
	size_t struct_size;
	uint64_t rows, skipped_rows;
	uint64_t known;       /* rows whose label the model knows: only they are scored */
	trib_glm_score score; /* over these */
} trib_glm_predict_result;

/* Predicts the rows of a file one by one. `options` may be NULL. */
trib_status trib_glm_predict(const trib_glm_model *model, const char *path,
                             const trib_glm_predict_options *options,
                             trib_glm_predict_result *result);

#ifdef __cplusplus
}
#endif
#endif
