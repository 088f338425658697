/* SPDX-License-Identifier: Apache-2.0 */
#include "control/policy/node_table.h"

#include "plan/cluster/candidates.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define POINTER sizeof(struct node *)
#define SUSPECT_AFTER_NS (1000 * 1000000ull) /* 1 s: a node heard within this time is alive */
/* 1.5 s: a node that is silent for less does not count as dead. */
#define SUSPECT_SILENT_NS (1500 * 1000000ull)
/* 0.4 s: a node counts as dead only if it has left queries unanswered for this long. */
#define SUSPECT_ASKED_NS (400 * 1000000ull)

/* The index of the address, or where it would be inserted. */
static unsigned place(const struct nodes *nodes, const char *address, bool *found)
{
	unsigned low = 0, high = nodes->n;

	*found = false;
	while (low < high) {
		unsigned middle = (low + high) / 2;
		int order = strcmp(nodes->all[middle]->report.address, address);

		if (order == 0) {
			*found = true;
			return middle;
		}
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct node *nodes_find(const struct nodes *nodes, const char *address)
{
	bool found;
	unsigned at = place(nodes, address, &found);

	return found ? nodes->all[at] : NULL;
}

size_t node_where(const struct node *node, const char **where)
{
	const char *address = node->report.address, *end = strrchr(address, ':');

	if (!end)
		return 0;
	if (*address == '[') {
		address++;
		end--; /* the closing bracket */
	}
	*where = address;
	return end > address ? (size_t)(end - address) : 0;
}

unsigned nodes_at(const struct nodes *nodes, const char *where, unsigned *n)
{
	char prefix[TREE_NAME_MAX];
	unsigned first;
	bool found;

	snprintf(prefix, sizeof(prefix),
	         strchr(where, ':') ? "[%.*s]:" : "%.*s:", (int)sizeof(prefix) - 4, where);
	first = place(nodes, prefix, &found);
	for (*n = 0; first + *n < nodes->n; ++*n)
		if (strncmp(nodes->all[first + *n]->report.address, prefix, strlen(prefix)) != 0)
			break;
	return first;
}

static bool make_room(struct nodes *nodes)
{
	unsigned room = nodes->room ? 2 * nodes->room : 16;
	struct node **more;

	if (nodes->n < nodes->room)
		return true;
	if (nodes->n == NODES_MAX)
		return false;
	more = realloc(nodes->all, room * POINTER);
	if (!more)
		return false;
	nodes->all = more;
	nodes->room = room;
	return true;
}

struct node *nodes_add(struct nodes *nodes, const char *address)
{
	bool found;
	unsigned at = place(nodes, address, &found);
	struct node *node;

	if (found)
		return nodes->all[at];
	if (!make_room(nodes) || !(node = calloc(1, sizeof(*node))))
		return NULL;
	snprintf(node->report.address, sizeof(node->report.address), "%s", address);
	memmove(nodes->all + at + 1, nodes->all + at, (nodes->n - at) * POINTER);
	nodes->all[at] = node;
	nodes->n++;
	return node;
}

void nodes_drop(struct nodes *nodes, struct node *node)
{
	bool found;
	unsigned at = place(nodes, node->report.address, &found);

	if (!found)
		return;
	nodes->n--;
	memmove(nodes->all + at, nodes->all + at + 1, (nodes->n - at) * POINTER);
	free(node);
}

static bool same_facts(const struct node_report *a, const struct node_report *b)
{
	return !strcmp(a->name, b->name) && !strcmp(a->version, b->version) &&
	       !strcmp(a->plane, b->plane) && !strcmp(a->planes, b->planes) &&
	       !strcmp(a->rights, b->rights) && a->incarnation == b->incarnation &&
	       a->cores == b->cores && a->threads == b->threads && a->memory == b->memory &&
	       a->link_bps == b->link_bps && a->is_switch == b->is_switch &&
	       !strcmp(a->rack, b->rack);
}

struct node *nodes_heartbeat(struct nodes *nodes, const struct node_report *report, uint64_t now,
                             bool *facts)
{
	struct node *node = nodes_add(nodes, report->address);

	if (!node)
		return NULL;
	if (facts)
		*facts = node->left || !same_facts(&node->report, report);
	if (node->report.incarnation != report->incarnation)
		node->joined_at = now;
	node->report = *report;
	node->heartbeat_at = now;
	node->left = false;
	return node;
}

void nodes_free(struct nodes *nodes, void (*forget)(struct node *node))
{
	for (unsigned i = 0; i < nodes->n; i++) {
		if (forget)
			forget(nodes->all[i]);
		free(nodes->all[i]);
	}
	free(nodes->all);
	*nodes = (struct nodes){ 0 };
}

static bool cores_are_full(const struct node_report *report, const struct node_limits *limits)
{
	return report->load > limits->load;
}

static bool is_loaded(const struct node_report *report, const struct node_limits *limits)
{
	return cores_are_full(report, limits) ||
	       (double)report->memory_used > (double)report->memory * CANDIDATES_MEMORY;
}

void node_watch(struct node *node, uint64_t now, const struct node_limits *limits)
{
	if (!is_loaded(&node->report, limits))
		node->loaded_since = 0;
	else if (!node->loaded_since)
		node->loaded_since = now;
}

const char *node_load_text(const struct node *node, const struct node_limits *limits, char *out,
                           size_t size)
{
	const struct node_report *report = &node->report;

	if (cores_are_full(report, limits))
		snprintf(out, size, "others use %.0f %% of its cores", report->load * 100);
	else
		snprintf(out, size, "%.0f %% of its memory is in use",
		         report->memory
		                 ? 100.0 * (double)report->memory_used / (double)report->memory
		                 : 0.0);
	return out;
}

bool node_suspect(struct node *node, uint64_t now, bool *ask)
{
	uint64_t heard =
		node->heartbeat_at > node->confirmed_at ? node->heartbeat_at : node->confirmed_at;

	*ask = false;
	/* A node that was silent since the controller started may live: nothing is known. */
	if (!heard || now < heard + SUSPECT_AFTER_NS) {
		node->suspected_at = 0;
		return false;
	}
	*ask = true;
	if (node->suspected_at <= heard)
		node->suspected_at = now;
	return now >= heard + SUSPECT_SILENT_NS && now >= node->suspected_at + SUSPECT_ASKED_NS;
}

enum node_state node_state(const struct node *node, uint64_t now, const struct node_limits *limits)
{
	if (node->left)
		return NODE_LEFT;
	if (!node->heartbeat_at || now > node->heartbeat_at + limits->dead_after)
		return NODE_SILENT;
	if (node->drained)
		return NODE_DRAINED;
	return is_loaded(&node->report, limits) ? NODE_LOADED : NODE_LIVE;
}

const char *node_state_name(enum node_state state)
{
	static const char *const names[] = { [NODE_LIVE] = "live",
		                             [NODE_LOADED] = "loaded",
		                             [NODE_DRAINED] = "drained",
		                             [NODE_SILENT] = "silent",
		                             [NODE_LEFT] = "left" };

	return names[state];
}
