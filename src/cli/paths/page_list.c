/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/paths/path_commands.h"
#include "options/json_writer.h"
#include "path/page/page_folder.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct reading {
	struct page_list *list;
	long job;
	bool no_memory;
};

static void take(void *context, const struct path_page *page)
{
	struct reading *reading = context;
	struct page_list *list = reading->list;
	struct path_page *more;

	if (reading->job >= 0 && page->job != (unsigned long)reading->job)
		return;
	more = realloc(list->pages, (list->n + 1) * sizeof(*more));
	if (!more) {
		reading->no_memory = true;
		return;
	}
	list->pages = more;
	more[list->n++] = *page;
}

static int by_rank(const void *a, const void *b)
{
	const struct path_page *one = a, *two = b;

	if (one->job != two->job)
		return one->job < two->job ? -1 : 1;
	if (one->key != two->key)
		return one->key < two->key ? -1 : 1;
	if (one->rank != two->rank)
		return one->rank < two->rank ? -1 : 1;
	return one->pid < two->pid ? -1 : one->pid > two->pid;
}

trib_status page_list_read(struct page_list *list, long job)
{
	struct reading reading = { list, job, false };
	trib_status status;

	*list = (struct page_list){ 0 };
	status = page_each(take, &reading);
	if (status == TRIB_OK && reading.no_memory)
		status = status_fail(TRIB_ERR_NO_MEMORY, "no memory for %zu pages", list->n);
	if (status != TRIB_OK) {
		free(list->pages);
		return status;
	}
	if (list->n)
		qsort(list->pages, list->n, sizeof(*list->pages), by_rank);
	return TRIB_OK;
}

static void path_json(struct json_writer *json, const struct page_path *path, unsigned i)
{
	char from[PAGE_TEXT], to[PAGE_TEXT], hops[VIRTUAL_HOPS_TEXT];

	json_open_object(json, NULL);
	json_put_count(json, "path", i);
	json_put_text(json, "state", page_path_state(path));
	json_put_text(json, "from", page_address_text(&path->from, from));
	json_put_text(json, "to", page_address_text(&path->to, to));
	json_put_text(json, "hops", page_hops_text(path, hops));
	json_put_count(json, "rate_bps", path->rate_bps);
	json_put_count(json, "carries_bps", path->carries_bps);
	json_put_count(json, "latency_ns", path->rtt_ns);
	json_put_count(json, "least_latency_ns", path->least_rtt_ns);
	json_put_number(json, "loss", "%.6f", path->loss);
	json_put_count(json, "sent", path->sent);
	json_put_count(json, "lost", path->lost);
	json_put_count(json, "received", path->received);
	json_put_count(json, "left", path->left);
	json_close(json);
}

static void peer_json(struct json_writer *json, const struct page_peer *peer)
{
	char name[PAGE_TEXT];

	json_open_object(json, NULL);
	json_put_text(json, "direction", page_peer_direction(peer));
	json_put_text(json, "peer", page_peer_name(peer, name));
	json_put_text(json, "found", path_found_name(peer->found));
	json_open_list(json, "paths");
	for (unsigned i = 0; i < peer->n; i++)
		if (page_path_exists(&peer->paths[i]))
			path_json(json, &peer->paths[i], i);
	json_close(json);
	json_close(json);
}

/* A line. */
static void page_json(const struct path_page *page)
{
	struct json_writer json = { .out = stdout, .is_compact = true };
	char key[17];

	snprintf(key, sizeof(key), "%" PRIx64, page->key);
	json_open_object(&json, NULL);
	json_put_count(&json, "job", page->job);
	json_put_text(&json, "key", key);
	json_put_count(&json, "rank", page->rank);
	json_put_count(&json, "size", page->size);
	json_put_count(&json, "pid", page->pid);
	json_open_list(&json, "peers");
	for (unsigned p = 0; p < page->n_peers; p++)
		peer_json(&json, &page->peers[p]);
	json_close(&json);
	json_close(&json);
}

void page_list_json(const struct page_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		page_json(&list->pages[i]);
}
