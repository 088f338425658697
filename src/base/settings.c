/* SPDX-License-Identifier: Apache-2.0 */
#include "base/settings.h"
#include "base/log.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define CONFIG_DEFAULT "/etc/tributary.conf"
#define SECONDS_MAX 1e9 /* as nanoseconds, sums of several still fit 64 bits */
#define PATHS_AUTO 8u   /* paths that "auto" looks for */
#define PATHS_LIMIT 16u /* PATHS_MAX in path/balance/monitor.h */
#define EXPECT_PATHS "auto, off, addresses, xor:N or 1 to 16"
#define EXPECT_BYTES "bytes, such as 65536, 64M or 1.5G"
#define EXPECT_RATE "bits a second, such as 1gbit, 500mbit or 2.5e9"
#define EXPECT_SECONDS "seconds above 0, such as 30, 0.5 or 200ms"

/*
 * The lists for rank and size name the launchers in the same order. torchrun comes first
 * and srun last: if srun starts torchrun, torchrun knows the rank.
 */
#define LAUNCHER_RANK "RANK OMPI_COMM_WORLD_RANK PMI_RANK PMIX_RANK SLURM_PROCID"
#define LAUNCHER_SIZE "WORLD_SIZE OMPI_COMM_WORLD_SIZE PMI_SIZE SLURM_NTASKS SLURM_NTASKS"
#define LAUNCHER_LOCAL_SIZE \
	"LOCAL_WORLD_SIZE OMPI_COMM_WORLD_LOCAL_SIZE MPI_LOCALNRANKS SLURM_NTASKS_PER_NODE"

const struct setting settings[SETTINGS_N] = {
	[SETTING_AGGREGATOR] = { "TRIB_AGGREGATOR", NULL, SETTING_TEXT,
	                         "host:port of the aggregator; the same on all ranks", NULL },
	[SETTING_TREES] = { "TRIB_TREES", NULL, SETTING_TEXT,
	                    "several aggregators as trees, each with a share of every vector, e.g. "
	                    "2*HOST:PORT(0-3);1*HOST:PORT(HOST:PORT(0,1),2,3); replaces "
	                    "TRIB_AGGREGATOR",
	                    NULL },
	[SETTING_RENDEZVOUS] = { "TRIB_RENDEZVOUS", NULL, SETTING_TEXT,
	                         "where rank 0 listens, host:port, if there is no aggregator: the "
	                         "ranks then sum around a ring",
	                         NULL },
	[SETTING_RING] = { "TRIB_RING", "auto", SETTING_TEXT,
	                   "which vectors go around a ring of the ranks, or if they are short, "
	                   "directly between all ranks: auto (reduce-scatters and allgathers, "
	                   "where that is faster than an aggregator; every vector, if there is no "
	                   "aggregator), off or all (around the ring, short ones too); "
	                   "the same on all ranks",
	                   NULL },
	[SETTING_RANK] = { "TRIB_RANK", NULL, SETTING_COUNT,
	                   "this worker's rank, from 0; also taken from mpirun, srun, torchrun",
	                   LAUNCHER_RANK },
	[SETTING_SIZE] = { "TRIB_SIZE", NULL, SETTING_COUNT,
	                   "number of workers; also taken from mpirun, srun, torchrun",
	                   LAUNCHER_SIZE },
	[SETTING_JOB] = { "TRIB_JOB", "1", SETTING_COUNT,
	                  "id of the job, 0 to 65535; jobs at one aggregator need different ids",
	                  NULL },
	[SETTING_COOKIE] = { "TRIB_COOKIE", "0", SETTING_TEXT,
	                     "secret of the job, 16 hex digits as trib cookie makes them, the same "
	                     "on "
	                     "all ranks; aggregators serve other machines only with one",
	                     NULL },
	[SETTING_TIMEOUT] = { "TRIB_TIMEOUT", "30", SETTING_SECONDS,
	                      "timeout of joining and of blocking calls, in seconds; all other "
	                      "timeouts are derived from it",
	                      NULL },
	[SETTING_POOL] = { "TRIB_POOL", "64M", SETTING_BYTES,
	                   "memory requested at the aggregator; if the gradient fits, fast "
	                   "workers never wait for slow ones",
	                   NULL },
	[SETTING_LANES] = { "TRIB_LANES", "0", SETTING_COUNT,
	                    "independent streams to each tree, 1 to 16, each with its own "
	                    "thread; 0: chosen by the number of cores, up to 4",
	                    NULL },
	[SETTING_LOCAL_SIZE] = { "TRIB_LOCAL_SIZE", "1", SETTING_COUNT,
	                         "workers on this host, which share its cores; also taken from "
	                         "mpirun, srun, torchrun",
	                         LAUNCHER_LOCAL_SIZE },
	[SETTING_RATE_LIMIT] = { "TRIB_RATE", "0", SETTING_RATE,
	                         "limit on sending, in bits a second, e.g. 1gbit; 0: unlimited",
	                         NULL },
	[SETTING_PACING] = { "TRIB_PACING", "auto", SETTING_TEXT,
	                     "how packets are paced: auto (by the kernel, if the interface's "
	                     "qdisc is fq) or bucket (always by a token bucket in user space)",
	                     NULL },
	[SETTING_MTU] = { "TRIB_MTU", "0", SETTING_COUNT,
	                  "largest IP packet to send, in bytes; 0: the route's MTU", NULL },
	[SETTING_PATHS] = { "TRIB_PATHS", "auto", SETTING_TEXT,
	                    "paths to a worker or an aggregator: auto (up to 8, found by probes), "
	                    "off (one), "
	                    "1 to 16 (up to that many, found by probes), addresses (each pair of "
	                    "addresses is one), or xor:N (computed: the fabric hashes by XOR over "
	                    "N "
	                    "paths)",
	                    NULL },
	[SETTING_BALANCER] = { "TRIB_BALANCER", "bandwidth", SETTING_TEXT,
	                       "which path takes the next chunk: bandwidth (shares by measured "
	                       "bandwidth), round-robin, latency (the least that has room) or "
	                       "flowlet (changes in gaps only)",
	                       NULL },
	[SETTING_MONITOR] = { "TRIB_MONITOR", "smooth", SETTING_TEXT,
	                      "how a path's bandwidth is estimated: smooth (an average that "
	                      "forgets) or peak (the highest of the last 8 intervals)",
	                      NULL },
	[SETTING_CHUNK] = { "TRIB_CHUNK", "50K", SETTING_BYTES,
	                    "bytes of a message that go to one path at a time, 1K to 64M", NULL },
	[SETTING_PAGES] = { "TRIB_PAGES", NULL, SETTING_TEXT,
	                    "folder in which processes tell trib top --paths about their paths, or "
	                    "off; default: /run/tributary/paths as root, else /tmp/tributary-UID",
	                    NULL },
	[SETTING_WIRE] = { "TRIB_WIRE", "auto", SETTING_TEXT,
	                   "bits of an element of a float sum on the wire: auto (8-bit types: 10, "
	                   "f16 and bf16: 16, f32: 32), 32 (all types), 16 or 8 (also f32, which "
	                   "loses accuracy); more with many ranks (see trib explain JOB); the same "
	                   "on all ranks",
	                   NULL },
	[SETTING_ENGINE] = { "TRIB_ENGINE", "auto", SETTING_TEXT,
	                     "how vectors are summed: auto (small ones in slots, at the lowest "
	                     "latency; large ones as a stream of fragments), dense (no slots) or "
	                     "slot (slots up to 256 KiB, for measurements: sums of floats above 64 "
	                     "KiB have other last bits); the same on all ranks",
	                     NULL },
	[SETTING_SLOTS] = { "TRIB_SLOTS", "1024", SETTING_COUNT,
	                    "small vectors that may be on their way at once, 16 to 65536; rounded "
	                    "down to a power of two",
	                    NULL },
	[SETTING_PLANE] = { "TRIB_PLANE", "udp", SETTING_TEXT,
	                    "where sums are made, as in tribd --plane: udp, xdp, tcp (a "
	                    "baseline to compare with), or pisa (a model of a switch)",
	                    NULL },
	[SETTING_MULTICAST] = { "TRIB_MULTICAST", "auto", SETTING_TEXT,
	                        "one send for the results of all workers: auto (if it works) or "
	                        "off",
	                        NULL },
	[SETTING_OFFLOAD] = { "TRIB_OFFLOAD", "on", SETTING_BOOL,
	                      "UDP segmentation and receive offload, if available: on or off",
	                      NULL },
	[SETTING_BUSY_POLL] = { "TRIB_BUSY_POLL", "0", SETTING_COUNT,
	                        "microseconds that the kernel polls the device; lane threads then "
	                        "never sleep; 0: off",
	                        NULL },
	[SETTING_PIN] = { "TRIB_PIN", "off", SETTING_TEXT,
	                  "cores for the lane threads, in order, e.g. 0,1; off: the kernel chooses",
	                  NULL },
	[SETTING_LOG] = { "TRIB_LOG", "notice", SETTING_TEXT,
	                  "log level on stderr: error, warn, notice, info or debug", NULL },
	[SETTING_COUNTERS] = { "TRIB_COUNTERS", "off", SETTING_BOOL,
	                       "on: when tribd ends, it prints its counters as a line of JSON",
	                       NULL },
	[SETTING_CONTROLLER] = { "TRIB_CONTROLLER", NULL, SETTING_TEXT,
	                         "host:port of the controller, followed by #sha256//... if its key "
	                         "is pinned; for trib, for agents, and for workers without an "
	                         "aggregator",
	                         NULL },
	[SETTING_TOKEN] = { "TRIB_TOKEN", NULL, SETTING_TEXT,
	                    "secret that agents and trib show to the controller", NULL },
	[SETTING_TOKEN_FILE] = { "TRIB_TOKEN_FILE", NULL, SETTING_TEXT,
	                         "file whose first line is that secret; used if TRIB_TOKEN is not "
	                         "set",
	                         NULL },
	[SETTING_TLS_CERT] = { "TRIB_TLS_CERT", NULL, SETTING_TEXT,
	                       "PEM file with the certificate for HTTPS; without it tribd makes "
	                       "its own",
	                       NULL },
	[SETTING_TLS_KEY] = { "TRIB_TLS_KEY", NULL, SETTING_TEXT,
	                      "PEM file with the key of that certificate", NULL },
	[SETTING_TLS_CA] = { "TRIB_TLS_CA", NULL, SETTING_TEXT,
	                     "PEM file with the authorities that may sign a controller's "
	                     "certificate; default: the system's",
	                     NULL },
	[SETTING_STATE] = { "TRIB_STATE", NULL, SETTING_TEXT,
	                    "folder of the controller's store, key and token; default: "
	                    "/var/lib/tributary as root, else ~/.local/state/tributary",
	                    NULL },
	[SETTING_BEAT] = { "TRIB_BEAT", "0.25", SETTING_SECONDS,
	                   "controller: seconds between two heartbeats of an agent; after four "
	                   "missed heartbeats the agent counts as dead",
	                   NULL },
	[SETTING_LOAD_MAX] = { "TRIB_LOAD_MAX", "95", SETTING_COUNT,
	                       "percent of an agent's cores that other work may use before the "
	                       "controller plans without it; 100: no limit",
	                       NULL },
	[SETTING_SHARING] = { "TRIB_SHARING", "score", SETTING_TEXT,
	                      "controller: which job gets the next turn at an aggregator with a "
	                      "capacity: score (the one whose step gains most), greedy (the first "
	                      "to ask), fair (the one with the least use so far) or none (no "
	                      "turns)",
	                      NULL },
	[SETTING_EXIT_BELOW] = { "TRIB_EXIT_BELOW", "10", SETTING_COUNT,
	                         "percent of the step: if communication would stay below this "
	                         "without extra servers, a job gives them up; 0: never",
	                         NULL },
	[SETTING_GAUGE] = { "TRIB_GAUGE", "on", SETTING_BOOL,
	                    "controller: agents probe their links with each other, for up to a "
	                    "third of a second, when they join and when a job is slower than its "
	                    "plan: on or off",
	                    NULL },
	[SETTING_FAN_IN] = { "TRIB_FAN_IN", "64", SETTING_COUNT,
	                     "most children that the controller gives an aggregator, 2 to 64; a "
	                     "lower value makes deeper trees; exceeded if aggregators are too few",
	                     NULL },
	[SETTING_STRIPES] = { "TRIB_STRIPES", "64", SETTING_COUNT,
	                      "most trees in a plan of the controller, 1 to 64; each tree costs "
	                      "every worker a thread and a socket, so more than 16 are used only "
	                      "if they pay off",
	                      NULL },
	[SETTING_PLACEMENT] = { "TRIB_PLACEMENT", "smart", SETTING_TEXT,
	                        "controller: which hosts a job gets: smart (close together, "
	                        "leaving close ones free), first (the first free ones) or random",
	                        NULL },
	[SETTING_ALPHA] = { "TRIB_ALPHA", "50", SETTING_COUNT,
	                    "controller: weight of fragmenting the free hosts, in percent of the "
	                    "weight of fragmenting the job (smart placement; alpha of trib sim)",
	                    NULL },
	[SETTING_START_WITHIN] = { "TRIB_START_WITHIN", "120", SETTING_SECONDS,
	                           "controller: a job ends if none of its ranks has joined this "
	                           "many seconds after it got its hosts",
	                           NULL },
	[SETTING_KEEP_ENDED] = { "TRIB_KEEP_ENDED", "600", SETTING_SECONDS,
	                         "controller: a job whose ranks have all left is listed, and may "
	                         "run again, for this many seconds",
	                         NULL },
	[SETTING_SPARSE_SERVERS] = { "TRIB_SPARSE_SERVERS", NULL, SETTING_TEXT,
	                             "parameter servers of sparse training, in the order of their "
	                             "shards: HOST:PORT,HOST:PORT",
	                             NULL },
};

/* Limits, and the words that a text setting allows. */
static const struct {
	uint64_t min, max;
	const char *words; /* setting_count returns the index in this list */
} limits[SETTINGS_N] = {
	[SETTING_RANK] = { 0, INT_MAX - 1, NULL },
	[SETTING_SIZE] = { 1, INT_MAX, NULL },
	[SETTING_JOB] = { 0, UINT16_MAX, NULL },
	[SETTING_POOL] = { 1, INT64_MAX, NULL },
	[SETTING_LANES] = { 0, 16, NULL },
	[SETTING_LOCAL_SIZE] = { 1, INT_MAX, NULL },
	[SETTING_RATE_LIMIT] = { 0, UINT64_MAX, NULL },
	[SETTING_PACING] = { PACING_AUTO, PACING_BUCKET, "auto bucket" },
	[SETTING_MTU] = { 0, 65535, NULL },
	[SETTING_BALANCER] = { 0, 3, "round-robin bandwidth latency flowlet" },
	[SETTING_MONITOR] = { 0, 1, "smooth peak" },
	[SETTING_CHUNK] = { 1024, 64 << 20, NULL },
	[SETTING_WIRE] = { WIDTH_AUTO, WIDTH_8, "auto 32 16 8" },
	[SETTING_ENGINE] = { ENGINE_AUTO, ENGINE_SLOT_FIRST, "auto dense slot" },
	[SETTING_RING] = { RING_AUTO, RING_ALWAYS, "auto off all" },
	[SETTING_SLOTS] = { 16, 65536, NULL },
	[SETTING_PLANE] = { PLANE_UDP, PLANE_PISA, "udp tcp xdp pisa" },
	[SETTING_MULTICAST] = { 0, 1, "off auto" },
	[SETTING_OFFLOAD] = { 0, 1, "off on" },
	[SETTING_BUSY_POLL] = { 0, 1000000, NULL },
	[SETTING_COUNTERS] = { 0, 1, "off on" },
	[SETTING_LOG] = { LOG_ERROR, LOG_DEBUG, "error warn notice info debug" },
	[SETTING_LOAD_MAX] = { 1, 100, NULL },
	[SETTING_SHARING] = { 0, 3, "score greedy fair none" },
	[SETTING_EXIT_BELOW] = { 0, 100, NULL },
	[SETTING_GAUGE] = { 0, 1, "off on" },
	[SETTING_FAN_IN] = { 2, 64, NULL },
	[SETTING_STRIPES] = { 1, 64, NULL },
	[SETTING_PLACEMENT] = { 0, 2, "smart first random" },
	[SETTING_ALPHA] = { 0, 1000, NULL },
};

/* ---- the file ---- */

/* Read once and never freed: returned values point into it. */
struct config_file {
	struct config_file *next;
	char *path;
	char *values[SETTINGS_N];
	char *origins[SETTINGS_N]; /* "path:line" */
};

static char *text_trim(char *text)
{
	while (isspace((unsigned char)*text))
		text++;
	for (size_t n = strlen(text); n && isspace((unsigned char)text[n - 1]); n--)
		text[n - 1] = '\0';
	return text;
}

static void config_take_line(struct config_file *file, char *line, unsigned number)
{
	char *name = text_trim(line), *value = strchr(name, '=');

	if (*name == '#' || *name == '\0')
		return;
	if (!value) {
		log_warn("%s:%u: \"%s\" is ignored; expected NAME=value", file->path, number, name);
		return;
	}
	*value++ = '\0';
	for (char *p = value; *p; p++) {
		if (*p == '#' && (p == value || isspace((unsigned char)p[-1])))
			*p = '\0';
	}
	name = text_trim(name);
	value = text_trim(value);
	for (int i = 0; i < SETTINGS_N; i++) {
		if (strcmp(name, settings[i].name) != 0)
			continue;
		/* The last line wins, as it would in a shell. */
		free(file->values[i]);
		free(file->origins[i]);
		file->values[i] = strdup(value);
		if (asprintf(&file->origins[i], "%s:%u", file->path, number) < 0)
			file->origins[i] = NULL;
		return;
	}
	log_warn("%s:%u: %s is not a setting; `trib show config` lists them", file->path, number,
	         name);
}

static struct config_file *config_read(const char *path, bool must_exist)
{
	struct config_file *file = calloc(1, sizeof(*file));
	char *line = NULL;
	size_t room = 0;
	FILE *in;

	if (!file || !(file->path = strdup(path))) {
		free(file);
		return NULL;
	}
	in = fopen(path, "re");
	if (!in) {
		if (must_exist || errno != ENOENT)
			log_warn("cannot read the settings in %s: %s", path, strerror(errno));
		return file;
	}
	for (unsigned number = 1; getline(&line, &room, in) >= 0; number++)
		config_take_line(file, line, number);
	if (ferror(in))
		log_warn("cannot read all settings in %s: %s", path, strerror(errno));
	free(line);
	fclose(in);
	return file;
}

static const struct config_file *config_find(void)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static struct config_file *files;
	const char *named = getenv("TRIB_CONFIG");
	const char *path = named && *named ? named : CONFIG_DEFAULT;
	struct config_file *file;

	pthread_mutex_lock(&lock);
	for (file = files; file && strcmp(file->path, path) != 0; file = file->next)
		;
	if (!file && (file = config_read(path, path == named))) {
		file->next = files;
		files = file;
	}
	pthread_mutex_unlock(&lock);
	return file;
}

/* ---- looking up ---- */

/* An empty variable counts as unset, so that `TRIB_RATE= cmd` unsets one. */
static const char *env_get(const char *name)
{
	const char *value = getenv(name);

	return value && *value ? value : NULL;
}

static const char *setting_own(enum setting_id id, const char **origin)
{
	const char *value = env_get(settings[id].name);
	const struct config_file *file;

	*origin = "environment";
	if (value)
		return value;
	file = config_find();
	if (!file || !file->values[id] || !*file->values[id])
		return NULL;
	*origin = file->origins[id] ? file->origins[id] : file->path;
	return file->values[id];
}

/* Takes the next word of a list; false at its end. */
static bool list_next(const char **list, char *word, size_t room)
{
	size_t n;

	*list += strspn(*list, " ");
	n = strcspn(*list, " ");
	snprintf(word, room, "%.*s", (int)n, *list);
	*list += n;
	return n > 0;
}

/* The rank of one launcher with the size of another would hang a job: take both or neither. */
static const char *setting_launched(enum setting_id id, const char **origin)
{
	static _Thread_local char name[64];
	enum setting_id mate = id == SETTING_RANK ? SETTING_SIZE : SETTING_RANK;
	const char *list = settings[id].elsewhere, *mates = settings[mate].elsewhere, *value, *from;
	bool mate_is_given = setting_own(mate, &from) != NULL;
	char other[64];

	while (list_next(&list, name, sizeof(name)) && list_next(&mates, other, sizeof(other))) {
		value = env_get(name);
		if (value && (mate_is_given || env_get(other))) {
			*origin = name;
			return value;
		}
	}
	return NULL;
}

bool setting_is_secret(enum setting_id id)
{
	return id == SETTING_COOKIE || id == SETTING_TOKEN;
}

const char *setting_text(enum setting_id id, const char **origin)
{
	const char *where, *value = setting_own(id, &where);

	if (!value && settings[id].elsewhere)
		value = setting_launched(id, &where);
	if (!value) {
		value = settings[id].fallback;
		where = value ? "default" : "not set";
	}
	if (origin)
		*origin = where;
	return value;
}

/* ---- numbers ---- */

/*
 * Reads a number such as 12, 1.5 or 2.5e9 and returns the rest of the text; NULL: no
 * number. strtod does not serve: it depends on the locale's decimal point and accepts
 * signs, hex and "nan". A long double holds every 64-bit integer.
 */
static const char *number_scan(const char *text, long double *value)
{
	long double number = 0;
	int exponent = 0, digits = 0;

	if (strlen(text) > 64)
		return NULL;
	for (; isdigit((unsigned char)*text); text++, digits++)
		number = number * 10 + (*text - '0');
	if (*text == '.') {
		for (text++; isdigit((unsigned char)*text); text++, digits++, exponent--)
			number = number * 10 + (*text - '0');
	}
	if (!digits)
		return NULL;
	if (*text == 'e' || *text == 'E') {
		const char *p = text + 1;
		int sign = *p == '-' ? -1 : 1, written = 0;

		p += *p == '-' || *p == '+';
		if (!isdigit((unsigned char)*p))
			return NULL;
		for (; isdigit((unsigned char)*p); p++)
			written = written < 100 ? written * 10 + (*p - '0') : written;
		exponent += sign * written;
		text = p;
	}
	for (; exponent > 0 && number > 0 && number < 1e30L; exponent--)
		number *= 10;
	/* One division, so that 1.1e6 is exactly 1100000. */
	long double divisor = 1;
	for (; exponent < 0; exponent++)
		divisor *= 10;
	*value = number / divisor;
	return text;
}

static bool is_one_of(const char *text, const char *a, const char *b, const char *c)
{
	return strcasecmp(text, a) == 0 || strcasecmp(text, b) == 0 || strcasecmp(text, c) == 0;
}

/* A number, an optional prefix K, M, G or T, and an optional unit. */
static trib_status number_parse(const char *text, unsigned step, const char *unit,
                                const char *other_unit, const char *expected, uint64_t *value)
{
	static const char prefixes[] = "KMGT";
	long double number, scale = 1;
	const char *rest = number_scan(text, &number), *prefix;

	if (rest && *rest && (prefix = strchr(prefixes, toupper((unsigned char)*rest)))) {
		for (; prefix >= prefixes; prefix--)
			scale *= step;
		rest++;
	}
	if (!rest || !is_one_of(rest, "", unit, other_unit))
		return status_fail(TRIB_ERR_ARGUMENT, "\"%s\" is not %s", text, expected);
	number *= scale;
	if (number > (long double)UINT64_MAX)
		return status_fail(TRIB_ERR_ARGUMENT, "\"%s\" is more than 64 bits can hold", text);
	if (number > 0 && number < 1)
		return status_fail(TRIB_ERR_ARGUMENT, "\"%s\" is less than 1", text);
	*value = (uint64_t)number;
	return TRIB_OK;
}

trib_status parse_bytes(const char *text, uint64_t *value)
{
	return number_parse(text, 1024, "B", "iB", EXPECT_BYTES, value);
}

/* No "bps": to tc that is bytes, to everyone else bits. */
trib_status parse_rate(const char *text, uint64_t *bits_per_second)
{
	return number_parse(text, 1000, "bit", "bit/s", EXPECT_RATE, bits_per_second);
}

/* ---- settings, parsed ---- */

static bool digits_parse(const char *text, int base, uint64_t *value)
{
	char *end;

	if (!isxdigit((unsigned char)*text))
		return false;
	errno = 0;
	*value = strtoull(text, &end, base);
	return *end == '\0' && errno == 0;
}

static bool word_parse(const char *text, const char *words, uint64_t *value)
{
	char word[32];

	for (*value = 0; list_next(&words, word, sizeof(word)); ++*value) {
		if (strcasecmp(text, word) == 0)
			return true;
	}
	return false;
}

static bool bool_parse(const char *text, uint64_t *value)
{
	*value = is_one_of(text, "on", "yes", "true") || strcmp(text, "1") == 0;
	return *value || is_one_of(text, "off", "no", "false") || strcmp(text, "0") == 0;
}

static bool setting_parse(enum setting_id id, const char *text, uint64_t *value)
{
	if (id == SETTING_COOKIE) /* "0": none. A short cookie could be guessed. */
		return digits_parse(text, 16, value) &&
		       (strlen(text) == COOKIE_DIGITS || strcmp(text, "0") == 0);
	switch (settings[id].type) {
	case SETTING_COUNT:
		return digits_parse(text, 10, value);
	case SETTING_BYTES:
		return parse_bytes(text, value) == TRIB_OK;
	case SETTING_RATE:
		return parse_rate(text, value) == TRIB_OK;
	case SETTING_BOOL:
		return bool_parse(text, value);
	case SETTING_TEXT:
		return limits[id].words && word_parse(text, limits[id].words, value);
	case SETTING_SECONDS:
		break;
	}
	return false;
}

static void setting_expected(enum setting_id id, char *out, size_t room)
{
	if (id == SETTING_COOKIE)
		snprintf(out, room, "16 hex digits, as trib cookie makes them");
	else if (id == SETTING_PATHS)
		snprintf(out, room, EXPECT_PATHS);
	else if (settings[id].type == SETTING_SECONDS)
		snprintf(out, room, EXPECT_SECONDS);
	else if (settings[id].type == SETTING_BYTES)
		snprintf(out, room, EXPECT_BYTES);
	else if (settings[id].type == SETTING_RATE)
		snprintf(out, room, EXPECT_RATE);
	else if (limits[id].words)
		snprintf(out, room, "one of: %s", limits[id].words);
	else if (settings[id].type == SETTING_COUNT)
		snprintf(out, room, "a whole number from %llu to %llu",
		         (unsigned long long)limits[id].min, (unsigned long long)limits[id].max);
	else
		snprintf(out, room, "%s", settings[id].help);
}

static trib_status setting_fail(enum setting_id id)
{
	const char *origin, *text = setting_text(id, &origin);
	char expected[200];

	setting_expected(id, expected, sizeof(expected));
	if (!text)
		return status_fail(TRIB_ERR_CONFIG, "%s is not set%s%s; expected %s",
		                   settings[id].name,
		                   settings[id].elsewhere ? ", nor by a launcher in one of " : "",
		                   settings[id].elsewhere ? settings[id].elsewhere : "", expected);
	/* A secret never goes to a log, not even a mistyped one. */
	return status_fail(TRIB_ERR_CONFIG, "%s is %s%s%s (from %s); expected %s",
	                   settings[id].name, setting_is_secret(id) ? "" : "\"",
	                   setting_is_secret(id) ? "malformed" : text,
	                   setting_is_secret(id) ? "" : "\"", origin, expected);
}

trib_status setting_count(enum setting_id id, uint64_t *value)
{
	const char *text = setting_text(id, NULL);
	uint64_t number = 0;

	if (!text || !setting_parse(id, text, &number))
		return setting_fail(id);
	if (limits[id].max && (number < limits[id].min || number > limits[id].max))
		return setting_fail(id);
	*value = number;
	return TRIB_OK;
}

trib_status setting_seconds(enum setting_id id, double *value)
{
	const char *text = setting_text(id, NULL), *unit;
	long double seconds;

	unit = text ? number_scan(text, &seconds) : NULL;
	if (!unit || !is_one_of(unit, "", "s", "ms"))
		return setting_fail(id);
	if (strcasecmp(unit, "ms") == 0)
		seconds /= 1000;
	if (!(seconds > 0 && seconds <= SECONDS_MAX))
		return setting_fail(id);
	*value = (double)seconds;
	return TRIB_OK;
}

trib_status setting_paths(enum path_search *search, unsigned *most)
{
	const char *text = setting_text(SETTING_PATHS, NULL);
	bool computed = strncasecmp(text, "xor:", 4) == 0;
	uint64_t n;

	*search = computed ? PATHS_XOR : PATHS_PROBED;
	*most = PATHS_AUTO;
	if (strcasecmp(text, "auto") == 0)
		return TRIB_OK;
	if (strcasecmp(text, "off") == 0) {
		*search = PATHS_OFF;
		*most = 1;
		return TRIB_OK;
	}
	if (strcasecmp(text, "addresses") == 0) {
		*search = PATHS_ADDRESSES;
		*most = PATHS_LIMIT;
		return TRIB_OK;
	}
	if (!digits_parse(computed ? text + 4 : text, 10, &n) || n < 1 || n > PATHS_LIMIT)
		return setting_fail(SETTING_PATHS);
	*most = (unsigned)n;
	return TRIB_OK;
}

static bool pin_is_good(const char *text)
{
	bool digit = false;

	if (strcmp(text, "off") == 0)
		return true;
	for (; *text; text++) {
		if (*text == ',' && !digit)
			return false;
		digit = isdigit((unsigned char)*text);
		if (!digit && *text != ',')
			return false;
	}
	return digit;
}

trib_status setting_check(enum setting_id id)
{
	const char *text = setting_text(id, NULL), *colon;
	enum path_search search;
	unsigned most;
	uint64_t count;
	double seconds;

	if (!text)
		return TRIB_OK;
	if (id == SETTING_AGGREGATOR || id == SETTING_CONTROLLER) {
		colon = strrchr(text, ':');
		return colon > text && colon[1] ? TRIB_OK : setting_fail(id);
	}
	if (id == SETTING_TREES) /* the reader of the trees parses the brackets */
		return strchr(text, '(') ? TRIB_OK : setting_fail(id);
	if (id == SETTING_PIN)
		return pin_is_good(text) ? TRIB_OK : setting_fail(id);
	if (id == SETTING_PATHS)
		return setting_paths(&search, &most);
	if (settings[id].type == SETTING_SECONDS)
		return setting_seconds(id, &seconds);
	if (settings[id].type == SETTING_TEXT && !limits[id].words && id != SETTING_COOKIE)
		return TRIB_OK; /* any text is valid */
	return setting_count(id, &count);
}
