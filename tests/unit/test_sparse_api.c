/* SPDX-License-Identifier: Apache-2.0 */
/*
 * <tributary/sparse.h> with servers in this process, over loopback: rows are compared bit for bit
 * with a table in memory, and wrong calls and hostile clients get their sentences.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/log.h"
#include "path/tcp.h"
#include "sparse/server/sparse_server.h"
#include "sparse/wire/half.h"
#include "sparse/wire/shard_of.h"
#include "sparse/wire/sparse_message.h"
#include <tributary/sparse.h>

#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SHARDS 2u

/* ThreadSanitizer has memory of its own for each byte of the program. */
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define GROWTH_MB 400
#endif
#endif
#ifndef GROWTH_MB
#define GROWTH_MB 55
#endif

/* ---- servers ---- */

struct shard_thread {
	struct sparse_server *server;
	pthread_t thread;
	char folder[128];
	uint16_t port;
};

static struct shard_thread shards[SHARDS];
static char folder[] = "/tmp/trib_sparse_XXXXXX";
static char servers[128];

static void *server_thread(void *context)
{
	struct shard_thread *shard = context;

	return sparse_server_run(shard->server) == TRIB_OK ? NULL : shard;
}

static void server_start(uint32_t i)
{
	struct shard_thread *shard = &shards[i];
	struct sparse_server_options options = {
		.folder = shard->folder, .shard = i, .shards = SHARDS, .sync = SPARSE_SYNC_NONE
	};
	char address[32];

	snprintf(shard->folder, sizeof(shard->folder), "%s/%u", folder, i);
	snprintf(address, sizeof(address), "127.0.0.1:%u", shard->port);
	assert_int_equal(udp_resolve(address, 0, &options.listen), TRIB_OK);
	if (sparse_server_open(&options, &shard->server) != TRIB_OK)
		fail_msg("%s", trib_last_error());
	shard->port = sparse_server_port(shard->server);
	assert_int_equal(pthread_create(&shard->thread, NULL, server_thread, shard), 0);
}

static void server_end(uint32_t i)
{
	void *failed;

	sparse_server_stop(shards[i].server);
	pthread_join(shards[i].thread, &failed);
	assert_null(failed);
	sparse_server_close(shards[i].server);
}

static int servers_start(void **state)
{
	(void)state;
	log_set_level(LOG_ERROR);
	snprintf(folder, sizeof(folder), "/tmp/trib_sparse_XXXXXX");
	assert_non_null(mkdtemp(folder));
	for (uint32_t i = 0; i < SHARDS; i++) {
		shards[i].port = 0;
		server_start(i);
	}
	snprintf(servers, sizeof(servers), "127.0.0.1:%u,127.0.0.1:%u", shards[0].port,
	         shards[1].port);
	return 0;
}

static int entry_remove(const char *path, const struct stat *about, int kind, struct FTW *at)
{
	(void)about, (void)kind, (void)at;
	return remove(path);
}

static int servers_end(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < SHARDS; i++)
		server_end(i);
	nftw(folder, entry_remove, 8, FTW_DEPTH | FTW_PHYS);
	return 0;
}

/* ---- tables ---- */

static trib_sparse_options options_of(const char *name, uint32_t width)
{
	trib_sparse_options options = TRIB_SPARSE_OPTIONS_INIT;

	options.name = name;
	options.width = width;
	options.servers = servers;
	options.timeout_s = 20;
	return options;
}

static trib_sparse *table_open(const trib_sparse_options *options)
{
	trib_sparse *table;

	if (trib_sparse_open(&table, options) != TRIB_OK)
		fail_msg("%s", trib_last_error());
	return table;
}

static void demand_ok(trib_status status)
{
	if (status != TRIB_OK)
		fail_msg("%s", trib_last_error());
}

/* The call fails with this status, and its sentence has these words. */
static void demand_error(trib_status got, trib_status wanted, const char *words)
{
	if (got != wanted || !strstr(trib_last_error(), words))
		fail_msg("status %d, \"%s\"; expected %d, \"%s\"", got, trib_last_error(), wanted,
		         words);
}

static uint64_t random_state = 1;

static uint32_t draw(uint32_t below)
{
	random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(random_state >> 33) % below;
}

/* ---- pushes and pulls beside a table in memory ---- */

#define KEYS 500u
#define WIDTH 7u

/* Keys occur several times in a call. */
static void rows_draw(uint64_t *keys, float *rows, size_t n)
{
	for (size_t i = 0; i < n; i++)
		keys[i] = (uint64_t)draw(KEYS) * 0x9e3779b97f4a7c15ull;
	for (size_t i = 0; i < n * WIDTH; i++)
		rows[i] = (float)((int)draw(2001) - 1000) / 256.0F;
}

/* What a worker must do: rows of equal keys are added up, in the order of the call. */
static void reference_push(struct sparse_store *store, const uint64_t *keys, const float *rows,
                           size_t n)
{
	for (size_t i = 0; i < n; i++) {
		float sum[WIDTH];
		bool is_first = true;

		for (size_t j = 0; j < i; j++)
			is_first = is_first && keys[j] != keys[i];
		if (!is_first)
			continue;
		memcpy(sum, rows + i * WIDTH, sizeof(sum));
		for (size_t j = i + 1; j < n; j++)
			for (size_t k = 0; keys[j] == keys[i] && k < WIDTH; k++)
				sum[k] += rows[j * WIDTH + k];
		assert_int_not_equal(sparse_store_apply(store, keys[i], sum), SPARSE_ROW_NONE);
	}
}

static void reference_compare(const struct sparse_store *store, trib_sparse *table)
{
	uint64_t keys[KEYS + 2];
	float rows[(KEYS + 2) * WIDTH], wanted[WIDTH];

	for (uint32_t i = 0; i < KEYS; i++)
		keys[i] = (uint64_t)i * 0x9e3779b97f4a7c15ull;
	keys[KEYS] = keys[3]; /* twice */
	keys[KEYS + 1] = 12345;
	demand_ok(trib_sparse_pull(table, keys, rows, KEYS + 2, NULL));
	for (uint32_t i = 0; i < KEYS + 2; i++) {
		sparse_store_read(store, keys[i], wanted);
		assert_memory_equal(rows + (size_t)i * WIDTH, wanted, sizeof(wanted));
	}
}

static void optimizer_try(const char *optimizer)
{
	trib_sparse_options options = options_of(optimizer, WIDTH);
	struct sparse_table_options reference;
	struct sparse_store *store;
	trib_sparse *table;
	trib_sparse_stats stats = { .struct_size = sizeof(stats) };

	options.optimizer = optimizer;
	options.init = 0.5;
	options.seed = 7;
	options.rate = 0.25;
	table = table_open(&options);
	demand_ok(sparse_table_options_take(&options, &reference));
	demand_ok(sparse_store_open(&reference, &store));
	reference_compare(store, table);
	for (int i = 0; i < 20; i++) {
		uint64_t keys[300];
		float rows[300 * WIDTH];
		trib_sparse_request *request = NULL;

		rows_draw(keys, rows, 300);
		demand_ok(trib_sparse_push(table, keys, rows, 300, i % 2 ? &request : NULL));
		reference_push(store, keys, rows, 300);
		if (request)
			demand_ok(trib_sparse_wait(&request, -1));
		assert_null(request);
		demand_ok(trib_sparse_step(table));
	}
	demand_ok(trib_sparse_flush(table));
	reference_compare(store, table);
	demand_ok(trib_sparse_get_stats(table, &stats));
	assert_in_range(stats.pushed_rows, 20 * 100, 20 * 300 - 1);
	assert_int_equal(stats.hot_rows, 0);
	demand_ok(trib_sparse_close(table));
	/* Another run finds the same rows. */
	table = table_open(&options);
	reference_compare(store, table);
	demand_ok(trib_sparse_close(table));
	sparse_store_close(store);
}

static void test_optimizers(void **state)
{
	(void)state;
	optimizer_try("sgd");
	optimizer_try("momentum");
	optimizer_try("adagrad");
	optimizer_try("adam");
}

/* More than one message, and more than what may be under way at once is queued. */
static void test_long_push(void **state)
{
	const size_t n = 3000, width = 1024;
	trib_sparse_options options = options_of("long", (uint32_t)width);
	float *rows = malloc(n * width * sizeof(*rows)), *back = malloc(n * width * sizeof(*rows));
	uint64_t *keys = malloc(n * sizeof(*keys));
	trib_sparse *table;

	(void)state;
	assert_true(rows && back && keys);
	options.rate = 1;
	table = table_open(&options);
	for (size_t i = 0; i < n; i++)
		keys[i] = i;
	for (size_t i = 0; i < n * width; i++)
		rows[i] = (float)(i % 1000);
	for (int i = 0; i < 8; i++)
		demand_ok(trib_sparse_push(table, keys, rows, n, NULL));
	demand_ok(trib_sparse_flush(table));
	demand_ok(trib_sparse_pull(table, keys, back, n, NULL));
	for (size_t i = 0; i < n * width; i++)
		assert_true(back[i] == -8 * rows[i]);
	demand_ok(trib_sparse_close(table));
	free(rows);
	free(back);
	free(keys);
}

static void test_half(void **state)
{
	trib_sparse_options options = options_of("half", 4);
	const uint64_t keys[2] = { 1, 2 };
	const float rows[8] = { 0.1F, 1, -2.5F, 1e-7F, 70000, 0.1F, 0, -1 };
	float back[8];
	trib_sparse *table;

	(void)state;
	options.rate = 1;
	options.wire = "f16";
	table = table_open(&options);
	demand_ok(trib_sparse_push(table, keys, rows, 1, NULL));
	demand_ok(trib_sparse_flush(table));
	demand_ok(trib_sparse_pull(table, keys, back, 1, NULL));
	for (int i = 0; i < 4; i++)
		assert_true(back[i] == half_value(half_from(-half_value(half_from(rows[i])))));
	assert_true(back[0] != -rows[0] && back[1] == -1 && back[2] == 2.5F);
	/* 70000 has no f16: the message has f32. */
	demand_ok(trib_sparse_push(table, keys + 1, rows + 4, 1, NULL));
	demand_ok(trib_sparse_flush(table));
	demand_ok(trib_sparse_pull(table, keys + 1, back, 1, NULL));
	for (int i = 0; i < 4; i++)
		assert_true(back[i] == -rows[4 + i]);
	demand_ok(trib_sparse_close(table));
}

/* ---- steps of several workers ---- */

struct worker {
	pthread_t thread;
	int rank, workers, staleness, steps;
	double timeout_s;
	trib_status status;
	char sentence[256];
};

static int ended[4]; /* steps of each rank, for the others to look at */

static void *worker_run(void *context)
{
	struct worker *w = context;
	trib_sparse_options options = options_of("steps", 1);
	const uint64_t key = 5;
	const float one = -1;
	trib_sparse *table;

	options.rank = w->rank;
	options.workers = w->workers;
	options.is_bounded = 1;
	options.staleness = w->staleness;
	options.rate = 1;
	options.timeout_s = w->timeout_s;
	w->status = trib_sparse_open(&table, &options);
	for (int i = 1; w->status == TRIB_OK && i <= w->steps; i++) {
		float sum = 0;

		if (w->rank == 0 && i % 8 == 0)
			usleep(2000); /* a slow one */
		w->status = trib_sparse_push(table, &key, &one, 1, NULL);
		__atomic_store_n(&ended[w->rank], i, __ATOMIC_SEQ_CST);
		if (w->status == TRIB_OK)
			w->status = trib_sparse_step(table);
		for (int r = 0; w->status == TRIB_OK && r < w->workers; r++)
			if (__atomic_load_n(&ended[r], __ATOMIC_SEQ_CST) < i - w->staleness)
				w->status = TRIB_ERR_MISMATCH;
		/* All gradients of the steps that all have ended are seen. */
		if (w->status == TRIB_OK)
			w->status = trib_sparse_pull(table, &key, &sum, 1, NULL);
		if (w->status == TRIB_OK && sum < (float)(w->workers * (i - w->staleness)))
			w->status = TRIB_ERR_MISMATCH;
	}
	snprintf(w->sentence, sizeof(w->sentence), "%s", trib_last_error());
	if (w->status == TRIB_OK)
		w->status = trib_sparse_close(table);
	else if (table)
		trib_sparse_close(table);
	return NULL;
}

static void workers_run(struct worker *workers, int n)
{
	for (int i = 0; i < n; i++) {
		__atomic_store_n(&ended[i], 0, __ATOMIC_SEQ_CST);
		assert_int_equal(pthread_create(&workers[i].thread, NULL, worker_run, &workers[i]),
		                 0);
	}
	for (int i = 0; i < n; i++)
		pthread_join(workers[i].thread, NULL);
}

static void test_bounded(void **state)
{
	(void)state;
	for (int staleness = 0; staleness <= 3; staleness += 3) {
		struct worker workers[3];
		trib_sparse_options options = options_of("steps", 1);
		trib_sparse *table;
		uint64_t key = 5;
		float before = 0, after = 0;

		options.rate = 1;
		table = table_open(&options);
		demand_ok(trib_sparse_pull(table, &key, &before, 1, NULL));
		demand_ok(trib_sparse_close(table));
		for (int i = 0; i < 3; i++)
			workers[i] = (struct worker){ .rank = i,
				                      .workers = 3,
				                      .staleness = staleness,
				                      .steps = 40,
				                      .timeout_s = 20 };
		workers_run(workers, 3);
		for (int i = 0; i < 3; i++)
			if (workers[i].status != TRIB_OK)
				fail_msg("rank %d: %d, %s", i, workers[i].status,
				         workers[i].sentence);
		table = table_open(&options);
		demand_ok(trib_sparse_pull(table, &key, &after, 1, NULL));
		demand_ok(trib_sparse_close(table));
		assert_true(after - before == 120);
	}
}

/* A worker that takes no step: the others say whom they wait for. */
static void test_late_worker(void **state)
{
	struct worker worker = { .rank = 0, .workers = 2, .steps = 1, .timeout_s = 0.5 };

	(void)state;
	workers_run(&worker, 1);
	assert_int_equal(worker.status, TRIB_ERR_TIMEOUT);
	assert_non_null(strstr(worker.sentence, "rank 1 has ended 0"));
}

/* ---- a server that is restarted ---- */

static void test_restart(void **state)
{
	trib_sparse_options options = options_of("restart", 2);
	uint64_t keys[64];
	float rows[128], back[128];
	trib_sparse *table;
	int pushes = 0;

	(void)state;
	options.rate = 1;
	table = table_open(&options);
	for (uint32_t i = 0; i < 64; i++) {
		keys[i] = i;
		rows[2 * i] = -1;
		rows[2 * i + 1] = -(float)i;
	}
	for (uint32_t round = 0; round < 6; round++) {
		for (int i = 0; i < 50; i++, pushes++)
			demand_ok(trib_sparse_push(table, keys, rows, 64, NULL));
		server_end(round % SHARDS);
		for (int i = 0; i < 50; i++, pushes++)
			demand_ok(trib_sparse_push(table, keys, rows, 64, NULL));
		server_start(round % SHARDS);
	}
	demand_ok(trib_sparse_flush(table));
	demand_ok(trib_sparse_pull(table, keys, back, 64, NULL));
	for (uint32_t i = 0; i < 64; i++) {
		assert_true(back[2 * i] == (float)pushes);
		assert_true(back[2 * i + 1] == (float)pushes * (float)i);
	}
	demand_ok(trib_sparse_close(table));
}

/* A server that was started on an empty folder has lost what it acknowledged. */
static void test_lost_data(void **state)
{
	trib_sparse_options options = options_of("lost", 2);
	const uint64_t keys[2] = { 0, 1 };
	const float rows[4] = { 1, 1, 1, 1 };
	trib_sparse *table;

	(void)state;
	table = table_open(&options);
	for (uint64_t key = 0; key < 8; key++)
		demand_ok(trib_sparse_push(table, &key, rows, 1, NULL));
	demand_ok(trib_sparse_flush(table));
	for (uint32_t i = 0; i < SHARDS; i++) {
		server_end(i);
		nftw(shards[i].folder, entry_remove, 8, FTW_DEPTH | FTW_PHYS);
		server_start(i);
	}
	trib_sparse_push(table, keys, rows, 2, NULL);
	demand_error(trib_sparse_flush(table), TRIB_ERR_REFUSED, "has lost data");
	demand_error(trib_sparse_close(table), TRIB_ERR_REFUSED, "has lost data");
}

/* ---- wrong calls ---- */

static void test_wrong_options(void **state)
{
	trib_sparse_options options = options_of("wrong", 0);
	trib_sparse *table;

	(void)state;
	demand_error(trib_sparse_open(&table, &options), TRIB_ERR_ARGUMENT, "width");
	options.width = 4;
	options.optimizer = "magic";
	demand_error(trib_sparse_open(&table, &options), TRIB_ERR_ARGUMENT, "magic");
	options.optimizer = NULL;
	options.wire = "f8";
	demand_error(trib_sparse_open(&table, &options), TRIB_ERR_ARGUMENT, "f8");
	options.wire = NULL;
	options.workers = 2;
	options.rank = 2;
	demand_error(trib_sparse_open(&table, &options), TRIB_ERR_ARGUMENT, "rank 2 of 2");
	options.workers = options.rank = 0;
	options.servers = NULL;
	unsetenv("TRIB_SPARSE_SERVERS");
	demand_error(trib_sparse_open(&table, &options), TRIB_ERR_CONFIG,
	             "TRIB_SPARSE_SERVERS is not set and options.servers is NULL");
	options.servers = "127.0.0.1:1";
	options.timeout_s = 0.3;
	demand_error(trib_sparse_open(&table, &options), TRIB_ERR_TIMEOUT,
	             "shard 0 (127.0.0.1:1) did not welcome this worker: Connection refused");
	options.struct_size = 0;
	demand_error(trib_sparse_open(&table, &options), TRIB_ERR_ARGUMENT, "OPTIONS_INIT");
	demand_error(trib_sparse_open(NULL, NULL), TRIB_ERR_ARGUMENT, "NULL");
	assert_null(table);
}

static void test_mismatch(void **state)
{
	trib_sparse_options options = options_of("mismatch", 16), other = options;
	char reversed[128];
	trib_sparse *table = table_open(&options), *second;

	(void)state;
	other.width = 32;
	demand_error(trib_sparse_open(&second, &other), TRIB_ERR_REFUSED,
	             "table 'mismatch' has width 16 at the server, this worker asks for 32");
	other.width = 16;
	other.rate = 2;
	demand_error(trib_sparse_open(&second, &other), TRIB_ERR_REFUSED,
	             "has rate 0.01 at the server");
	other = options;
	other.timeout_s = 0.5;
	demand_error(trib_sparse_open(&second, &other), TRIB_ERR_TIMEOUT,
	             "rank 0 of table 'mismatch' is connected already");
	other.workers = 2;
	other.rank = 1;
	demand_error(trib_sparse_open(&second, &other), TRIB_ERR_REFUSED, "workers is 2");
	snprintf(reversed, sizeof(reversed), "127.0.0.1:%u,127.0.0.1:%u", shards[1].port,
	         shards[0].port);
	other = options;
	other.servers = reversed;
	demand_error(trib_sparse_open(&second, &other), TRIB_ERR_REFUSED, "takes it for shard");
	demand_ok(trib_sparse_close(table));
}

static void test_wrong_calls(void **state)
{
	trib_sparse_options options = options_of("calls", 2);
	const uint64_t bad[2] = { 9, 10 };
	float rows[4] = { 0 };
	trib_sparse_request *request = NULL;
	trib_sparse *table;

	(void)state;
	options.parameters = 10;
	table = table_open(&options);
	demand_error(trib_sparse_push(table, bad, rows, 2, NULL), TRIB_ERR_ARGUMENT,
	             "key 1 is 10, and the table has keys below 10");
	demand_error(trib_sparse_pull(table, bad, rows, 2, NULL), TRIB_ERR_ARGUMENT, "key 1 is 10");
	demand_error(trib_sparse_push(table, NULL, rows, 2, NULL), TRIB_ERR_ARGUMENT, "NULL");
	demand_error(trib_sparse_wait(&request, 1), TRIB_ERR_ARGUMENT, "no request");
	demand_ok(trib_sparse_push(table, NULL, NULL, 0, &request));
	demand_ok(trib_sparse_wait(&request, 1));
	demand_ok(trib_sparse_pull(table, NULL, NULL, 0, NULL));
	demand_ok(trib_sparse_push(table, bad, rows, 1, &request));
	while (request) {
		trib_status status = trib_sparse_test(&request);

		assert_true(status == TRIB_OK || status == TRIB_IN_PROGRESS);
	}
	demand_ok(trib_sparse_close(table));
	options.parameters = 0;
	options.name = "all keys";
	demand_error(trib_sparse_open(&table, &options), TRIB_ERR_ARGUMENT, "letters");
}

/* ---- a server that refuses for now ---- */

/* Refuses the first connection. The next one is never taken. */
static void *refuse_once(void *context)
{
	struct byte_buffer out = { 0 };
	char hello[4096];
	int fd = accept(*(int *)context, NULL, NULL);

	if (fd >= 0 && recv(fd, hello, sizeof(hello), 0) > 0 &&
	    message_add_text(&out, MESSAGE_REFUSED, MESSAGE_FOR_NOW, "come back later"))
		send(fd, buffer_front(&out), buffer_bytes(&out), MSG_NOSIGNAL);
	close(fd);
	buffer_free(&out);
	return NULL;
}

/* The cause is told also while the worker waits for an answer to its next attempt. */
static void test_refused_for_now(void **state)
{
	trib_sparse_options options = options_of("refused", 2);
	struct udp_address address;
	pthread_t server;
	trib_sparse *table;
	char text[64];
	int fd;

	(void)state;
	assert_int_equal(udp_resolve("127.0.0.1:0", 0, &address), TRIB_OK);
	demand_ok(tcp_listen(&address, &fd));
	assert_int_equal(fcntl(fd, F_SETFL, 0), 0); /* accept() waits */
	address.length = sizeof(address.storage);
	assert_int_equal(getsockname(fd, (void *)&address.storage, &address.length), 0);
	assert_int_equal(pthread_create(&server, NULL, refuse_once, &fd), 0);
	options.servers = udp_text(&address, text, sizeof(text));
	options.timeout_s = 3;
	assert_int_equal(trib_sparse_open(&table, &options), TRIB_ERR_TIMEOUT);
	pthread_join(server, NULL);
	close(fd);
	if (!strstr(trib_last_error(), "did not welcome this worker: come back later"))
		fail_msg("%s", trib_last_error());
}

/* ---- hostile clients ---- */

/* Sends bytes, and returns the server's last message. The server must live on. */
static void hostile_try(const struct byte_buffer *bytes, const char *words)
{
	struct udp_address address;
	char text[64], answer[4096];
	size_t got = 0;
	ssize_t n;
	int fd;

	snprintf(text, sizeof(text), "127.0.0.1:%u", shards[0].port);
	assert_int_equal(udp_resolve(text, 0, &address), TRIB_OK);
	fd = tcp_connect(&address, 5000);
	assert_true(fd >= 0);
	assert_int_equal(send(fd, bytes->data, bytes->used, MSG_NOSIGNAL), bytes->used);
	do {
		struct pollfd wait = { .fd = fd, .events = POLLIN };

		assert_int_equal(poll(&wait, 1, 10000), 1);
		n = recv(fd, answer + got, sizeof(answer) - 1 - got, 0);
		got += n > 0 ? (size_t)n : 0;
	} while (n > 0);
	close(fd);
	for (size_t i = 0; i < got; i++)
		answer[i] = answer[i] ? answer[i] : ' ';
	answer[got] = '\0';
	if (!strstr(answer, words))
		fail_msg("the answer \"%s\" has no \"%s\"", answer, words);
}

static struct message_hello hello_good(void)
{
	struct message_hello hello = {
		.shards = SHARDS, .workers = 1, .largest = 1, .timeout_s = 10, .job = 9
	};
	trib_sparse_options options = options_of("hostile", 2);

	options.parameters = 100;
	demand_ok(sparse_table_options_take(&options, &hello.table));
	return hello;
}

static void test_hostile(void **state)
{
	struct byte_buffer bytes = { 0 };
	struct message_hello hello = hello_good();
	uint32_t width = 2;
	const uint64_t keys[2] = { 1000, 1001 };
	const float rows[4] = { 0 };

	(void)state;
	/* No message at all. */
	assert_true(buffer_reserve(&bytes, 64));
	memset(bytes.data, 'x', 64);
	bytes.used = 64;
	hostile_try(&bytes, "no message of sparse training");
	bytes.used = 0;
	/* A push before HELLO. */
	assert_true(message_add_push(&bytes, 1, 0, keys, rows, 1, width));
	hostile_try(&bytes, "before HELLO");
	bytes.used = 0;
	/* A key out of range. */
	assert_true(message_add_hello(&bytes, 77, &hello));
	assert_true(message_add_push(&bytes, 1, 0, keys, rows, 2, width));
	hostile_try(&bytes, "has no key 1000");
	bytes.used = 0;
	/* Another width than the table's, and a gap in the numbers. */
	width = 1;
	assert_true(message_add_hello(&bytes, 77, &hello));
	assert_true(message_add_push(&bytes, 1, 0, keys, rows, 0, width));
	hostile_try(&bytes, "width 1");
	bytes.used = 0;
	width = 2;
	assert_true(message_add_hello(&bytes, 77, &hello));
	assert_true(message_add_push(&bytes, 3, 0, keys, rows, 0, width));
	hostile_try(&bytes, "push 3 after push 0");
	bytes.used = 0;
	/* A length that the count does not explain. */
	assert_true(message_add_push(&bytes, 1, 0, keys, rows, 2, width));
	bytes.data[12] = 3;
	hostile_try(&bytes, "PUSH message of 3 rows");
	buffer_free(&bytes);
}

static long resident_mb(void)
{
	FILE *file = fopen("/proc/self/statm", "r");
	long all = 0, resident = 0;

	assert_non_null(file);
	assert_int_equal(fscanf(file, "%ld %ld", &all, &resident), 2);
	fclose(file);
	return resident * sysconf(_SC_PAGESIZE) / (1 << 20);
}

/* A client that asks for 256 MB and reads nothing: the server stops to read it, and serves others.
 */
static void test_slow_reader(void **state)
{
	struct message_hello hello = hello_good();
	struct byte_buffer bytes = { 0 };
	trib_sparse_options options = options_of("others", 2);
	uint64_t keys[64], key = 1;
	const float row[2] = { 1, 1 };
	struct udp_address address;
	char text[64];
	trib_sparse *table;
	long before;
	int fd;

	(void)state;
	memset(hello.table.name, 0, sizeof(hello.table.name));
	memcpy(hello.table.name, "slow", 4);
	hello.table.width = 1024;
	hello.table.parameters = 0;
	for (uint64_t n = 0; n < 64; key++)
		if (shard_of(key, SHARDS) == 0)
			keys[n++] = key;
	assert_true(message_add_hello(&bytes, 78, &hello));
	for (uint64_t i = 0; i < 1000; i++)
		assert_true(message_add_pull(&bytes, i, 0, keys, 64));
	snprintf(text, sizeof(text), "127.0.0.1:%u", shards[0].port);
	assert_int_equal(udp_resolve(text, 0, &address), TRIB_OK);
	fd = tcp_connect(&address, 5000);
	assert_true(fd >= 0);
	before = resident_mb();
	for (int idle = 0; buffer_bytes(&bytes) && idle < 20;) {
		ssize_t n = send(fd, buffer_front(&bytes), buffer_bytes(&bytes),
		                 MSG_NOSIGNAL | MSG_DONTWAIT);

		idle = n > 0 ? 0 : idle + 1;
		if (n > 0)
			buffer_consume(&bytes, (size_t)n);
		else
			usleep(10000);
	}
	table = table_open(&options);
	for (key = 0; key < 8; key++)
		demand_ok(trib_sparse_push(table, &key, row, 1, NULL));
	demand_ok(trib_sparse_close(table));
	assert_in_range(resident_mb(), 0, before + GROWTH_MB);
	close(fd);
	buffer_free(&bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define WITH_SERVERS(name) cmocka_unit_test_setup_teardown(name, servers_start, servers_end)
		WITH_SERVERS(test_optimizers),
		WITH_SERVERS(test_long_push),
		WITH_SERVERS(test_half),
		WITH_SERVERS(test_bounded),
		WITH_SERVERS(test_late_worker),
		WITH_SERVERS(test_restart),
		WITH_SERVERS(test_lost_data),
		WITH_SERVERS(test_wrong_options),
		WITH_SERVERS(test_mismatch),
		WITH_SERVERS(test_wrong_calls),
		WITH_SERVERS(test_hostile),
		WITH_SERVERS(test_slow_reader),
		cmocka_unit_test(test_refused_for_now),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
