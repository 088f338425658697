/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The check queue: reports, and DATA that the program cannot take, reach the daemon in memory, with
 * their source address. Packets on another route, of no lane, or with a full queue pass.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "xdp_rig.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>

#define CHILDREN 5u

static struct rig rig;
static struct frame frame, out;
static struct packet packet;

static void make_report(const struct shape *shape, uint8_t child)
{
	frame_make(&frame, shape, child, &packet, packet_report(&packet, child));
}

/* Only the queue has it. */
static void is_queued(uint8_t child)
{
	assert_int_equal(rig_agree(&rig, &frame, NULL), TAKEN_NOT);
	assert_true(rig.aside);
	assert_int_equal(rig.lane->seen[child].ifindex, 0);
}

/* The frame passes unchanged, and nothing is queued. */
static void passes(void)
{
	assert_int_equal(rig_run(&rig, &frame, &out, 0), XDP_PASS);
	assert_true(out.bytes == frame.bytes && !memcmp(out.data, frame.data, frame.bytes));
	assert_false(queue_check(&rig, &frame, 0));
	rig_compare(&rig);
}

static bool is_readable(void)
{
	struct pollfd wait = { .fd = xdp_queue_fd(rig.plane, RIG_LANE), .events = POLLIN };

	return poll(&wait, 1, 0) == 1;
}

static void lane(const struct shape *shape)
{
	rig_lane(&rig, CHILDREN, 8, 512);
	for (unsigned child = 0; child < CHILDREN; child++)
		rig_queue(&rig, child, shape);
}

static void test_reports(void **state)
{
	(void)state;
	for (unsigned i = 0; i < SHAPES; i++) {
		lane(&shapes[i]);
		for (uint8_t child = 0; child < CHILDREN; child++) {
			make_report(&shapes[i], child);
			is_queued(child);
		}
		/* Short reports as well, down to the shortest. */
		for (uint32_t bytes = WIRE_CONTROL; bytes < XDP_REPORT_MAX; bytes += 8) {
			packet_report(&packet, 1);
			frame_make(&frame, &shapes[i], 1, &packet, bytes);
			is_queued(1);
		}
	}
}

/* Bytes after the datagram are not queued. */
static void test_trailing_bytes(void **state)
{
	(void)state;
	lane(&shape_plain);
	packet_report(&packet, 2);
	frame_make(&frame, &shape_plain, 2, &packet, 64);
	memset(frame.data + frame.bytes, 0xaa, 30);
	frame.bytes += 30;
	is_queued(2);
}

static void test_wakes(void **state)
{
	(void)state;
	lane(&shape_plain);
	assert_false(is_readable());
	make_report(&shape_plain, 3);
	assert_int_equal(rig_run(&rig, &frame, NULL, 0), XDP_DROP);
	assert_true(is_readable());
	assert_true(queue_check(&rig, &frame, 3));
	assert_false(is_readable());
	assert_int_equal(xdp_queue_fd(rig.plane, RIG_LANES), -1);
	assert_int_equal(xdp_queue_fd(rig.plane, WIRE_LANES_MAX), -1);
	assert_int_equal(xdp_queue_fd(NULL, 0), -1);
}

/* Every byte of the source and destination, and the interface. */
static void test_other_ways_pass(void **state)
{
	(void)state;
	for (unsigned i = 0; i < SHAPES; i++) {
		uint32_t addresses = shapes[i].six ? 32 : 8;

		lane(&shapes[i]);
		make_report(&shapes[i], 1);
		for (uint32_t at = 0; at < frame.at - 6; at++) {
			/*
			 * Not these: types tell the kind of frame, and of IP only the addresses
			 * belong to the route.
			 */
			if ((at >= frame.l2 - 2 && at < frame.at - 8 - addresses) ||
			    (at >= 12 && at < 14) || (at >= 16 && at < 18))
				continue;
			frame.data[at] ^= 0x20;
			passes();
			assert_int_equal(rig.lane->seen[1].ifindex, RIG_LO);
			frame.data[at] ^= 0x20;
		}
		rig.lane->routes[1].ifindex = RIG_LO + 1;
		passes();
		rig.lane->routes[1].ifindex = RIG_LO;
		/* The daemon does not want it. */
		rig.lane->routes[1].queued = 0;
		passes();
		rig.lane->routes[1].queued = 1;
		/* Another child's report on this route. */
		frame_make(&frame, &shapes[i], 1, &packet, packet_report(&packet, 2));
		passes();
		for (unsigned j = 0; j < SHAPES; j++)
			if (j != i) {
				make_report(&shapes[j], 1);
				passes();
			}
		memset(&rig.lane->seen, 0, sizeof(rig.lane->seen));
		make_report(&shapes[i], 1);
		is_queued(1);
	}
}

/* A packet of another communicator, or of none. */
static void test_strangers_pass(void **state)
{
	static const uint32_t fields[] = {
		offsetof(struct wire_control, magic),    offsetof(struct wire_control, comm),
		offsetof(struct wire_control, comm) + 1, offsetof(struct wire_control, child),
		offsetof(struct wire_control, job),      offsetof(struct wire_control, epoch),
		offsetof(struct wire_control, cookie),   offsetof(struct wire_control, cookie) + 7,
		offsetof(struct wire_control, pos) + 7
	};

	(void)state;
	lane(&shape_plain);
	for (unsigned i = 0; i < countof(fields); i++) {
		make_report(&shape_plain, 0);
		frame.data[frame.at + fields[i]] ^= 0x40;
		passes();
	}
	for (unsigned type = 0; type < 256; type++) {
		if (type == WIRE_REPORT || type == WIRE_DATA)
			continue;
		make_report(&shape_plain, 0);
		frame.data[frame.at + offsetof(struct wire_control, type)] = (uint8_t)type;
		passes();
	}
	/* If the daemon sums, DATA arrives through the socket, and reports must follow behind. */
	make_report(&shape_plain, 0);
	rig.lane->active = 0;
	passes();
	rig.lane->active = 1;
	memset(&rig.lane->seen, 0, sizeof(rig.lane->seen));
	is_queued(0);
}

/* Longer or shorter than any report, or truncated. */
static void test_lengths(void **state)
{
	(void)state;
	lane(&shape_plain);
	for (uint32_t bytes = 0; bytes <= 512; bytes++) {
		if (bytes % 8 == 0 && bytes >= WIRE_CONTROL && bytes <= XDP_REPORT_MAX)
			continue;
		packet_report(&packet, 0);
		frame_make(&frame, &shape_plain, 0, &packet, bytes);
		memset(frame.data + frame.bytes, 0, 64);
		passes();
		frame.bytes += 64;
		passes();
	}
	make_report(&shape_plain, 0);
	while (frame.bytes-- > 14)
		passes();
}

/* The daemon detects a wrong checksum, as with its socket. */
static void test_wrong_checksum_is_queued(void **state)
{
	(void)state;
	lane(&shape_six);
	make_report(&shape_six, 4);
	frame.data[frame.bytes - 1] ^= 1;
	is_queued(4);
}

/* ---- full queue ---- */

/* Reports are numbered. */
static unsigned next_sent, next_read;

static uint32_t send_next(void)
{
	const struct wire_report report = { .stamp = next_sent };

	packet_report(&packet, 0);
	memcpy((uint8_t *)&packet + WIRE_CONTROL, &report, sizeof(report));
	frame_make(&frame, &shape_plain, 0, &packet, XDP_REPORT_MAX);
	return rig_run(&rig, &frame, &out, 0);
}

static void read_next(void *context, const void *queued, uint32_t bytes,
                      const struct udp_address *from)
{
	const struct wire_report *report = (const void *)((const struct wire_control *)queued + 1);

	(void)context;
	(void)from;
	assert_int_equal(bytes, XDP_REPORT_MAX);
	assert_int_equal(report->stamp, next_read);
	next_read++;
}

static unsigned read_most(unsigned most)
{
	return xdp_queue_read(rig.plane, RIG_LANE, most, read_next, NULL);
}

/* Nothing is lost, and the order is kept. */
static void test_full(void **state)
{
	unsigned room = 0;
	uint64_t before;

	(void)state;
	lane(&shape_plain);
	before = rig.counts.queued;
	for (unsigned turn = 0; turn < 50; turn++) {
		while (send_next() == XDP_DROP)
			next_sent++;
		assert_memory_equal(out.data, frame.data, frame.bytes);
		assert_int_equal(rig.lane->seen[0].ifindex, RIG_LO);
		rig.counts.full++;
		assert_int_equal(send_next(), XDP_PASS); /* full again */
		rig.counts.full++;
		/* It wraps round, and the last place is not always whole. */
		room = turn ? room : next_sent;
		assert_in_range(room, 4, 1000);
		assert_in_range(next_sent - next_read, room - 1, room + 1);
		assert_int_equal(read_most(3), 3);
		assert_true(is_readable());
		assert_int_equal(send_next(), XDP_DROP);
		next_sent++;
		while (read_most(1000))
			continue;
		assert_int_equal(next_read, next_sent);
		rig.counts.queued = before + next_sent;
		rig_compare(&rig);
	}
}

/* ---- a sleeping reader ---- */

#define REPORTS (test_is_short() ? 2000u : 20000u)
#define ASLEEP_MS 20000 /* longer than any sleep if every packet wakes the reader */

/* The kernel's side, on a core of its own. A packet that finds the queue full is sent again. */
static void *send_reports(void *unused)
{
	static struct packet report;
	static struct frame sent;

	packet_report(&report, 0);
	frame_make(&sent, &shape_plain, 0, &report, XDP_REPORT_MAX);
	for (unsigned left = REPORTS; left;) {
		struct xdp_run run = { .in = sent.data, .bytes = sent.bytes };

		demand(xdp_run(rig.plane, &run) == TRIB_OK);
		left -= run.action == XDP_DROP;
		if (left % 64 == 0) /* lets the reader fall asleep, usually */
			sched_yield();
	}
	return unused;
}

static void read_any(void *context, const void *queued, uint32_t bytes,
                     const struct udp_address *from)
{
	(void)queued;
	(void)from;
	demand(bytes == XDP_REPORT_MAX);
	++*(unsigned *)context;
}

/* No wake-up is lost, in any interleaving of reader and writer. */
static void test_sleeper(void **state)
{
	unsigned n = 0, last;
	pthread_t sender;

	(void)state;
	lane(&shape_plain);
	assert_int_equal(pthread_create(&sender, NULL, send_reports, NULL), 0);
	while (n < REPORTS) {
		struct pollfd wait = { .fd = xdp_queue_fd(rig.plane, RIG_LANE), .events = POLLIN };

		assert_int_equal(poll(&wait, 1, ASLEEP_MS), 1);
		do {
			last = n;
			xdp_queue_read(rig.plane, RIG_LANE, 3, read_any, &n);
		} while (n != last);
	}
	pthread_join(sender, NULL);
	assert_int_equal(n, REPORTS);
}

/* ---- DATA ---- */

static void test_data(void **state)
{
	struct dense_cell *cell;

	(void)state;
	for (unsigned i = 0; i < SHAPES; i++) {
		lane(&shapes[i]);
		cell = dense_cell(&rig.pool, 0);
		frame_data(&frame, &shapes[i], &DATA(0, 0, .bytes = 512));
		/* Another core holds the cell. */
		cell->lock = 1;
		assert_int_equal(rig_run(&rig, &frame, &out, 0), XDP_DROP);
		assert_true(queue_check(&rig, &frame, 0));
		cell->lock = 0;
		rig_copy(&rig);
		assert_int_equal(rig.counts.busy, i + 1);
		assert_int_equal(rig_agree(&rig, &frame, NULL), DENSE_ADDED);
		assert_false(rig.aside);
		/* The children disagree. */
		for (uint32_t bytes = 0; bytes < 512; bytes += 8) {
			frame_data(&frame, &shapes[i], &DATA(0, 1, .bytes = bytes));
			assert_int_equal(rig_agree(&rig, &frame, NULL), TAKEN_NOT);
			assert_true(rig.aside);
		}
		/* A wrong packet may be several joined ones: the network stack can tell. */
		frame_data(&frame, &shapes[i], &DATA(0, 1, .bytes = 512));
		frame.data[frame.bytes - 1] ^= 1;
		assert_int_equal(rig_agree(&rig, &frame, NULL), TAKEN_CORRUPTED);
	}
}

/* Sums that the daemon has to send up, and fragments for which it may have room. */
static void test_data_with_parent(void **state)
{
	(void)state;
	lane(&shape_plain);
	rig_parent(&rig, &shape_plain);
	rig.lane->parent.allowed = rig.twin_parent.allowed = 0;
	for (uint8_t child = 0; child < CHILDREN; child++) {
		assert_false(rig.aside && child);
		rig_give(&rig, DATA(0, child));
	}
	assert_true(rig.aside);
	assert_int_equal(rig.counts.left, 1);
	assert_int_equal(rig_give(&rig, DATA(8, 0)), TAKEN_NOT);
	assert_true(rig.aside);
}

/* ---- permission to use the queue ---- */

/* The first report arrives through the socket, and shows the route that is queued from then on. */
static void test_way_is_learned(void **state)
{
	uint8_t mapped[16] = { [10] = 0xff, [11] = 0xff };
	struct udp_address from;
	size_t size;

	(void)state;
	for (unsigned i = 0; i < SHAPES; i++) {
		rig_lane(&rig, CHILDREN, 8, 512);
		child_address(1, shapes[i].six, &from);
		if (!shapes[i].six) {
			memcpy(mapped + 12, udp_raw(&from, &size), 4);
			udp_from_raw(mapped, 16, udp_port(&from), &from);
		}
		make_report(&shapes[i], 1);
		passes();
		xdp_handle_route(rig.handle, 1, &from);
		rig.ways[1] = &shapes[i];
		memset(&rig.lane->seen, 0, sizeof(rig.lane->seen));
		is_queued(1);
		make_report(&shapes[i], 2);
		passes();
	}
}

/* A frame does not tell which interface a socket would answer through. */
static void test_scopes_pass(void **state)
{
	struct udp_address from;

	(void)state;
	rig_lane(&rig, CHILDREN, 8, 512);
	child_address(1, true, &from);
	((struct sockaddr_in6 *)(void *)&from.storage)->sin6_scope_id = 7;
	make_report(&shape_six, 1);
	passes();
	xdp_handle_route(rig.handle, 1, &from);
	assert_int_equal(rig.lane->routes[1].ifindex, RIG_LO);
	passes();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reports),
		cmocka_unit_test(test_trailing_bytes),
		cmocka_unit_test(test_wakes),
		cmocka_unit_test(test_other_ways_pass),
		cmocka_unit_test(test_strangers_pass),
		cmocka_unit_test(test_lengths),
		cmocka_unit_test(test_wrong_checksum_is_queued),
		cmocka_unit_test(test_full),
		cmocka_unit_test(test_sleeper),
		cmocka_unit_test(test_data),
		cmocka_unit_test(test_data_with_parent),
		cmocka_unit_test(test_way_is_learned),
		cmocka_unit_test(test_scopes_pass),
	};
	int failed;

	rig_load(&rig, 512);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	rig_unload(&rig);
	return failed;
}
