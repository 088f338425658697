/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of engines is a real boundary: a third engine, which lives in this test only, runs on
 * the udp plane and in the kernel, and no file of the planes knows it. The engine keeps the highest
 * word that it has seen of each element, and answers each packet to its sender at once.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "cluster.h"
#include "engine/cell_lock.h"
#include "engine/combine.h"
#include "engine/engine_table.h"
#include "raw_child.h"
#include "wire/parse.h"
#ifdef HAVE_BPF
#include "xdp_rig.h"

#include "highest.skel.h"
#endif

#include <string.h>
#include <unistd.h>

#define NUMBER 7
#define UNKNOWN 6
#define WITHOUT_PROGRAM 5
#define BYTES 64u
#define CHILDREN 3u

/* ---- the engine ---- */

static int highest_open(const struct engine_pool *pool)
{
	pool->lane->own[0] = NUMBER;
	return 1;
}

static uint64_t highest_position(const struct engine_pool *pool, const struct wire_header *packet)
{
	(void)pool;
	return packet->pos;
}

static enum engine_verdict highest_take(const struct engine_pool *pool,
                                        const struct wire_header *packet, uint32_t bytes,
                                        struct engine_packet out[2])
{
	struct engine_cell *cell = engine_cell(pool, packet->pos % pool->lane->cells);
	struct wire_header *header = (void *)out[0].data;

	out[0].bytes = out[1].bytes = 0;
	if (packet->op != WIRE_MAX_U64 || bytes > pool->lane->payload)
		return ENGINE_MISMATCH;
	cell_lock(&cell->lock);
	combine(WIRE_MAX_U64, cell->sum, packet + 1, bytes);
	cell->own[0]++;
	*header = *packet;
	header->type = WIRE_RESULT;
	header->child = WIRE_ALL;
	memcpy(header + 1, cell->sum, bytes);
	cell_unlock(&cell->lock);
	out[0].to = 1ull << packet->child;
	out[0].bytes = WIRE_HEADER + bytes;
	out[0].position = packet->pos;
	return ENGINE_COMPLETE;
}

static struct engine_view highest_view(const struct engine_pool *pool,
                                       const struct wire_header *packet)
{
	(void)pool;
	return (struct engine_view){ .position = packet->pos,
		                     .op = WIRE_MAX_U64,
		                     .from = WIRE_ALL };
}

static uint64_t highest_waiting(const struct engine_pool *pool)
{
	(void)pool;
	return 0;
}

static const void *highest_program(uint64_t *bytes)
{
#ifdef HAVE_BPF
	size_t size;
	const void *elf = highest_bpf__elf_bytes(&size);

	*bytes = size;
	return elf;
#else
	*bytes = 0;
	return NULL;
#endif
}

static const struct engine highest = {
	.name = "highest",
	.number = NUMBER,
	.open = highest_open,
	.position = highest_position,
	.take = highest_take,
	.view = highest_view,
	.waiting = highest_waiting,
	.program = highest_program,
};

/* ---- children, with packets of their own ---- */

/* The words that the child sends for this position. */
static uint64_t word_of(unsigned child, uint32_t pos, unsigned i)
{
	return mix((uint64_t)child << 32 | pos << 8 | i);
}

static void child_send_words(const struct raw_child *child, uint32_t pos, uint8_t op)
{
	union raw_packet packet = { .header = { .type = WIRE_DATA,
		                                .op = op,
		                                .pos = pos,
		                                .from = WIRE_ALL,
		                                .to = WIRE_ALL } };
	uint64_t *words = (uint64_t *)(&packet.header + 1);

	for (unsigned i = 0; i < BYTES / 8; i++)
		words[i] = word_of(child->rank, pos, i);
	raw_child_send(child, &packet, WIRE_HEADER + BYTES, pos);
}

/* The child gets the highest words of all children up to itself. */
static void child_check_words(const struct raw_child *child, uint32_t pos)
{
	const struct wire_unsent unsent = raw_child_unsent(child, pos);
	union raw_packet packet;
	const uint64_t *words = (const uint64_t *)(&packet.header + 1);

	raw_child_await(child, &packet, WIRE_RESULT);
	demand(packet.header.pos == pos && packet.header.comm == child->welcome.comm);
	demand(wire_is_intact(&packet.header, WIRE_HEADER + BYTES, &unsent));
	for (unsigned i = 0; i < BYTES / 8; i++) {
		uint64_t most = 0;

		for (unsigned other = 0; other <= child->rank; other++)
			if (word_of(other, pos, i) > most)
				most = word_of(other, pos, i);
		assert_int_equal(words[i], most);
	}
}

/* ---- tests ---- */

static void test_table(void **state)
{
	struct engine other = highest;

	(void)state;
	assert_true(engine_find(NUMBER) == &highest);
	assert_false(engine_add(&other)); /* the number is in use */
	other.number = ENGINE_SLOT;
	assert_false(engine_add(&other));
	other.number = ENGINE_DENSE;
	assert_false(engine_add(&other));
	other.number = ENGINES_MAX;
	assert_false(engine_add(&other));
	assert_null(engine_find(UNKNOWN));
	assert_string_equal(engine_find(ENGINE_DENSE)->name, "dense");
	assert_null(engine_find(255));
}

static void test_udp(void **state)
{
	struct raw_child children[CHILDREN];
	union raw_packet packet;
	struct cluster cluster;

	(void)state;
	cluster_start(&cluster, 2, 0);
	raw_children_join(children, &cluster, CHILDREN, NUMBER);
	for (unsigned i = 0; i < CHILDREN; i++) {
		assert_int_equal(children[i].welcome.engine, NUMBER);
		assert_int_equal(children[i].welcome.lanes, 1);
	}
	for (uint32_t pos = 0; pos < 20; pos++)
		for (unsigned i = 0; i < CHILDREN; i++) {
			child_send_words(&children[i], pos, WIRE_MAX_U64);
			child_check_words(&children[i], pos);
		}
	/* What the engine calls a mismatch ends the communicator. */
	child_send_words(&children[0], 3, WIRE_ADD64);
	raw_child_await(&children[1], &packet, WIRE_ABORT);
	for (unsigned i = 0; i < CHILDREN; i++)
		close(children[i].fd);
	cluster_stop(&cluster);
}

/* The verdict on a JOIN, and the words. */
static void refused(const char *words, uint8_t engine, uint8_t hops)
{
	struct cluster cluster;
	struct raw_child child;

	cluster_start(&cluster, 1, 0);
	raw_child_open(&child, &cluster, 0);
	for (unsigned i = 0; raw_child_join(&child, CHILDREN, engine, hops) != WIRE_REFUSED; i++)
		demand(i < RAW_PATIENCE_MS / 50);
	if (!strstr(child.welcome.text, words))
		fail_msg("refused with: %s", child.welcome.text);
	close(child.fd);
	cluster_stop(&cluster);
}

static void test_refused(void **state)
{
	(void)state;
	refused("rank 0 asks for engine 6, which the udp plane does not have", UNKNOWN, 0);
	refused("rank 0 asks for engine 255, which the udp plane does not have", 255, 0);
	refused("rank 0 asks for engine 7 in a tree: only dense sums go up", NUMBER, 1);
	setenv("TRIB_PLANE", "tcp", 1);
	refused("rank 0 asks for engine 7, which the tcp plane does not have", NUMBER, 0);
	unsetenv("TRIB_PLANE");
}

#ifdef HAVE_BPF
static struct rig rig;

/* The answer to the child is the twin's, and so are the cells. */
static void check_answer(const struct shape *shape, const struct frame *out, unsigned child,
                         uint32_t bytes, const struct engine_packet *want)
{
	const struct wire_unsent unsent = rig_unsent(want->position);
	static struct packet packet;
	uint8_t head[XDP_HEAD_MAX];
	uint32_t at = head_make(head, shape, child, bytes);

	demand(want->bytes == bytes && want->to == 1ull << child);
	demand(out->bytes == at + bytes && !memcmp(out->data, head, at));
	memcpy(&packet, out->data + at, bytes);
	demand(wire_parse(&packet, bytes) == WIRE_SOUND);
	demand(wire_is_intact(&packet.header, bytes, &unsent));
	packet.header.check = ((const struct wire_header *)want->data)->check;
	demand(!memcmp(&packet, want->data, bytes));
	rig_engine_compare(&rig);
}

/* A DATA packet through the plane's program, which calls the engine's. */
static void give(const struct shape *shape, struct rig_data data)
{
	static struct engine_packet twin[2];
	static struct frame frame, out;
	static struct packet packet;
	uint32_t bytes = packet_data(&packet, &data), action;

	frame_make(&frame, shape, data.child, &packet, bytes);
	action = rig_run(&rig, &frame, &out, 0);
	if (highest_take(&rig.engine_twin, &packet.header, data.bytes, twin) == ENGINE_COMPLETE) {
		demand(action == XDP_TX);
		check_answer(shape, &out, data.child, bytes, &twin[0]);
	} else {
		demand(action == XDP_PASS && out.bytes == frame.bytes);
		demand(!memcmp(out.data, frame.data, frame.bytes));
		rig_engine_compare(&rig);
	}
}

static void test_xdp(void **state)
{
	(void)state;
	for (unsigned s = 0; s < SHAPES; s++) {
		rig_engine_lane(&rig, &highest, 3, 8, 256, &shapes[s]);
		for (unsigned i = 0; i < 200; i++)
			give(&shapes[s], DATA(i % 11, (uint8_t)(i % 3), .op = WIRE_MAX_U64,
			                      .bytes = i % 33 * 8, .seed = i));
		give(&shapes[s], DATA(0, 0, .op = WIRE_ADD64));
	}
}

/* Without a program for the kernel, user space has to do the work. */
static void test_without_program(void **state)
{
	static struct engine plain;
	const struct xdp_lane_options options = { .comm = RIG_COMM + 1,
		                                  .cells = 8,
		                                  .payload = 64,
		                                  .children = 2,
		                                  .engine = &plain,
		                                  .engine_cells = 8 };
	struct dense_lane *dense;
	struct dense_pool pool;

	(void)state;
	plain = highest;
	plain.name = "plain";
	plain.number = WITHOUT_PROGRAM;
	plain.program = NULL;
	assert_null(xdp_handle_open(rig.plane, &options, &dense, &pool));
	assert_true(error_has("engine plain has no program for the kernel"));
}

static int run_xdp(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_xdp),
		cmocka_unit_test(test_without_program),
	};
	int failed;

	rig_load(&rig, 512); /* without the right to load programs, it ends the test as skipped */
	failed = cmocka_run_group_tests_name("xdp", tests, NULL, NULL);
	rig_unload(&rig);
	return failed;
}
#else
static int run_xdp(void)
{
	return 0;
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_udp),
		cmocka_unit_test(test_refused),
	};
	int failed;

	cluster_environment();
	unsetenv("TRIB_PLANE");
	demand(engine_add(&highest));
	failed = cmocka_run_group_tests_name("udp", tests, NULL, NULL);
	return failed ? failed : run_xdp();
}
