/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A shard's server dies between any two system calls that change files, or in the middle of a
 * write, or such a call fails. What was committed must be there afterwards, bit for bit, and
 * nothing in part. The linker leads these calls here first.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/log.h"
#include "shard_rig.h"
#include "short.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define ENTRIES 70u
#define EXIT_DIED 99

enum fault { FAULT_DIE, FAULT_DIE_HALF, FAULT_ERROR };

/* Shared by the server and the process that writes its snapshot: they die together. */
static struct shared {
	_Atomic unsigned calls;
	_Atomic bool is_dead;
	_Atomic unsigned appended, committed; /* entries of the script */
	unsigned at;                          /* the call that has the fault; 0: none */
	enum fault fault;
} * shared;

ssize_t __real_pwrite64(int fd, const void *bytes, size_t n, off_t at);
int __real_ftruncate64(int fd, off_t n);
int __real_renameat(int from, const char *a, int to, const char *b);
int __real_unlinkat(int fd, const char *name, int flags);
ssize_t __wrap_pwrite64(int fd, const void *bytes, size_t n, off_t at);
int __wrap_ftruncate64(int fd, off_t n);
int __wrap_renameat(int from, const char *a, int to, const char *b);
int __wrap_unlinkat(int fd, const char *name, int flags);
int __wrap_fdatasync(int fd);
int __wrap_fsync(int fd);

static _Noreturn void die(void)
{
	shared->is_dead = true;
	_exit(EXIT_DIED);
}

/* True: this call has to fail. */
static bool call_fails(bool is_write)
{
	if (shared->is_dead)
		_exit(EXIT_DIED);
	if (!shared->at || ++shared->calls != shared->at)
		return false;
	if (shared->fault == FAULT_DIE || (shared->fault == FAULT_DIE_HALF && !is_write))
		die();
	errno = EIO;
	return true;
}

ssize_t __wrap_pwrite64(int fd, const void *bytes, size_t n, off_t at)
{
	if (!call_fails(true))
		return __real_pwrite64(fd, bytes, n, at);
	__real_pwrite64(fd, bytes, n / 2, at);
	if (shared->fault == FAULT_DIE_HALF)
		die();
	errno = EIO;
	return -1;
}

int __wrap_ftruncate64(int fd, off_t n)
{
	return call_fails(false) ? -1 : __real_ftruncate64(fd, n);
}

int __wrap_renameat(int from, const char *a, int to, const char *b)
{
	return call_fails(false) ? -1 : __real_renameat(from, a, to, b);
}

int __wrap_unlinkat(int fd, const char *name, int flags)
{
	return call_fails(false) ? -1 : __real_unlinkat(fd, name, flags);
}

/* A process that dies loses nothing that it gave to the system: there is nothing to wait for. */
int __wrap_fdatasync(int fd)
{
	(void)fd;
	return call_fails(false) ? -1 : 0;
}

int __wrap_fsync(int fd)
{
	(void)fd;
	return call_fails(false) ? -1 : 0;
}

/* ---- the server ---- */

/* A commit that fails is tried again, as a server does when the disk has room again. */
static bool commit(struct sparse_log *log)
{
	for (unsigned i = 0; i < 4; i++) {
		if (sparse_log_commit(log, 0) == TRIB_OK) {
			shared->committed = shared->appended;
			return true;
		}
	}
	return false;
}

static void snapshot(struct sparse_log *log, bool waits)
{
	sparse_log_snapshot(log, 0);
	for (; waits && sparse_log_is_snapshotting(log); usleep(200))
		sparse_log_tick(log, 0);
}

static int server_run(const char *folder)
{
	struct sparse_log_options options = rig_options(folder);
	struct rig_script script = { 0 };
	struct sparse_log *log;

	options.sync = SPARSE_SYNC_COMMIT;
	if (sparse_log_open(&options, &log) != TRIB_OK)
		return 1;
	while (script.i < ENTRIES) {
		struct sparse_entry entry;

		rig_script_next(&script, &entry);
		if (sparse_log_append(log, &entry) != TRIB_OK)
			return 2;
		shared->appended = script.i;
		if ((script.i < 10 || script.i % 20 >= 15 || script.i % 4 == 0) && !commit(log))
			return 3;
		if (script.i == 24 || script.i == 44)
			snapshot(log, script.i == 24);
	}
	if (!commit(log))
		return 4;
	for (; sparse_log_is_snapshotting(log); usleep(200))
		sparse_log_tick(log, 0);
	sparse_log_close(log);
	return 0;
}

static int server_start(const char *folder, unsigned at, enum fault fault)
{
	pid_t pid;
	int how;

	*shared = (struct shared){ .at = at, .fault = fault };
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		_exit(server_run(folder));
	assert_int_equal(waitpid(pid, &how, 0), pid);
	assert_true(WIFEXITED(how));
	shared->at = 0;
	shared->is_dead = false;
	return WEXITSTATUS(how);
}

/* ---- afterwards ---- */

/* The state is that after j entries, and none that was committed is missing. */
static void state_demand(const struct sparse_state *state, unsigned committed, unsigned appended,
                         unsigned at)
{
	for (unsigned j = committed; j <= appended; j++) {
		struct sparse_state expected;
		bool equal;

		rig_state(&expected, j);
		equal = rig_states_equal(state, &expected);
		sparse_state_end(&expected);
		if (equal)
			return;
	}
	fail_msg("call %u: %u entries were committed, and the state is not that of %u to %u", at,
	         committed, committed, appended);
}

/* One run with a fault. False: the run had no call with this number. */
static bool fault_try(unsigned at, enum fault fault)
{
	char *folder = rig_folder();
	int code = server_start(folder, at, fault);
	bool reached = shared->calls >= at;
	struct sparse_log_options options = rig_options(folder);
	struct sparse_log *log;

	/* After an error in the first calls the server cannot start; later it goes on. */
	assert_true(code == 0 || code == (fault == FAULT_ERROR ? 1 : EXIT_DIED));
	if (sparse_log_open(&options, &log) != TRIB_OK)
		fail_msg("call %u: %s", at, trib_last_error());
	state_demand(sparse_log_state(log), shared->committed, shared->appended, at);
	assert_true(code != 0 || shared->committed == ENTRIES);
	sparse_log_close(log);
	rig_folder_remove(folder);
	return reached;
}

static void all_try(enum fault fault)
{
	unsigned step = (unsigned)(test_is_short() ? 3 : 1), at;

	for (at = 1; fault_try(at, fault); at += step)
		;
	printf("%u calls\n", at);
	assert_true(at > 60);
}

static void test_death(void **state)
{
	(void)state;
	all_try(FAULT_DIE);
}

static void test_half_written(void **state)
{
	(void)state;
	all_try(FAULT_DIE_HALF);
}

static void test_errors(void **state)
{
	(void)state;
	all_try(FAULT_ERROR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_death),
		cmocka_unit_test(test_half_written),
		cmocka_unit_test(test_errors),
	};

	log_set_level(LOG_ERROR);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
	              0);
	if (shared == MAP_FAILED)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
