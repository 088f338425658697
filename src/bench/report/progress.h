/* SPDX-License-Identifier: Apache-2.0 */
/* progress: says on stderr how far a benchmark is. On a terminal it is one line, else a line every
 * 5 s. */
#ifndef TRIB_BENCH_REPORT_PROGRESS_H
#define TRIB_BENCH_REPORT_PROGRESS_H

/* `done` of `all` runs are done, and the next one begins. The first call starts the clock. */
void progress_tell(unsigned done, unsigned all, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Before the results are printed. */
void progress_clear(void);

#endif
