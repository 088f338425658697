/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/launch_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define EXIT_CANNOT_RUN 126
#define EXIT_NOT_FOUND 127

/* ---- the guard ---- */

/* Returns when the other end is closed: by launch_guard_end, or because the parent died. */
static void __attribute__((noreturn)) guard_run(int fd)
{
	pid_t groups[4096], group;
	unsigned n = 0;
	sigset_t all;

	/*
	 * A group of its own: Ctrl-C at the terminal and signals to the parent's group must not
	 * reach it.
	 */
	setsid();
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	prctl(PR_SET_NAME, "trib-guard");
	/* It must not keep a pipe, terminal or lock of the parent open. */
	dup2(fd, 0);
	syscall(SYS_close_range, 1u, ~0u, 0u);
	while (read(0, &group, sizeof(group)) == (ssize_t)sizeof(group)) {
		if (group == 0)
			_exit(0);
		if (n < sizeof(groups) / sizeof(*groups))
			groups[n++] = group;
	}
	for (unsigned i = 0; i < n; i++)
		kill(-groups[i], SIGKILL);
	_exit(0);
}

static void guard_tell(const struct launch_guard *guard, pid_t group)
{
	/* If the guard is gone, PR_SET_PDEATHSIG still works, so this is no error. */
	send(guard->fd, &group, sizeof(group), MSG_NOSIGNAL);
}

trib_status launch_guard_start(struct launch_guard *guard)
{
	int fds[2];

	/* A socket, not a pipe: writing to a guard that is gone must not raise SIGPIPE. */
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
		return status_fail_errno("cannot make a pair of sockets");
	guard->pid = fork();
	if (guard->pid == 0) {
		close(fds[1]);
		guard_run(fds[0]);
	}
	close(fds[0]);
	guard->fd = fds[1];
	if (guard->pid < 0) {
		close(fds[1]);
		return status_fail_errno("cannot fork");
	}
	return TRIB_OK;
}

void launch_guard_end(struct launch_guard *guard)
{
	guard_tell(guard, 0);
	close(guard->fd);
	while (waitpid(guard->pid, NULL, 0) < 0 && errno == EINTR)
		;
}

/* ---- a task ---- */

static void __attribute__((noreturn, format(printf, 2, 3)))
child_fail(int code, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vdprintf(STDERR_FILENO, format, args);
	va_end(args);
	_exit(code);
}

static void __attribute__((noreturn))
child_run(const struct launch_task *task, const int *outputs, pid_t parent, const sigset_t *mask)
{
	int null;

	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(EXIT_CANNOT_RUN);
	/* A background group that reads the terminal would be stopped. */
	null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	dup2(null, STDIN_FILENO);
	dup2(outputs[STREAM_STDOUT], STDOUT_FILENO);
	dup2(outputs[STREAM_STDERR], STDERR_FILENO);
	if (task->host && cluster_enter(task->host) != TRIB_OK)
		child_fail(EXIT_CANNOT_RUN, "cannot enter host %s: %s\n", task->host->name,
		           trib_last_error());
	if (task->cores && sched_setaffinity(0, sizeof(*task->cores), task->cores) < 0)
		child_fail(EXIT_CANNOT_RUN, "cannot be kept to its cores: %s\n", strerror(errno));
	for (char *const *entry = task->env; entry && *entry; entry++)
		putenv(*entry);
	sigprocmask(SIG_SETMASK, mask, NULL);
	execvp(task->argv[0], task->argv);
	child_fail(errno == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN, "cannot run %s: %s\n",
	           task->argv[0], strerror(errno));
}

static trib_status pipes_make(int reads[STREAMS_N], int writes[STREAMS_N])
{
	for (int i = 0; i < STREAMS_N; i++) {
		int fds[2];

		if (pipe2(fds, O_CLOEXEC) < 0) {
			status_fail_errno("cannot make a pipe");
			for (int j = 0; j < i; j++) {
				close(reads[j]);
				close(writes[j]);
			}
			return TRIB_ERR_SYSTEM;
		}
		reads[i] = fds[0];
		writes[i] = fds[1];
	}
	return TRIB_OK;
}

trib_status launch_child_start(struct launch_child *child, const struct launch_task *task,
                               const struct launch_guard *guard, const sigset_t *mask)
{
	int reads[STREAMS_N], writes[STREAMS_N];
	pid_t parent = getpid(), pid;

	if (pipes_make(reads, writes) != TRIB_OK)
		return TRIB_ERR_SYSTEM;
	pid = fork();
	if (pid == 0)
		child_run(task, writes, parent, mask);
	for (int i = 0; i < STREAMS_N; i++) {
		close(writes[i]);
		child->streams[i].fd = reads[i];
	}
	if (pid < 0)
		return status_fail_errno("cannot fork for %s", task->label);
	/* Parent and child both set the group: it must exist for whichever runs first. */
	setpgid(pid, pid);
	child->pid = pid;
	guard_tell(guard, pid);
	child->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (child->pidfd < 0)
		return status_fail_errno("cannot watch %s", task->label);
	return TRIB_OK;
}

void launch_child_signal(const struct launch_child *child, int signal)
{
	if (child->pid && kill(-child->pid, signal) < 0 && errno != ESRCH)
		kill(child->pid, signal);
}

void launch_child_look(struct launch_child *child, siginfo_t *info)
{
	memset(info, 0, sizeof(*info));
	while (waitid(P_PID, (id_t)child->pid, info, WEXITED | WNOWAIT) < 0 && errno == EINTR)
		;
	close(child->pidfd);
	child->pidfd = -1;
	/* Processes that it has started and left behind are killed with it. */
	launch_child_signal(child, SIGKILL);
}

void launch_child_free(struct launch_child *child)
{
	for (int i = 0; i < STREAMS_N; i++) {
		if (child->streams[i].fd >= 0)
			close(child->streams[i].fd);
		free(child->streams[i].bytes);
	}
	if (child->pid) {
		/* Only a task that could not be watched still runs here. */
		launch_child_signal(child, SIGKILL);
		while (waitpid(child->pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	if (child->pidfd >= 0)
		close(child->pidfd);
}
