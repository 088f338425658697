/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The secret that a controller shares with its agents. Every job's cookie is
 * made from it, so an aggregator can tell a good cookie from a wrong one
 * without being told of jobs.
 */
#ifndef TRIB_BASE_SECRET_H
#define TRIB_BASE_SECRET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SECRET_BYTES 16
#define SECRET_TEXT (2 * SECRET_BYTES + 1)

struct secret {
	uint8_t bytes[SECRET_BYTES];
};

/* SipHash-2-4: who does not know the secret cannot guess the hash of anything. */
uint64_t secret_hash(const struct secret *secret, const void *data, size_t bytes);
/* Of a job; job 0 is for questions that are about no job. Never 0. */
uint64_t secret_cookie(const struct secret *secret, uint16_t job);

/*
 * A cookie that is random, but of which whoever has the secret can tell that it
 * was made with it for this job; nobody else can make or guess one.
 */
uint64_t secret_ticket(const struct secret *secret, uint16_t job, uint32_t random);
bool secret_made(const struct secret *secret, uint16_t job, uint64_t ticket);

/* As hexadecimal digits. */
void secret_print(const struct secret *secret, char out[SECRET_TEXT]);
bool secret_parse(struct secret *secret, const char *text);

/* Takes as long where the first byte differs as where the last one does. */
bool secret_same(const char *a, const char *b);

#endif
