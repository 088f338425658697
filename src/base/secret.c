/* SPDX-License-Identifier: Apache-2.0 */
#include "base/secret.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>

struct sip {
	uint64_t a, b, c, d;
};

static uint64_t rotate(uint64_t x, unsigned by)
{
	return x << by | x >> (64 - by);
}

static void sip_round(struct sip *v)
{
	v->a += v->b;
	v->b = rotate(v->b, 13) ^ v->a;
	v->a = rotate(v->a, 32);
	v->c += v->d;
	v->d = rotate(v->d, 16) ^ v->c;
	v->a += v->d;
	v->d = rotate(v->d, 21) ^ v->a;
	v->c += v->b;
	v->b = rotate(v->b, 17) ^ v->c;
	v->c = rotate(v->c, 32);
}

static void sip_take(struct sip *v, uint64_t word)
{
	v->d ^= word;
	sip_round(v);
	sip_round(v);
	v->a ^= word;
}

bool secret_draw(struct secret *secret)
{
	return getrandom(secret->bytes, sizeof(secret->bytes), 0) == sizeof(secret->bytes);
}

uint64_t secret_hash(const struct secret *secret, const void *data, size_t bytes)
{
	const uint8_t *at = data;
	uint64_t key[2], word, last = (uint64_t)bytes << 56;
	struct sip v;

	memcpy(key, secret->bytes, sizeof(key));
	v = (struct sip){ .a = key[0] ^ 0x736f6d6570736575,
		          .b = key[1] ^ 0x646f72616e646f6d,
		          .c = key[0] ^ 0x6c7967656e657261,
		          .d = key[1] ^ 0x7465646279746573 };
	for (; bytes >= sizeof(word); bytes -= sizeof(word), at += sizeof(word)) {
		memcpy(&word, at, sizeof(word));
		sip_take(&v, word);
	}
	for (size_t i = 0; i < bytes; i++)
		last |= (uint64_t)at[i] << 8 * i;
	sip_take(&v, last);
	v.c ^= 0xff;
	for (unsigned i = 0; i < 4; i++)
		sip_round(&v);
	return v.a ^ v.b ^ v.c ^ v.d;
}

uint64_t secret_cookie(const struct secret *secret, uint16_t job)
{
	const uint8_t text[] = { 'j', 'o', 'b', (uint8_t)job, (uint8_t)(job >> 8) };
	uint64_t cookie = secret_hash(secret, text, sizeof(text));

	return cookie ? cookie : 1; /* 0 means: no cookie */
}

uint64_t secret_ticket(const struct secret *secret, uint16_t job, uint32_t random)
{
	const uint8_t text[] = { 'c',
		                 'o',
		                 'm',
		                 'm',
		                 (uint8_t)job,
		                 (uint8_t)(job >> 8),
		                 (uint8_t)random,
		                 (uint8_t)(random >> 8),
		                 (uint8_t)(random >> 16),
		                 (uint8_t)(random >> 24) };

	return (uint64_t)random << 32 | (uint32_t)secret_hash(secret, text, sizeof(text));
}

bool secret_made(const struct secret *secret, uint16_t job, uint64_t ticket)
{
	return ticket == secret_ticket(secret, job, (uint32_t)(ticket >> 32));
}

void secret_print(const struct secret *secret, char out[SECRET_TEXT])
{
	for (unsigned i = 0; i < SECRET_BYTES; i++)
		snprintf(out + 2 * i, 3, "%02x", secret->bytes[i]);
}

bool secret_parse(struct secret *secret, const char *text)
{
	if (strspn(text, "0123456789abcdef") != SECRET_TEXT - 1 || text[SECRET_TEXT - 1])
		return false;
	for (unsigned i = 0; i < SECRET_BYTES; i++) {
		unsigned byte;

		if (sscanf(text + 2 * i, "%2x", &byte) != 1)
			return false;
		secret->bytes[i] = (uint8_t)byte;
	}
	return true;
}

bool secret_same(const char *a, const char *b)
{
	size_t n = strlen(a), m = strlen(b);
	unsigned char differ = n != m;

	for (size_t i = 0; i < n; i++)
		differ |= (unsigned char)(a[i] ^ b[m ? i % m : 0]);
	return !differ;
}
