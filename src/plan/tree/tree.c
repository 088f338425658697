/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/tree/tree.h"

#include "base/status.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define SHARE_DIGITS 15u
#define SHARE_MAX 1e9

void tree_start(struct tree *tree, double share, const char *root)
{
	tree->share = share;
	tree->n_nodes = 0;
	tree_add(tree, -1, root);
}

int tree_add(struct tree *tree, int parent, const char *name)
{
	struct tree_node *node = &tree->nodes[tree->n_nodes];

	if (tree->n_nodes == TREE_RANKS_MAX)
		return -1;
	*node = (struct tree_node){ .parent = parent };
	snprintf(node->name, sizeof(node->name), "%s", name);
	return (int)tree->n_nodes++;
}

void tree_add_rank(struct tree *tree, int node, unsigned rank)
{
	tree->nodes[node].own |= 1ull << rank;
	for (; node >= 0; node = tree->nodes[node].parent)
		tree->nodes[node].ranks |= 1ull << rank;
}

int tree_leaf(const struct tree *tree, unsigned rank)
{
	for (unsigned i = 0; rank < TREE_RANKS_MAX && i < tree->n_nodes; i++)
		if (tree->nodes[i].own >> rank & 1)
			return (int)i;
	return -1;
}

unsigned tree_children(const struct tree *tree, int node)
{
	unsigned n = (unsigned)__builtin_popcountll(tree->nodes[node].own);

	for (unsigned i = 0; i < tree->n_nodes; i++)
		n += tree->nodes[i].parent == node;
	return n;
}

unsigned tree_depth(const struct tree *tree, int node)
{
	unsigned depth = 0;

	for (; node >= 0; node = tree->nodes[node].parent)
		depth++;
	return depth;
}

struct reader {
	const char *text, *at;
	struct tree *tree;
};

static trib_status fail(const struct reader *reader, const char *what)
{
	return status_fail(TRIB_ERR_CONFIG,
	                   "trees: %s at character %zu, \"%.24s\"; a tree is "
	                   "HOST:PORT(CHILD,...), a child is a rank, a range as 0-3, or a tree",
	                   what, (size_t)(reader->at - reader->text), reader->at);
}

static bool accept(struct reader *reader, char c)
{
	if (*reader->at != c)
		return false;
	reader->at++;
	return true;
}

/* Reads up to two digits, so that nothing overflows. */
static bool read_rank(struct reader *reader, unsigned *rank)
{
	unsigned digits = 0;

	for (*rank = 0; digits < 3 && isdigit((unsigned char)*reader->at); digits++)
		*rank = *rank * 10 + (unsigned)(*reader->at++ - '0');
	return digits && *rank < TREE_RANKS_MAX;
}

/* Digits up to a comma, a dash or the end are ranks. A name contains other characters. */
static bool is_rank(const char *at)
{
	at += strspn(at, "0123456789-");
	return *at == ',' || *at == ')';
}

static trib_status read_ranks(struct reader *reader, int node)
{
	unsigned first, last;

	if (!read_rank(reader, &first))
		return fail(reader, "no rank from 0 to 63");
	last = first;
	if (accept(reader, '-') && (!read_rank(reader, &last) || last < first))
		return fail(reader, "no range of ranks");
	for (unsigned rank = first; rank <= last; rank++) {
		if (reader->tree->nodes[0].ranks >> rank & 1)
			return fail(reader, "a rank that is in the tree already");
		tree_add_rank(reader->tree, node, rank);
	}
	return TRIB_OK;
}

static trib_status read_name(struct reader *reader, int parent, int *node)
{
	size_t length = strcspn(reader->at, "(),;*");
	char name[TREE_NAME_MAX];

	if (!length || length >= sizeof(name) || reader->at[length] != '(')
		return fail(reader, "no aggregator with its children");
	for (size_t i = 0; i < length; i++)
		if (!isalnum((unsigned char)reader->at[i]) && !strchr(".:-_[]%", reader->at[i]))
			return fail(reader, "no name of an aggregator");
	snprintf(name, sizeof(name), "%.*s", (int)length, reader->at);
	for (unsigned i = 0; i < reader->tree->n_nodes; i++)
		if (!strcmp(reader->tree->nodes[i].name, name))
			return fail(reader, "an aggregator that is in the tree already");
	*node = tree_add(reader->tree, parent, name);
	if (*node < 0 || tree_depth(reader->tree, *node) > TREE_DEPTH_MAX)
		return fail(reader, "too many aggregators");
	reader->at += length + 1;
	return TRIB_OK;
}

/* Without recursion: the depth is limited, and the text is not trusted. */
static trib_status read_tree(struct reader *reader)
{
	trib_status status;
	int node = -1;

	if ((status = read_name(reader, -1, &node)) != TRIB_OK)
		return status;
	for (;;) {
		status = is_rank(reader->at) ? read_ranks(reader, node)
		                             : read_name(reader, node, &node);
		if (status != TRIB_OK)
			return status;
		if (reader->at[-1] == '(')
			continue; /* its first child follows */
		while (node >= 0 && accept(reader, ')'))
			node = reader->tree->nodes[node].parent;
		if (node < 0)
			return TRIB_OK;
		if (!accept(reader, ','))
			return fail(reader, "neither a comma nor a bracket");
	}
}

/*
 * Parses by hand, because strtod depends on the program's locale, which a library must not change.
 * With so few digits both numbers are exact and only the division rounds. So every rank on every
 * machine reads the same share.
 */
static trib_status read_share(struct reader *reader, double *share)
{
	size_t length = strspn(reader->at, "0123456789.");
	double number = 0, divisor = 1;
	unsigned digits = 0, points = 0;

	*share = 1;
	if (!length || reader->at[length] != '*')
		return TRIB_OK;
	for (size_t i = 0; i < length; i++) {
		char c = reader->at[i];

		points += c == '.';
		if (c == '.')
			continue;
		digits += digits || c != '0' || points;
		number = number * 10 + (c - '0');
		divisor *= points ? 10 : 1;
	}
	if (digits > SHARE_DIGITS || points > 1)
		return fail(reader, "no share: one point, and up to 15 digits");
	*share = number / divisor;
	if (!(*share > 0 && *share <= SHARE_MAX))
		return fail(reader, "no share above 0");
	reader->at += length + 1;
	return TRIB_OK;
}

trib_status forest_parse(struct forest *forest, const char *text)
{
	struct reader reader = { .text = text, .at = text };
	trib_status status;

	forest->n_trees = 0;
	do {
		if (forest->n_trees == FOREST_TREES_MAX)
			return fail(&reader, "too many trees");
		reader.tree = &forest->trees[forest->n_trees++];
		reader.tree->n_nodes = 0;
		reader.tree->nodes[0].ranks = 0;
		if ((status = read_share(&reader, &reader.tree->share)) != TRIB_OK ||
		    (status = read_tree(&reader)) != TRIB_OK)
			return status;
		if (reader.tree->nodes[0].ranks != forest->trees[0].nodes[0].ranks)
			return fail(&reader, "not the ranks of the first tree");
	} while (accept(&reader, ';'));
	return *reader.at ? fail(&reader, "something behind the last tree") : TRIB_OK;
}

struct writer {
	char *out;
	size_t size, used;
};

static void put(struct writer *writer, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void put(struct writer *writer, const char *format, ...)
{
	size_t left = writer->used < writer->size ? writer->size - writer->used : 0;
	va_list args;

	va_start(args, format);
	writer->used +=
		(size_t)vsnprintf(left ? writer->out + writer->used : NULL, left, format, args);
	va_end(args);
}

static void print_ranks(struct writer *writer, uint64_t ranks, const char **comma)
{
	for (unsigned rank = 0; rank < TREE_RANKS_MAX; rank++) {
		unsigned last = rank;

		if (!(ranks >> rank & 1))
			continue;
		while (last + 1 < TREE_RANKS_MAX && ranks >> (last + 1) & 1)
			last++;
		put(writer, last > rank ? "%s%u-%u" : "%s%u", *comma, rank, last);
		*comma = ",";
		rank = last;
	}
}

static void print_node(struct writer *writer, const struct tree *tree, int node)
{
	const char *comma = "";

	put(writer, "%s(", tree->nodes[node].name);
	print_ranks(writer, tree->nodes[node].own, &comma);
	for (unsigned i = 0; i < tree->n_nodes; i++) {
		if (tree->nodes[i].parent != node)
			continue;
		put(writer, "%s", comma);
		print_node(writer, tree, (int)i);
		comma = ",";
	}
	put(writer, ")");
}

/* In millionths, because printf depends on the locale too. */
static void print_share(struct writer *writer, double share)
{
	uint64_t millionths = (uint64_t)(fmin(fmax(share, 1e-6), SHARE_MAX) * 1e6 + 0.5);

	put(writer, "%" PRIu64 ".%06" PRIu64 "*", millionths / 1000000, millionths % 1000000);
}

size_t forest_print(const struct forest *forest, char *out, size_t size)
{
	struct writer writer = { .out = out, .size = size };

	if (size)
		out[0] = 0;
	for (unsigned i = 0; i < forest->n_trees; i++) {
		put(&writer, "%s", i ? ";" : "");
		if (forest->n_trees > 1)
			print_share(&writer, forest->trees[i].share);
		print_node(&writer, &forest->trees[i], 0);
	}
	return writer.used;
}
