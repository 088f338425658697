/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CollNet table of the NCCL plugin, called as NCCL does: whole chunks with stale values behind
 * the vector's end, several calls at once, several communicators, and everything closed and opened
 * again. Ranks are threads; the aggregator is in this process.
 *
 * NCCL's buffers are its own. They start as zeros, and it writes only messages there. So stale
 * values are those of earlier messages.
 */
#include "nccl_threads.h"

#include "number/narrow.h"
#include "short.h"

#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define PATIENCE_S 60
#define CHUNK (32u << 10) /* the least of a call */

static struct cluster cluster;
static struct nccl_plugin plugin;

static const struct {
	int type;
	size_t size;
	trib_type ours;
} types[] = {
	{ NCCL_I8, 1, TRIB_I8 },   { NCCL_U8, 1, TRIB_U8 },     { NCCL_I32, 4, TRIB_I32 },
	{ NCCL_U32, 4, TRIB_U32 }, { NCCL_I64, 8, TRIB_I64 },   { NCCL_U64, 8, TRIB_U64 },
	{ NCCL_F16, 2, TRIB_F16 }, { NCCL_BF16, 2, TRIB_BF16 }, { NCCL_F32, 4, TRIB_F32 },
	{ NCCL_F64, 8, TRIB_F64 },
};

static bool is_float(int type)
{
	return type == NCCL_F16 || type == NCCL_BF16 || type == NCCL_F32 || type == NCCL_F64;
}

static void element_put(unsigned t, void *data, size_t i, double value)
{
	char *at = (char *)data + i * types[t].size;
	int64_t whole = isfinite(value) && fabs(value) < 1e18 ? (int64_t)value : 0;
	float single = (float)value;

	if (types[t].type == NCCL_F64)
		memcpy(at, &value, sizeof(value));
	else if (types[t].type == NCCL_F32)
		memcpy(at, &single, sizeof(single));
	else if (is_float(types[t].type))
		store32(types[t].ours, data, i, narrow_from(types[t].ours, single));
	else
		memcpy(at, &whole, types[t].size); /* little-endian: the low bytes */
}

/* Messages that no later one may suffer from. */
static double poison(size_t i, int rank)
{
	static const double values[] = { NAN, INFINITY, -INFINITY, 1e38, -3e38, 65000, 1e-40 };

	return values[(i + (size_t)rank) % countof(values)];
}

static int value_at(int rank, size_t i, unsigned salt)
{
	return (int)((i * 7 + (unsigned)rank * 13 + salt) % 9);
}

/* sums of unsigned and narrow types stay in range: at most 4 ranks of 0 to 8 */
static int expected_at(int size, size_t i, unsigned salt, int op)
{
	int result = value_at(0, i, salt);

	for (int r = 1; r < size; r++) {
		int v = value_at(r, i, salt);

		if (op == NCCL_SUM)
			result += v;
		else if (op == NCCL_MAX ? v > result : v < result)
			result = v;
	}
	return result;
}

/* A call as NCCL makes it: a message of `live` elements in a buffer of whole chunks. */
struct call {
	unsigned t;
	int op;
	size_t live, count, bytes;
	unsigned salt;
	char *send, *recv;
	void *request;
};

static void call_alloc(struct call *call, size_t bytes)
{
	*call = (struct call){ .bytes = bytes, .send = calloc(1, bytes), .recv = calloc(1, bytes) };
	demand(call->send && call->recv);
}

/* Writes the message. The rest of the buffer stays as it is. */
static void call_make(struct call *call, unsigned t, int op, size_t live, unsigned salt, int rank)
{
	call->t = t;
	call->op = op;
	call->live = live;
	call->count = call->bytes / types[t].size;
	call->salt = salt;
	for (size_t i = 0; i < live; i++)
		element_put(t, call->send, i, value_at(rank, i, salt));
	memset(call->recv, 0xa5, call->bytes);
}

static void call_free(struct call *call)
{
	free(call->send);
	free(call->recv);
}

/* False: the plugin takes no more requests now. */
static bool call_post(struct nccl_tree *tree, struct call *call)
{
	call->request = NULL;
	demand(tree->coll->iallreduce(tree->comm, call->send, call->recv, call->count,
	                              types[call->t].type, call->op, NULL, NULL,
	                              &call->request) == NCCL_SUCCESS);
	return call->request != NULL;
}

static void call_check(const struct call *call, int size)
{
	size_t bytes = types[call->t].size;
	char right[8];

	for (size_t i = 0; i < call->live; i++) {
		element_put(call->t, right, 0, expected_at(size, i, call->salt, call->op));
		if (memcmp(right, call->recv + i * bytes, bytes)) {
			fprintf(stderr, "type %d, op %d, %zu live: element %zu is wrong\n",
			        types[call->t].type, call->op, call->live, i);
			abort();
		}
	}
}

static void call_run(struct nccl_tree *tree, struct call *call)
{
	while (!call_post(tree, call))
		nccl_poll_pause();
	demand(nccl_tree_wait(tree, call->request) == NCCL_SUCCESS);
}

/* A message of the whole buffer, whose sum nobody looks at. */
static void call_poison(struct nccl_tree *tree, struct call *call, unsigned t, int rank)
{
	call_make(call, t, NCCL_SUM, 0, 0, rank);
	for (size_t i = 0; i < call->count; i++)
		element_put(t, call->send, i, poison(i, rank));
	call_run(tree, call);
}

static void open_tree(struct nccl_thread *rank, struct nccl_tree *tree)
{
	demand(nccl_tree_open(tree, rank->plugin, &rank->ranks) == NCCL_SUCCESS);
}

static void close_tree(struct nccl_tree *tree)
{
	demand(nccl_tree_close(tree) == NCCL_SUCCESS);
}

/* ---- every type, operation and odd size ---- */

static void types_run(struct nccl_thread *rank, struct nccl_tree *tree, size_t bytes)
{
	static const size_t lives[] = { 1, 2, 7, 31, 1000 };
	static const int ops[] = { NCCL_SUM, NCCL_MIN, NCCL_MAX };
	struct call call;

	call_alloc(&call, bytes);
	for (unsigned t = 0; t < countof(types); t++)
		for (unsigned o = 0; o < countof(ops); o++) {
			call_poison(tree, &call, t, rank->ranks.rank);
			for (unsigned l = 0; l < (test_is_short() ? 2 : countof(lives)); l++) {
				call_make(&call, t, ops[o], lives[l], t + o + l, rank->ranks.rank);
				call_run(tree, &call);
				call_check(&call, rank->ranks.size);
			}
		}
	call_free(&call);
}

/* NCCL registers its buffers, and flushes after it has received. */
static void check_memory(const struct nccl_tree *tree)
{
	char data[64];
	void *registration = NULL, *request = &request;

	demand(tree->coll->reg_mr(tree->comm, data, sizeof(data), NCCL_PTR_HOST, &registration) ==
	       NCCL_SUCCESS);
	demand(tree->coll->iflush(tree->comm, data, sizeof(data), registration, &request) ==
	       NCCL_SUCCESS);
	demand(!request); /* host memory needs none */
	demand(tree->coll->dereg_mr(tree->comm, registration) == NCCL_SUCCESS);
}

static void body_types(struct nccl_thread *rank)
{
	struct nccl_tree tree;

	open_tree(rank, &tree);
	check_memory(&tree);
	types_run(rank, &tree, CHUNK);
	types_run(rank, &tree, 8 * CHUNK);
	close_tree(&tree);
}

static void test_types(void **state)
{
	(void)state;
	nccl_threads_run(&plugin, 3, PATIENCE_S, body_types, NULL);
}

/* Random floats behind huge ones keep the precision of their own size. */
static void body_precision(struct nccl_thread *rank)
{
	enum { LIVE = 5, F32 = 8 };
	float value[NCCL_THREADS_MAX][LIVE];
	int me = rank->ranks.rank, size = rank->ranks.size;
	struct nccl_tree tree;
	struct call call;

	for (int r = 0; r < size; r++)
		for (size_t i = 0; i < LIVE; i++)
			value[r][i] = (float)(mix((uint64_t)r * 100 + i) % 1000003) * 1e-6f - 0.4f;
	open_tree(rank, &tree);
	for (size_t bytes = CHUNK; bytes <= 8 * CHUNK; bytes *= 8) {
		call_alloc(&call, bytes);
		call_poison(&tree, &call, F32, me);
		memcpy(call.send, value[me], sizeof(value[me]));
		call_run(&tree, &call);
		for (size_t i = 0; i < LIVE; i++) {
			double right = 0, largest = 0;
			float got;

			memcpy(&got, call.recv + i * sizeof(got), sizeof(got));
			for (int r = 0; r < size; r++) {
				right += (double)value[r][i];
				largest = fmax(largest, fabs((double)value[r][i]));
			}
			/* A block of zeros and of values of this size has a scale of up to 16
			 * times. */
			demand(fabs((double)got - right) <= 64 * largest * 0x1p-24);
		}
		call_free(&call);
	}
	close_tree(&tree);
}

static void test_precision(void **state)
{
	(void)state;
	nccl_threads_run(&plugin, 3, PATIENCE_S, body_precision, NULL);
}

/* ---- several calls at once ---- */

/* Posts until the plugin refuses, at least NCCL_STEPS, and again when a request has ended. */
static void body_many(struct nccl_thread *rank)
{
	static const size_t bytes[] = { CHUNK, 2 * CHUNK, 8 * CHUNK, 64 * CHUNK };
	struct call calls[NCCL_REQUESTS_MAX + 8];
	struct nccl_tree tree;

	open_tree(rank, &tree);
	for (unsigned b = 0; b < (test_is_short() ? 2 : countof(bytes)); b++) {
		unsigned n = b < 2 ? countof(calls) : NCCL_STEPS, posted = 0;

		for (unsigned i = 0; i < n; i++) {
			call_alloc(&calls[i], bytes[b]);
			call_make(&calls[i], 8, NCCL_SUM, bytes[b] / 4 - i, i, rank->ranks.rank);
		}
		for (unsigned next = 0; next < n; next++) {
			while (posted < n && call_post(&tree, &calls[posted]))
				posted++;
			demand(posted >= NCCL_STEPS || posted == n);
			demand(nccl_tree_wait(&tree, calls[next].request) == NCCL_SUCCESS);
			call_check(&calls[next], rank->ranks.size);
		}
		for (unsigned i = 0; i < n; i++)
			call_free(&calls[i]);
	}
	close_tree(&tree);
}

static void test_many(void **state)
{
	(void)state;
	nccl_threads_run(&plugin, 3, PATIENCE_S, body_many, NULL);
}

/* ---- several communicators ---- */

static void body_some(struct nccl_thread *rank)
{
	unsigned salt = *(const unsigned *)rank->job;

	for (unsigned again = 0; again < 2; again++) {
		struct nccl_tree tree;

		open_tree(rank, &tree);
		for (unsigned i = 0; i < 5; i++) {
			struct call call;

			call_alloc(&call, CHUNK);
			call_make(&call, 8, NCCL_SUM, 3000 + i, salt + i, rank->ranks.rank);
			call_run(&tree, &call);
			call_check(&call, rank->ranks.size);
			call_free(&call);
		}
		close_tree(&tree);
	}
}

static void *comm_main(void *salt)
{
	nccl_threads_run(&plugin, 2 + (int)(*(unsigned *)salt % 2), PATIENCE_S, body_some, salt);
	return NULL;
}

/* At once, with other ranks each; each is closed and opened again. */
static void test_communicators(void **state)
{
	unsigned salts[3] = { 1, 2, 4 };
	pthread_t threads[3];

	(void)state;
	for (unsigned i = 0; i < 3; i++)
		demand(!pthread_create(&threads[i], NULL, comm_main, &salts[i]));
	for (unsigned i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
}

static void test_reload(void **state)
{
	unsigned salt = 3;

	(void)state;
	demand(nccl_plugin_unload(&plugin));
	nccl_threads_load(&plugin);
	nccl_threads_run(&plugin, 2, PATIENCE_S, body_some, &salt);
}

/* ---- what it says about itself ---- */

static void test_tables(void **state)
{
	struct nccl_properties_v11 net = { 0 }, coll = { 0 };
	void *context = NULL, *other = NULL;
	int n = 0, yes = -1;

	(void)state;
	demand(plugin.net->init(&context, 7, &(struct nccl_comm_config){ -1 }, nccl_log_print,
	                        NULL) == NCCL_SUCCESS);
	demand(plugin.coll->init(&other, 7, nccl_log_print) == NCCL_SUCCESS);
	demand(plugin.net->devices(&n) == NCCL_SUCCESS && n > 0);
	demand(plugin.coll->devices(&n) == NCCL_SUCCESS && n > 0);
	demand(plugin.net->get_properties(0, &net) == NCCL_SUCCESS);
	demand(plugin.coll->get_properties(0, &coll) == NCCL_SUCCESS);
	demand(!strcmp(net.name, coll.name) && coll.speed >= 960);
	demand(net.pointers == NCCL_PTR_HOST && coll.pointers == NCCL_PTR_HOST);
	demand(net.max_p2p_bytes > 0 && net.max_p2p_bytes <= 1ull << 40);
	demand(coll.max_coll_bytes > 0 && coll.max_coll_bytes <= 1ull << 40);
	for (unsigned t = 0; t < countof(types); t++)
		for (int op = 0; op < NCCL_AVG; op++) {
			demand(plugin.coll->reduce_support(types[t].type, op, &yes) ==
			       NCCL_SUCCESS);
			demand(yes == (op != NCCL_PROD));
		}
	demand(plugin.net->get_properties(-1, &net) != NCCL_SUCCESS);
	demand(plugin.net->finalize(context) == NCCL_SUCCESS);
	demand(plugin.coll->finalize(other) == NCCL_SUCCESS);
}

/* ---- rings over the plugin's connections ---- */

static void add(void *to, const void *from, size_t n)
{
	int32_t *out = to;
	const int32_t *in = from;

	for (size_t i = 0; i < n; i++)
		out[i] += in[i];
}

static void body_ring(struct nccl_thread *rank)
{
	static const size_t counts[] = { 1, 2, 7, 1023, 4096, 100003 };

	for (unsigned channels = 1; channels <= 3; channels += 2) {
		struct nccl_ring ring;

		demand(nccl_ring_open(&ring, rank->plugin, &rank->ranks, channels, 4096) ==
		       NCCL_SUCCESS);
		for (unsigned c = 0; c < countof(counts); c++) {
			int32_t *data = malloc(counts[c] * sizeof(*data));

			demand(data);
			for (size_t i = 0; i < counts[c]; i++)
				data[i] = (int32_t)i + 1000 * ring.rank;
			demand(nccl_ring_allreduce(&ring, data, counts[c], sizeof(*data), add) ==
			       NCCL_SUCCESS);
			for (size_t i = 0; i < counts[c]; i++)
				demand(data[i] ==
				       ring.size * (int32_t)i + 500 * ring.size * (ring.size - 1));
			free(data);
		}
		demand(nccl_ring_close(&ring) == NCCL_SUCCESS);
	}
}

static void test_ring(void **state)
{
	(void)state;
	nccl_threads_run(&plugin, 3, PATIENCE_S, body_ring, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tables),        cmocka_unit_test(test_types),
		cmocka_unit_test(test_precision),     cmocka_unit_test(test_many),
		cmocka_unit_test(test_communicators), cmocka_unit_test(test_reload),
		cmocka_unit_test(test_ring),
	};
	int failed;

	cluster_environment();
	cluster_start(&cluster, 2, 64 << 20);
	setenv("TRIB_AGGREGATOR", cluster.address, 1);
	setenv("TRIB_TIMEOUT", "30", 1);
	nccl_threads_load(&plugin);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	demand(nccl_plugin_unload(&plugin));
	cluster_stop(&cluster);
	return failed;
}
