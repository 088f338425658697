/* SPDX-License-Identifier: Apache-2.0 */
#include "greeting.h"

#include "base/peer_text.h"

#include <stdio.h>
#include <string.h>

#define HANDLE_MAGIC 0x68627274u /* "trbh" */
#define HELLO_MAGIC 0x6c627274u  /* "trbl" */
#define NOTE_MAGIC 0x6e627274u   /* "trbn" */

struct handle_bytes {
	uint32_t magic;
	uint16_t version, kind;
	uint16_t port;
	uint16_t address_bytes; /* 4 or 16 */
	uint32_t scope;         /* of a link-local IPv6 address */
	uint8_t address[16];
	uint8_t cookie[GREETING_COOKIE];
	uint64_t attempt;
	uint8_t unused[72];
};
_Static_assert(sizeof(struct handle_bytes) == NCCL_HANDLE_BYTES, "a handle");

void handle_write(const struct handle *handle, void *bytes)
{
	struct handle_bytes out = { .magic = HANDLE_MAGIC,
		                    .version = GREETING_VERSION,
		                    .kind = (uint16_t)handle->kind,
		                    .port = udp_port(&handle->address),
		                    .attempt = handle->attempt };
	size_t size;
	const void *raw = udp_raw(&handle->address, &size);

	out.address_bytes = (uint16_t)size;
	memcpy(out.address, raw, size);
	if (size == 16)
		out.scope = ((const struct sockaddr_in6 *)(const void *)&handle->address.storage)
		                    ->sin6_scope_id;
	memcpy(out.cookie, handle->cookie, sizeof(out.cookie));
	memcpy(bytes, &out, sizeof(out));
}

trib_status handle_read(const void *bytes, struct handle *handle)
{
	struct handle_bytes in;

	memcpy(&in, bytes, sizeof(in));
	memset(handle, 0, sizeof(*handle));
	if (in.magic != HANDLE_MAGIC)
		return status_fail(TRIB_ERR_ARGUMENT,
		                   "the peer's handle is not of this plugin: all processes need "
		                   "NCCL_NET_PLUGIN=tributary");
	if (in.version != GREETING_VERSION)
		return status_fail(TRIB_ERR_ARGUMENT,
		                   "the peer's plugin has version %u, this one has version %u",
		                   in.version, GREETING_VERSION);
	if (in.kind < GREETING_LINK || in.kind > GREETING_PATHS || !in.port ||
	    (in.address_bytes != 4 && in.address_bytes != 16))
		return status_fail(TRIB_ERR_ARGUMENT, "the peer's handle is malformed");
	handle->kind = (enum greeting_kind)in.kind;
	udp_from_raw(in.address, in.address_bytes, in.port, &handle->address);
	if (in.address_bytes == 16)
		((struct sockaddr_in6 *)(void *)&handle->address.storage)->sin6_scope_id = in.scope;
	memcpy(handle->cookie, in.cookie, sizeof(in.cookie));
	handle->attempt = in.attempt;
	return TRIB_OK;
}

void handle_set_attempt(void *bytes, uint64_t attempt)
{
	memcpy((uint8_t *)bytes + offsetof(struct handle_bytes, attempt), &attempt,
	       sizeof(attempt));
}

void hello_write(struct hello *hello, const struct handle *handle)
{
	hello->magic = HELLO_MAGIC;
	hello->version = GREETING_VERSION;
	hello->kind = (uint16_t)handle->kind;
	memcpy(hello->cookie, handle->cookie, sizeof(hello->cookie));
}

trib_status hello_check(const struct hello *hello, const struct handle *handle)
{
	if (hello->magic != HELLO_MAGIC)
		return status_fail(TRIB_ERR_REFUSED, "the caller is not this plugin");
	if (hello->version != GREETING_VERSION)
		return status_fail(TRIB_ERR_REFUSED,
		                   "the caller's plugin has version %u, this one has version %u",
		                   hello->version, GREETING_VERSION);
	if (hello->kind != handle->kind ||
	    memcmp(hello->cookie, handle->cookie, sizeof(hello->cookie)) != 0)
		return status_fail(TRIB_ERR_REFUSED, "the caller does not know the handle");
	if (hello->stripes < 1 || hello->stripes > STRIPES_MAX || hello->stripe >= hello->stripes)
		return status_fail(TRIB_ERR_REFUSED, "the caller's socket %u of %u is not possible",
		                   hello->stripe, hello->stripes);
	return TRIB_OK;
}

void note_write(struct note *note, enum note_step step, bool ok, const char *text)
{
	memset(note, 0, sizeof(*note));
	note->magic = NOTE_MAGIC;
	note->step = (uint16_t)step;
	note->ok = ok;
	snprintf(note->text, sizeof(note->text), "%s", text ? text : "");
}

trib_status note_check(struct note *note, enum note_step step)
{
	char text[NOTE_TEXT];

	if (note->magic != NOTE_MAGIC || note->step != step || note->ok > 1)
		return status_fail(TRIB_ERR_REFUSED, "the other node said something unexpected");
	memcpy(text, note->text, sizeof(text));
	peer_text(note->text, sizeof(note->text), text, sizeof(text));
	return TRIB_OK;
}
