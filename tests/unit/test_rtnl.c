/* SPDX-License-Identifier: Apache-2.0 */
/* Answers of the kernel about routes and queues: found, not found, refused, truncated. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "path/rtnl.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>

static struct {
	uint8_t bytes[2048];
	size_t n, message;
} answer;

static void put_raw(const void *data, size_t bytes)
{
	assert_true(answer.n + NLMSG_ALIGN(bytes) <= sizeof(answer.bytes));
	memset(answer.bytes + answer.n, 0, NLMSG_ALIGN(bytes));
	memcpy(answer.bytes + answer.n, data, bytes);
	answer.n += NLMSG_ALIGN(bytes);
}

static void begin(uint16_t type, const void *fixed, size_t bytes)
{
	struct nlmsghdr head = { .nlmsg_type = type };

	answer.message = answer.n;
	put_raw(&head, sizeof(head));
	put_raw(fixed, bytes);
}

static void put(uint16_t type, const void *data, size_t bytes)
{
	struct rtattr attr = { .rta_type = type, .rta_len = (uint16_t)RTA_LENGTH(bytes) };

	put_raw(&attr, sizeof(attr));
	put_raw(data, bytes);
}

static void end(void)
{
	uint32_t bytes = (uint32_t)(answer.n - answer.message);

	memcpy(answer.bytes + answer.message, &bytes, sizeof(bytes));
}

static void put_qdisc(int index, uint32_t parent, uint32_t handle, const char *kind, uint32_t limit)
{
	struct tcmsg about = { .tcm_ifindex = index, .tcm_parent = parent, .tcm_handle = handle };
	struct {
		struct rtattr head;
		uint32_t value;
	} option = { { sizeof(option), TCA_FQ_FLOW_PLIMIT }, limit };

	begin(RTM_NEWQDISC, &about, sizeof(about));
	put(TCA_KIND, kind, strlen(kind) + 1);
	if (limit)
		put(TCA_OPTIONS, &option, sizeof(option));
	end();
}

static void put_end(uint16_t type, int32_t error)
{
	begin(type, &error, sizeof(error));
	end();
}

/* In memory of exactly that size, so that a sanitizer detects reads beyond the end. */
static int take(struct rtnl_qdisc *qdisc, int index, size_t bytes)
{
	uint8_t *copy = malloc(bytes ? bytes : 1);
	int result;

	assert_non_null(copy);
	memcpy(copy, answer.bytes, bytes);
	result = rtnl_take_qdiscs(qdisc, index, copy, bytes);
	free(copy);
	return result;
}

static void test_one_queue(void **state)
{
	struct rtnl_qdisc qdisc = { 0 };

	(void)state;
	answer.n = 0;
	put_qdisc(1, TC_H_ROOT, 0, "noqueue", 0);
	put_qdisc(7, TC_H_ROOT, 0x80010000, "fq", 100);
	put_qdisc(7, TC_H_INGRESS, 0xffff0000, "clsact", 0);
	assert_int_equal(take(&qdisc, 7, answer.n), 1); /* it may come in several datagrams */
	answer.n = 0;
	put_end(NLMSG_DONE, 0);
	assert_int_equal(take(&qdisc, 7, answer.n), 0);
	assert_true(rtnl_is_fair(&qdisc));
	assert_string_equal(qdisc.kind, "fq");
	assert_int_equal(qdisc.flow_limit, 100);
}

static void test_other_queues(void **state)
{
	struct rtnl_qdisc qdisc = { 0 };

	(void)state;
	answer.n = 0;
	put_qdisc(7, TC_H_ROOT, 0x80010000, "fq_codel", 0);
	put_qdisc(8, TC_H_ROOT, 0x80020000, "fq", 100);
	put_qdisc(9, TC_H_ROOT, 0x10000, "tbf", 0); /* packets that leave fq wait again there */
	put_qdisc(9, 0x10001, 0x20000, "fq", 100);
	assert_int_equal(take(&qdisc, 7, answer.n), 1);
	assert_false(rtnl_is_fair(&qdisc));
	assert_string_equal(qdisc.kind, "fq_codel");
	qdisc = (struct rtnl_qdisc){ 0 };
	assert_int_equal(take(&qdisc, 9, answer.n), 1);
	assert_false(rtnl_is_fair(&qdisc));
	qdisc = (struct rtnl_qdisc){ 0 };
	assert_int_equal(take(&qdisc, 10, answer.n), 1); /* an unknown kind of queue */
	assert_false(rtnl_is_fair(&qdisc));
	assert_string_equal(qdisc.kind, "");
}

/* A device with several queues has a qdisc for each. Default ones have no handle. */
static void test_many_queues(void **state)
{
	struct rtnl_qdisc qdisc = { 0 };

	(void)state;
	answer.n = 0;
	put_qdisc(3, TC_H_ROOT, 0, "mq", 0);
	for (uint32_t i = 1; i <= 4; i++)
		put_qdisc(3, i, 0, "fq", 40 + i);
	put_qdisc(4, 1, 0, "pfifo_fast", 0); /* another device */
	assert_int_equal(take(&qdisc, 3, answer.n), 1);
	assert_true(rtnl_is_fair(&qdisc));
	assert_int_equal(qdisc.leaves, 4);
	assert_int_equal(qdisc.flow_limit, 41);
	put_qdisc(3, 5, 0, "pfifo_fast", 0); /* an unlisted one, which may be the one in use */
	qdisc = (struct rtnl_qdisc){ 0 };
	assert_int_equal(take(&qdisc, 3, answer.n), 1);
	assert_false(rtnl_is_fair(&qdisc));
	answer.n = 0;
	put_qdisc(3, TC_H_ROOT, 0, "mq", 0); /* no child is no proof */
	qdisc = (struct rtnl_qdisc){ 0 };
	assert_int_equal(take(&qdisc, 3, answer.n), 1);
	assert_false(rtnl_is_fair(&qdisc));
}

static void test_refused_and_cut(void **state)
{
	struct rtnl_qdisc qdisc = { 0 };
	size_t whole;

	(void)state;
	answer.n = 0;
	put_end(NLMSG_ERROR, -EPERM);
	assert_int_equal(take(&qdisc, 7, answer.n), -EPERM);
	answer.n = 0;
	put_end(NLMSG_DONE, 12345);
	assert_int_equal(take(&qdisc, 7, answer.n), -EPROTO);
	answer.n = 0;
	put_qdisc(7, TC_H_ROOT, 0x80010000, "a-name-that-is-longer-than-any", 0);
	assert_int_equal(take(&qdisc, 7, answer.n), 1);
	assert_int_equal(strlen(qdisc.kind), RTNL_KIND - 1);
	answer.n = 0;
	put_qdisc(7, TC_H_ROOT, 0x80010000, "fq", 100);
	whole = answer.n;
	for (size_t bytes = 1; bytes < whole; bytes++)
		assert_int_equal(take(&qdisc, 7, bytes), -EPROTO);
}

/* The interface or -errno. */
static int read_route(size_t bytes, struct rtnl_route *route)
{
	uint8_t *copy = malloc(bytes ? bytes : 1);
	int result;

	assert_non_null(copy);
	memcpy(copy, answer.bytes, bytes);
	result = rtnl_read_route(copy, bytes, route);
	free(copy);
	return result ? result : (int)route->interface;
}

static void test_route(void **state)
{
	struct rtmsg route = { .rtm_family = 2 };
	uint32_t address = 0x0a000001, index = 42;
	uint8_t six[18] = { 10 };
	struct rtnl_route found;

	(void)state;
	answer.n = 0;
	begin(RTM_NEWROUTE, &route, sizeof(route));
	put(RTA_DST, &address, sizeof(address));
	put(RTA_OIF, &index, sizeof(index));
	end();
	assert_int_equal(read_route(answer.n, &found), 42);
	assert_int_equal(found.gateway_size, 0);
	for (size_t bytes = 0; bytes < answer.n; bytes++)
		assert_int_equal(read_route(bytes, &found), -EPROTO);
	answer.n = 0;
	put_end(NLMSG_ERROR, -ENETUNREACH);
	assert_int_equal(read_route(answer.n, &found), -ENETUNREACH);
	answer.n = 0;
	begin(RTM_NEWROUTE, &route, sizeof(route)); /* several paths, none with an interface */
	end();
	assert_int_equal(read_route(answer.n, &found), -EPROTO);
	answer.n = 0;
	begin(RTM_NEWROUTE, &route, sizeof(route));
	put(RTA_GATEWAY, &address, sizeof(address));
	put(RTA_OIF, &index, sizeof(index));
	end();
	assert_int_equal(read_route(answer.n, &found), 42);
	assert_int_equal(found.gateway_size, sizeof(address));
	assert_memory_equal(found.gateway, &address, sizeof(address));
	answer.n = 0;
	begin(RTM_NEWROUTE, &route, sizeof(route)); /* a router with an address of another family */
	put(RTA_OIF, &index, sizeof(index));
	put(RTA_VIA, six, sizeof(six));
	end();
	assert_int_equal(read_route(answer.n, &found), 42);
	assert_int_equal(found.gateway_size, 16);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_queue),   cmocka_unit_test(test_other_queues),
		cmocka_unit_test(test_many_queues), cmocka_unit_test(test_refused_and_cut),
		cmocka_unit_test(test_route),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
