/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plugin's tables, called as NCCL would: point-to-point messages between two threads, and
 * collectives of several nodes, which are threads, through an aggregator on loopback.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "cluster.h"
#include "nccl_abi_old.h"
#include "number/number.h"
#include "reduce_reference.h"

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

#define NODES 3
#define CHUNK 8192u /* elements: what NCCL sends for one float */

static const struct nccl_net_v11 *const net = &ncclNetPlugin_v11;
static const struct nccl_collnet_v11 *const coll = &ncclCollNetPlugin_v11;
static atomic_int warnings;
static char last_warning[1500];
static pthread_mutex_t warning_lock = PTHREAD_MUTEX_INITIALIZER;

static void logger(int level, unsigned long flags, const char *file, int line, const char *format,
                   ...)
{
	va_list arguments;

	(void)flags;
	(void)file;
	(void)line;
	if (level != NCCL_LOG_WARN)
		return;
	pthread_mutex_lock(&warning_lock);
	va_start(arguments, format);
	vsnprintf(last_warning, sizeof(last_warning), format, arguments);
	va_end(arguments);
	pthread_mutex_unlock(&warning_lock);
	atomic_fetch_add(&warnings, 1);
}

/* Between two looks: NCCL polls, but what takes long must not keep a core from other tests. */
static void rest(unsigned times)
{
	if (times < 100)
		sched_yield();
	else
		usleep(100);
}

struct pair {
	void *listener, *send, *recv;
	uint8_t handle[NCCL_HANDLE_BYTES];
};

static void pair_open(struct pair *pair)
{
	void *context;

	memset(pair, 0, sizeof(*pair));
	demand(net->init(&context, 1, NULL, logger, NULL) == NCCL_SUCCESS);
	demand(net->listen(context, 0, pair->handle, &pair->listener) == NCCL_SUCCESS);
	/* The kind of the handle: sockets or paths. */
	demand(pair->handle[6] == (getenv("TRIB_PATHS") ? 3 : 1));
	for (unsigned times = 0; !pair->send || !pair->recv; rest(times++)) {
		if (!pair->send)
			demand(net->connect(context, 0, pair->handle, &pair->send, NULL) ==
			       NCCL_SUCCESS);
		if (!pair->recv)
			demand(net->accept(pair->listener, &pair->recv, NULL) == NCCL_SUCCESS);
	}
	demand(net->close_listen(pair->listener) == NCCL_SUCCESS);
}

static void pair_close(struct pair *pair)
{
	if (pair->send)
		demand(net->close_send(pair->send) == NCCL_SUCCESS);
	demand(net->close_recv(pair->recv) == NCCL_SUCCESS);
	demand(net->finalize(NULL) == NCCL_SUCCESS);
}

/* Tests both until both have ended. Gives the size that was received, or -1 for an error. */
static int finish(void *sent, void *received)
{
	int size = -1, done;

	for (unsigned times = 0; sent || received; rest(times++)) {
		if (sent) {
			if (net->test(sent, &done, NULL) != NCCL_SUCCESS)
				return -1;
			sent = done ? NULL : sent;
		}
		if (received) {
			if (net->test(received, &done, &size) != NCCL_SUCCESS)
				return -1;
			received = done ? NULL : received;
		}
	}
	return size;
}

static void *start_send(struct pair *pair, void *data, size_t size)
{
	void *request;

	demand(net->isend(pair->send, data, size, 0, NULL, NULL, &request) == NCCL_SUCCESS);
	return request;
}

static void *start_receive(struct pair *pair, void *data, size_t size)
{
	void *request;
	int tag = 0;

	demand(net->irecv(pair->recv, 1, &data, &size, &tag, NULL, NULL, &request) == NCCL_SUCCESS);
	return request;
}

static void exchange_messages(void)
{
	static const size_t sizes[] = { 0, 1, 100, 65537, 1 << 20, 5000001 };
	static uint8_t in[6000000], out[6000000];
	struct pair pair;
	void *sent[NCCL_REQUESTS_MAX], *received[NCCL_REQUESTS_MAX];

	pair_open(&pair);
	for (size_t i = 0; i < sizeof(in); i++)
		in[i] = (uint8_t)(i * 7 + (i >> 8));
	for (size_t i = 0; i < countof(sizes); i++) {
		memset(out, 0, sizeof(out));
		demand(finish(start_send(&pair, in, sizes[i]),
		              start_receive(&pair, out, sizeof(out))) == (int)sizes[i]);
		demand(memcmp(in, out, sizes[i]) == 0 && out[sizes[i]] == 0);
	}
	/* As many as NCCL may have at once; one more is refused and can be tried again. */
	for (int i = 0; i < NCCL_REQUESTS_MAX; i++) {
		received[i] = start_receive(&pair, out + i * 10000, 10000);
		demand(received[i]);
	}
	demand(!start_receive(&pair, out, 1));
	for (int i = 0; i < NCCL_REQUESTS_MAX; i++)
		demand((sent[i] = start_send(&pair, in + i, 10000)));
	demand(!start_send(&pair, in, 1));
	for (int i = 0; i < NCCL_REQUESTS_MAX; i++)
		demand(finish(sent[i], received[i]) == 10000);
	for (int i = 0; i < NCCL_REQUESTS_MAX; i++)
		demand(memcmp(out + i * 10000, in + i, 10000) == 0);
	pair_close(&pair);
}

static void test_messages(void **state)
{
	(void)state;
	exchange_messages();
	setenv("TRIB_PATHS", "addresses", 1); /* over UDP, as the user has named paths */
	exchange_messages();
	unsetenv("TRIB_PATHS");
}

/* A message that is too long, a peer that goes, and a handle that is not one. */
static void break_links(void)
{
	static uint8_t bytes[100000];
	uint8_t handle[NCCL_HANDLE_BYTES] = { 0 };
	struct pair pair;
	void *out, *waiting;

	pair_open(&pair);
	waiting = start_receive(&pair, bytes, 100);
	start_send(&pair, bytes, 101);
	demand(finish(NULL, waiting) == -1);
	demand(getenv("TRIB_PATHS") || strstr(last_warning, "101 bytes"));
	pair_close(&pair);
	pair_open(&pair);
	waiting = start_receive(&pair, bytes, 100);
	demand(net->close_send(pair.send) == NCCL_SUCCESS);
	pair.send = NULL;
	demand(finish(NULL, waiting) == -1);
	demand(strstr(last_warning, "gone"));
	pair_close(&pair);
	demand(net->connect(NULL, 0, handle, &out, NULL) == NCCL_INVALID_ARGUMENT && !out);
}

static void test_broken_links(void **state)
{
	(void)state;
	break_links();
	setenv("TRIB_PATHS", "addresses", 1);
	break_links();
	unsetenv("TRIB_PATHS");
}

/* A receiver that comes late, when all buffers have long been full, is no dead one. */
static void test_late_receiver(void **state)
{
	static uint8_t in[32 << 20], out[32 << 20];
	struct pair pair;
	void *sent;
	int done;

	(void)state;
	setenv("TRIB_TIMEOUT", "0.5", 1);
	pair_open(&pair);
	memset(in, 5, sizeof(in));
	sent = start_send(&pair, in, sizeof(in));
	for (int i = 0; i < 15; i++) {
		demand(net->test(sent, &done, NULL) == NCCL_SUCCESS && !done);
		nap_ms(100);
	}
	demand(finish(sent, start_receive(&pair, out, sizeof(out))) == sizeof(out));
	demand(memcmp(in, out, sizeof(in)) == 0);
	pair_close(&pair);
}

/* Nodes that meet: each one's handle, and their thread. */
struct table {
	uint8_t handles[NODES][NCCL_HANDLE_BYTES];
	void *listeners[NODES];
	void (*body)(int node, void *comm);
	int size; /* nodes that come */
	int results[NODES];
};

struct seat {
	struct table *table;
	int node;
};

static void *sit(void *argument)
{
	const struct seat *seat = argument;
	struct table *table = seat->table;
	void *handles[NODES], *comm;

	for (int i = 0; i < NODES; i++)
		handles[i] = table->handles[i];
	table->results[seat->node] =
		coll->connect(handles, NODES, seat->node, table->listeners[seat->node], &comm);
	demand(!comm == (table->results[seat->node] != NCCL_SUCCESS));
	coll->close_listen(table->listeners[seat->node]);
	if (comm && table->body)
		table->body(seat->node, comm);
	if (comm)
		demand(coll->close_coll(comm) == NCCL_SUCCESS);
	return NULL;
}

static void run_table(struct table *table, void (*body)(int, void *), int size)
{
	struct seat seats[NODES];
	pthread_t threads[NODES];

	table->body = body;
	for (int i = 0; i < NODES; i++)
		demand(coll->listen(NULL, 0, table->handles[i], &table->listeners[i]) ==
		       NCCL_SUCCESS);
	for (int i = 0; i < size; i++) {
		seats[i] = (struct seat){ table, i };
		demand(!pthread_create(&threads[i], NULL, sit, &seats[i]));
	}
	for (int i = 0; i < size; i++)
		demand(!pthread_join(threads[i], NULL));
	for (int i = size; i < NODES; i++)
		coll->close_listen(table->listeners[i]);
}

static void wait_coll(void *request, int expected)
{
	int done = 0, size = -1;

	for (unsigned times = 0; !done; rest(times++))
		demand(coll->test(request, &done, &size) == NCCL_SUCCESS);
	demand(size == expected);
}

static void *allreduce(void *comm, void *send, void *recv, size_t count, int type, int op)
{
	void *request = NULL;

	for (unsigned times = 0; !request; rest(times++))
		demand(coll->iallreduce(comm, send, recv, count, type, op, NULL, NULL, &request) ==
		       NCCL_SUCCESS);
	return request;
}

/* A message of `live` floats, and stale values behind. They must not cost precision. */
static void check_tail(int node, void *comm, float stale, size_t live)
{
	float *in = malloc(CHUNK * 4), *out = malloc(CHUNK * 4);

	demand(in && out);
	for (size_t i = 0; i < CHUNK; i++)
		in[i] = i < live ? 1e-20f * (float)(i + 1) * (float)(node + 1)
		                 : stale * (float)(node + i % 3);
	wait_coll(allreduce(comm, in, out, CHUNK, NCCL_F32, NCCL_SUM), CHUNK * 4);
	for (size_t i = 0; i < live; i++) {
		double right = 1e-20 * (double)(i + 1) * 6;

		demand(fabs(out[i] - right) <= right * 0x1p-21);
	}
	free(in);
	free(out);
}

/* All types and operations; the sums of small integers are exact. */
static void check_types(int node, void *comm)
{
	static const trib_type types[] = { TRIB_I8,  TRIB_U8,   TRIB_I32,    TRIB_U32,
		                           TRIB_I64, TRIB_U64,  TRIB_F16,    TRIB_F32,
		                           TRIB_F64, TRIB_BF16, TRIB_F8E4M3, TRIB_F8E5M2 };
	static const int ops[] = { NCCL_SUM, NCCL_MIN, NCCL_MAX };
	static const trib_op same[] = { TRIB_SUM, TRIB_MIN, TRIB_MAX };
	enum { COUNT = 5000 };
	uint8_t *in[NODES], *out = malloc(COUNT * 8), *right = malloc(COUNT * 8);

	for (int r = 0; r < NODES; r++)
		demand((in[r] = malloc(COUNT * 8)));
	for (int type = 0; type < NCCL_TYPES; type++)
		for (size_t op = 0; op < countof(ops); op++) {
			const void *vectors[NODES] = { in[0], in[1], in[2] };
			size_t bytes = COUNT * trib_type_size(types[type]);

			if (op == 0 && number_is_float(types[type]))
				continue; /* check_floats has them */
			for (int r = 0; r < NODES; r++)
				reduce_fill(types[type], REDUCE_FINITE, 9 + (uint64_t)r, in[r],
				            COUNT);
			reduce_expect(types[type], same[op], vectors, NODES, COUNT, 1024, 0, right);
			wait_coll(allreduce(comm, in[node], out, COUNT, type, ops[op]), (int)bytes);
			demand(memcmp(out, right, bytes) == 0);
		}
	for (int r = 0; r < NODES; r++)
		free(in[r]);
	free(out);
	free(right);
}

/* Sums of every type of floats, short and long: 1 + 1 + 1 is 3. */
static void check_floats(void *comm)
{
	enum { LONG = 40000 };
	static const struct {
		int type;
		size_t size;
		uint64_t one, three;
	} floats[] = { { NCCL_F16, 2, 0x3c00, 0x4200 },
		       { NCCL_BF16, 2, 0x3f80, 0x4040 },
		       { NCCL_F32, 4, 0x3f800000, 0x40400000 },
		       { NCCL_F64, 8, 0x3ff0000000000000, 0x4008000000000000 },
		       { NCCL_F8E4M3, 1, 0x38, 0x44 },
		       { NCCL_F8E5M2, 1, 0x3c, 0x42 } };
	static const size_t counts[] = { 1, 1001, LONG };
	uint8_t *in = malloc(LONG * 8), *out = malloc(LONG * 8);

	demand(in && out);
	for (size_t k = 0; k < countof(floats); k++)
		for (size_t c = 0; c < countof(counts); c++) {
			size_t size = floats[k].size;

			for (size_t i = 0; i < counts[c]; i++)
				memcpy(in + i * size, &floats[k].one, size);
			wait_coll(allreduce(comm, in, out, counts[c], floats[k].type, NCCL_SUM),
			          (int)(counts[c] * size));
			for (size_t i = 0; i < counts[c]; i++)
				demand(memcmp(out + i * size, &floats[k].three, size) == 0);
		}
	free(in);
	free(out);
}

/* Several sums at once, short and long; the send buffers of sums of floats are cleared. */
static void check_many(int node, void *comm)
{
	enum { CALLS = 8, LONG = 100000 };
	static const size_t counts[CALLS] = { 1, LONG, 3, CHUNK, LONG, LONG / 2, 17000, 2 };
	float *in[CALLS], *out[CALLS];
	void *requests[CALLS];

	for (int k = 0; k < CALLS; k++) {
		demand((in[k] = malloc(LONG * 4)) && (out[k] = malloc(LONG * 4)));
		for (size_t i = 0; i < counts[k]; i++)
			in[k][i] = (float)((int)(i % 100) * (k + 1) * (node + 1));
	}
	for (int k = 0; k < CALLS; k++)
		requests[k] = allreduce(comm, in[k], out[k], counts[k], NCCL_F32, NCCL_SUM);
	for (int k = CALLS - 1; k >= 0; k--)
		wait_coll(requests[k], (int)(counts[k] * 4));
	for (int k = 0; k < CALLS; k++) {
		for (size_t i = 0; i < counts[k]; i++)
			demand(out[k][i] == (float)((int)(i % 100) * (k + 1) * 6) && in[k][i] == 0);
		free(in[k]);
		free(out[k]);
	}
}

/* Windows over the vector of all nodes: within one node's part, and over all of them. */
static void check_windows(int node, void *comm)
{
	enum { EACH = 3000, ALL = NODES * EACH };
	static const size_t windows[][2] = {
		{ 0, ALL }, { 100, EACH }, { 2 * EACH, 400 }, { EACH - 8, EACH + 16 }
	};
	float *own = malloc(EACH * 4), *all = malloc(ALL * 4), *out = malloc(ALL * 4);

	demand(own && all && out);
	for (size_t w = 0; w < countof(windows); w++) {
		size_t from = windows[w][0], n = windows[w][1];
		size_t begin = (size_t)node * EACH, first = from > begin ? from : begin;
		size_t last = from + n < begin + EACH ? from + n : begin + EACH;
		struct nccl_part part = { .address = out, .size = n * 4 };
		void *request;

		for (size_t i = 0; i < EACH; i++)
			own[i] = (float)(begin + i);
		demand(coll->iallgather(comm, own + (first < last ? first - begin : 0), 1, &part,
		                        EACH * 4, from * 4, n * 4, NULL, &request) == NCCL_SUCCESS);
		wait_coll(request, (int)(n * 4));
		for (size_t i = 0; i < n; i++)
			demand(out[i] == (float)(from + i));
		for (size_t i = 0; i < n; i++)
			all[i] = (float)((from + i) * (size_t)(node + 1));
		part.address = all;
		demand(coll->ireducescatter(comm, 1, &part, out, EACH * 4, from * 4, n * 4,
		                            NCCL_F32, NCCL_SUM, NULL, &request) == NCCL_SUCCESS);
		wait_coll(request, (int)(n * 4));
		for (size_t i = first; i < last; i++)
			demand(out[i - first] == (float)(i * 6));
	}
	free(own);
	free(all);
	free(out);
}

static void all_body(int node, void *comm)
{
	static const float stale[] = { 0, 1e5f, 3e38f, INFINITY, NAN };

	for (size_t i = 0; i < countof(stale); i++) {
		check_tail(node, comm, stale[i], 1);
		check_tail(node, comm, stale[i], 777);
	}
	check_types(node, comm);
	check_floats(comm);
	check_many(node, comm);
	check_windows(node, comm);
}

static void use_aggregator(const char *address, const char *timeout)
{
	setenv("TRIB_AGGREGATOR", address, 1);
	setenv("TRIB_TIMEOUT", timeout, 1);
}

static void *another_table(void *unused)
{
	struct table table;

	(void)unused;
	run_table(&table, all_body, NODES);
	for (int i = 0; i < NODES; i++)
		demand(table.results[i] == NCCL_SUCCESS);
	return NULL;
}

/* Two communicators of the same nodes at once. */
static void test_collectives(void **state)
{
	struct cluster cluster;
	pthread_t second;

	(void)state;
	cluster_start(&cluster, 2, 0);
	use_aggregator(cluster.address, "30");
	demand(!pthread_create(&second, NULL, another_table, NULL));
	another_table(NULL);
	demand(!pthread_join(second, NULL));
	cluster_stop(&cluster);
}

/* A node that does not come: all others fail, and the error names it. */
static void test_missing_node(void **state)
{
	struct cluster cluster;
	struct table table;

	(void)state;
	cluster_start(&cluster, 1, 0);
	use_aggregator(cluster.address, "1");
	run_table(&table, NULL, NODES - 1);
	for (int i = 0; i < NODES - 1; i++)
		demand(table.results[i] != NCCL_SUCCESS);
	demand(strstr(last_warning, "node 2 has not come"));
	cluster_stop(&cluster);
}

/* The aggregator does not exist: all nodes fail together, within the deadline. */
static void test_no_aggregator(void **state)
{
	struct table table;

	(void)state;
	use_aggregator("127.0.0.1:9", "1");
	run_table(&table, NULL, NODES);
	for (int i = 0; i < NODES; i++)
		demand(table.results[i] != NCCL_SUCCESS);
	demand(strstr(last_warning, "point-to-point"));
}

static struct cluster doomed;
static atomic_int waiting;

/* The aggregator ends while nodes wait for a sum. */
static void doomed_body(int node, void *comm)
{
	static float in[NODES][CHUNK], out[NODES][CHUNK];
	int done = 0, result = NCCL_SUCCESS;
	void *request;

	wait_coll(allreduce(comm, in[node], out[node], CHUNK, NCCL_F32, NCCL_SUM), CHUNK * 4);
	if (node == 0) {
		while (atomic_load(&waiting) < NODES - 1)
			sched_yield();
		cluster_stop(&doomed);
	}
	request = allreduce(comm, in[node], out[node], CHUNK, NCCL_F32, NCCL_SUM);
	atomic_fetch_add(&waiting, 1);
	for (unsigned times = 0; !done && result == NCCL_SUCCESS; rest(times++))
		result = coll->test(request, &done, NULL);
	demand(result != NCCL_SUCCESS && !done);
}

#define LATE_TIMEOUT "3" /* s; an aggregator that is silent for half of it is lost */
#define LATE_MS 3500

/* A node that calls later than the timeout is not dead: it may be computing. */
static void late_body(int node, void *comm)
{
	static const size_t counts[] = { CHUNK, 10 * CHUNK };
	static float in[NODES][10 * CHUNK], out[NODES][10 * CHUNK];

	for (size_t k = 0; k < countof(counts); k++) {
		if (node == 1)
			nap_ms(LATE_MS);
		wait_coll(allreduce(comm, in[node], out[node], counts[k], NCCL_F32, NCCL_SUM),
		          (int)counts[k] * 4);
	}
}

static void test_late_node(void **state)
{
	struct cluster cluster;
	struct table table;

	(void)state;
	cluster_start(&cluster, 1, 0);
	use_aggregator(cluster.address, LATE_TIMEOUT);
	run_table(&table, late_body, NODES);
	cluster_stop(&cluster);
}

static void test_killed_aggregator(void **state)
{
	struct table table;

	(void)state;
	cluster_start(&doomed, 1, 0);
	use_aggregator(doomed.address, "2");
	run_table(&table, doomed_body, NODES);
}

static void test_tables(void **state)
{
	struct nccl_properties_v11 now;
	struct nccl_properties_v8 old;
	struct nccl_properties_v9 middle;
	void *registration;
	int n;

	(void)state;
	demand(net->devices(&n) == NCCL_SUCCESS && n == 1);
	demand(net->get_properties(0, &now) == NCCL_SUCCESS && now.name && now.speed >= 1000);
	demand(now.max_receives == 1 && now.pointers == NCCL_PTR_HOST && now.max_coll_bytes > 0);
	demand(net->get_properties(1, &now) != NCCL_SUCCESS);
	demand(ncclNetPlugin_v8.get_properties(0, &old) == NCCL_SUCCESS && old.speed == now.speed);
	demand(ncclCollNetPlugin_v10.get_properties(0, &middle) == NCCL_SUCCESS);
	demand(middle.name == now.name && middle.max_p2p_bytes == now.max_p2p_bytes);
	demand(coll->reg_mr(NULL, &n, 4, NCCL_PTR_HOST, &registration) == NCCL_SUCCESS);
	demand(registration);
	demand(coll->reg_mr(NULL, &n, 4, NCCL_PTR_CUDA, &registration) != NCCL_SUCCESS);
	demand(coll->reduce_support(NCCL_BF16, NCCL_MAX, &n) == NCCL_SUCCESS && n);
	demand(coll->reduce_support(NCCL_F32, NCCL_PROD, &n) == NCCL_SUCCESS && !n);
	demand(coll->reduce_support(99, NCCL_SUM, &n) == NCCL_SUCCESS && !n);
	unsetenv("TRIB_AGGREGATOR");
	demand(coll->devices(&n) == NCCL_SUCCESS && n == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_messages),
		cmocka_unit_test(test_broken_links),
		cmocka_unit_test(test_late_receiver),
		cmocka_unit_test(test_collectives),
		cmocka_unit_test(test_missing_node),
		cmocka_unit_test(test_no_aggregator),
		cmocka_unit_test(test_killed_aggregator),
		cmocka_unit_test(test_late_node),
		cmocka_unit_test(test_tables),
	};

	cluster_environment();
	setenv("NCCL_SOCKET_IFNAME", "lo", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
