/* SPDX-License-Identifier: Apache-2.0 */
/*
 * secret: the secret that a controller shares with its agents. Every job's cookie is
 * derived from it, so an aggregator can verify a cookie without knowing the jobs.
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

/* A random secret. False: no random numbers. */
bool secret_draw(struct secret *secret);
/* SipHash-2-4: without the secret the hash cannot be guessed. */
uint64_t secret_hash(const struct secret *secret, const void *data, size_t bytes);
/* The cookie of a job, never 0. Job 0: for queries that concern no job. */
uint64_t secret_cookie(const struct secret *secret, uint16_t job);

/*
 * A random cookie for this job. The secret's owners can verify that it was made with the
 * secret for this job. Nobody else can make or guess one.
 */
uint64_t secret_ticket(const struct secret *secret, uint16_t job, uint32_t random);
bool secret_made(const struct secret *secret, uint16_t job, uint64_t ticket);

/* As hexadecimal digits. */
void secret_print(const struct secret *secret, char out[SECRET_TEXT]);
bool secret_parse(struct secret *secret, const char *text);

/* Compares in constant time. */
bool secret_same(const char *a, const char *b);

#endif
