/* SPDX-License-Identifier: Apache-2.0 */
/*
 * progress: shows how far training is. On a terminal it redraws one line, else it prints a line
 * each second.
 */
#ifndef EXAMPLES_PROGRESS_H
#define EXAMPLES_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>

enum progress_mode { PROGRESS_AUTO, PROGRESS_BAR, PROGRESS_LINES, PROGRESS_NONE };

struct progress {
	enum progress_mode mode;
	double shown; /* time of the last line, in seconds */
	bool dirty;   /* the terminal's current line shows a bar */
};

struct progress_state {
	size_t epoch, epochs, step, steps; /* counted from 1 */
	double loss, accuracy;             /* moving averages */
	double communication;              /* fraction of the time so far */
};

void progress_init(struct progress *p, enum progress_mode mode);
/* `now` in seconds. */
void progress_show(struct progress *p, const struct progress_state *s, double now);
/* Prints a line of text that is not redrawn. */
void progress_say(struct progress *p, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
