/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/report/progress.h"

#include "base/clock.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#define EVERY_NS (5 * NSEC_PER_SEC)

static uint64_t started, told;

void progress_tell(unsigned done, unsigned all, const char *format, ...)
{
	uint64_t now = clock_now();
	unsigned filled = all ? done * 20 / all : 0;
	char what[96];
	va_list args;

	if (!started)
		started = told = now;
	va_start(args, format);
	vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	if (isatty(STDERR_FILENO)) {
		fprintf(stderr, "\r\033[K[%.*s%.*s] %u/%u  %s", (int)filled, "####################",
		        (int)(20 - filled), "....................", done, all, what);
		if (done && done < all)
			fprintf(stderr, "  about %.0f s left",
			        (double)(now - started) / 1e9 / done * (all - done));
	} else if (now >= told + EVERY_NS) {
		told = now;
		fprintf(stderr, "%u of %u: %s\n", done, all, what);
	}
}

void progress_clear(void)
{
	started = 0;
	if (isatty(STDERR_FILENO))
		fprintf(stderr, "\r\033[K");
}
