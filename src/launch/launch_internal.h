/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of launch_all: launch_spawn.c starts and signals a process,
 * launch_output.c splits its output into lines, launch.c decides what happens when.
 */
#ifndef TRIB_LAUNCH_LAUNCH_INTERNAL_H
#define TRIB_LAUNCH_LAUNCH_INTERNAL_H

#include "launch/launch.h"

#include <signal.h>
#include <sys/types.h>

/* One end of a pipe and the line that is not complete yet. */
struct launch_stream {
	int fd; /* -1: closed */
	char *bytes;
	size_t used, room;
};

enum { STREAM_STDOUT, STREAM_STDERR, STREAMS_N };

struct launch_child {
	pid_t pid; /* also its process group; 0: not started */
	int pidfd; /* -1: not running */
	bool ready;
	bool killed;
	struct launch_stream streams[STREAMS_N];
};

/*
 * The guard is a process that outlives this one for a moment: if this one is
 * killed, the guard kills the process groups that it knows. PR_SET_PDEATHSIG alone
 * would spare processes that the tasks have started.
 */
struct launch_guard {
	pid_t pid;
	int fd;
};

trib_status launch_guard_start(struct launch_guard *guard);
void launch_guard_end(struct launch_guard *guard);

/* `mask` is the signal mask that the task gets. */
trib_status launch_child_start(struct launch_child *child, const struct launch_task *task,
                               const struct launch_guard *guard, const sigset_t *mask);
void launch_child_signal(const struct launch_child *child, int signal);
/*
 * The exit status of a child whose pidfd is readable. The child stays a zombie, so that its id
 * is not reused.
 */
void launch_child_look(struct launch_child *child, siginfo_t *info);
void launch_child_free(struct launch_child *child);

typedef void launch_line(void *context, const char *line);

/*
 * Reads once and calls `take` for each line; at the end of the stream also for a line without a
 * newline.
 */
void launch_stream_read(struct launch_stream *stream, launch_line *take, void *context);
/* Prints a line behind its label, on a terminal in the label's colour. */
void launch_line_print(unsigned task, const char *label, const char *line, bool is_stderr);

#endif
