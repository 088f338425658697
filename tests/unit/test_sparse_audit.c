/* SPDX-License-Identifier: Apache-2.0 */
/* An audit agrees with a server that did all right, and finds each fault. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/log.h"
#include "shard_rig.h"
#include "sparse/audit/sparse_audit.h"
#include "sparse/log/sparse_snapshot.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OK(call)                                                      \
	do {                                                          \
		if ((call) != TRIB_OK)                                \
			fail_msg("%s: %s", #call, trib_last_error()); \
	} while (0)

#define ENTRIES 300u

static void snapshot_make(struct sparse_log *log)
{
	OK(sparse_log_snapshot(log, 0));
	for (; sparse_log_is_snapshotting(log); usleep(500))
		OK(sparse_log_tick(log, 0));
}

/* A folder with a whole history, and a snapshot in it. */
static char *history_make(bool keep_logs)
{
	char *folder = rig_folder();
	struct sparse_log_options options = rig_options(folder);
	struct rig_script script = { 0 };
	struct sparse_log *log;
	struct sparse_entry entry;

	options.keep_logs = keep_logs;
	OK(sparse_log_open(&options, &log));
	while (script.i < ENTRIES) {
		rig_script_next(&script, &entry);
		OK(sparse_log_append(log, &entry));
		OK(sparse_log_commit(log, 0));
		if (script.i == ENTRIES / 2)
			snapshot_make(log);
	}
	sparse_log_close(log);
	return folder;
}

static void test_right(void **state)
{
	char *folder = history_make(true);
	struct sparse_audit audit;

	(void)state;
	OK(sparse_audit(folder, stderr, &audit));
	assert_int_equal(audit.faults, 0);
	assert_int_equal(audit.entries, ENTRIES);
	assert_true(audit.pushes > 80 && audit.flushes > 50 && audit.packets > 100);
	assert_true(audit.repeats > 5 && audit.rows > 50);
	assert_true(audit.torn == UINT64_MAX);
	rig_folder_remove(folder);
}

static void test_missing_logs(void **state)
{
	char *folder = history_make(false);
	struct sparse_audit audit;

	(void)state;
	assert_int_equal(sparse_audit(folder, NULL, &audit), TRIB_ERR_ARGUMENT);
	assert_non_null(strstr(trib_last_error(), "--keep-logs"));
	rig_folder_remove(folder);
}

/* Writes the snapshot again, with another state. */
static void snapshot_forge(const char *path, const struct sparse_state *state)
{
	struct snapshot_room *room = snapshot_room_make();
	struct log_folder folder;
	struct log_reader reader;
	struct log_file_head head;

	assert_non_null(room);
	OK(log_folder_view(&folder, path));
	OK(log_folder_read(&folder, true, 2, &reader));
	head = reader.head;
	log_reader_close(&reader);
	OK(sparse_snapshot_write(&folder, &head, state, room));
	log_folder_close(&folder);
	snapshot_room_free(room);
}

/* The state in the snapshot lacks a push, has one twice, or has a wrong bit. */
static void test_forged(void **state)
{
	char *folder = history_make(true), *text;
	struct rig_script script = { 0 };
	struct sparse_audit audit;
	struct sparse_state forged;
	struct sparse_entry entry;
	enum sparse_outcome outcome;
	size_t n;
	FILE *out;

	(void)state;
	rig_state(&forged, ENTRIES / 2);
	snapshot_forge(folder, &forged);
	OK(sparse_audit(folder, stderr, &audit));
	assert_int_equal(audit.faults, 0);

	/* A push of a strange client is one too many. */
	do
		rig_script_next(&script, &entry);
	while (entry.kind != SPARSE_ENTRY_PUSH || !entry.n);
	assert_non_null(sparse_state_client_make(&forged, 7));
	entry.client = 7;
	OK(sparse_state_apply(&forged, &entry, &outcome));
	assert_int_equal(outcome, SPARSE_APPLIED);
	snapshot_forge(folder, &forged);
	out = open_memstream(&text, &n);
	assert_non_null(out);
	OK(sparse_audit(folder, out, &audit));
	fclose(out);
	assert_true(audit.faults > 0);
	assert_non_null(strstr(text, "has other bits than the log makes"));
	free(text);
	sparse_state_end(&forged);

	rig_state(&forged, ENTRIES / 2 - 3);
	snapshot_forge(folder, &forged);
	OK(sparse_audit(folder, NULL, &audit));
	assert_true(audit.faults > 0);
	sparse_state_end(&forged);

	rig_state(&forged, ENTRIES / 2);
	((uint8_t *)sparse_store_floats(forged.tables[1]->store, 3))[2] ^=
		1; /* rounding does not heal it */
	snapshot_forge(folder, &forged);
	OK(sparse_audit(folder, NULL, &audit));
	assert_true(audit.faults == 1);
	sparse_state_end(&forged);
	rig_folder_remove(folder);
}

/* A server that uses the folder changes it: no audit. */
static void test_in_use(void **state)
{
	char *folder = history_make(true);
	struct sparse_log_options options = rig_options(folder);
	struct sparse_audit audit;
	struct sparse_log *log;

	(void)state;
	options.keep_logs = true;
	OK(sparse_log_open(&options, &log));
	assert_int_equal(sparse_audit(folder, NULL, &audit), TRIB_ERR_REFUSED);
	sparse_log_close(log);
	OK(sparse_audit(folder, NULL, &audit));
	assert_int_equal(audit.faults, 0);
	rig_folder_remove(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_right),
		cmocka_unit_test(test_missing_logs),
		cmocka_unit_test(test_forged),
		cmocka_unit_test(test_in_use),
	};

	log_set_level(LOG_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
