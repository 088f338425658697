/* SPDX-License-Identifier: Apache-2.0 */
/* How far a training run is: one line that is redrawn on a terminal, else a line a second. */
#ifndef EXAMPLES_PROGRESS_H
#define EXAMPLES_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>

enum progress_mode { PROGRESS_AUTO, PROGRESS_BAR, PROGRESS_LINES, PROGRESS_NONE };

struct progress {
	enum progress_mode mode;
	double shown; /* when the last line was shown */
	bool dirty;   /* a bar stands in the terminal's current line */
};

struct progress_state {
	size_t epoch, epochs, step, steps; /* counted from 1 */
	double loss, accuracy;             /* a moving mean */
	double communication;              /* the share of the time so far */
};

void progress_init(struct progress *p, enum progress_mode mode);
/* `now` in seconds. */
void progress_show(struct progress *p, const struct progress_state *s, double now);
/* Prints a line of text that stays. */
void progress_say(struct progress *p, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
