/* SPDX-License-Identifier: Apache-2.0 */
#include "sparse/log/snapshot_process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define FDS_MAX 65536

void snapshot_process_begin(struct snapshot_process *process)
{
	*process = (struct snapshot_process){ .words = -1 };
}

bool snapshot_process_runs(const struct snapshot_process *process)
{
	return process->pid > 0;
}

static void fds_close(unsigned first, unsigned last)
{
	if (first > last)
		return;
#ifdef SYS_close_range
	if (!syscall(SYS_close_range, first, last, 0))
		return;
#endif
	for (unsigned fd = first; fd <= last && fd < FDS_MAX; fd++)
		close((int)fd);
}

/*
 * Closes all descriptors but three. If the copy kept a connection, its peer would not notice that
 * the server closed it.
 */
static void others_close(int a, int b, int c)
{
	int kept[3] = { a, b, c };
	unsigned next = 3;

	for (unsigned i = 0; i < 3; i++) {
		for (unsigned j = i + 1; j < 3; j++) {
			int fd = kept[i];

			if (kept[j] < kept[i]) {
				kept[i] = kept[j];
				kept[j] = fd;
			}
		}
	}
	for (unsigned i = 0; i < 3; i++) {
		if (kept[i] < (int)next)
			continue;
		fds_close(next, (unsigned)kept[i] - 1);
		next = (unsigned)kept[i] + 1;
	}
	fds_close(next, ~0u);
}

/* In the new process. Only calls that are safe in the copy of a program with threads. */
static _Noreturn void snapshot_child(pid_t parent, int words, const struct log_folder *folder,
                                     const struct log_file_head *head,
                                     const struct sparse_state *state, struct snapshot_room *room)
{
	trib_status status;

	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
		_exit(1);
	signal(SIGXFSZ, SIG_IGN);
	others_close(words, folder->fd, folder->lock);
	status = sparse_snapshot_write(folder, head, state, room);
	if (status != TRIB_OK) {
		const char *why = trib_last_error();

		if (write(words, why, strlen(why)) < 0)
			_exit(2);
	}
	_exit(status == TRIB_OK ? 0 : 1);
}

trib_status snapshot_process_start(struct snapshot_process *process,
                                   const struct log_folder *folder,
                                   const struct log_file_head *head,
                                   const struct sparse_state *state)
{
	struct snapshot_room *room = snapshot_room_make();
	pid_t parent = getpid();
	int words[2];

	if (!room)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for a snapshot");
	if (pipe2(words, O_CLOEXEC | O_NONBLOCK) < 0) {
		snapshot_room_free(room);
		return status_fail_errno("no pipe for a snapshot");
	}
	process->pid = fork();
	if (!process->pid)
		snapshot_child(parent, words[1], folder, head, state, room);
	snapshot_room_free(room);
	close(words[1]);
	if (process->pid < 0) {
		trib_status status = status_fail_errno("cannot start a process for a snapshot");

		close(words[0]);
		process->pid = 0;
		return status;
	}
	process->words = words[0];
	process->number = head->number;
	return TRIB_OK;
}

static void process_forget(struct snapshot_process *process)
{
	close(process->words);
	process->words = -1;
	process->pid = 0;
}

enum snapshot_progress snapshot_process_look(struct snapshot_process *process, uint64_t *number,
                                             char *why, size_t room)
{
	bool done;
	int how = 0;
	pid_t ended;
	ssize_t n;

	*number = process->number;
	if (!process->pid)
		return SNAPSHOT_NONE;
	ended = waitpid(process->pid, &how, WNOHANG);
	if (!ended || (ended < 0 && errno == EINTR))
		return SNAPSHOT_NONE;
	done = ended > 0 && WIFEXITED(how) && !WEXITSTATUS(how);
	n = read(process->words, why, room - 1);
	if (n > 0)
		why[n] = '\0';
	else
		snprintf(why, room, "its process died (status %d)", how);
	process_forget(process);
	return done ? SNAPSHOT_DONE : SNAPSHOT_FAILED;
}

void snapshot_process_end(struct snapshot_process *process)
{
	if (!process->pid)
		return;
	kill(process->pid, SIGKILL);
	while (waitpid(process->pid, NULL, 0) < 0 && errno == EINTR)
		;
	process_forget(process);
}
