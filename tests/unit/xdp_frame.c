/* SPDX-License-Identifier: Apache-2.0 */
/* Frames as children send them, the routes back, and the expected results. */
#include "xdp_rig.h"

#include "wire/parse.h"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <string.h>

#define TAG_8021Q 0x8100
#define TAG_8021AD 0x88a8

const struct shape shape_plain = { { 0 }, false };
const struct shape shape_six = { { 0 }, true };
const struct shape shapes[SHAPES] = {
	{ { 0 }, false },
	{ { TAG_8021Q }, false },
	{ { TAG_8021AD }, false },
	{ { TAG_8021AD, TAG_8021Q }, false },
	{ { TAG_8021Q, TAG_8021Q }, false },
	{ { 0 }, true },
	{ { TAG_8021Q }, true },
	{ { TAG_8021AD }, true },
	{ { TAG_8021AD, TAG_8021Q }, true },
	{ { TAG_8021Q, TAG_8021Q }, true },
};

/* ---- packets ---- */

struct wire_unsent rig_unsent(uint64_t position)
{
	return (struct wire_unsent){ .proof = wire_proof(RIG_COOKIE, RIG_JOB, RIG_EPOCH),
		                     .pos = wire_pos(RIG_LANE, position) };
}

struct wire_unsent rig_parent_unsent(uint64_t position)
{
	return (struct wire_unsent){
		.proof = wire_proof(RIG_PARENT_COOKIE, RIG_JOB, RIG_PARENT_EPOCH),
		.pos = wire_pos(RIG_LANE, position),
	};
}

void rig_seal(const struct rig *rig, struct packet *packet, uint32_t bytes)
{
	uint64_t position = dense_position(&rig->twin, &packet->header);
	struct wire_unsent unsent = packet->header.type == WIRE_RESULT ? rig_parent_unsent(position)
	                                                               : rig_unsent(position);

	if (wire_is_fragment(&packet->header))
		wire_seal_fragment(packet, bytes, &unsent);
	else if (bytes >= WIRE_CONTROL)
		wire_seal(packet, bytes);
}

/* A report, or a status of the parent's communicator. */
static uint32_t packet_control(struct packet *packet, uint8_t type, uint8_t child,
                               const void *payload, uint32_t bytes)
{
	bool is_parents = type == WIRE_STATUS;
	const struct wire_control control = {
		.type = type,
		.child = child,
		.job = RIG_JOB,
		.comm = is_parents ? RIG_PARENT_COMM : RIG_COMM,
		.epoch = is_parents ? RIG_PARENT_EPOCH : RIG_EPOCH,
		.cookie = is_parents ? RIG_PARENT_COOKIE : RIG_COOKIE,
		.pos = wire_pos(RIG_LANE, 0),
	};

	memcpy(packet, &control, sizeof(control));
	memcpy((uint8_t *)packet + sizeof(control), payload, bytes);
	wire_seal(packet, WIRE_CONTROL + bytes);
	return WIRE_CONTROL + bytes;
}

uint32_t packet_data(struct packet *packet, const struct rig_data *data)
{
	const struct wire_unsent unsent = rig_unsent(data->position);
	uint64_t random = data->seed;

	packet->header = (struct wire_header){ .type = WIRE_DATA,
		                               .flags = data->flags,
		                               .comm = RIG_COMM,
		                               .child = data->child,
		                               .op = data->op,
		                               .pos = (uint32_t)data->position,
		                               .ack = data->ack,
		                               .scale = data->scale,
		                               .from = data->from,
		                               .to = data->to };
	for (uint32_t i = 0; i < data->bytes / 8; i++)
		packet->words[i] = rig_random(&random);
	wire_seal_fragment(packet, WIRE_HEADER + data->bytes, &unsent);
	return WIRE_HEADER + data->bytes;
}

uint32_t packet_result(struct packet *packet, const struct rig_data *data)
{
	const struct wire_unsent unsent = rig_parent_unsent(data->position);
	uint32_t bytes = packet_data(packet, data);

	packet->header.type = WIRE_RESULT;
	packet->header.comm = RIG_PARENT_COMM;
	packet->header.child = WIRE_ALL;
	wire_seal_fragment(packet, bytes, &unsent);
	return bytes;
}

uint32_t packet_status(struct packet *packet, uint8_t child)
{
	const struct wire_status status = { .stamp = 1 };

	return packet_control(packet, WIRE_STATUS, child, &status, sizeof(status));
}

uint32_t packet_report(struct packet *packet, uint8_t child)
{
	const struct wire_report report = { .stamp = 1, .bits = 64 };

	return packet_control(packet, WIRE_REPORT, child, &report, sizeof(report));
}

/* ---- headers around packets ---- */

static uint8_t *put(uint8_t *at, const void *bytes, unsigned n)
{
	memcpy(at, bytes, n);
	return at + n;
}

static uint8_t *put16(uint8_t *at, unsigned value)
{
	*at++ = (uint8_t)(value >> 8);
	*at++ = (uint8_t)value;
	return at;
}

static uint8_t *put_ethernet(uint8_t *at, const struct shape *shape, const uint8_t to[6],
                             const uint8_t from[6])
{
	at = put(at, to, 6);
	at = put(at, from, 6);
	for (unsigned i = 0; i < countof(shape->tags) && shape->tags[i]; i++) {
		at = put16(at, shape->tags[i]);
		at = put16(at, 100 + i);
	}
	return put16(at, shape->six ? ETH_P_IPV6 : ETH_P_IP);
}

/* The addresses of a child and of us, in one direction or the other. */
struct ends {
	uint8_t mac[2][6];
	uint8_t four[2][4];
	uint8_t six[2][16];
	uint16_t port[2];
};

static struct ends ends_of(unsigned child, bool to_child)
{
	unsigned from = to_child, to = !to_child;
	struct ends ends = { 0 };

	memcpy(ends.mac[from], (uint8_t[]){ 2, 0, 0, 0, 1, (uint8_t)child }, 6);
	memcpy(ends.mac[to], (uint8_t[]){ 2, 0, 0, 0, 2, 0xfe }, 6);
	memcpy(ends.four[from], (uint8_t[]){ 10, 84, 0, (uint8_t)(child + 1) }, 4);
	memcpy(ends.four[to], (uint8_t[]){ 10, 84, 0, 254 }, 4);
	inet_pton(AF_INET6, "fd84::1:0", ends.six[from]);
	ends.six[from][15] = (uint8_t)(child + 1);
	inet_pton(AF_INET6, "fd84::fe", ends.six[to]);
	ends.port[from] = (uint16_t)(40000 + child);
	ends.port[to] = RIG_PORT + RIG_LANE;
	return ends;
}

static uint8_t *put_ip(uint8_t *at, const struct shape *shape, const struct ends *ends,
                       uint32_t bytes, uint8_t ttl, uint16_t id)
{
	if (shape->six) {
		at = put(at, (uint8_t[]){ 0x60, 0, 0, 0 }, 4);
		at = put16(at, bytes);
		*at++ = IPPROTO_UDP;
		*at++ = ttl;
		at = put(at, ends->six[0], 16);
		return put(at, ends->six[1], 16);
	}
	at = put16(at, 0x4500);
	at = put16(at, 20 + bytes);
	at = put16(at, id);
	at = put16(at, 0x4000);
	*at++ = ttl;
	*at++ = IPPROTO_UDP;
	at = put16(at, 0);
	at = put(at, ends->four[0], 4);
	return put(at, ends->four[1], 4);
}

static uint32_t sum16(const uint8_t *bytes, unsigned n)
{
	uint32_t sum = 0;

	for (unsigned i = 0; i < n; i += 2)
		sum += (uint32_t)bytes[i] << 8 | bytes[i + 1];
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

void frame_fix(struct frame *frame)
{
	uint8_t *ip = frame->data + frame->l2;

	if (frame->l3 != 20)
		return;
	put16(ip + 10, 0);
	put16(ip + 10, ~sum16(ip, 20));
}

void frame_make(struct frame *frame, const struct shape *shape, unsigned child, const void *packet,
                uint32_t bytes)
{
	struct ends ends = ends_of(child, false);
	uint8_t *ip = put_ethernet(frame->data, shape, ends.mac[1], ends.mac[0]);
	uint8_t *at = put_ip(ip, shape, &ends, bytes + 8, 61, 0x4711);

	frame->l2 = (uint32_t)(ip - frame->data);
	frame->l3 = (uint32_t)(at - ip);
	at = put16(at, ends.port[0]);
	at = put16(at, ends.port[1]);
	at = put16(at, bytes + 8);
	at = put16(at, 0xbeef);
	frame->at = (uint32_t)(at - frame->data);
	at = put(at, packet, bytes);
	frame->bytes = (uint32_t)(at - frame->data);
	frame_fix(frame);
}

void frame_data(struct frame *frame, const struct shape *shape, const struct rig_data *data)
{
	static _Thread_local struct packet packet;
	uint32_t bytes = packet_data(&packet, data);

	frame_make(frame, shape, data->child, &packet, bytes);
}

void child_address(unsigned child, bool six, struct udp_address *out)
{
	struct ends ends = ends_of(child, false);

	memset(out, 0, sizeof(*out));
	if (six) {
		struct sockaddr_in6 *address = (void *)&out->storage;

		address->sin6_family = AF_INET6;
		address->sin6_port = htons(ends.port[0]);
		memcpy(&address->sin6_addr, ends.six[0], 16);
		out->length = sizeof(*address);
	} else {
		struct sockaddr_in *address = (void *)&out->storage;

		address->sin_family = AF_INET;
		address->sin_port = htons(ends.port[0]);
		memcpy(&address->sin_addr, ends.four[0], 4);
		out->length = sizeof(*address);
	}
}

uint32_t head_make(uint8_t *head, const struct shape *shape, unsigned child, uint32_t bytes)
{
	struct ends ends = ends_of(child, true);
	uint8_t *ip = put_ethernet(head, shape, ends.mac[1], ends.mac[0]);
	uint8_t *at = put_ip(ip, shape, &ends, bytes + 8, 64, 0);

	if (!shape->six)
		put16(ip + 10, ~sum16(ip, 20));
	at = put16(at, ends.port[0]);
	at = put16(at, ends.port[1]);
	at = put16(at, bytes + 8);
	return (uint32_t)(put16(at, 0) - head);
}

void route_make(struct xdp_route *route, const struct shape *shape, unsigned child,
                uint32_t ifindex)
{
	uint8_t *ip;

	memset(route, 0, sizeof(*route));
	route->ifindex = ifindex;
	route->l3 = shape->six ? 40 : 20;
	route->l2 = (uint8_t)(head_make(route->head, shape, child, 0) - 8 - route->l3);
	ip = route->head + route->l2;
	put16(ip + route->l3 + 4, 0);
	if (shape->six) {
		put16(ip + 4, 0);
		return;
	}
	put16(ip + 2, 0);
	put16(ip + 10, 0);
	/* The program adds words in the machine's byte order, not the network's. */
	for (unsigned i = 0; i < 20; i += 2)
		route->ip_sum += (uint32_t)ip[i] | (uint32_t)ip[i + 1] << 8;
}

void rig_routes(struct rig *rig, const struct shape *shape)
{
	for (unsigned child = 0; child < rig->children; child++)
		route_make(&rig->lane->routes[child], shape, child, RIG_LO);
}

/* ---- results ---- */

/* Checks that `out` has the twin's cell behind this header. Returns the packet. */
static const struct wire_header *cell_check(const struct rig *rig, const struct frame *out,
                                            const struct shape *shape, unsigned to,
                                            uint64_t position, struct wire_unsent unsent)
{
	static struct packet packet;
	uint32_t index = dense_index(&rig->twin, position);
	const struct dense_cell *cell = dense_cell(&rig->twin_pool, index);
	const struct wire_header *header = &packet.header;
	uint8_t head[XDP_HEAD_MAX];
	uint32_t at = head_make(head, shape, to, WIRE_HEADER + cell->bytes);

	demand(cell->position == position && cell->summed);
	demand(out->bytes == at + WIRE_HEADER + cell->bytes);
	demand(!memcmp(out->data, head, at));
	memcpy(&packet, out->data + at, out->bytes - at);
	demand(wire_parse(&packet, out->bytes - at) == WIRE_SOUND);
	demand(wire_is_intact(header, out->bytes - at, &unsent));
	demand(header->flags == cell->shape && header->pos == (uint32_t)position);
	demand(header->op == cell->op && header->from == cell->from && header->to == cell->to);
	demand(header->scale == cell->scale);
	demand(!memcmp(packet.words, dense_packet(&rig->twin_pool, index) + WIRE_HEADER,
	               cell->bytes));
	return header;
}

void result_check(const struct rig *rig, const struct frame *out, const struct shape *shape,
                  unsigned child, uint64_t position)
{
	const struct wire_header *header =
		cell_check(rig, out, shape, child, position, rig_unsent(position));

	demand(dense_cell(&rig->twin_pool, dense_index(&rig->twin, position))->complete);
	demand(header->ack == (uint32_t)rig->twin.low);
	demand(header->type == WIRE_RESULT && header->child == WIRE_ALL);
	demand(header->comm == RIG_COMM);
}

void raised_check(const struct rig *rig, const struct frame *out, const struct shape *shape,
                  uint64_t position)
{
	const struct wire_header *header =
		cell_check(rig, out, shape, RIG_PARENT, position, rig_parent_unsent(position));

	demand(!dense_cell(&rig->twin_pool, dense_index(&rig->twin, position))->complete);
	demand(header->ack == (uint32_t)rig->twin.settled);
	demand(header->type == WIRE_DATA && header->child == RIG_PARENT_CHILD);
	demand(header->comm == RIG_PARENT_COMM);
}
