/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables of versions 8 to 10, as NCCL 2.20 to 2.26 find them in the loaded plugin: a sum of two
 * ranks by the CollNet table, and a message from each to the other by the ncclNet table.
 */
#include "nccl_threads.h"

#include "../../adapters/nccl/nccl_abi_old.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define PATIENCE_S 60
#define COUNT 8192

static struct nccl_plugin plugin;

/* Gives each rank the handles of both. */
static void handles_swap(struct nccl_thread *rank, char *mine, char all[2][NCCL_HANDLE_BYTES])
{
	demand(!rank->ranks.gather(rank->ranks.context, mine, all, NCCL_HANDLE_BYTES));
}

static void test_until_done(int (*test)(void *request, int *done, int *size), void *request)
{
	int done = 0, size;

	while (!done) {
		demand(test(request, &done, &size) == NCCL_SUCCESS);
		nccl_poll_pause();
	}
}

/* The versions differ in types of arguments only, which the compiler converts. */
#define COLL_BODY(version)                                                                        \
	static void coll_##version(struct nccl_thread *rank)                                      \
	{                                                                                         \
		const struct nccl_collnet_##version *coll =                                       \
			dlsym(plugin.library, "ncclCollNetPlugin_" #version);                     \
		static float in[2][COUNT], out[2][COUNT];                                         \
		char mine[NCCL_HANDLE_BYTES] = { 0 }, all[2][NCCL_HANDLE_BYTES];                  \
		void *handles[] = { all[0], all[1] }, *listener, *comm, *request = NULL;          \
		int me = rank->ranks.rank, yes;                                                   \
                                                                                                  \
		demand(coll && coll->init(nccl_log_print) == NCCL_SUCCESS);                       \
		demand(coll->reduce_support(NCCL_F32, NCCL_SUM, &yes) == NCCL_SUCCESS && yes);    \
		demand(coll->listen(0, mine, &listener) == NCCL_SUCCESS);                         \
		handles_swap(rank, mine, all);                                                    \
		demand(coll->connect(handles, 2, me, listener, &comm) == NCCL_SUCCESS);           \
		demand(coll->close_listen(listener) == NCCL_SUCCESS);                             \
		for (int i = 0; i < COUNT; i++)                                                   \
			in[me][i] = (float)(i * (me + 1));                                        \
		while (!request)                                                                  \
			demand(coll->iallreduce(comm, in[me], out[me], COUNT, NCCL_F32, NCCL_SUM, \
			                        NULL, NULL, &request) == NCCL_SUCCESS);           \
		test_until_done(coll->test, request);                                             \
		for (int i = 0; i < COUNT; i++)                                                   \
			demand(out[me][i] == (float)(3 * i));                                     \
		demand(coll->close_coll(comm) == NCCL_SUCCESS);                                   \
	}

#define BARE(...) __VA_ARGS__

/* `integer` is the type of sizes. `config` and `profile` are arguments that some versions have. */
#define NET_BODY(version, integer, config, profile)                                                \
	static void net_##version(struct nccl_thread *rank)                                        \
	{                                                                                          \
		const struct nccl_net_##version *net =                                             \
			dlsym(plugin.library, "ncclNetPlugin_" #version);                          \
		char mine[NCCL_HANDLE_BYTES] = { 0 }, all[2][NCCL_HANDLE_BYTES];                   \
		char message[1000], got[2000];                                                     \
		void *listener, *send = NULL, *receive = NULL, *out = NULL, *in = NULL;            \
		void *to = got, *nothing = NULL;                                                   \
		integer room = sizeof(got);                                                        \
		int me = rank->ranks.rank, tag = 1;                                                \
                                                                                                   \
		demand(net && net->listen(0, mine, &listener) == NCCL_SUCCESS);                    \
		handles_swap(rank, mine, all);                                                     \
		while (!send || !receive) {                                                        \
			if (!send)                                                                 \
				demand(net->connect(0, BARE config all[!me], &send, &nothing) ==   \
				       NCCL_SUCCESS);                                              \
			if (!receive)                                                              \
				demand(net->accept(listener, &receive, &nothing) == NCCL_SUCCESS); \
		}                                                                                  \
		memset(message, 'a' + me, sizeof(message));                                        \
		while (!in)                                                                        \
			demand(net->irecv(receive, 1, &to, &room, &tag, &nothing,                  \
			                  BARE profile &in) == NCCL_SUCCESS);                      \
		while (!out)                                                                       \
			demand(net->isend(send, message, sizeof(message), tag, NULL,               \
			                  BARE profile &out) == NCCL_SUCCESS);                     \
		test_until_done(net->test, out);                                                   \
		test_until_done(net->test, in);                                                    \
		for (unsigned i = 0; i < sizeof(message); i++)                                     \
			demand(got[i] == 'a' + !me);                                               \
		nccl_thread_meet(rank);                                                            \
		demand(net->close_send(send) == NCCL_SUCCESS);                                     \
		demand(net->close_recv(receive) == NCCL_SUCCESS);                                  \
		demand(net->close_listen(listener) == NCCL_SUCCESS);                               \
	}

/* Version 10 of the CollNet table is that of version 9. */
#define nccl_collnet_v10 nccl_collnet_v9
static struct nccl_comm_config config = { .traffic_class = -1 };

COLL_BODY(v8)
COLL_BODY(v9)
COLL_BODY(v10)
NET_BODY(v8, int, (), ())
NET_BODY(v9, size_t, (), ())
NET_BODY(v10, size_t, (&config, ), (NULL, ))

static void test_old(void **state)
{
	static void (*const bodies[])(struct nccl_thread * rank) = { coll_v8, coll_v9, coll_v10,
		                                                     net_v8,  net_v9,  net_v10 };

	(void)state;
	for (unsigned i = 0; i < countof(bodies); i++)
		nccl_threads_run(&plugin, 2, PATIENCE_S, bodies[i], NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_old) };
	struct cluster cluster;
	int failed;

	cluster_environment();
	cluster_start(&cluster, 1, 0);
	setenv("TRIB_AGGREGATOR", cluster.address, 1);
	nccl_threads_load(&plugin);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	demand(nccl_plugin_unload(&plugin));
	cluster_stop(&cluster);
	return failed;
}
