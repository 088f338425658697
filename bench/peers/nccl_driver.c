/* SPDX-License-Identifier: Apache-2.0 */
#include "nccl_driver.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#define RANKS_MAX 64

double nccl_now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/*
 * NCCL's thread yields and polls again, on a core of its own. Here all ranks share a machine, and a
 * rank that spins would take the time of others.
 */
void nccl_poll_pause(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = 10000 }, NULL);
}

void nccl_log_print(int level, unsigned long flags, const char *file, int line, const char *format,
                    ...)
{
	char text[512];
	va_list args;

	(void)flags;
	(void)file;
	(void)line;
	if (level != NCCL_LOG_WARN && level != NCCL_LOG_INFO)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	fprintf(stderr, "NCCL %s %s\n", level == NCCL_LOG_WARN ? "WARN" : "INFO", text);
}

bool nccl_plugin_load(struct nccl_plugin *plugin, const char *path)
{
	*plugin = (struct nccl_plugin){ .library = dlopen(path, RTLD_NOW | RTLD_LOCAL) };
	if (!plugin->library) {
		fprintf(stderr, "the plugin cannot be loaded: %s\n", dlerror());
		return false;
	}
	plugin->net = dlsym(plugin->library, "ncclNetPlugin_v11");
	plugin->coll = dlsym(plugin->library, "ncclCollNetPlugin_v11");
	if (plugin->net && plugin->coll)
		return true;
	fprintf(stderr, "%s has no plugin of version 11\n", path);
	nccl_plugin_unload(plugin);
	return false;
}

bool nccl_plugin_unload(struct nccl_plugin *plugin)
{
	bool is_closed = dlclose(plugin->library) == 0;

	*plugin = (struct nccl_plugin){ 0 };
	return is_closed;
}

/* ---- sums in the network ---- */

/* Every rank hears whether all succeeded, as NCCL's bootstrap tells them. */
static int all_agree(const struct nccl_ranks *ranks, int result)
{
	int all[RANKS_MAX];

	if (ranks->gather(ranks->context, &result, all, sizeof(result)))
		return NCCL_SYSTEM_ERROR;
	for (int i = 0; i < ranks->size; i++)
		if (all[i] != NCCL_SUCCESS)
			return result ? result : NCCL_REMOTE_ERROR;
	return NCCL_SUCCESS;
}

static int tree_listen(struct nccl_tree *tree, char *handle, void **listener)
{
	struct nccl_properties_v11 properties;
	int devices = 0, result = tree->coll->init(&tree->context, 1, nccl_log_print);

	if (result == NCCL_SUCCESS)
		result = tree->coll->devices(&devices);
	if (result == NCCL_SUCCESS && devices < 1)
		result = NCCL_INTERNAL_ERROR; /* NCCL then uses point-to-point */
	if (result == NCCL_SUCCESS)
		result = tree->coll->get_properties(0, &properties);
	if (result == NCCL_SUCCESS)
		result = tree->coll->listen(tree->context, 0, handle, listener);
	return result;
}

int nccl_tree_open(struct nccl_tree *tree, const struct nccl_plugin *plugin,
                   const struct nccl_ranks *ranks)
{
	char mine[NCCL_HANDLE_BYTES] = { 0 }, all[RANKS_MAX][NCCL_HANDLE_BYTES];
	void *handles[RANKS_MAX], *listener = NULL;
	int result;

	*tree = (struct nccl_tree){ .coll = plugin->coll, .patience_s = ranks->patience_s };
	result = all_agree(ranks, tree_listen(tree, mine, &listener));
	if (result == NCCL_SUCCESS && ranks->gather(ranks->context, mine, all, sizeof(mine)))
		result = NCCL_SYSTEM_ERROR;
	for (int i = 0; i < ranks->size; i++)
		handles[i] = all[i];
	if (result == NCCL_SUCCESS)
		result = all_agree(ranks, tree->coll->connect(handles, ranks->size, ranks->rank,
		                                              listener, &tree->comm));
	/* NCCL leaves the listener open after a failure. The plugin closes it at the end. */
	if (result == NCCL_SUCCESS)
		result = tree->coll->close_listen(listener);
	if (result != NCCL_SUCCESS)
		nccl_tree_close(tree);
	return result;
}

int nccl_tree_close(struct nccl_tree *tree)
{
	int result = NCCL_SUCCESS, last = NCCL_SUCCESS;

	if (tree->comm)
		result = tree->coll->close_coll(tree->comm);
	if (tree->context)
		last = tree->coll->finalize(tree->context);
	tree->comm = tree->context = NULL;
	return result ? result : last;
}

int nccl_tree_wait(struct nccl_tree *tree, void *request)
{
	double end = nccl_now_s() + tree->patience_s;
	int done = 0, size;

	for (;;) {
		int result = tree->coll->test(request, &done, &size);

		if (result != NCCL_SUCCESS || done)
			return result;
		if (nccl_now_s() > end)
			return NCCL_IN_PROGRESS;
		nccl_poll_pause();
	}
}

/* Starts the next call. NULL: the plugin takes no more now. */
static int tree_post(struct nccl_tree *tree, char *at, size_t n, int type, int op, void **request)
{
	*request = NULL;
	return tree->coll->iallreduce(tree->comm, at, at, n, type, op, NULL, NULL, request);
}

int nccl_tree_allreduce(struct nccl_tree *tree, void *data, size_t count, int type,
                        size_t type_size, int op, size_t call_bytes)
{
	size_t each = call_bytes / type_size, posted = 0;
	double end = nccl_now_s() + tree->patience_s;
	void *running[NCCL_STEPS], *request;
	unsigned first = 0, n = 0;
	int result = NCCL_SUCCESS;

	while ((posted < count || n) && result == NCCL_SUCCESS) {
		size_t some = count - posted < each ? count - posted : each;

		request = NULL;
		if (some && n < NCCL_STEPS)
			result = tree_post(tree, (char *)data + posted * type_size, some, type, op,
			                   &request);
		if (request) {
			running[(first + n++) % NCCL_STEPS] = request;
			posted += some;
		} else if (n && result == NCCL_SUCCESS) {
			result = nccl_tree_wait(tree, running[first]);
			first = (first + 1) % NCCL_STEPS;
			n--;
		} else if (result == NCCL_SUCCESS) {
			nccl_poll_pause();
			if (nccl_now_s() > end)
				return NCCL_IN_PROGRESS;
		}
	}
	return result;
}
