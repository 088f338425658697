/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The packet that completes a cell becomes the result: addressed to its receiver, on any route. No
 * network; test_xdp_fan.c tests several copies.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/clock.h"
#include "wire/parse.h"
#include "xdp_rig.h"

#include <arpa/inet.h>
#include <string.h>

#define PAYLOAD 512u  /* small, so that the program loads faster */
#define ELSEWHERE 77u /* an interface that does not exist: nothing is really sent */

static struct rig rig;
static struct frame frame, out;
static struct packet packet;

/*
 * Completes a fragment with all children, the last one in a frame of this shape. Returns the
 * verdict.
 */
static uint32_t complete(struct rig_data data, const struct shape *shape)
{
	uint32_t action;

	for (data.child = 0; data.child + 1u < rig.children; data.child++) {
		data.seed++;
		rig_give(&rig, data);
	}
	data.seed++;
	frame_data(&frame, shape, &data);
	action = rig_run(&rig, &frame, &out, 0);
	assert_int_equal(twin_take(&rig, &frame), DENSE_COMPLETE);
	rig_compare(&rig);
	return action;
}

static void start(uint32_t children)
{
	rig_lane(&rig, children, 8, PAYLOAD);
	rig_routes(&rig, &shape_plain);
}

/* From every frame shape to every other: headers grow and shrink. */
static void test_every_shape_into_every_shape(void **state)
{
	static const uint32_t lengths[] = { 0, 8, 248, PAYLOAD };
	uint64_t position = 0;

	(void)state;
	start(2);
	for (unsigned in = 0; in < SHAPES; in += test_is_short() ? 4 : 1)
		for (unsigned way = 0; way < SHAPES; way++)
			for (unsigned i = 0; i < countof(lengths); i++) {
				struct rig_data data =
					DATA(position, 0, .to = 1, .bytes = lengths[i],
				             .ack = (uint32_t)position);

				route_make(&rig.lane->routes[1], &shapes[way], 1, RIG_LO);
				assert_int_equal(complete(data, &shapes[in]), XDP_TX);
				result_check(&rig, &out, &shapes[way], 1, position++);
			}
}

static void test_to_each_child(void **state)
{
	(void)state;
	start(64);
	for (uint8_t child = 0; child < 64; child += 7) {
		rig_clear(&rig);
		assert_int_equal(complete(DATA(3, 0, .to = child), &shape_plain), XDP_TX);
		result_check(&rig, &out, &shape_plain, child, 3);
	}
	/* A rank behind another child, an aggregator. */
	rig_clear(&rig);
	rig.dense->by_rank[40] = rig.twin.by_rank[40] = child_bit(7);
	assert_int_equal(complete(DATA(3, 0, .to = 40), &shape_plain), XDP_TX);
	result_check(&rig, &out, &shape_plain, 7, 3);
}

/* The result has the cell's fields, not those of the last packet. */
static void test_header_is_the_cells(void **state)
{
	const uint8_t flags = WIRE_AVERAGE | 3 << WIRE_PADDING_SHIFT | 5 << WIRE_TYPE_SHIFT;
	struct rig_data data = DATA(0x700000001ull, 2, .flags = flags | WIRE_RESENT, .to = 0,
	                            .op = WIRE_ADD32, .scale = 300, .ack = 1);

	(void)state;
	start(3);
	rig.dense->low = 0x700000000ull;
	for (unsigned i = 0; i < 3; i++)
		rig.dense->ack[i] = 0x700000000ull + i;
	rig_copy(&rig);
	assert_int_equal(complete(data, &shape_plain), XDP_TX);
	result_check(&rig, &out, &shape_plain, 0, data.position);
	memcpy(&packet, out.data + out.at, sizeof(packet.header));
	assert_int_equal(packet.header.flags, flags);
	assert_int_equal(packet.header.scale, 300);
	assert_int_equal(packet.header.ack, 1);
}

static void test_to_all_by_one_frame(void **state)
{
	(void)state;
	start(3);
	rig.lane->entries = 1;
	for (uint8_t child = 0; child < 3; child++) {
		rig_clear(&rig);
		rig.lane->entry[0] = child;
		assert_int_equal(complete(DATA(0, 0), &shape_plain), XDP_TX);
		result_check(&rig, &out, &shape_plain, child, 0);
	}
}

static void test_other_interface(void **state)
{
	(void)state;
	start(2);
	route_make(&rig.lane->routes[0], &shapes[1], 0, ELSEWHERE);
	assert_int_equal(complete(DATA(0, 0, .to = 0), &shape_plain), XDP_REDIRECT);
	result_check(&rig, &out, &shapes[1], 0, 0);
	rig_clear(&rig);
	rig.lane->entries = 1;
	rig.lane->entry[0] = 0;
	assert_int_equal(complete(DATA(0, 0), &shape_plain), XDP_REDIRECT);
	result_check(&rig, &out, &shapes[1], 0, 0);
}

/* The sum is complete all the same, and the daemon sends it on request. */
static void test_no_way(void **state)
{
	struct xdp_route *route;

	(void)state;
	start(2);
	rig.lane->routes[1].ifindex = 0;
	assert_int_equal(complete(DATA(0, 0, .to = 1), &shape_plain), XDP_DROP);
	assert_int_equal(complete(DATA(1, 0, .to = 5), &shape_plain), XDP_DROP); /* not a member */
	assert_int_equal(complete(DATA(2, 0), &shape_plain), XDP_DROP);          /* no entries */
	rig.lane->entries = 1;
	rig.lane->entry[0] = 1;
	assert_int_equal(complete(DATA(3, 0), &shape_plain), XDP_DROP);
	rig.lane->entry[0] = XDP_ROUTES;
	assert_int_equal(complete(DATA(4, 0), &shape_plain), XDP_DROP);
	/* A header that the program does not know. */
	rig.lane->entry[0] = 0;
	route = &rig.lane->routes[0];
	route->l2 = 15;
	assert_int_equal(complete(DATA(5, 0), &shape_plain), XDP_DROP);
	route->l2 = 14;
	route->l3 = 24;
	assert_int_equal(complete(DATA(6, 0), &shape_plain), XDP_DROP);
	route->l2 = route->l3 = 255; /* more than the headroom of a frame */
	assert_int_equal(complete(DATA(7, 0), &shape_plain), XDP_DROP);
	for (unsigned i = 0; i < 8; i++)
		assert_true(dense_cell(&rig.pool, i)->complete);
}

/* One's complement sums whose carry causes another carry. */
static void test_ip_checksum_carries(void **state)
{
	const uint32_t length = htons(20 + 8 + WIRE_HEADER + 64);

	(void)state;
	start(2);
	for (uint32_t i = 0; i < 8; i++) {
		uint32_t sum = 0x2fffau + i;
		uint16_t check;

		rig_clear(&rig);
		rig.lane->routes[1].ip_sum = sum - length;
		assert_int_equal(complete(DATA(0, 0, .to = 1), &shape_plain), XDP_TX);
		while (sum >> 16)
			sum = (sum & 0xffff) + (sum >> 16);
		memcpy(&check, out.data + 14 + 10, sizeof(check));
		assert_int_equal(check, (uint16_t)~sum);
	}
}

/* The same cells many times. Nothing leaves twice. */
static void test_repeatedly(void **state)
{
	static struct frame last;

	(void)state;
	start(3);
	rig.lane->entries = 1;
	for (uint64_t at = 0; at < (test_is_short() ? 200 : 1000); at++) {
		struct rig_data data =
			DATA(at, 0, .ack = (uint32_t)at, .seed = at * 99,
		             .op = (uint8_t)(at % WIRE_OPS_END),
		             .bytes = (uint32_t)(at % (PAYLOAD / 8 + 1) * 8), .scale = at & 3);

		rig.lane->entry[0] = at % 3;
		assert_int_equal(complete(data, &shapes[at % SHAPES]), XDP_TX);
		result_check(&rig, &out, &shape_plain, at % 3, at);
		last = frame;
		assert_int_equal(rig_agree(&rig, &last, NULL), DENSE_FINISHED);
	}
	assert_int_equal(rig.counts.results, rig.counts.verdicts[DENSE_COMPLETE]);
}

/* The send time is on the clock that the daemon reads. */
static void test_sent_at(void **state)
{
	uint32_t before;

	(void)state;
	start(1);
	before = (uint32_t)(clock_now() / 1000);
	complete(DATA(0, 0), &shape_plain);
	assert_true(dense_cell(&rig.pool, 0)->sent_at - before < 1000000);
}

/* ---- routes learned from reports ---- */

static void report_from(uint8_t child, const struct shape *shape, uint8_t whose)
{
	frame_make(&frame, shape, child, &packet, packet_report(&packet, whose));
	assert_int_equal(rig_run(&rig, &frame, &out, 0), XDP_PASS);
	assert_int_equal(out.bytes, frame.bytes);
	assert_memory_equal(out.data, frame.data, frame.bytes);
}

/* Compares the parts that are used. */
static void route_is(unsigned child, const struct shape *shape, uint32_t ifindex)
{
	const struct xdp_route *route = &rig.lane->routes[child];
	struct xdp_route wanted;

	route_make(&wanted, shape, child, ifindex);
	assert_int_equal(route->ifindex, ifindex);
	assert_int_equal(route->l2, wanted.l2);
	assert_int_equal(route->l3, wanted.l3);
	assert_memory_equal(route->head, wanted.head, wanted.l2 + wanted.l3 + 8u);
	assert_int_equal(route->ip_sum % 0xffff, wanted.ip_sum % 0xffff);
}

static void test_way_from_report(void **state)
{
	struct udp_address from;

	(void)state;
	for (unsigned i = 0; i < SHAPES; i++) {
		rig_lane(&rig, 2, 8, PAYLOAD);
		child_address(1, shapes[i].six, &from);
		report_from(1, &shapes[i], 1);
		assert_int_equal(rig.lane->routes[1].ifindex, 0);
		xdp_handle_route(rig.handle, 1, &from);
		route_is(1, &shapes[i], RIG_LO);
		assert_int_equal(rig.lane->entries, 1);
		assert_int_equal(complete(DATA(0, 0), &shape_plain), XDP_TX);
		result_check(&rig, &out, &shapes[i], 1, 0);
		assert_int_equal(complete(DATA(1, 0, .to = 1), &shapes[9 - i]), XDP_TX);
		result_check(&rig, &out, &shapes[i], 1, 1);
	}
}

/* A socket for both families reports IPv4 addresses as IPv6. */
static void test_way_of_mapped_address(void **state)
{
	struct udp_address four, six = { .length = sizeof(struct sockaddr_in6) };
	struct sockaddr_in6 *mapped = (void *)&six.storage;

	(void)state;
	rig_lane(&rig, 2, 8, PAYLOAD);
	child_address(1, false, &four);
	mapped->sin6_family = AF_INET6;
	mapped->sin6_port = ((struct sockaddr_in *)(void *)&four.storage)->sin_port;
	inet_pton(AF_INET6, "::ffff:10.84.0.2", &mapped->sin6_addr);
	report_from(1, &shape_plain, 1);
	xdp_handle_route(rig.handle, 1, &six);
	route_is(1, &shape_plain, RIG_LO);
}

/* The frame seen is from another address than the accepted report: no route. */
static void test_way_of_another(void **state)
{
	struct udp_address from;

	(void)state;
	rig_lane(&rig, 3, 8, PAYLOAD);
	report_from(0, &shape_plain, 1);
	child_address(1, false, &from);
	xdp_handle_route(rig.handle, 1, &from);
	assert_int_equal(rig.lane->routes[1].ifindex, 0);
	child_address(1, true, &from);
	xdp_handle_route(rig.handle, 1, &from);
	assert_int_equal(rig.lane->routes[1].ifindex, 0);
	/* Nothing was seen at all; then a child that does not exist. */
	child_address(2, false, &from);
	xdp_handle_route(rig.handle, 2, &from);
	xdp_handle_route(rig.handle, 3, &from);
	assert_int_equal(rig.lane->entries, 0);
	/* The child has another address now. */
	report_from(1, &shape_plain, 1);
	child_address(1, false, &from);
	xdp_handle_route(rig.handle, 1, &from);
	route_is(1, &shape_plain, RIG_LO);
	report_from(1, &shapes[6], 1);
	child_address(1, true, &from);
	xdp_handle_route(rig.handle, 1, &from);
	route_is(1, &shapes[6], RIG_LO);
}

static void all_report(unsigned children, const struct shape *shape)
{
	struct udp_address from;

	for (uint8_t child = 0; child < children; child++) {
		child_address(child, shape->six, &from);
		report_from(child, shape, child);
		xdp_handle_route(rig.handle, child, &from);
	}
}

/* A different report from the same address as the last one. */
static void report_again(uint8_t child, const struct shape *shape)
{
	struct udp_address from;
	uint32_t bytes = packet_report(&packet, child);

	packet.header.ack += 7;
	packet.header.check ^= 0x55aa55aa; /* the daemon must look at it */
	frame_make(&frame, shape, child, &packet, bytes);
	rig.lane->routes[child].queued = 0; /* it passes, as with a full queue */
	assert_int_equal(rig_run(&rig, &frame, &out, 0), XDP_PASS);
	child_address(child, shape->six, &from);
	xdp_handle_route(rig.handle, child, &from);
}

/* Results that complete while the fan changes are lost, so the fan is not changed without need. */
static void test_fan_is_left_alone(void **state)
{
	const uint8_t mark = 2; /* true, but not the value that an update writes */
	struct xdp_route before[3];
	struct udp_address group;

	(void)state;
	assert_int_equal(udp_resolve("239.212.3.7:9000", 0, &group), TRIB_OK);
	for (unsigned i = 0; i < SHAPES; i++) {
		rig_lane(&rig, 3, 8, PAYLOAD);
		all_report(3, &shapes[i]);
		memcpy(before, rig.lane->routes, sizeof(before));
		assert_int_equal(rig.lane->shared_ports, 1);
		rig.lane->shared_ports = mark;
		for (uint8_t child = 0; child < 3; child++)
			report_again(child, &shapes[i]);
		assert_memory_equal(rig.lane->routes, before, sizeof(before));
		assert_int_equal(rig.lane->shared_ports, mark);
		/* If a single child hears multicast, it gets its own frame as before. */
		xdp_handle_group(rig.handle, 4, &group);
		assert_int_equal(rig.lane->shared_ports, mark);
		assert_int_equal(rig.lane->entries, 3);
	}
}

static void test_entries(void **state)
{
	(void)state;
	rig_lane(&rig, 3, 8, PAYLOAD);
	all_report(3, &shape_plain);
	assert_int_equal(rig.lane->entries, 3);
	assert_true(rig.lane->shared_ports);
	assert_int_equal(complete(DATA(0, 0), &shape_plain), XDP_REDIRECT);
	assert_int_equal(complete(DATA(1, 0, .to = 2), &shape_plain), XDP_TX);
	result_check(&rig, &out, &shape_plain, 2, 1);
}

/* One frame to the multicast group: its MAC, address and port. The rest is as for a child. */
static void group_check(const struct frame *in, const struct shape *shape)
{
	static const uint8_t mac[] = { 0x01, 0x00, 0x5e, 0x54, 0x03, 0x07 };
	static const uint8_t address[] = { 239, 212, 3, 7 };
	static struct frame one;
	struct udp_address child;
	uint32_t l2 = frame.l2;

	/* With a child's addresses in place, it must equal the frame for that child. */
	one = *in;
	l2 = shape->tags[0] ? 18 : 14;
	assert_memory_equal(one.data, mac, 6);
	assert_memory_equal(one.data + l2 + 16, address, 4);
	assert_int_equal(one.data[l2 + 22] << 8 | one.data[l2 + 23], 9000);
	child_address(0, false, &child);
	memcpy(one.data, (uint8_t[]){ 2, 0, 0, 0, 1, 0 }, 6);
	memcpy(one.data + l2 + 16, &((struct sockaddr_in *)(void *)&child.storage)->sin_addr, 4);
	memcpy(one.data + l2 + 22, &((struct sockaddr_in *)(void *)&child.storage)->sin_port, 2);
	uint32_t sum = 0;
	for (unsigned i = 0; i < 20; i += 2)
		sum += (uint32_t)in->data[l2 + i] << 8 | in->data[l2 + i + 1];
	assert_int_equal(sum % 0xffff, 0);
	one.l2 = l2;
	one.l3 = 20;
	frame_fix(&one);
	result_check(&rig, &one, shape, 0, 0);
}

static void test_group(void **state)
{
	struct udp_address group;

	(void)state;
	assert_int_equal(udp_resolve("239.212.3.7:9000", 0, &group), TRIB_OK);
	for (unsigned i = 0; i < 2; i++) {
		rig_lane(&rig, 3, 8, PAYLOAD);
		all_report(3, &shapes[i]);
		xdp_handle_group(rig.handle, 7, &group);
		assert_int_equal(rig.lane->entries, 1);
		assert_int_equal(rig.lane->entry[0], XDP_GROUP);
		assert_int_equal(complete(DATA(0, 0), &shapes[5]), XDP_TX);
		group_check(&out, &shapes[i]);
	}
	/* One child does not hear it: a frame for the multicast group, and one for that child. */
	rig_lane(&rig, 3, 8, PAYLOAD);
	xdp_handle_group(rig.handle, 5, &group);
	all_report(3, &shape_plain);
	assert_int_equal(rig.lane->entries, 2);
	assert_int_equal(rig.lane->entry[0], XDP_GROUP);
	assert_int_equal(rig.lane->entry[1], 1);
	assert_int_equal(complete(DATA(0, 0), &shape_plain), XDP_REDIRECT);
	/* A multicast group of one child is not used, nor an IPv6 one. */
	rig_lane(&rig, 3, 8, PAYLOAD);
	xdp_handle_group(rig.handle, 4, &group);
	all_report(3, &shape_plain);
	assert_int_equal(rig.lane->entries, 3);
	rig_lane(&rig, 3, 8, PAYLOAD);
	xdp_handle_group(rig.handle, 7, &group);
	all_report(3, &shape_six);
	assert_int_equal(rig.lane->entries, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_shape_into_every_shape),
		cmocka_unit_test(test_to_each_child),
		cmocka_unit_test(test_header_is_the_cells),
		cmocka_unit_test(test_to_all_by_one_frame),
		cmocka_unit_test(test_other_interface),
		cmocka_unit_test(test_no_way),
		cmocka_unit_test(test_ip_checksum_carries),
		cmocka_unit_test(test_repeatedly),
		cmocka_unit_test(test_sent_at),
		cmocka_unit_test(test_way_from_report),
		cmocka_unit_test(test_way_of_mapped_address),
		cmocka_unit_test(test_way_of_another),
		cmocka_unit_test(test_fan_is_left_alone),
		cmocka_unit_test(test_entries),
		cmocka_unit_test(test_group),
	};
	int failed;

	rig_load(&rig, PAYLOAD);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	rig_unload(&rig);
	return failed;
}
