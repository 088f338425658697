/* SPDX-License-Identifier: Apache-2.0 */
#include "control/state/store.h"

#include "control/transport/state_dir.h"
#include "control/transport/node_report.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <unistd.h>

#define SCHEMA_VERSION 8

/* Later versions append steps. PRAGMA user_version counts the steps that were taken. */
static const char *const steps[SCHEMA_VERSION] = {
	"CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);"
	"CREATE TABLE jobs (id INTEGER PRIMARY KEY, name TEXT NOT NULL, policy TEXT NOT NULL,"
	"  size INTEGER NOT NULL, least INTEGER NOT NULL, made_at INTEGER NOT NULL);"
	"CREATE TABLE gatherings (job INTEGER NOT NULL REFERENCES jobs ON DELETE CASCADE,"
	"  key INTEGER NOT NULL, policy TEXT NOT NULL, size INTEGER NOT NULL,"
	"  least INTEGER NOT NULL, generation INTEGER NOT NULL, members INTEGER NOT NULL,"
	"  plan TEXT NOT NULL, PRIMARY KEY (job, key));"
	"CREATE TABLE seats (job INTEGER NOT NULL, key INTEGER NOT NULL, seat INTEGER NOT NULL,"
	"  nonce INTEGER NOT NULL, planned INTEGER NOT NULL, host TEXT NOT NULL,"
	"  pid INTEGER NOT NULL, PRIMARY KEY (job, key, seat),"
	"  FOREIGN KEY (job, key) REFERENCES gatherings ON DELETE CASCADE);"
	"CREATE TABLE nodes (address TEXT PRIMARY KEY, name TEXT NOT NULL, cores INTEGER NOT NULL,"
	"  memory INTEGER NOT NULL, link INTEGER NOT NULL, gone INTEGER NOT NULL);",
	"ALTER TABLE nodes ADD COLUMN drained INTEGER NOT NULL DEFAULT 0;",
	"ALTER TABLE nodes ADD COLUMN rack TEXT NOT NULL DEFAULT '';"
	"CREATE TABLE placements (job INTEGER PRIMARY KEY REFERENCES jobs ON DELETE CASCADE,"
	"  hosts INTEGER NOT NULL, per_host INTEGER NOT NULL, ordinal INTEGER NOT NULL,"
	"  leased INTEGER NOT NULL, placed TEXT NOT NULL);",
	"ALTER TABLE gatherings ADD COLUMN same_since INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE gatherings ADD COLUMN frugal INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE gatherings ADD COLUMN verdict TEXT NOT NULL DEFAULT '';",
	"ALTER TABLE gatherings ADD COLUMN star INTEGER NOT NULL DEFAULT 0;",
	"ALTER TABLE gatherings ADD COLUMN gone INTEGER NOT NULL DEFAULT 0;",
	"ALTER TABLE seats ADD COLUMN tcp INTEGER NOT NULL DEFAULT 0;",
	"ALTER TABLE seats ADD COLUMN wire INTEGER NOT NULL DEFAULT 0;",
};

struct store {
	sqlite3 *db;
	char path[STATE_DIR_PATH_MAX];
	int lock;
};

static trib_status fail(const struct store *store, const char *what)
{
	return status_fail(TRIB_ERR_SYSTEM, "cannot %s the store %s: %s", what, store->path,
	                   sqlite3_errmsg(store->db));
}

static trib_status run(struct store *store, const char *sql)
{
	if (sqlite3_exec(store->db, sql, NULL, NULL, NULL) != SQLITE_OK)
		return fail(store, "change");
	return TRIB_OK;
}

/* ---- statements ---- */

/* The value of one "?". */
struct value {
	const char *text; /* NULL: the value is `number` */
	int64_t number;
};

#define NUMBER(x) ((struct value){ .number = (int64_t)(x) })
#define TEXT(x) ((struct value){ .text = (x) })

static trib_status prepare(struct store *store, const char *sql, const struct value *values,
                           unsigned n, sqlite3_stmt **out)
{
	if (sqlite3_prepare_v2(store->db, sql, -1, out, NULL) != SQLITE_OK)
		return fail(store, "read");
	for (unsigned i = 0; i < n; i++) {
		int place = (int)i + 1;

		if (values[i].text)
			sqlite3_bind_text(*out, place, values[i].text, -1, SQLITE_TRANSIENT);
		else
			sqlite3_bind_int64(*out, place, values[i].number);
	}
	return TRIB_OK;
}

static trib_status change(struct store *store, const char *sql, const struct value *values,
                          unsigned n)
{
	sqlite3_stmt *statement;
	trib_status status = prepare(store, sql, values, n, &statement);
	int code;

	if (status != TRIB_OK)
		return status;
	code = sqlite3_step(statement);
	if (code != SQLITE_DONE)
		status = fail(store, "change");
	sqlite3_finalize(statement);
	return status;
}

#define CHANGE(store, sql, ...)                             \
	change(store, sql, (struct value[]){ __VA_ARGS__ }, \
	       sizeof((struct value[]){ __VA_ARGS__ }) / sizeof(struct value))

static void column_text(sqlite3_stmt *statement, int column, char *out, size_t size)
{
	const unsigned char *text = sqlite3_column_text(statement, column);

	snprintf(out, size, "%s", text ? (const char *)text : "");
}

/* ---- opening ---- */

/* Two controllers with one store would give out the same numbers. */
static trib_status lock_state_dir(struct store *store, const char *state_dir)
{
	char path[STATE_DIR_PATH_MAX + 8];

	snprintf(path, sizeof(path), "%s/lock", state_dir);
	store->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (store->lock < 0)
		return status_fail_errno("cannot create %s", path);
	if (flock(store->lock, LOCK_EX | LOCK_NB)) {
		if (errno != EWOULDBLOCK)
			return status_fail_errno("cannot lock %s", path);
		return status_fail(TRIB_ERR_CONFIG,
		                   "another controller runs with the state folder %s; give this "
		                   "one its own with --state",
		                   state_dir);
	}
	return TRIB_OK;
}

static trib_status read_version(struct store *store, int *version)
{
	sqlite3_stmt *statement;
	trib_status status = prepare(store, "PRAGMA user_version", NULL, 0, &statement);

	if (status != TRIB_OK)
		return status;
	if (sqlite3_step(statement) == SQLITE_ROW)
		*version = sqlite3_column_int(statement, 0);
	else
		status = fail(store, "read");
	sqlite3_finalize(statement);
	return status;
}

static trib_status make_secret(struct store *store)
{
	struct secret secret;
	char text[SECRET_TEXT];

	if (getrandom(&secret, sizeof(secret), 0) != sizeof(secret))
		return status_fail_errno("cannot get random numbers");
	secret_print(&secret, text);
	return CHANGE(store, "INSERT OR IGNORE INTO meta VALUES ('secret', ?)", TEXT(text));
}

/* Commits, or rolls back after an error. */
static trib_status finish(struct store *store, trib_status status)
{
	if (status == TRIB_OK)
		status = run(store, "COMMIT");
	if (status != TRIB_OK)
		sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
	return status;
}

static trib_status upgrade(struct store *store)
{
	char sql[64];
	trib_status status;
	int version = 0;

	if ((status = read_version(store, &version)) != TRIB_OK)
		return status;
	if (version > SCHEMA_VERSION)
		return status_fail(
			TRIB_ERR_CONFIG,
			"the store %s was written by a newer tribd (schema %d, this tribd has %d)",
			store->path, version, SCHEMA_VERSION);
	if (version == SCHEMA_VERSION)
		return TRIB_OK;
	if ((status = run(store, "BEGIN IMMEDIATE")) != TRIB_OK)
		return status;
	for (; status == TRIB_OK && version < SCHEMA_VERSION; version++)
		status = run(store, steps[version]);
	if (status == TRIB_OK)
		status = make_secret(store);
	snprintf(sql, sizeof(sql), "PRAGMA user_version = %d", SCHEMA_VERSION);
	if (status == TRIB_OK)
		status = run(store, sql);
	return finish(store, status);
}

/*
 * A commit always survives the death of this process. It survives a crash of the machine only if
 * `safe`, which waits for the disk. The disk may be busy for long, and recovery must not wait for
 * it. A plan lost in this way does no harm: ranks know its generation, and numbers continue from
 * there (policy/rendezvous.c, catch_up).
 */
static trib_status set_safe(struct store *store, bool safe)
{
	return run(store, safe ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL");
}

trib_status store_open(const char *state_dir, struct store **out)
{
	struct store *store = calloc(1, sizeof(*store));
	trib_status status;

	if (!store)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for a store");
	store->lock = -1;
	snprintf(store->path, sizeof(store->path), "%.1000s/store.db", state_dir);
	/* Readable by the owner only; SQLite gives its other files the same mode. */
	close(open(store->path, O_RDWR | O_CREAT | O_CLOEXEC, 0600));
	if ((status = lock_state_dir(store, state_dir)) != TRIB_OK) {
		store_close(store);
		return status;
	}
	if (sqlite3_open_v2(store->path, &store->db,
	                    SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX,
	                    NULL) != SQLITE_OK)
		status = fail(store, "open");
	if (status == TRIB_OK)
		status = run(store, "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
		                    "PRAGMA foreign_keys = ON;");
	if (status == TRIB_OK)
		status = upgrade(store);
	if (status == TRIB_OK)
		status = set_safe(store, false);
	if (status != TRIB_OK) {
		store_close(store);
		return status;
	}
	*out = store;
	return TRIB_OK;
}

void store_close(struct store *store)
{
	if (!store)
		return;
	sqlite3_close(store->db);
	if (store->lock >= 0)
		close(store->lock);
	free(store);
}

/* ---- writing ---- */

trib_status store_put_job(struct store *store, const struct job *job)
{
	trib_status status = set_safe(store, true);

	if (status == TRIB_OK)
		status = run(store, "BEGIN IMMEDIATE");
	if (status != TRIB_OK)
		return status;
	status = CHANGE(store, "INSERT INTO jobs VALUES (?, ?, ?, ?, ?, ?)", NUMBER(job->id),
	                TEXT(job->name), TEXT(policy_name(job->policy)), NUMBER(job->size),
	                NUMBER(job->min), NUMBER(job->made_at));
	if (status == TRIB_OK)
		status = CHANGE(store, "INSERT OR REPLACE INTO meta VALUES ('last_job', ?)",
		                NUMBER(job->id));
	status = finish(store, status);
	set_safe(store, false);
	return status;
}

trib_status store_put_placement(struct store *store, const struct placement_row *row)
{
	trib_status status = set_safe(store, true);

	if (status == TRIB_OK)
		status =
			CHANGE(store, "INSERT OR REPLACE INTO placements VALUES (?, ?, ?, ?, ?, ?)",
		               NUMBER(row->job), NUMBER(row->hosts), NUMBER(row->per_host),
		               NUMBER(row->ordinal), NUMBER(row->leased), TEXT(row->placed));
	set_safe(store, false);
	return status;
}

trib_status store_drop_job(struct store *store, uint16_t id)
{
	return CHANGE(store, "DELETE FROM jobs WHERE id = ?", NUMBER(id));
}

static trib_status put_membership(struct store *store, const struct membership *g,
                                  const char *verdict)
{
	trib_status status = CHANGE(
		store,
		"INSERT OR REPLACE INTO gatherings VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
		NUMBER(g->job), NUMBER(g->key), TEXT(policy_name(g->policy)), NUMBER(g->size),
		NUMBER(g->min), NUMBER(g->generation), NUMBER(g->members), TEXT(g->plan),
		NUMBER(g->same_since), NUMBER(g->frugal), TEXT(verdict ? verdict : ""),
		NUMBER(g->star), NUMBER(g->left));

	for (unsigned i = 0; status == TRIB_OK && i < SEATS_MAX; i++) {
		const struct seat *seat = &g->seats[i];

		if (seat->nonce)
			status = CHANGE(
				store, "INSERT INTO seats VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
				NUMBER(g->job), NUMBER(g->key), NUMBER(i), NUMBER(seat->nonce),
				NUMBER(seat->planned), TEXT(seat->host), NUMBER(seat->pid),
				NUMBER(seat->tcp), NUMBER(seat->wire));
	}
	return status;
}

trib_status store_put_membership(struct store *store, const struct membership *membership,
                                 const struct plan_verdict *verdict)
{
	trib_status status = run(store, "BEGIN IMMEDIATE");
	json_t *json;
	char *text;

	if (status != TRIB_OK)
		return status;
	json = verdict_to_json(verdict);
	text = json ? json_dumps(json, JSON_COMPACT) : NULL;
	status = finish(store, put_membership(store, membership, text));
	json_decref(json);
	free(text);
	return status;
}

trib_status store_put_left(struct store *store, const struct membership *membership)
{
	return CHANGE(store, "UPDATE gatherings SET gone = ? WHERE job = ? AND key = ?",
	              NUMBER(membership->left), NUMBER(membership->job), NUMBER(membership->key));
}

trib_status store_drop_membership(struct store *store, uint16_t job, uint64_t key)
{
	return CHANGE(store, "DELETE FROM gatherings WHERE job = ? AND key = ?", NUMBER(job),
	              NUMBER(key));
}

trib_status store_put_node(struct store *store, const struct node *node)
{
	const struct node_report *report = &node->report;

	return CHANGE(store, "INSERT OR REPLACE INTO nodes VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
	              TEXT(report->address), TEXT(report->name), NUMBER(report->cores),
	              NUMBER(report->memory), NUMBER(report->link_bps), NUMBER(node->left),
	              NUMBER(node->drained), TEXT(report->rack));
}

trib_status store_drop_node(struct store *store, const char *address)
{
	return CHANGE(store, "DELETE FROM nodes WHERE address = ?", TEXT(address));
}

/* ---- reading ---- */

/* Empty: there is no such value. */
static trib_status read_meta(struct store *store, const char *name, char *out, size_t size)
{
	sqlite3_stmt *statement;
	trib_status status = prepare(store, "SELECT value FROM meta WHERE name = ?",
	                             (struct value[]){ TEXT(name) }, 1, &statement);

	out[0] = '\0';
	if (status != TRIB_OK)
		return status;
	if (sqlite3_step(statement) == SQLITE_ROW)
		column_text(statement, 0, out, size);
	sqlite3_finalize(statement);
	return TRIB_OK;
}

trib_status store_last_job(struct store *store, uint16_t *id)
{
	char text[16];
	trib_status status = read_meta(store, "last_job", text, sizeof(text));

	*id = (uint16_t)strtoul(text, NULL, 10);
	return status;
}

trib_status store_secret(struct store *store, struct secret *out)
{
	char text[SECRET_TEXT];
	trib_status status = read_meta(store, "secret", text, sizeof(text));

	if (status != TRIB_OK)
		return status;
	if (!secret_parse(out, text))
		return status_fail(TRIB_ERR_CONFIG, "the store %s has no secret: it is damaged",
		                   store->path);
	return TRIB_OK;
}

static trib_status read_job(struct store *store, sqlite3_stmt *row,
                            const struct store_loader *loader)
{
	struct job job = { .id = (uint16_t)sqlite3_column_int(row, 0),
		           .size = (uint32_t)sqlite3_column_int(row, 3),
		           .min = (uint32_t)sqlite3_column_int(row, 4),
		           .made_at = sqlite3_column_int64(row, 5) };
	char policy[16];

	(void)store;
	column_text(row, 1, job.name, sizeof(job.name));
	column_text(row, 2, policy, sizeof(policy));
	policy_parse(policy, &job.policy);
	return loader->job(loader->context, &job);
}

static trib_status read_placement(struct store *store, sqlite3_stmt *row,
                                  const struct store_loader *loader)
{
	const unsigned char *placed = sqlite3_column_text(row, 5);
	const struct placement_row placement = { .job = (uint16_t)sqlite3_column_int(row, 0),
		                                 .hosts = (uint32_t)sqlite3_column_int(row, 1),
		                                 .per_host = (uint32_t)sqlite3_column_int(row, 2),
		                                 .ordinal = (uint64_t)sqlite3_column_int64(row, 3),
		                                 .leased = sqlite3_column_int(row, 4),
		                                 .placed = placed ? (const char *)placed : "" };

	(void)store;
	return loader->placement(loader->context, &placement);
}

static trib_status read_seats(struct store *store, struct membership *membership)
{
	const struct value which[] = { NUMBER(membership->job), NUMBER(membership->key) };
	sqlite3_stmt *row;
	trib_status status =
		prepare(store,
	                "SELECT seat, nonce, planned, host, pid, tcp, wire FROM seats WHERE "
	                "job = ? AND key = ?",
	                which, 2, &row);

	while (status == TRIB_OK && sqlite3_step(row) == SQLITE_ROW) {
		unsigned index = (unsigned)sqlite3_column_int(row, 0) % SEATS_MAX;
		struct seat *seat = &membership->seats[index];

		if (membership->left >> index & 1)
			continue; /* that process has left: the seat is free */
		seat->nonce = (uint64_t)sqlite3_column_int64(row, 1);
		seat->planned = (uint32_t)sqlite3_column_int64(row, 2);
		column_text(row, 3, seat->host, sizeof(seat->host));
		seat->pid = (uint32_t)sqlite3_column_int64(row, 4);
		seat->tcp = sqlite3_column_int64(row, 5);
		seat->wire = (uint8_t)sqlite3_column_int(row, 6);
	}
	sqlite3_finalize(row);
	return status;
}

static trib_status read_membership(struct store *store, sqlite3_stmt *row,
                                   const struct store_loader *loader)
{
	struct membership membership;
	struct plan_verdict verdict = { 0 };
	enum policy policy = POLICY_FAIL;
	const char *why;
	char text[16];
	json_t *json;
	trib_status status;

	column_text(row, 2, text, sizeof(text));
	policy_parse(text, &policy);
	membership_start(&membership, (uint16_t)sqlite3_column_int(row, 0),
	                 (uint64_t)sqlite3_column_int64(row, 1), policy,
	                 (uint32_t)sqlite3_column_int(row, 3),
	                 (uint32_t)sqlite3_column_int(row, 4));
	membership.generation = (uint32_t)sqlite3_column_int64(row, 5);
	membership.members = (uint64_t)sqlite3_column_int64(row, 6);
	column_text(row, 7, membership.plan, sizeof(membership.plan));
	membership.same_since = (uint32_t)sqlite3_column_int64(row, 8);
	membership.frugal = sqlite3_column_int(row, 9);
	membership.star = (uint32_t)sqlite3_column_int64(row, 11);
	membership.left = (uint64_t)sqlite3_column_int64(row, 12);
	why = (const char *)sqlite3_column_text(row, 10);
	json = why && *why ? json_loads(why, 0, NULL) : NULL;
	if (json)
		verdict_from_json(&verdict, json);
	json_decref(json);
	status = read_seats(store, &membership);
	return status == TRIB_OK ? loader->membership(loader->context, &membership, &verdict)
	                         : status;
}

static trib_status read_node(struct store *store, sqlite3_stmt *row,
                             const struct store_loader *loader)
{
	struct node node = { .report = { .cores = (uint32_t)sqlite3_column_int(row, 2),
		                         .memory = (uint64_t)sqlite3_column_int64(row, 3),
		                         .link_bps = (uint64_t)sqlite3_column_int64(row, 4) },
		             .left = sqlite3_column_int(row, 5),
		             .drained = sqlite3_column_int(row, 6) };

	(void)store;
	column_text(row, 0, node.report.address, sizeof(node.report.address));
	column_text(row, 1, node.report.name, sizeof(node.report.name));
	column_text(row, 7, node.report.rack, sizeof(node.report.rack));
	return loader->node(loader->context, &node);
}

static trib_status each(struct store *store, const char *sql, const struct store_loader *loader,
                        trib_status (*read)(struct store *store, sqlite3_stmt *row,
                                            const struct store_loader *loader))
{
	sqlite3_stmt *row;
	trib_status status = prepare(store, sql, NULL, 0, &row);
	int code;

	if (status != TRIB_OK)
		return status;
	while ((code = sqlite3_step(row)) == SQLITE_ROW)
		if ((status = read(store, row, loader)) != TRIB_OK)
			break;
	if (status == TRIB_OK && code != SQLITE_DONE)
		status = fail(store, "read");
	sqlite3_finalize(row);
	return status;
}

trib_status store_load(struct store *store, const struct store_loader *loader)
{
	trib_status status = each(store, "SELECT * FROM jobs", loader, read_job);

	if (status == TRIB_OK)
		status = each(store, "SELECT * FROM placements", loader, read_placement);
	if (status == TRIB_OK)
		status = each(store, "SELECT * FROM gatherings", loader, read_membership);
	if (status == TRIB_OK)
		status = each(store, "SELECT * FROM nodes", loader, read_node);
	return status;
}
