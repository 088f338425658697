/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics of the paths that processes of this host use, from their pages. */
#include "control/metrics/prometheus.h"

#include "path/page/page_folder.h"

#include <inttypes.h>
#include <math.h>

#define LABEL_MAX 24

static double path_up(const struct page_path *path)
{
	return path->is_open && (path->state == PATH_GOOD || path->state == PATH_CONGESTED);
}

static double path_congested(const struct page_path *path)
{
	return path->is_open && path->state == PATH_CONGESTED;
}

static double path_sent(const struct page_path *path)
{
	return (double)path->sent;
}

static double path_received(const struct page_path *path)
{
	return (double)path->received;
}

static double path_lost(const struct page_path *path)
{
	return (double)path->lost;
}

/* NAN: unknown. */
static double path_carries(const struct page_path *path)
{
	return path->carries_bps ? (double)path->carries_bps / 8 : NAN;
}

static double path_latency(const struct page_path *path)
{
	return path->rtt_ns ? (double)path->rtt_ns / 1e9 : NAN;
}

static double path_least_latency(const struct page_path *path)
{
	return path->least_rtt_ns ? (double)path->least_rtt_ns / 1e9 : NAN;
}

static double path_loss(const struct page_path *path)
{
	return path->loss;
}

static double path_left(const struct page_path *path)
{
	return path->left;
}

struct row {
	const char *name, *type, *help;
	double (*value)(const struct page_path *path);
};

struct output {
	FILE *out;
	const struct row *row;
};

static void put_path(const struct output *output, const struct path_page *page,
                     const struct page_peer *peer, unsigned i)
{
	char job[LABEL_MAX], key[LABEL_MAX], rank[LABEL_MAX], pid[LABEL_MAX], other[PAGE_TEXT],
		number[LABEL_MAX];
	double value = output->row->value(&peer->paths[i]);

	if (isnan(value))
		return;
	snprintf(job, sizeof(job), "%u", page->job);
	snprintf(key, sizeof(key), "%" PRIx64, page->key);
	snprintf(rank, sizeof(rank), "%u", page->rank);
	snprintf(pid, sizeof(pid), "%u", page->pid);
	page_peer_name(peer, other);
	snprintf(number, sizeof(number), "%u", i);
	metrics_put(output->out, output->row->name, value, "job", job, "key", key, "rank", rank,
	            "pid", pid, "direction", page_peer_direction(peer), "peer", other, "path",
	            number, NULL);
}

static void put_page(void *context, const struct path_page *page)
{
	for (unsigned p = 0; p < page->n_peers; p++)
		for (unsigned i = 0; i < page->peers[p].n; i++)
			if (page_path_exists(&page->peers[p].paths[i]))
				put_path(context, page, &page->peers[p], i);
}

void metrics_paths(FILE *out)
{
	static const struct row rows[] = {
		{ "trib_path_up", "gauge", "1: a path carries data; 0: it does not.", path_up },
		{ "trib_path_congested", "gauge",
		  "1: packets of a path wait in queues or are lost.", path_congested },
		{ "trib_path_sent_bytes_total", "counter", "Bytes that have arrived at the peer.",
		  path_sent },
		{ "trib_path_received_bytes_total", "counter", "Bytes that the peer has sent.",
		  path_received },
		{ "trib_path_lost_bytes_total", "counter", "Bytes sent that have not arrived.",
		  path_lost },
		{ "trib_path_bytes_per_second", "gauge", "Estimate of what a path carries.",
		  path_carries },
		{ "trib_path_latency_seconds", "gauge", "Smoothed round trip.", path_latency },
		{ "trib_path_least_latency_seconds", "gauge",
		  "Least round trip of the last 5 to 10 s.", path_least_latency },
		{ "trib_path_loss_ratio", "gauge", "Smoothed share of bytes that are lost.",
		  path_loss },
		{ "trib_path_left_total", "counter", "Times that a path was dead.", path_left },
	};

	for (size_t r = 0; r < sizeof(rows) / sizeof(*rows); r++) {
		struct output output = { out, &rows[r] };

		metrics_name(out, rows[r].name, rows[r].type, rows[r].help);
		page_each(put_page, &output);
	}
}
