/* SPDX-License-Identifier: Apache-2.0 */
/*
 * glm: the command trib glm: train, predict, inspect and make. It reads options and prints; the
 * work is done by src/glm through include/tributary/glm.h, and src/launch starts workers. It must
 * not touch losses, matrices or the network.
 */
#ifndef TRIB_CLI_GLM_COMMAND_H
#define TRIB_CLI_GLM_COMMAND_H

#include "base/status.h"
#include "launch/run_job.h"
#include "options/options.h"

#include <tributary/glm.h>

#include <stdbool.h>
#include <stdio.h>

int glm_train_command(int argc, char **argv);
int glm_predict_command(int argc, char **argv);
int glm_inspect_command(int argc, char **argv);
int glm_make_command(int argc, char **argv);

/*
 * Parses options before and behind the operands, of which there have to be `n`. False: the command
 * has to end and return *code.
 */
bool glm_options_parse(const struct options *options, int argc, char **argv, const char **operands,
                       int n, int *code);

/* Hook for an option that is a number: any finite double. */
trib_status glm_number_take(void *context, const char *text);

/* Runs `trib glm train` with these arguments on several workers; returns an exit code. */
int glm_workers_start(struct run_options *run, int argc, char **argv);

/* ---- what a training shows ---- */

struct glm_view {
	const char *json, *plot; /* files; NULL: none */
	bool is_first;           /* only worker 0 prints */
	bool has_table;          /* stdout is not for JSON */
	bool bar;                /* stderr is a terminal */
	bool bar_lines;          /* another process draws the bar: print lines for it */
	bool bar_shown;
	bool has_test, has_accuracy;
	const char *source;
	trib_glm_setup setup;
	trib_glm_epoch *epochs;
	unsigned n, room;
	trib_stats stats; /* of the communicator, when the training has ended; 0: there is none */
};

void view_setup(void *context, const trib_glm_setup *setup);
void view_epoch(void *context, const trib_glm_epoch *epoch);
void view_progress(void *context, uint64_t done, uint64_t total);
/* The end of a training: a summary, JSON and plots. */
trib_status view_finish(struct glm_view *view, const trib_glm_model *model, const char *model_path);
void view_free(struct glm_view *view);

/* Draws the bar on stderr; a negative share removes it. */
void view_bar(double share, const char *text);
/* The line for the process that draws the bar begins with this. */
#define VIEW_BAR_LINE "@bar "
#define VIEW_BAR_SETTING "TRIB_GLM_BAR"

#endif
