/* SPDX-License-Identifier: Apache-2.0 */
#include "nccl_threads.h"

#include <pthread.h>

#define SHARED_BYTES 1024

/* What the ranks of one communicator exchange. */
struct gathering {
	pthread_barrier_t barrier;
	int size;
	char bytes[NCCL_THREADS_MAX][SHARED_BYTES];
};

struct thread_start {
	struct nccl_thread rank;
	struct gathering *gathering;
	void (*body)(struct nccl_thread *rank);
};

static int gather(void *context, const void *mine, void *all, size_t bytes)
{
	struct thread_start *start = context;
	struct gathering *shared = start->gathering;

	demand(bytes <= SHARED_BYTES);
	memcpy(shared->bytes[start->rank.ranks.rank], mine, bytes);
	pthread_barrier_wait(&shared->barrier);
	for (int i = 0; i < shared->size; i++)
		memcpy((char *)all + (size_t)i * bytes, shared->bytes[i], bytes);
	pthread_barrier_wait(&shared->barrier);
	return 0;
}

static void *thread_main(void *argument)
{
	struct thread_start *start = argument;

	start->body(&start->rank);
	return NULL;
}

void nccl_threads_run(const struct nccl_plugin *plugin, int size, double patience_s,
                      void (*body)(struct nccl_thread *rank), void *job)
{
	struct thread_start starts[NCCL_THREADS_MAX];
	pthread_t threads[NCCL_THREADS_MAX];
	struct gathering gathering = { .size = size };

	demand(size <= NCCL_THREADS_MAX);
	pthread_barrier_init(&gathering.barrier, NULL, (unsigned)size);
	for (int r = 0; r < size; r++) {
		starts[r] = (struct thread_start){ .rank = { .plugin = plugin,
			                                     .ranks = { .rank = r,
			                                                .size = size,
			                                                .gather = gather,
			                                                .context = &starts[r],
			                                                .patience_s = patience_s },
			                                     .job = job },
			                           .gathering = &gathering,
			                           .body = body };
		demand(!pthread_create(&threads[r], NULL, thread_main, &starts[r]));
	}
	for (int r = 0; r < size; r++)
		pthread_join(threads[r], NULL);
	pthread_barrier_destroy(&gathering.barrier);
}

void nccl_thread_meet(struct nccl_thread *rank)
{
	char mine = 0, all[NCCL_THREADS_MAX];

	demand(!rank->ranks.gather(rank->ranks.context, &mine, all, 1));
}

void nccl_threads_load(struct nccl_plugin *plugin)
{
	demand(nccl_plugin_load(plugin, NCCL_PLUGIN_PATH));
}
