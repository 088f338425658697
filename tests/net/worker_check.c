/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker_check: a worker that knows every result. It runs collectives with types, sizes and inputs
 * drawn from a seed, and compares all bits of each result with its own calculation. Float sums are
 * compared if they are exact (small whole numbers). Otherwise they go into a digest: runs with and
 * without faults must print the same digest.
 *
 * Exit codes: 0: success; 1: a wrong result; 2: wrong usage; 3: an error of the library, with its
 * sentence.
 */
#include <tributary.h>

#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "worker_values.h"

#define IN_FLIGHT 3
#define DIGEST_START 0xcbf29ce484222325

enum kind { ALLREDUCE, REDUCE, BROADCAST, ALLGATHER, REDUCE_SCATTER, BARRIER, KINDS };

static const char *const kind_names[KINDS] = { "allreduce", "reduce",         "broadcast",
	                                       "allgather", "reduce_scatter", "barrier" };

static const char *const type_names[N_TYPES] = { "i8",  "i32", "i64",  "u8",  "u32",
	                                         "u64", "f16", "bf16", "f32", "f64" };
static const char *const op_names[N_OPS] = { "sum", "min", "max", "avg" };

/* Numbers to choose from; none: all. */
struct choice {
	unsigned n;
	int from[N_TYPES];
};

static struct {
	long rounds;
	uint64_t seed;
	size_t max; /* elements in the largest vector */
	int only;   /* the only kind of collective; -1: all kinds */
	const char *mark;
	long mark_round;
	int absent;         /* the rank that stops calling at the marked round */
	int differ;         /* the rank that calls something else at the marked round */
	useconds_t stagger; /* microseconds: rank r leaves r times as late */
	bool split;
	unsigned linger;   /* seconds to stay after an error, so that other ranks report theirs */
	const char *times; /* file for the end time of each round */
	useconds_t pause;  /* microseconds between rounds, in place of computation */
	const char *until; /* file: if rank 0 sees it, all ranks stop */
	const char *hold;  /* file: while it exists, all ranks pause */
	struct choice types, ops;
} options = { .rounds = 100,
	      .seed = 1,
	      .max = 100000,
	      .only = -1,
	      .mark_round = 2,
	      .absent = -1,
	      .differ = -1 };

static FILE *times;

/* Digests of all results on this rank, and of the results that are the same on all ranks. */
static uint64_t digest = DIGEST_START, common = DIGEST_START;
static struct timespec round_start;

/* A collective: its parameters, which all ranks know, and this rank's buffers. */
struct call {
	struct values values;
	enum kind kind;
	size_t parts; /* vectors of `count` elements in the input */
	int root;
	bool in_place;
	void *send, *recv;
	trib_request *request;
};

static double seconds_since(const struct timespec *start)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)(now.tv_sec - start->tv_sec) + (double)(now.tv_nsec - start->tv_nsec) / 1e9;
}

static void die(trib_comm *comm, const char *what, trib_status status)
{
	printf("rank %d: %s: error %s after %.2f s: %s\n", comm ? trib_rank(comm) : -1, what,
	       trib_status_name(status), seconds_since(&round_start), trib_last_error());
	fflush(stdout);
	sleep(options.linger);
	_exit(3);
}

static void digest_add(uint64_t *to, const void *data, size_t bytes)
{
	uint64_t word = 0;

	for (size_t at = 0; at < bytes; at += sizeof(word)) {
		size_t left = bytes - at;

		memcpy(&word, (const char *)data + at, left < sizeof(word) ? left : sizeof(word));
		*to = (*to ^ word) * 0x100000001b3;
		*to ^= *to >> 32; /* otherwise two errors in highest bits would cancel out */
	}
}

/* The drawn number, if it may be; else one that may. */
static int choose(const struct choice *choice, int drawn)
{
	for (unsigned i = 0; i < choice->n; i++)
		if (choice->from[i] == drawn)
			return drawn;
	return choice->n ? choice->from[(unsigned)drawn % choice->n] : drawn;
}

static void call_draw(struct call *call, uint64_t number, trib_comm *comm)
{
	static const size_t small[] = { 0, 1, 2, 3, 17, 255, 1000, 4096 };
	uint64_t r = mix(options.seed * 1000003 + number);
	int size = trib_size(comm);

	*call = (struct call){ .kind = options.only >= 0 ? (enum kind)options.only
		                                         : (enum kind)(r % KINDS) };
	r = mix(r);
	call->root = (int)(r % (unsigned)size);
	call->in_place = r >> 32 & 1;
	r = mix(r);
	call->values = (struct values){ .type = (trib_type)(r % N_TYPES),
		                        .op = (trib_op)(r / N_TYPES % N_OPS),
		                        .seed = r,
		                        .ranks = size };
	r = mix(r);
	if (r >> 50 & 1) { /* every second call is a sum of floats, the most important case */
		call->values.type = (trib_type)(TRIB_F16 + (r >> 51 & 3));
		call->values.op = r >> 53 & 3 ? TRIB_SUM : TRIB_AVG;
	}
	call->values.type = (trib_type)choose(&options.types, call->values.type);
	call->values.op = (trib_op)choose(&options.ops, call->values.op);
	call->values.count = r % 3 ? r / 3 % (options.max + 1) : small[r / 3 % 8];
	if (call->values.count > options.max)
		call->values.count = options.max;
	call->values.wild = r >> 40 & 1;
	if (call->kind == BARRIER)
		call->values.count = 0;
	if (call->kind == BROADCAST || call->kind == ALLGATHER)
		call->values.wild = true; /* copied, not summed: any bits are valid */
	call->parts = call->kind == REDUCE_SCATTER ? (size_t)size : 1;
	if (call->kind == REDUCE_SCATTER || call->kind == ALLGATHER)
		call->values.count /= (size_t)size;
}

static size_t bytes_of(const struct call *call, size_t vectors)
{
	return vectors * call->values.count * trib_type_size(call->values.type);
}

static void call_start(struct call *call, trib_comm *comm)
{
	size_t n = (size_t)trib_size(comm), count = call->values.count;
	size_t own = bytes_of(call, call->parts);
	trib_type type = call->values.type;
	trib_op op = call->values.op;
	int rank = trib_rank(comm);
	const void *send;
	trib_status status;

	call->send = malloc(own + 1);
	call->recv = malloc(bytes_of(call, n) + 1);
	if (!call->send || !call->recv)
		exit(2);
	memset(call->recv, 0xa5, bytes_of(call, n) + 1);
	for (size_t part = 0; part < call->parts; part++)
		values_draw(&call->values, rank, part,
		            (char *)call->send + bytes_of(call, 1) * part);
	send = call->send;
	if (call->kind == BROADCAST && rank == call->root)
		memcpy(call->recv, send, own);
	if (call->in_place && call->kind == ALLGATHER)
		memcpy((char *)call->recv + own * (size_t)rank, send, own);
	else if (call->in_place)
		memcpy(call->recv, send, own);
	if (call->kind == BROADCAST && call->in_place && rank != call->root)
		memset(call->recv, 0xa5, own);
	if (call->in_place)
		send = TRIB_IN_PLACE;
	switch (call->kind) {
	case ALLREDUCE:
		status = trib_iallreduce(comm, send, call->recv, count, type, op, &call->request);
		break;
	case REDUCE:
		status = trib_ireduce(comm, send, call->recv, count, type, op, call->root,
		                      &call->request);
		break;
	case BROADCAST:
		status = trib_ibroadcast(comm, call->recv, count, type, call->root, &call->request);
		break;
	case ALLGATHER:
		status = trib_iallgather(comm, send, call->recv, count, type, &call->request);
		break;
	case REDUCE_SCATTER:
		status = trib_ireduce_scatter(comm, send, call->recv, count, type, op,
		                              &call->request);
		break;
	default:
		status = trib_ibarrier(comm, &call->request);
	}
	if (status != TRIB_OK)
		die(comm, kind_names[call->kind], status);
}

static bool vector_check(const struct call *call, size_t part, const void *got,
                         const void *expected)
{
	size_t bytes = bytes_of(call, 1), at = 0;

	if (!memcmp(got, expected, bytes))
		return true;
	while (((const char *)got)[at] == ((const char *)expected)[at])
		at++;
	printf("%s, type %d, op %d, root %d, count %zu%s: part %zu is wrong from byte %zu on\n",
	       kind_names[call->kind], call->values.type, call->values.op, call->root,
	       call->values.count, call->in_place ? ", in place" : "", part, at);
	return false;
}

/* Is every bit of the result right? */
static bool call_check(struct call *call, trib_comm *comm)
{
	int rank = trib_rank(comm);
	size_t vectors = call->kind == ALLGATHER ? (size_t)trib_size(comm) : 1;
	bool exact = values_exact(&call->values), good = true;
	void *expected = malloc(bytes_of(call, 1) + 1);

	if (!expected)
		exit(2);
	if (call->kind == REDUCE && rank != call->root)
		vectors = 0;
	for (size_t part = 0; part < vectors && good; part++) {
		const char *got = (const char *)call->recv + bytes_of(call, part);

		if (call->kind == ALLGATHER || call->kind == BROADCAST)
			values_draw(&call->values, call->kind == BROADCAST ? call->root : (int)part,
			            0, expected);
		else if (exact)
			values_reduce(&call->values,
			              call->kind == REDUCE_SCATTER ? (size_t)rank : 0, expected);
		else
			continue;
		good = vector_check(call, part, got, expected);
	}
	digest_add(&digest, call->recv, bytes_of(call, vectors));
	if (call->kind != REDUCE && call->kind != REDUCE_SCATTER)
		digest_add(&common, call->recv, bytes_of(call, vectors));
	free(expected);
	free(call->send);
	free(call->recv);
	return good;
}

/* Creates a file that tells the script that this rank has reached the marked round. */
static void mark_reached(int rank)
{
	char path[512];
	FILE *file;

	snprintf(path, sizeof(path), "%s.%d", options.mark, rank);
	file = fopen(path, "w");
	if (file)
		fclose(file);
}

/* Writes the seconds since 1970, in the format of `date +%s.%N`. */
static void note_time(void)
{
	struct timespec now;

	if (!times)
		return;
	clock_gettime(CLOCK_REALTIME, &now);
	fprintf(times, "%lld.%09ld\n", (long long)now.tv_sec, now.tv_nsec);
}

static bool is_there(const char *path)
{
	return path && !access(path, F_OK);
}

/*
 * Rank 0 tells the others when to stop and when to pause, so that all do so after the same round.
 */
static bool is_over(trib_comm *comm)
{
	int32_t seen[2] = { is_there(options.until), is_there(options.hold) };
	trib_status status = TRIB_OK;

	if (options.until || options.hold)
		status = trib_broadcast(comm, seen, 2, TRIB_I32, 0);
	if (status != TRIB_OK)
		die(comm, "broadcast", status);
	if (seen[1]) {
		puts("rests");
		fflush(stdout);
	}
	while (seen[1] && is_there(options.hold))
		usleep(20000); /* polling interval */
	return seen[0];
}

/* A wrong program: the other ranks do not make this call. */
static void call_other(trib_comm *comm)
{
	int64_t vector[181] = { 0 };
	trib_status status = trib_allreduce(comm, TRIB_IN_PLACE, vector, 181, TRIB_I64, TRIB_SUM);

	if (status != TRIB_OK)
		die(comm, "another call", status);
}

/* Stores the number of finished rounds in *rounds. */
static bool run(trib_comm *comm, long *rounds, uint64_t first)
{
	struct call calls[IN_FLIGHT];
	long done = 0;

	while (done < *rounds && !is_over(comm)) {
		int n = (int)(mix(options.seed + first + (uint64_t)done) % IN_FLIGHT) + 1;

		if (n > *rounds - done)
			n = (int)(*rounds - done);
		if (options.mark && done >= options.mark_round) {
			mark_reached(trib_rank(comm));
			if (trib_rank(comm) == options.absent)
				sleep(3600);
			if (trib_rank(comm) == options.differ)
				call_other(comm);
			options.mark = NULL;
		}
		clock_gettime(CLOCK_MONOTONIC, &round_start);
		for (int i = 0; i < n; i++) {
			call_draw(&calls[i], first + (uint64_t)(done + i), comm);
			call_start(&calls[i], comm);
		}
		for (int i = n - 1; i >= 0; i--) {
			trib_status status = trib_wait(&calls[i].request, -1);

			if (status != TRIB_OK)
				die(comm, kind_names[calls[i].kind], status);
		}
		note_time();
		for (int i = 0; i < n; i++)
			if (!call_check(&calls[i], comm))
				return false;
		done += n;
		usleep(options.pause);
	}
	*rounds = done;
	return true;
}

/* Runs again in two communicators, of the even and of the odd ranks, in reverse order. */
static bool run_split(trib_comm *comm)
{
	int rank = trib_rank(comm), size = trib_size(comm), color = rank % 2;
	uint64_t common_of_all = common;
	long rounds = 10;
	trib_comm *half;
	trib_status status = trib_split(comm, color, -rank, &half);
	bool good;

	if (status != TRIB_OK)
		die(comm, "split", status);
	if (trib_size(half) != (size + 1 - color) / 2 ||
	    trib_rank(half) != trib_size(half) - 1 - rank / 2) {
		printf("rank %d of %d became rank %d of %d\n", rank, size, trib_rank(half),
		       trib_size(half));
		return false;
	}
	good = run(half, &rounds, 1000000 + (uint64_t)color * 1000);
	common = common_of_all;
	status = trib_finalize(half);
	if (status != TRIB_OK)
		die(comm, "finalize of a half", status);
	return good;
}

static int name_find(const char *name, const char *const *names, int n, const char *what)
{
	for (int i = 0; i < n; i++)
		if (!strcmp(name, names[i]))
			return i;
	fprintf(stderr, "%s is no %s\n", name, what);
	exit(2);
}

/* "i32,f32" */
static void choice_read(struct choice *choice, char *list, const char *const *names, int n,
                        const char *what)
{
	for (char *name = strtok(list, ","); name && choice->n < N_TYPES; name = strtok(NULL, ","))
		choice->from[choice->n++] = name_find(name, names, n, what);
}

static void options_read(int argc, char **argv)
{
	static const struct option table[] = {
		{ "rounds", 1, NULL, 'r' },  { "seed", 1, NULL, 's' },
		{ "max", 1, NULL, 'm' },     { "only", 1, NULL, 'o' },
		{ "mark", 1, NULL, 'k' },    { "mark-round", 1, NULL, 'K' },
		{ "absent", 1, NULL, 'a' },  { "split", 0, NULL, 'p' },
		{ "linger", 1, NULL, 'l' },  { "times", 1, NULL, 't' },
		{ "pause", 1, NULL, 'u' },   { "until", 1, NULL, 'U' },
		{ "hold", 1, NULL, 'H' },    { "types", 1, NULL, 'T' },
		{ "ops", 1, NULL, 'O' },     { "differ", 1, NULL, 'd' },
		{ "stagger", 1, NULL, 'g' }, { 0 },
	};

	for (int c; (c = getopt_long(argc, argv, "", table, NULL)) != -1;) {
		switch (c) {
		case 'r':
			options.rounds = atol(optarg);
			break;
		case 's':
			options.seed = strtoull(optarg, NULL, 10);
			break;
		case 'm':
			options.max = strtoull(optarg, NULL, 10);
			break;
		case 'o':
			options.only = name_find(optarg, kind_names, KINDS, "collective");
			break;
		case 'k':
			options.mark = optarg;
			break;
		case 'K':
			options.mark_round = atol(optarg);
			break;
		case 'a':
			options.absent = atoi(optarg);
			break;
		case 'd':
			options.differ = atoi(optarg);
			break;
		case 'g':
			options.stagger = (useconds_t)(atof(optarg) * 1e6);
			break;
		case 'l':
			options.linger = (unsigned)atoi(optarg);
			break;
		case 'u':
			options.pause = (useconds_t)(atof(optarg) * 1e6);
			break;
		case 'U':
			options.until = optarg;
			break;
		case 'H':
			options.hold = optarg;
			break;
		case 't':
			options.times = optarg;
			break;
		case 'T':
			choice_read(&options.types, optarg, type_names, N_TYPES, "type");
			break;
		case 'O':
			choice_read(&options.ops, optarg, op_names, N_OPS, "operation");
			break;
		case 'p':
			options.split = true;
			break;
		default:
			exit(2);
		}
	}
}

int main(int argc, char **argv)
{
	trib_stats stats = { .struct_size = sizeof(stats) };
	trib_comm *comm = NULL;
	trib_status status;
	int rank, size;

	options_read(argc, argv);
	times = options.times ? fopen(options.times, "w") : NULL;
	if (options.times && !times) {
		perror(options.times);
		return 2;
	}
	if (times)
		setvbuf(times, NULL, _IOLBF, BUFSIZ); /* line by line: a script counts the lines */
	clock_gettime(CLOCK_MONOTONIC, &round_start);
	status = trib_init(&comm, NULL);
	if (status != TRIB_OK)
		die(NULL, "init", status);
	rank = trib_rank(comm);
	size = trib_size(comm);
	if (!run(comm, &options.rounds, 0) || (options.split && !run_split(comm))) {
		printf("rank %d: WRONG\n", rank);
		return 1;
	}
	if (times)
		fclose(times);
	trib_get_stats(comm, &stats);
	usleep((useconds_t)rank * options.stagger);
	status = trib_finalize(comm);
	if (status != TRIB_OK)
		die(NULL, "finalize", status);
	printf("rank %d of %d: right, %ld rounds, digest %016llx, common %016llx, sent %llu, "
	       "resent %llu, "
	       "duplicates %llu, dropped %llu\n",
	       rank, size, options.rounds, (unsigned long long)digest, (unsigned long long)common,
	       (unsigned long long)stats.sent_packets, (unsigned long long)stats.resent_packets,
	       (unsigned long long)stats.duplicates, (unsigned long long)stats.dropped_packets);
	return 0;
}
