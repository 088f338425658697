/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/launch_internal.h"
#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define READY_NS (60 * NSEC_PER_SEC) /* 60 s: longest time until services are ready */
#define GRACE_NS (2 * NSEC_PER_SEC)  /* 2 s: time between SIGTERM and SIGKILL */
/* 10 s: the same for a service. A busy machine is slow to take an XDP program off. */
#define SERVICE_GRACE_NS (10 * NSEC_PER_SEC)
/* 0.5 s: longest wait for the end of output that a daemon of a task keeps open. */
#define DRAIN_NS (NSEC_PER_SEC / 2)
#define NEVER UINT64_MAX

/* A phase ends when its condition holds, or when `deadline` passes. */
enum phase {
	PHASE_READY,        /* services start, the other tasks wait for them */
	PHASE_RUN,          /* all run */
	PHASE_END_WORKERS,  /* a task has failed: the others were told to end */
	PHASE_END_SERVICES, /* all tasks but services have ended: services were told to end */
	PHASE_DRAIN,        /* nothing runs; the last lines are read */
	PHASE_DONE,
};

struct launcher {
	const struct launch_task *tasks;
	const struct launch_options *options;
	struct launch_report *report;
	struct launch_child *children;
	struct pollfd *polls; /* one for signals, then 1 + STREAMS_N for each task */
	unsigned n;
	enum phase phase;
	uint64_t deadline, started, ended;
	trib_status status;
	struct launch_guard guard;
	sigset_t old_mask;
	struct sigaction old_sigchld;
	int signal_fd;
};

/* ---- events ---- */

static bool any_runs(const struct launcher *l, bool service)
{
	for (unsigned i = 0; i < l->n; i++) {
		if (l->tasks[i].service == service && l->children[i].pidfd >= 0)
			return true;
	}
	return false;
}

static void signal_all(struct launcher *l, bool service, int signal)
{
	for (unsigned i = 0; i < l->n; i++) {
		if (l->tasks[i].service != service || l->children[i].pidfd < 0)
			continue;
		l->children[i].killed = signal == SIGKILL;
		launch_child_signal(&l->children[i], signal);
	}
}

static void phase_set(struct launcher *l, enum phase phase, uint64_t ns)
{
	l->phase = phase;
	l->deadline = ns == NEVER ? NEVER : clock_now() + ns;
}

/* Only the first failure is reported; later ones follow from it. */
static void __attribute__((format(printf, 5, 6)))
fail(struct launcher *l, int task, int code, trib_status status, const char *format, ...)
{
	va_list args;

	if (l->status != TRIB_OK)
		return;
	l->status = status;
	l->report->first_failed = task;
	l->report->exit_code = code;
	va_start(args, format);
	vsnprintf(l->report->sentence, sizeof(l->report->sentence), format, args);
	va_end(args);
	if (l->phase >= PHASE_END_WORKERS)
		return;
	signal_all(l, false, SIGTERM);
	phase_set(l, PHASE_END_WORKERS, GRACE_NS);
}

static void end_describe(const siginfo_t *info, char *out, size_t room)
{
	const char *name = sigabbrev_np(info->si_status);

	if (info->si_code == CLD_EXITED)
		snprintf(out, room, "with exit code %d", info->si_status);
	else if (name)
		snprintf(out, room, "killed by SIG%s", name);
	else
		snprintf(out, room, "killed by signal %d", info->si_status);
}

static void child_ended(struct launcher *l, unsigned i)
{
	const struct launch_task *task = &l->tasks[i];
	struct launch_child *child = &l->children[i];
	bool good, asked = l->phase >= (task->service ? PHASE_END_SERVICES : PHASE_END_WORKERS);
	siginfo_t info;
	char how[64];

	launch_child_look(child, &info);
	good = info.si_code == CLD_EXITED && info.si_status == 0;
	end_describe(&info, how, sizeof(how));
	if (task->service && asked && child->killed)
		log_warn("%s did not end on SIGTERM and was killed", task->label);
	else if (task->service && asked && !good && info.si_status != SIGTERM)
		log_warn("%s was told to end, and ended %s", task->label, how);
	if (asked)
		return;
	if (!good)
		fail(l, (int)i, info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status,
		     TRIB_ERR_PEER, "%s ended first, %s", task->label, how);
	else if (l->phase == PHASE_READY)
		fail(l, (int)i, 1, TRIB_ERR_PEER, "%s ended before it was ready, %s", task->label,
		     how);
}

static void signal_arrived(struct launcher *l)
{
	struct signalfd_siginfo info;

	if (read(l->signal_fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
		return;
	l->report->signalled = true;
	if (l->phase >= PHASE_END_WORKERS) {
		/* The second signal: kill at once. */
		signal_all(l, false, SIGKILL);
		signal_all(l, true, SIGKILL);
		return;
	}
	fail(l, -1, 128 + (int)info.ssi_signo, TRIB_ERR_CLOSED, "ended by SIG%s",
	     sigabbrev_np((int)info.ssi_signo));
}

/* ---- output ---- */

struct line_context {
	struct launcher *launcher;
	unsigned task;
	bool is_stderr;
};

static void line_take(void *context, const char *line)
{
	const struct line_context *c = context;
	struct launcher *l = c->launcher;
	const struct launch_options *options = l->options;

	if (options->ready_word && strstr(line, options->ready_word))
		l->children[c->task].ready = true;
	if (options->line)
		options->line(options->context, c->task, line, c->is_stderr);
	else
		launch_line_print(c->task, l->tasks[c->task].label, line, c->is_stderr);
}

/* ---- phases ---- */

static void tasks_start(struct launcher *l, bool service)
{
	for (unsigned i = 0; i < l->n; i++) {
		if (l->tasks[i].service != service)
			continue;
		if (launch_child_start(&l->children[i], &l->tasks[i], &l->guard, &l->old_mask) !=
		    TRIB_OK) {
			fail(l, (int)i, 1, TRIB_ERR_SYSTEM, "%s was not started: %s",
			     l->tasks[i].label, trib_last_error());
			return;
		}
	}
}

static void workers_start(struct launcher *l)
{
	double timeout = l->options->timeout_s;

	if (l->options->ready && l->options->ready(l->options->context) != TRIB_OK) {
		fail(l, -1, 1, TRIB_ERR_SYSTEM, "%s", trib_last_error());
		return;
	}
	phase_set(l, PHASE_RUN, timeout > 0 ? (uint64_t)(timeout * 1e9) : NEVER);
	l->started = clock_now();
	tasks_start(l, false);
}

/* The first service that has not printed the ready word; NULL: all have. */
static const struct launch_task *service_unready(const struct launcher *l)
{
	for (unsigned i = 0; l->options->ready_word && i < l->n; i++) {
		if (l->tasks[i].service && !l->children[i].ready)
			return &l->tasks[i];
	}
	return NULL;
}

static void timeout_fail(struct launcher *l)
{
	char who[160] = "";

	for (unsigned i = 0; i < l->n; i++) {
		size_t used = strlen(who);

		if (!l->tasks[i].service && l->children[i].pidfd >= 0)
			snprintf(who + used, sizeof(who) - used, "%s%s", used ? ", " : "",
			         l->tasks[i].label);
	}
	/* 124 is the exit code of timeout(1). */
	fail(l, -1, 124, TRIB_ERR_TIMEOUT, "not done after %g s: %s", l->options->timeout_s, who);
}

static bool streams_open(const struct launcher *l)
{
	for (unsigned i = 0; i < l->n; i++) {
		for (int s = 0; s < STREAMS_N; s++) {
			if (l->children[i].streams[s].fd >= 0)
				return true;
		}
	}
	return false;
}

static void phase_step(struct launcher *l)
{
	bool late = clock_now() >= l->deadline;
	const struct launch_task *unready;

	switch (l->phase) {
	case PHASE_READY:
		unready = service_unready(l);
		if (!unready)
			workers_start(l);
		else if (late)
			fail(l, (int)(unready - l->tasks), 1, TRIB_ERR_TIMEOUT,
			     "%s did not say \"%s\" within %u s", unready->label,
			     l->options->ready_word, (unsigned)(READY_NS / NSEC_PER_SEC));
		break;
	case PHASE_RUN:
	case PHASE_END_WORKERS:
		if (!any_runs(l, false)) {
			l->ended = clock_now();
			signal_all(l, true, SIGTERM);
			phase_set(l, PHASE_END_SERVICES, SERVICE_GRACE_NS);
		} else if (late && l->phase == PHASE_RUN) {
			timeout_fail(l);
		} else if (late) {
			signal_all(l, false, SIGKILL);
			l->deadline = NEVER;
		}
		break;
	case PHASE_END_SERVICES:
		if (!any_runs(l, true)) {
			phase_set(l, PHASE_DRAIN, DRAIN_NS);
		} else if (late) {
			signal_all(l, true, SIGKILL);
			l->deadline = NEVER;
		}
		break;
	case PHASE_DRAIN:
		if (late || !streams_open(l))
			l->phase = PHASE_DONE;
		break;
	case PHASE_DONE:
		break;
	}
}

/* Passes through phases whose condition holds already: no event would wake the loop for them. */
static void phase_advance(struct launcher *l)
{
	enum phase before;

	do {
		before = l->phase;
		phase_step(l);
	} while (l->phase != before);
}

/* ---- the loop ---- */

static struct timespec *until_deadline(const struct launcher *l, struct timespec *span)
{
	uint64_t now = clock_now();

	*span = clock_span(l->deadline > now ? l->deadline - now : 0);
	return l->deadline == NEVER ? NULL : span;
}

static void polls_fill(struct launcher *l)
{
	struct pollfd *p = l->polls;

	/* poll(2) ignores descriptors of -1: ended children, finished streams. */
	*p++ = (struct pollfd){ .fd = l->signal_fd, .events = POLLIN };
	for (unsigned i = 0; i < l->n; i++) {
		*p++ = (struct pollfd){ .fd = l->children[i].pidfd, .events = POLLIN };
		for (int s = 0; s < STREAMS_N; s++)
			*p++ = (struct pollfd){ .fd = l->children[i].streams[s].fd,
				                .events = POLLIN };
	}
}

static void polls_serve(struct launcher *l)
{
	const struct pollfd *p = l->polls + 1;

	if (l->polls[0].revents)
		signal_arrived(l);
	/* Deaths before lines: printing takes time, and the order of deaths is reported. */
	for (unsigned i = 0; i < l->n; i++) {
		if (p[i * (1 + STREAMS_N)].revents)
			child_ended(l, i);
	}
	for (unsigned i = 0; i < l->n; i++) {
		for (int s = 0; s < STREAMS_N; s++) {
			struct line_context context = { l, i, s == STREAM_STDERR };

			if (p[i * (1 + STREAMS_N) + 1 + (unsigned)s].revents)
				launch_stream_read(&l->children[i].streams[s], line_take, &context);
		}
	}
	fflush(stdout);
}

static void launcher_loop(struct launcher *l)
{
	struct timespec span;

	/* From here on no signal is lost. What came before is known to the caller alone. */
	if (l->options->stop && *l->options->stop) {
		l->report->signalled = true;
		fail(l, -1, 1, TRIB_ERR_CLOSED, "ended by a signal before it began");
	} else {
		tasks_start(l, true);
	}
	phase_advance(l);
	while (l->phase != PHASE_DONE) {
		polls_fill(l);
		if (ppoll(l->polls, 1 + l->n * (1 + STREAMS_N), until_deadline(l, &span), NULL) > 0)
			polls_serve(l);
		phase_advance(l);
	}
}

/* ---- setting up ---- */

static void signals_take(struct launcher *l)
{
	static const int ours[] = { SIGINT, SIGTERM };
	struct sigaction action = { .sa_handler = SIG_DFL };
	sigset_t set;

	/* With an inherited SIG_IGN, children would be reaped before we look at them. */
	sigaction(SIGCHLD, &action, &l->old_sigchld);
	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(ours) / sizeof(*ours); i++) {
		/* A background job of a shell ignores SIGINT, and goes on ignoring it. */
		if (sigaction(ours[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
			sigaddset(&set, ours[i]);
	}
	sigprocmask(SIG_BLOCK, &set, &l->old_mask);
	l->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static void signals_return(struct launcher *l)
{
	close(l->signal_fd);
	sigprocmask(SIG_SETMASK, &l->old_mask, NULL);
	sigaction(SIGCHLD, &l->old_sigchld, NULL);
}

/* poll(2) refuses more descriptors than a process may open. */
static trib_status descriptors_allow(unsigned tasks)
{
	rlim_t wanted = 64 + (rlim_t)tasks * (1 + STREAMS_N);
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= wanted)
		return TRIB_OK;
	limit.rlim_cur = wanted;
	if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
		return status_fail(TRIB_ERR_SYSTEM,
		                   "%u processes need %llu open files; raise ulimit -n", tasks,
		                   (unsigned long long)wanted);
	return TRIB_OK;
}

static trib_status launcher_run(struct launcher *l)
{
	for (unsigned i = 0; i < l->n; i++) {
		l->children[i].pidfd = -1;
		for (int s = 0; s < STREAMS_N; s++)
			l->children[i].streams[s].fd = -1;
	}
	fflush(stdout);
	if (descriptors_allow(l->n) != TRIB_OK || launch_guard_start(&l->guard) != TRIB_OK)
		return TRIB_ERR_SYSTEM;
	signals_take(l);
	phase_set(l, PHASE_READY, READY_NS);
	launcher_loop(l);
	for (unsigned i = 0; i < l->n; i++)
		launch_child_free(&l->children[i]);
	signals_return(l);
	launch_guard_end(&l->guard);
	if (l->started)
		l->report->wall_s = (double)(l->ended - l->started) / 1e9;
	if (l->status != TRIB_OK)
		return status_fail(l->status, "%s", l->report->sentence);
	return TRIB_OK;
}

trib_status launch_all(const struct launch_task *tasks, unsigned n,
                       const struct launch_options *options, struct launch_report *report)
{
	static const struct launch_options plain;
	struct launch_report unread = { 0 };
	struct launcher l = { .tasks = tasks,
		              .options = options ? options : &plain,
		              .report = report ? report : &unread,
		              .n = n };
	trib_status status = TRIB_ERR_NO_MEMORY;

	*l.report = (struct launch_report){ .first_failed = -1 };
	l.children = calloc(n + 1, sizeof(*l.children));
	l.polls = calloc(1 + n * (1 + STREAMS_N), sizeof(*l.polls));
	if (l.children && l.polls)
		status = launcher_run(&l);
	else
		status_fail(status, "no memory for %u processes", n);
	free(l.children);
	free(l.polls);
	return status;
}
