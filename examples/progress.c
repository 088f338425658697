/* SPDX-License-Identifier: Apache-2.0 */
#include "progress.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { BAR_WIDTH = 20 };

void progress_init(struct progress *p, enum progress_mode mode)
{
	*p = (struct progress){ .mode = mode };
	if (mode == PROGRESS_AUTO)
		p->mode = isatty(STDOUT_FILENO) ? PROGRESS_BAR : PROGRESS_LINES;
}

void progress_show(struct progress *p, const struct progress_state *s, double now)
{
	double interval = p->mode == PROGRESS_BAR ? 0.1 : 1;
	char bar[BAR_WIDTH + 1];
	size_t full = BAR_WIDTH * s->step / s->steps;

	if (p->mode == PROGRESS_NONE || (now - p->shown < interval && s->step < s->steps))
		return;
	p->shown = now;
	memset(bar, '.', BAR_WIDTH);
	memset(bar, '#', full);
	bar[BAR_WIDTH] = 0;
	printf("%sepoch %zu/%zu [%s] %zu/%zu loss %.4f acc %5.1f %% comm %2.0f %%%s",
	       p->mode == PROGRESS_BAR ? "\r" : "", s->epoch, s->epochs, bar, s->step, s->steps,
	       s->loss, 100 * s->accuracy, 100 * s->communication,
	       p->mode == PROGRESS_BAR ? "\033[K" : "\n");
	p->dirty = p->mode == PROGRESS_BAR;
	fflush(stdout);
}

void progress_say(struct progress *p, const char *format, ...)
{
	va_list arguments;

	if (p->dirty)
		putchar('\n');
	p->dirty = false;
	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
	putchar('\n');
	fflush(stdout);
}
