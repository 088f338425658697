/* SPDX-License-Identifier: Apache-2.0 */
/*
 * glm/text owns the way from a file to rows: plain, gzip and xz bytes, lines, numbers, libsvm and
 * CSV rows, and the rule for bad rows. The room reads in one pass through buffers of fixed size. It
 * must not know matrices, models or workers.
 *
 * source: which file is read, how, and which problems were found.
 */
#ifndef TRIB_GLM_SOURCE_H
#define TRIB_GLM_SOURCE_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

enum glm_format { GLM_FORMAT_AUTO, GLM_LIBSVM, GLM_CSV };

/*
 * The index of the first feature of a libsvm file. liblinear counts from 1, so an index of 0 is a
 * bad row by default. GLM_BASE_AUTO: the file counts from 0 if an index of 0 occurs in it. Only a
 * scan can find that out. Read a test file with the base of the training file (glm_stats.base),
 * because the test file may happen to have no feature 0.
 */
enum glm_base { GLM_BASE_ONE, GLM_BASE_ZERO, GLM_BASE_AUTO };

enum glm_header { GLM_HEADER_AUTO, GLM_HEADER_YES, GLM_HEADER_NO };

/* A CSV field is missing if it is empty, or one of: NA NaN nan null ? (a label is never replaced).
 */
enum glm_missing { GLM_MISSING_BAD, GLM_MISSING_ZERO };

/* Everything 0 but the path: format, header and delimiter are found by content. */
struct glm_source {
	const char *path; /* "-": standard input */
	enum glm_format format;
	enum glm_base base; /* libsvm only */
	/*
	 * The label column of CSV: its name in the header, or its number from 1; a negative number
	 * counts from the end, so "-1" is the last column. NULL: the first column. "none": all
	 * columns are features, and the label of a row is NaN.
	 */
	const char *label;
	/* CSV of predictions: the features of the model, 0: unknown. Without `label`, a file with
	 * as many columns has no label. A file with another number of features is an error. */
	uint32_t features;
	enum glm_header header; /* auto: a first line with a field that is no number is a header */
	char delimiter; /* 0: the most frequent of , tab ; | in the first line, else blanks */
	enum glm_missing missing;
};

/* What labels mean. Two classes: the smaller label is -1, the larger is +1. */
enum glm_task { GLM_ANY, GLM_REGRESSION, GLM_TWO_CLASS, GLM_MULTI_CLASS };

#define GLM_COLUMNS_MAX (1u << 26)
#define GLM_LINE_MAX (512ull << 20)

struct glm_labels;

struct glm_rules {
	bool skip;         /* bad rows are left out and counted; false: the first one is an error */
	uint64_t skip_max; /* more bad rows than this are an error; 0: no limit */
	enum glm_task task;
	const struct glm_labels
		*labels;      /* of the model: a row with another label is bad; NULL: of the file */
	uint32_t columns_max; /* 0: GLM_COLUMNS_MAX */
	uint64_t line_max;    /* bytes; 0: GLM_LINE_MAX */
	bool twice;           /* the caller reads again: refuse standard input and pipes */
	bool quantized;       /* collect what quantize_plan needs */
};

#define GLM_PROBLEMS_KEPT 5u
#define GLM_SENTENCE 640u

/* Bad rows of one pass. Every sentence is "FILE:LINE: reason". */
struct glm_problem {
	uint64_t skipped;
	uint32_t kept; /* sentences below, of the first bad rows */
	char sentence[GLM_PROBLEMS_KEPT]
		     [GLM_SENTENCE]; /* [0] also holds the error if the pass failed */
	bool no_newline; /* the last line does not end with a newline: the file may be cut */
};

#endif
