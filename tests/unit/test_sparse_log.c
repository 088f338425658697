/* SPDX-License-Identifier: Apache-2.0 */
/* The log of a shard: what was committed comes back bit for bit, and damage is noticed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/log.h"
#include "shard_rig.h"
#include "sparse/log/crc32c.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define OK(call)                                                      \
	do {                                                          \
		if ((call) != TRIB_OK)                                \
			fail_msg("%s: %s", #call, trib_last_error()); \
	} while (0)

static void says(const char *words)
{
	if (!strstr(trib_last_error(), words))
		fail_msg("\"%s\" does not say \"%s\"", trib_last_error(), words);
}

static struct sparse_log *opened(const char *folder)
{
	struct sparse_log_options options = rig_options(folder);
	struct sparse_log *log;

	OK(sparse_log_open(&options, &log));
	return log;
}

/* Entries up to number `n`; the first ones one by one, since later ones need them. */
static void script_run(struct sparse_log *log, struct rig_script *script, unsigned n)
{
	struct sparse_entry entry;

	while (script->i < n) {
		rig_script_next(script, &entry);
		OK(sparse_log_append(log, &entry));
		if (script->i < 10 || script->i % 20 >= 15 || script->i % 5 == 0 || script->i == n)
			OK(sparse_log_commit(log, 0));
	}
	assert_int_equal(sparse_log_pending(log), 0);
}

static void state_demand(const struct sparse_log *log, unsigned n)
{
	struct sparse_state expected;

	rig_state(&expected, n);
	assert_true(rig_states_equal(sparse_log_state(log), &expected));
	sparse_state_end(&expected);
}

static void snapshot_wait(struct sparse_log *log)
{
	while (sparse_log_is_snapshotting(log)) {
		OK(sparse_log_tick(log, 0));
		usleep(1000);
	}
}

/* ---- parts ---- */

static void test_crc(void **state)
{
	uint8_t bytes[300];

	(void)state;
	assert_int_equal(crc32c(0, "123456789", 9), 0xe3069283);
	assert_int_equal(crc32c_plain(0, "123456789", 9), 0xe3069283);
	for (unsigned i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * i + 7);
	for (unsigned i = 0; i < 40; i++)
		assert_int_equal(crc32c(i, bytes + i, 260 - i),
		                 crc32c_plain(i, bytes + i, 260 - i));
}

static void test_applied(void **state)
{
	struct applied_set set = { 0 }, old = { 0 };
	bool seen[2000] = { false };
	uint64_t random = 1;

	(void)state;
	for (unsigned i = 0; i < 20000; i++) {
		uint64_t packet;

		random = random * 6364136223846793005ull + 1442695040888963407ull;
		packet = set.low + (random >> 33) % 300;
		packet = random >> 63 && packet > 20 ? packet - 20 : packet;
		if (packet >= 2000)
			break;
		assert_int_equal(applied_has(&set, packet), seen[packet]);
		if (packet < set.low + APPLIED_WINDOW) {
			rig_packet_add(&set, packet);
			seen[packet] = true;
		}
		assert_false(set.seen[0] & 1);
		assert_true(applied_covers(&set, &old));
		assert_int_equal(applied_covers(&old, &set), !memcmp(&old, &set, sizeof(set)));
		old = set;
	}
	assert_true(set.low > 100);
}

/* ---- restore ---- */

static void test_restore(void **state)
{
	char *folder = rig_folder();
	struct sparse_log *log = opened(folder);
	struct rig_script script = { 0 };
	struct sparse_log_stats stats;

	(void)state;
	script_run(log, &script, 100);
	state_demand(log, 100);
	sparse_log_close(log);
	log = opened(folder);
	state_demand(log, 100);
	script_run(log, &script, 150);
	OK(sparse_log_snapshot(log, 0));
	script_run(log, &script, 200);
	snapshot_wait(log);
	sparse_log_get_stats(log, &stats);
	assert_int_equal(stats.snapshots, 1);
	assert_int_equal(stats.number, 2);
	assert_false(rig_file_exists(folder, RIG_LOG_1));
	script_run(log, &script, 210);
	sparse_log_close(log);
	log = opened(folder);
	sparse_log_get_stats(log, &stats);
	assert_int_equal(stats.replayed, 60);
	assert_true(stats.restored_rows > 10);
	state_demand(log, 210);
	script_run(log, &script, 260);
	state_demand(log, 260);
	sparse_log_close(log);
	rig_folder_remove(folder);
}

/* A snapshot that is given up, and one that keeps the logs. */
static void test_snapshots(void **state)
{
	char *folder = rig_folder();
	struct sparse_log_options options = rig_options(folder);
	struct rig_script script = { 0 };
	struct sparse_log *log;

	(void)state;
	options.keep_logs = true;
	OK(sparse_log_open(&options, &log));
	script_run(log, &script, 60);
	OK(sparse_log_snapshot(log, 0));
	assert_int_equal(sparse_log_snapshot(log, 0), TRIB_ERR_ARGUMENT);
	snapshot_wait(log);
	script_run(log, &script, 80);
	OK(sparse_log_snapshot(log, 0));
	sparse_log_close(log);
	rig_file_write(folder, "snapshot-0000000000000009.new", (const uint8_t *)"x", 1);
	OK(sparse_log_open(&options, &log));
	state_demand(log, 80);
	assert_false(rig_file_exists(folder, "snapshot-0000000000000009.new"));
	assert_true(rig_file_exists(folder, RIG_LOG_1));
	sparse_log_close(log);
	rig_folder_remove(folder);
}

/* ---- damage ---- */

/* The offset of entry `n`, counted from 0, in a folder with one log. */
struct finder {
	unsigned n;
	uint64_t offset;
};

static trib_status entry_count(void *context, const struct sparse_log_visit *visit)
{
	struct finder *finder = context;

	if (!finder->n--)
		finder->offset = visit->offset;
	return TRIB_OK;
}

static uint64_t offset_of(const char *folder, unsigned n)
{
	struct finder finder = { .n = n };
	uint64_t torn;

	OK(sparse_log_visit(folder, entry_count, &finder, &torn));
	assert_true(torn == UINT64_MAX && finder.offset);
	return finder.offset;
}

static void test_torn(void **state)
{
	char *folder = rig_folder();
	struct sparse_log *log = opened(folder);
	struct rig_script script = { 0 };
	uint8_t *bytes;
	uint64_t last;
	size_t n;

	(void)state;
	script_run(log, &script, 48);
	sparse_log_close(log);
	last = offset_of(folder, 47);
	bytes = rig_file_read(folder, RIG_LOG_1, &n);
	for (size_t cut = last; cut < n; cut++) {
		rig_file_write(folder, RIG_LOG_1, bytes, cut);
		log = opened(folder);
		state_demand(log, 47);
		script = (struct rig_script){ 0 };
		for (struct sparse_entry entry; script.i < 47;)
			rig_script_next(&script, &entry);
		script_run(log, &script, 50);
		sparse_log_close(log);
		log = opened(folder);
		state_demand(log, 50);
		sparse_log_close(log);
	}
	/* Blocks of the file that were not written have zeros. */
	memset(bytes + last + 8, 0, n - last - 8);
	rig_file_write(folder, RIG_LOG_1, bytes, n);
	log = opened(folder);
	state_demand(log, 47);
	sparse_log_close(log);
	free(bytes);
	rig_folder_remove(folder);
}

/* In a batch, a block may be lost while a later one was written: that is a torn tail too. */
static void test_torn_batch(void **state)
{
	char *folder = rig_folder();
	struct sparse_log *log = opened(folder);
	struct rig_script script = { 0 };
	struct sparse_entry entry;
	uint8_t *bytes;
	size_t n;

	(void)state;
	script_run(log, &script, 20);
	while (script.i < 25) {
		rig_script_next(&script, &entry);
		OK(sparse_log_append(log, &entry));
	}
	OK(sparse_log_commit(log, 0));
	sparse_log_close(log);
	bytes = rig_file_read(folder, RIG_LOG_1, &n);
	bytes[offset_of(folder, 21) + 20] ^= 1;
	rig_file_write(folder, RIG_LOG_1, bytes, n);
	log = opened(folder);
	state_demand(log, 21);
	sparse_log_close(log);
	free(bytes);
	rig_folder_remove(folder);
}

static void test_damaged(void **state)
{
	char *folder = rig_folder(), words[64];
	struct sparse_log_options options = rig_options(folder);
	struct sparse_log *log = opened(folder);
	struct rig_script script = { 0 };
	uint64_t from, to;
	uint8_t *bytes;
	size_t n;

	(void)state;
	script_run(log, &script, 40);
	sparse_log_close(log);
	from = offset_of(folder, 10);
	to = offset_of(folder, 11);
	bytes = rig_file_read(folder, RIG_LOG_1, &n);
	snprintf(words, sizeof(words), RIG_LOG_1 " is damaged at %u", (unsigned)from);
	for (uint64_t i = from; i < to; i++) {
		bytes[i] ^= 0x40;
		rig_file_write(folder, RIG_LOG_1, bytes, n);
		assert_int_equal(sparse_log_open(&options, &log), TRIB_ERR_ARGUMENT);
		says(words);
		bytes[i] ^= 0x40;
	}
	bytes[from + 17] ^= 1;
	rig_file_write(folder, RIG_LOG_1, bytes, n);
	options.repair = true;
	OK(sparse_log_open(&options, &log));
	state_demand(log, 10);
	sparse_log_close(log);
	options.repair = false;
	OK(sparse_log_open(&options, &log));
	state_demand(log, 10);
	sparse_log_close(log);
	free(bytes);
	rig_folder_remove(folder);
}

static void open_fails(const struct sparse_log_options *options, const char *words)
{
	struct sparse_log *log;

	if (sparse_log_open(options, &log) == TRIB_OK)
		fail_msg("a folder was opened that should say \"%s\"", words);
	says(words);
	assert_null(log);
}

static void test_refused(void **state)
{
	char *folder = rig_folder(), *other = rig_folder();
	struct sparse_log_options options = rig_options(folder);
	struct sparse_log *log = opened(folder);
	struct rig_script script = { 0 };
	uint8_t *bytes, *strange;
	char words[64];
	size_t n, n_strange;

	(void)state;
	snprintf(words, sizeof(words), "in use by process %d", (int)getpid());
	open_fails(&options, words);
	script_run(log, &script, 50);
	OK(sparse_log_snapshot(log, 0));
	snapshot_wait(log);
	sparse_log_close(log);
	options.shards = 2;
	open_fails(&options, "belongs to shard 0 of 1, and this is shard 0 of 2");
	options.shards = 1;

	/* A file of another folder. */
	log = opened(other);
	OK(sparse_log_snapshot(log, 0));
	sparse_log_close(log);
	bytes = rig_file_read(folder, "log-0000000000000002", &n);
	strange = rig_file_read(other, "log-0000000000000002", &n_strange);
	rig_file_write(folder, "log-0000000000000002", strange, n_strange);
	open_fails(&options, "another folder");
	rig_file_write(folder, "log-0000000000000003", bytes, n);
	rig_file_write(folder, "log-0000000000000002", bytes, n);
	open_fails(&options, "was renamed");
	rig_file_write(folder, "log-0000000000000004", bytes, n);
	unlink("log-0000000000000003");
	bytes[8] ^= 1;
	rig_file_write(folder, "log-0000000000000002", bytes, n);
	open_fails(&options, "version 3");
	bytes[8] ^= 2;
	bytes[0] ^= 2;
	rig_file_write(folder, "log-0000000000000002", bytes, n);
	open_fails(&options, "no log or snapshot");
	rig_file_write(folder, "log-0000000000000002", bytes, 10);
	open_fails(&options, "no head");
	free(bytes);
	free(strange);
	rig_folder_remove(folder);
	rig_folder_remove(other);
}

static void test_bad_snapshot(void **state)
{
	char *folder = rig_folder(), path[128];
	struct sparse_log_options options = rig_options(folder);
	struct sparse_log *log = opened(folder);
	struct rig_script script = { 0 };
	uint8_t *bytes;
	size_t n;

	(void)state;
	script_run(log, &script, 50);
	OK(sparse_log_snapshot(log, 0));
	snapshot_wait(log);
	sparse_log_close(log);
	bytes = rig_file_read(folder, "snapshot-0000000000000002", &n);
	for (size_t i = 0; i < n; i += 37) {
		bytes[i] ^= 1;
		rig_file_write(folder, "snapshot-0000000000000002", bytes, n);
		open_fails(&options, "");
		bytes[i] ^= 1;
		rig_file_write(folder, "snapshot-0000000000000002", bytes, i);
		open_fails(&options, "");
	}
	rig_file_write(folder, "snapshot-0000000000000002", bytes, n);
	log = opened(folder);
	state_demand(log, 50);
	sparse_log_close(log);
	snprintf(path, sizeof(path), "%s/log-0000000000000002", folder);
	assert_int_equal(unlink(path), 0);
	open_fails(&options, "lacks log-0000000000000002");
	free(bytes);
	rig_folder_remove(folder);
}

/* ---- a full disk ---- */

static void test_full(void **state)
{
	char *folder = rig_folder();
	struct sparse_log *log = opened(folder);
	struct rig_script script = { 0 };
	struct rlimit before, limit;
	struct sparse_entry entry;
	uint8_t *bytes;
	size_t n;

	(void)state;
	script_run(log, &script, 30);
	bytes = rig_file_read(folder, RIG_LOG_1, &n);
	free(bytes);
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	limit = before;
	limit.rlim_cur = n + 100;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	while (script.i < 34) {
		rig_script_next(&script, &entry);
		OK(sparse_log_append(log, &entry));
	}
	for (unsigned i = 0; i < 3; i++) {
		size_t now;

		assert_int_equal(sparse_log_commit(log, 0), TRIB_ERR_SYSTEM);
		says("cannot write the log in");
		says("File too large");
		state_demand(log, 30);
		bytes = rig_file_read(folder, RIG_LOG_1, &now);
		free(bytes);
		assert_int_equal(now, n);
	}
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	OK(sparse_log_commit(log, 0));
	state_demand(log, 34);
	script_run(log, &script, 40);
	sparse_log_close(log);
	log = opened(folder);
	state_demand(log, 40);
	sparse_log_close(log);
	rig_folder_remove(folder);
}

/* ---- entries that are wrong or late ---- */

static void append_fails(struct sparse_log *log, const struct sparse_entry *entry,
                         const char *words)
{
	if (sparse_log_append(log, entry) == TRIB_OK)
		fail_msg("an entry was taken that should say \"%s\"", words);
	says(words);
}

static void test_wrong_entries(void **state)
{
	char *folder = rig_folder();
	struct sparse_log *log = opened(folder);
	struct rig_script script = { 0 };
	uint64_t key = 1;
	float row[5] = { 1 };
	struct applied_set records[2] = { 0 };
	struct sparse_entry push = { .kind = SPARSE_ENTRY_PUSH,
		                     .client = 0x100,
		                     .sequence = 1000,
		                     .n = 1,
		                     .width = 3,
		                     .keys = &key,
		                     .rows = row };
	struct sparse_entry flush = { .kind = SPARSE_ENTRY_FLUSH,
		                      .incarnation = 1,
		                      .epoch = 1000,
		                      .children = 2,
		                      .records = records,
		                      .width = 3 };
	struct sparse_entry wrong;

	(void)state;
	script_run(log, &script, 14);
	wrong = push, wrong.table = 2;
	append_fails(log, &wrong, "table 2");
	wrong = push, wrong.width = 4;
	append_fails(log, &wrong, "width 4");
	wrong = push, wrong.client = 5;
	append_fails(log, &wrong, "client 5 is not known");
	wrong = push, wrong.sequence = 0;
	append_fails(log, &wrong, "number 0");
	wrong = push, wrong.n = 1u << 30;
	append_fails(log, &wrong, "too large");
	key = UINT64_MAX;
	append_fails(log, &push, "key 18446744073709551615");
	key = 1;
	append_fails(log, &flush, "lack packets");
	wrong = flush, wrong.incarnation = 7;
	append_fails(log, &wrong, "incarnation 7");
	state_demand(log, 14);
	script_run(log, &script, 18);
	append_fails(log, &flush, "was sealed");
	assert_int_equal(sparse_log_pending(log), 0);
	state_demand(log, 18);
	sparse_log_close(log);
	rig_folder_remove(folder);
}

static void outcome_note(void *context, const struct sparse_entry *entry,
                         enum sparse_outcome outcome)
{
	unsigned *n = context;

	(void)entry;
	n[outcome]++;
}

/* Between append and commit another entry of the same batch may make an entry late. */
static void test_late(void **state)
{
	unsigned outcomes[3] = { 0 };
	char *folder = rig_folder();
	struct sparse_log_options options = rig_options(folder);
	struct rig_script script = { 0 };
	struct applied_set records[2];
	uint64_t key = 7;
	float row[3] = { 1, 1, 1 };
	struct sparse_entry left = { .kind = SPARSE_ENTRY_CLIENT,
		                     .client = 0x100,
		                     .has_left = true };
	struct sparse_entry seal = { .kind = SPARSE_ENTRY_SEAL, .incarnation = 1 };
	struct sparse_entry push = { .kind = SPARSE_ENTRY_PUSH,
		                     .client = 0x101,
		                     .sequence = 1000,
		                     .n = 1,
		                     .width = 3,
		                     .keys = &key,
		                     .rows = row };
	struct sparse_entry gone, flush;
	struct sparse_log *log;
	struct sparse_state *now;
	float before[3], after[3];

	(void)state;
	options.on_applied = outcome_note;
	options.context = outcomes;
	OK(sparse_log_open(&options, &log));
	script_run(log, &script, 14);
	now = sparse_log_state(log);
	memcpy(records, sparse_table_incarnation(now->tables[0], 1)->records, sizeof(records));
	flush = (struct sparse_entry){ .kind = SPARSE_ENTRY_FLUSH,
		                       .incarnation = 1,
		                       .epoch = 1000,
		                       .children = 2,
		                       .records = records,
		                       .n = 1,
		                       .width = 3,
		                       .keys = &key,
		                       .rows = row };
	sparse_store_read(now->tables[0]->store, key, before);
	memset(outcomes, 0, sizeof(outcomes));
	gone = push;
	gone.client = 0x100;
	OK(sparse_log_append(log, &left));
	OK(sparse_log_append(log, &gone));
	OK(sparse_log_append(log, &seal));
	OK(sparse_log_append(log, &flush));
	OK(sparse_log_commit(log, 0));
	assert_int_equal(outcomes[SPARSE_APPLIED], 2);
	assert_int_equal(outcomes[SPARSE_STALE], 2);
	sparse_store_read(now->tables[0]->store, key, after);
	assert_memory_equal(before, after, sizeof(before));
	/* The same push twice in a batch. */
	OK(sparse_log_append(log, &push));
	OK(sparse_log_append(log, &push));
	OK(sparse_log_commit(log, 0));
	assert_int_equal(outcomes[SPARSE_APPLIED], 3);
	assert_int_equal(outcomes[SPARSE_REPEATED], 1);
	sparse_store_read(now->tables[0]->store, key, after);
	sparse_log_close(log);
	OK(sparse_log_open(&options, &log));
	sparse_store_read(sparse_log_state(log)->tables[0]->store, key, before);
	assert_memory_equal(before, after, sizeof(before));
	sparse_log_close(log);
	rig_folder_remove(folder);
}

static void test_tables(void **state)
{
	char *folder = rig_folder();
	struct sparse_log *log = opened(folder);
	trib_sparse_options given = TRIB_SPARSE_OPTIONS_INIT;
	struct sparse_table_options options;
	uint32_t table;

	(void)state;
	given.width = 4;
	OK(sparse_table_options_take(&given, &options));
	OK(sparse_log_table(log, &options, 0, &table));
	OK(sparse_log_table(log, &options, 0, &table));
	assert_int_equal(table, 0);
	memset(options.name, 0, sizeof(options.name));
	strcpy(options.name, "other");
	OK(sparse_log_table(log, &options, 0, &table));
	assert_int_equal(table, 1);
	options.width = 5;
	assert_int_equal(sparse_log_table(log, &options, 0, &table), TRIB_ERR_MISMATCH);
	says("other");
	sparse_log_close(log);
	log = opened(folder);
	assert_true(sparse_state_table_find(sparse_log_state(log), "other", &table) && table == 1);
	sparse_log_close(log);
	rig_folder_remove(folder);
}

/* ---- clients ---- */

static void client_put(struct sparse_log *log, struct sparse_entry entry)
{
	entry.kind = SPARSE_ENTRY_CLIENT;
	OK(sparse_log_append(log, &entry));
	OK(sparse_log_commit(log, 0));
}

/* 0: unknown, 1: known, 2: has left. */
static int client_state(const struct sparse_log *log, uint64_t client)
{
	const struct sparse_client *found = sparse_state_client(sparse_log_state(log), client);

	return found ? 1 + (int)found->has_left : 0;
}

/* A goodbye outlives a restart, with a snapshot and without one, until its rank or run is new. */
static void test_goodbye(void **state)
{
	const struct sparse_entry push = {
		.kind = SPARSE_ENTRY_PUSH, .client = 2, .sequence = 1, .width = 3
	};
	char *folder = rig_folder();
	struct sparse_log *log = opened(folder);
	struct rig_script script = { 0 };

	(void)state;
	script_run(log, &script, 2);
	client_put(log, (struct sparse_entry){ .client = 1, .begins_run = true });
	client_put(log, (struct sparse_entry){ .client = 2, .rank = 1 });
	client_put(log, (struct sparse_entry){ .client = 3, .rank = 2 });
	client_put(log, (struct sparse_entry){ .client = 2, .rank = 1, .has_left = true });
	OK(sparse_log_snapshot(log, 0));
	client_put(log, (struct sparse_entry){ .client = 3, .rank = 2, .has_left = true });
	snapshot_wait(log);
	sparse_log_close(log);
	log = opened(folder);
	assert_int_equal(client_state(log, 1), 1);
	assert_int_equal(client_state(log, 2), 2);
	assert_int_equal(client_state(log, 3), 2);
	append_fails(log, &push, "has left");
	client_put(log, (struct sparse_entry){ .client = 4, .rank = 1 });
	client_put(log, (struct sparse_entry){ .client = 5, .table = 1, .begins_run = true });
	assert_int_equal(client_state(log, 2), 0); /* another client has its rank */
	assert_int_equal(client_state(log, 3), 2);
	client_put(log, (struct sparse_entry){ .client = 6, .begins_run = true });
	assert_int_equal(client_state(log, 3), 0);
	assert_int_equal(client_state(log, 1), 1);
	sparse_log_close(log);
	rig_folder_remove(folder);
}

/* ---- printing ---- */

static trib_status entry_print(void *context, const struct sparse_log_visit *visit)
{
	sparse_log_print(context, visit, false);
	sparse_log_print(context, visit, true);
	return TRIB_OK;
}

static void test_print(void **state)
{
	char *folder = rig_folder(), *text;
	struct sparse_log *log = opened(folder);
	struct rig_script script = { 0 };
	uint64_t torn;
	size_t n;
	FILE *out = open_memstream(&text, &n);

	(void)state;
	assert_non_null(out);
	script_run(log, &script, 40);
	sparse_log_close(log);
	OK(sparse_log_visit(folder, entry_print, out, &torn));
	fclose(out);
	assert_non_null(strstr(text, "table 0 is first: 0 parameters, width 3, adam"));
	assert_non_null(strstr(text, "\"kind\":\"push\",\"table\":"));
	assert_non_null(strstr(text, "client table 0, rank 0: 100 is known"));
	free(text);
	rig_folder_remove(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_crc),           cmocka_unit_test(test_applied),
		cmocka_unit_test(test_restore),       cmocka_unit_test(test_snapshots),
		cmocka_unit_test(test_torn),          cmocka_unit_test(test_torn_batch),
		cmocka_unit_test(test_damaged),       cmocka_unit_test(test_refused),
		cmocka_unit_test(test_bad_snapshot),  cmocka_unit_test(test_full),
		cmocka_unit_test(test_wrong_entries), cmocka_unit_test(test_late),
		cmocka_unit_test(test_tables),        cmocka_unit_test(test_goodbye),
		cmocka_unit_test(test_print),
	};

	log_set_level(LOG_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
