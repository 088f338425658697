/* SPDX-License-Identifier: Apache-2.0 */
#include "peer.h"

#include "number/narrow.h"

#include <arpa/inet.h>
#include <err.h>
#include <getopt.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

/* Inputs repeat with this period. They are small whole numbers, so that sums are exact. */
#define PERIOD 17

/* 16 bursts of a shaped link (net/kernel/link_shape.c). */
#define BURST_BYTES (4u << 20)
#define SHORTEST 16384u /* calls of shorter vectors never fill a link of 1 Gb/s */

static void add_f32(float *restrict to, const float *restrict from, size_t n)
{
	for (size_t i = 0; i < n; i++)
		to[i] += from[i];
}

ALWAYS_INLINE void add_narrow(trib_type type, uint16_t *restrict to, const uint16_t *restrict from,
                              size_t n)
{
	const uint32_t infinity = (uint32_t)format_of(type).infinity;

	for (size_t i = 0; i < n; i++)
		to[i] = (uint16_t)narrow_from(type, narrow_value(type, to[i], infinity) +
		                                            narrow_value(type, from[i], infinity));
}

static void add_i32(int32_t *restrict to, const int32_t *restrict from, size_t n)
{
	for (size_t i = 0; i < n; i++)
		to[i] = (int32_t)((uint32_t)to[i] + (uint32_t)from[i]);
}

void peer_add(enum peer_type type, void *to, const void *from, size_t n)
{
	if (type == PEER_F32)
		add_f32(to, from, n);
	else if (type == PEER_I32)
		add_i32(to, from, n);
	else if (type == PEER_F16)
		add_narrow(TRIB_F16, to, from, n);
	else
		add_narrow(TRIB_BF16, to, from, n);
}

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* CPU time of this process, all threads. */
static double cpu_now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static uint64_t number_parse(const char *name, const char *text)
{
	char *end;
	unsigned long long value = strtoull(text, &end, 10);

	if (*text < '0' || *text > '9' || *end)
		errx(2, "--%s wants a whole number, not '%s'", name, text);
	return value;
}

static enum peer_type type_parse(const char *text)
{
	static const char *const names[] = { "f32", "f16", "bf16", "i32" };

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(text, names[i]))
			return (enum peer_type)i;
	errx(2, "--type wants f32, f16, bf16 or i32, not '%s'", text);
}

static enum peer_collective collective_parse(const char *text)
{
	static const char *const names[] = { "allreduce", "reduce-scatter", "allgather" };

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(text, names[i]))
			return (enum peer_collective)i;
	errx(2, "--collective wants allreduce, reduce-scatter or allgather, not '%s'", text);
}

static void late_parse(struct peer_options *options, const char *text)
{
	unsigned i = options->n_late++;

	if (i == PEER_LATE_MAX ||
	    sscanf(text, "%d=%lf", &options->late[i].rank, &options->late[i].seconds) != 2)
		errx(2, "--late wants RANK=SECONDS, not '%s'", text);
}

/* At least so many calls before the first that is timed. */
static void warm_up_at_least(struct peer_options *options, size_t calls)
{
	if (options->warmup < calls)
		options->warmup = (unsigned)calls;
}

void peer_parse(int argc, char **argv, struct peer_options *options)
{
	static const struct option table[] = {
		{ "bytes", required_argument, NULL, 'b' },
		{ "iterations", required_argument, NULL, 'i' },
		{ "warmup", required_argument, NULL, 'w' },
		{ "type", required_argument, NULL, 't' },
		{ "check", no_argument, NULL, 'c' },
		{ "no-cpu-time", no_argument, NULL, 'n' },
		{ "to-one", no_argument, NULL, '1' },
		{ "collective", required_argument, NULL, 'C' },
		{ "many", required_argument, NULL, 'm' },
		{ "late", required_argument, NULL, 'l' },
		{ "algorithm", required_argument, NULL, 'a' },
		{ 0 },
	};
	int c;

	*options =
		(struct peer_options){ .bytes = 1 << 20, .iterations = 10, .warmup = 2, .many = 1 };
	while ((c = getopt_long(argc, argv, "", table, NULL)) != -1) {
		switch (c) {
		case 'b':
			options->bytes = number_parse("bytes", optarg) / 4 * 4;
			break;
		case 'i':
			options->iterations = (unsigned)number_parse("iterations", optarg);
			break;
		case 'w':
			options->warmup = (unsigned)number_parse("warmup", optarg);
			break;
		case 't':
			options->type = type_parse(optarg);
			break;
		case 'c':
			options->check = true;
			break;
		case 'n':
			options->no_cpu_time = true;
			break;
		case '1':
			options->to_one = true;
			break;
		case 'C':
			options->collective = collective_parse(optarg);
			break;
		case 'm':
			options->many = (unsigned)number_parse("many", optarg);
			break;
		case 'l':
			late_parse(options, optarg);
			break;
		case 'a':
			options->algorithm = optarg;
			break;
		default:
			exit(2);
		}
	}
	if (optind < argc)
		errx(2, "'%s' is not an option", argv[optind]);
	if (options->iterations == 0)
		errx(2, "--iterations must be at least 1");
	if (options->many == 0 || (options->many > 1 && options->to_one))
		errx(2, "--many must be at least 1, and is no reduce");
	if (options->collective != PEER_ALLREDUCE && (options->many > 1 || options->to_one))
		errx(2, "--many and --to-one are for allreduce");
	if (options->bytes >= SHORTEST)
		warm_up_at_least(options, BURST_BYTES / options->bytes / options->many);
}

void peer_warm_up_ways(struct peer_options *options)
{
	size_t bytes = options->bytes;

	if (bytes >= SHORTEST)
		warm_up_at_least(options, 1 + 12 * (bytes < 524288 ? 4 * 524288 / bytes : 1));
}

void peer_rank_from_env(int *rank, int *size)
{
	const char *r = getenv("TRIB_RANK"), *s = getenv("TRIB_SIZE");

	if (!r || !s)
		errx(2, "TRIB_RANK and TRIB_SIZE must be set");
	*rank = atoi(r);
	*size = atoi(s);
	if (*size < 1 || *rank < 0 || *rank >= *size)
		errx(2, "TRIB_RANK=%s does not fit TRIB_SIZE=%s", r, s);
}

void peer_address_from_env(const char *variable, struct sockaddr_in *out)
{
	const char *text = getenv(variable), *colon = text ? strrchr(text, ':') : NULL;
	char address[64];

	*out = (struct sockaddr_in){ .sin_family = AF_INET };
	if (colon && (size_t)(colon - text) < sizeof(address)) {
		memcpy(address, text, (size_t)(colon - text));
		address[colon - text] = '\0';
		out->sin_port = htons((uint16_t)atoi(colon + 1));
		if (inet_pton(AF_INET, address, &out->sin_addr) == 1)
			return;
	}
	errx(2, "%s has to be ADDRESS:PORT", variable);
}

void *peer_alloc(size_t bytes)
{
	void *memory = NULL;
	int e = posix_memalign(&memory, 4096, bytes ? bytes : 1);

	if (e)
		errx(1, "no memory for %zu bytes: %s", bytes, strerror(e));
	memset(memory, 0, bytes);
	return memory;
}

static float input_at(int rank, unsigned iteration, size_t i)
{
	return (float)(int)((i + 5u * (unsigned)rank + iteration) % PERIOD) - 8.0f;
}

/* Writes a number that is exact in every type. */
static void element_put(enum peer_type type, void *data, size_t i, float value)
{
	int32_t whole = (int32_t)value;

	if (type == PEER_I32)
		memcpy((char *)data + i * sizeof(whole), &whole, sizeof(whole));
	else if (type == PEER_F32)
		store32(TRIB_F32, data, i, f32_bits(value));
	else if (type == PEER_F16)
		store32(TRIB_F16, data, i, narrow_from(TRIB_F16, value));
	else
		store32(TRIB_BF16, data, i, narrow_from(TRIB_BF16, value));
}

static void input_fill(void *data, size_t n, enum peer_type type, int rank, unsigned iteration)
{
	size_t size = peer_type_size(type);

	for (size_t i = 0; i < PERIOD && i < n; i++)
		element_put(type, data, i, input_at(rank, iteration, i));
	for (size_t have = PERIOD; have < n;) {
		size_t more = have < n - have ? have : n - have;

		memcpy((char *)data + have * size, data, more * size);
		have += more;
	}
}

/* Element i has to be the sum of the elements first + i of the ranks from `from` to below `to`. */
static int sum_check(const struct peer *peer, unsigned iteration, enum peer_type type,
                     const void *data, size_t n, size_t first, int from, int to)
{
	const size_t size = peer_type_size(type);
	float expected[PERIOD] = { 0 };
	char bits[PERIOD * 4];

	for (size_t i = 0; i < PERIOD; i++) {
		for (int r = from; r < to; r++)
			expected[i] += input_at(r, iteration, first + i);
		element_put(type, bits, i, expected[i]);
	}
	for (size_t i = 0; i < n; i++) {
		const char *at = (const char *)data + i * size;

		/* memcmp, since a NaN must not pass; -0 cannot occur. */
		if (i % PERIOD == 0 && n - i >= PERIOD && !memcmp(at, bits, PERIOD * size)) {
			i += PERIOD - 1;
			continue;
		}
		if (!memcmp(at, bits + i % PERIOD * size, size))
			continue;
		warnx("rank %d, iteration %u: the sum at %zu is wrong, and should be %g",
		      peer->rank, iteration, i, (double)expected[i % PERIOD]);
		return -1;
	}
	return 0;
}

static void late_sleep(double seconds)
{
	struct timespec t = { .tv_sec = (time_t)seconds,
		              .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9) };

	nanosleep(&t, NULL);
}

static double timed_cpu_s; /* in the timed allreduces */

/* The vectors of this rank. */
struct vectors {
	void *in, *out;        /* an allreduce has no `out` */
	size_t n, share;       /* elements of a vector, and of a rank's share of it */
	size_t n_in, n_result; /* elements that this rank gives and gets */
};

static void vectors_make(const struct peer *peer, const struct peer_options *options,
                         struct vectors *v)
{
	size_t size = peer_type_size(options->type);

	v->n = options->bytes / size;
	v->share = v->n / (size_t)peer->size;
	v->n_in = v->n_result = v->n * options->many;
	if (options->collective == PEER_REDUCE_SCATTER)
		v->n_result = v->share;
	if (options->collective == PEER_ALLGATHER)
		v->n_in = v->share;
	v->in = peer_alloc(v->n_in * size);
	v->out = options->collective == PEER_ALLREDUCE ? NULL : peer_alloc(v->n_result * size);
}

static int result_check(const struct peer *peer, const struct peer_options *options,
                        const struct vectors *v, unsigned iteration)
{
	size_t bytes = v->share * peer_type_size(options->type);
	int rc = 0;

	if (options->collective == PEER_ALLREDUCE)
		return sum_check(peer, iteration, options->type, v->in, v->n_result, 0, 0,
		                 peer->size);
	if (options->collective == PEER_REDUCE_SCATTER)
		return sum_check(peer, iteration, options->type, v->out, v->share,
		                 v->share * (size_t)peer->rank, 0, peer->size);
	for (int r = 0; r < peer->size && rc == 0; r++)
		rc = sum_check(peer, iteration, options->type,
		               (const char *)v->out + (size_t)r * bytes, v->share, 0, r, r + 1);
	return rc;
}

/* The timed part. */
static int sums_make(const struct peer *peer, const struct peer_options *options,
                     const struct vectors *v)
{
	size_t n = v->n, bytes = n * peer_type_size(options->type);
	void *data = v->in;
	int rc = 0;

	if (options->collective == PEER_REDUCE_SCATTER)
		return peer->reduce_scatter(peer->context, v->in, v->out, v->share, options->type);
	if (options->collective == PEER_ALLGATHER)
		return peer->allgather(peer->context, v->in, v->out, v->share, options->type);
	if (options->many > 1 && peer->allreduce_many)
		return peer->allreduce_many(peer->context, data, n, options->type, options->many);
	for (unsigned i = 0; i < options->many && rc == 0; i++)
		rc = peer->allreduce(peer->context, (char *)data + i * bytes, n, options->type);
	return rc;
}

/* `trib bench` checks that every rank runs in the network of a host of its own. */
static void network_print(void)
{
	struct stat info;

	if (stat("/proc/self/ns/net", &info) == 0)
		printf("NETWORK %ju\n", (uintmax_t)info.st_ino);
	fflush(stdout);
}

int peer_measure(const struct peer *peer, const struct peer_options *options, double *samples)
{
	unsigned rounds = options->warmup + options->iterations;
	struct vectors v;
	int rc = 0;

	if ((options->collective == PEER_REDUCE_SCATTER && !peer->reduce_scatter) ||
	    (options->collective == PEER_ALLGATHER && !peer->allgather))
		errx(2, "this system has no such collective");
	vectors_make(peer, options, &v);
	network_print();
	for (unsigned k = 0; k < rounds && rc == 0; k++) {
		double start, cpu;

		input_fill(v.in, v.n_in, options->type, peer->rank, k);
		if ((rc = peer->barrier(peer->context)) != 0)
			break;
		cpu = options->no_cpu_time ? 0 : cpu_now_s();
		start = now_s();
		for (unsigned i = 0; i < options->n_late; i++)
			if (peer->rank == options->late[i].rank)
				late_sleep(options->late[i].seconds);
		if ((rc = sums_make(peer, options, &v)) != 0)
			break;
		if (k >= options->warmup) {
			samples[k - options->warmup] = now_s() - start;
			timed_cpu_s += options->no_cpu_time ? 0 : cpu_now_s() - cpu;
		}
		if (options->to_one && peer->rank)
			continue;
		if (options->check || k == 0 || k + 1 == rounds)
			rc = result_check(peer, options, &v, k);
	}
	free(v.in);
	free(v.out);
	return rc;
}

void peer_print(int rank, const double *samples, unsigned iterations)
{
	for (unsigned i = 0; i < iterations; i++)
		printf("SAMPLE %d %u %.9f\n", rank, i, samples[i]);
	fflush(stdout);
}

void peer_print_cpu(void)
{
	printf("CPU %.9f\n", timed_cpu_s);
	fflush(stdout);
}
