/* SPDX-License-Identifier: Apache-2.0 */
/*
 * settings: all settings as one table. The environment, the configuration file and `trib
 * show config` use it. A value is looked up in this order: the environment; the file
 * named by TRIB_CONFIG (lines NAME=value, # comments; default /etc/tributary.conf);
 * variables of launchers (mpirun, srun, torchrun); the default. settings_table.c has the table,
 * settings_text.c looks values up, settings.c parses them.
 */
#ifndef TRIB_BASE_SETTINGS_H
#define TRIB_BASE_SETTINGS_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum setting_type {
	SETTING_TEXT,
	SETTING_COUNT,
	SETTING_BYTES,
	SETTING_RATE,
	SETTING_SECONDS,
	SETTING_BOOL
};

/* The values of setting_count for SETTING_PLANE. */
enum plane { PLANE_UDP, PLANE_TCP, PLANE_XDP, PLANE_PISA, PLANE_TC, PLANE_AUTO };

/* The values of setting_count for SETTING_TRANSPORT. */
enum transport { TRANSPORT_SOCKETS, TRANSPORT_VERBS, TRANSPORT_UDP };

/* The values of setting_count for SETTING_PACING. */
enum pacing { PACING_AUTO, PACING_BUCKET };

/* The values of setting_count for SETTING_WIRE. */
enum wire_width { WIDTH_AUTO, WIDTH_32, WIDTH_16, WIDTH_8 };

/* The values of setting_count for SETTING_ENGINE. */
enum engine_choice { ENGINE_AUTO, ENGINE_DENSE_ONLY, ENGINE_SLOT_FIRST };

/*
 * The kinds of SETTING_PATHS. OFF: one path. PROBED: hops tell paths apart. ADDRESSES: each pair of
 * addresses is a path. XOR: computed, since the fabric's hash is known.
 */
enum path_search { PATHS_OFF, PATHS_PROBED, PATHS_ADDRESSES, PATHS_XOR };

/* The values of setting_count for SETTING_RING. */
enum ring_choice { RING_AUTO, RING_NEVER, RING_ALWAYS };

/* The values of setting_count for SETTING_WAY. */
enum way_wish { WAYS_AUTO, WAYS_AGGREGATOR, WAYS_RING };

enum setting_id {
	SETTING_AGGREGATOR,
	SETTING_TREES,
	SETTING_RENDEZVOUS,
	SETTING_RING,
	SETTING_WAY,
	SETTING_RANK,
	SETTING_SIZE,
	SETTING_JOB,
	SETTING_COOKIE,
	SETTING_TIMEOUT,
	SETTING_POOL,
	SETTING_LANES,
	SETTING_LOCAL_SIZE,
	SETTING_RATE_LIMIT,
	SETTING_PACING,
	SETTING_MTU,
	SETTING_PATHS,
	SETTING_BALANCER,
	SETTING_MONITOR,
	SETTING_CHUNK,
	SETTING_PAGES,
	SETTING_WIRE,
	SETTING_ENGINE,
	SETTING_SLOTS,
	SETTING_PLANE,
	SETTING_TRANSPORT,
	SETTING_MULTICAST,
	SETTING_OFFLOAD,
	SETTING_BUSY_POLL,
	SETTING_PIN,
	SETTING_LOG,
	SETTING_COUNTERS,
	SETTING_CONTROLLER,
	SETTING_TOKEN,
	SETTING_TOKEN_FILE,
	SETTING_TLS_CERT,
	SETTING_TLS_KEY,
	SETTING_TLS_CA,
	SETTING_STATE,
	SETTING_BEAT,
	SETTING_LOAD_MAX,
	SETTING_SHARING,
	SETTING_EXIT_BELOW,
	SETTING_GAUGE,
	SETTING_FAN_IN,
	SETTING_STRIPES,
	SETTING_PLACEMENT,
	SETTING_ALPHA,
	SETTING_START_WITHIN,
	SETTING_KEEP_ENDED,
	SETTING_SPARSE_SERVERS,
	SETTING_MPI,
	SETTING_MPI_EXACT,
	SETTINGS_N,
};

struct setting {
	const char *name;     /* the environment variable */
	const char *fallback; /* default value; NULL: none */
	enum setting_type type;
	const char *help;
	const char *elsewhere; /* launchers' variables with the same meaning, separated by blanks */
};

struct setting_limits {
	uint64_t min, max; /* of a number; 0 and 0: none */
	const char *words; /* that a text allows; setting_count returns the index in this list */
};

extern const struct setting settings[SETTINGS_N];
extern const struct setting_limits setting_limits[SETTINGS_N];

#define COOKIE_DIGITS 16 /* hex digits of TRIB_COOKIE */

/* Must the value be hidden from output? */
bool setting_is_secret(enum setting_id id);
/* Takes the next word of a list such as `elsewhere` or `words`; false at its end. */
bool setting_word_next(const char **list, char *word, size_t room);
/* The text of a setting and, in *origin, its source; NULL: it has no value. */
const char *setting_text(enum setting_id id, const char **origin);
/* The parsed value. An error names the variable and what is expected. */
trib_status setting_count(enum setting_id id, uint64_t *value);
trib_status setting_seconds(enum setting_id id, double *value);
/* SETTING_PATHS. *most: the number of paths that is looked for, or that the hash chooses from. */
trib_status setting_paths(enum path_search *search, unsigned *most);
/* TRIB_OK: the value is well formed, or there is none. */
trib_status setting_check(enum setting_id id);

/* "64M", "1gbit", "2.5e9", "10" and the like. Bytes and bits: K, M, G in steps of 1024 / 1000. */
trib_status parse_bytes(const char *text, uint64_t *value);
trib_status parse_rate(const char *text, uint64_t *bits_per_second);
#define EXPECT_BYTES "bytes, such as 65536, 64M or 1.5G"
#define EXPECT_RATE "bits a second, such as 1gbit, 500mbit or 2.5e9"
/* Reads a number such as 12, 1.5 or 2.5e9. Returns the rest of the text; NULL: no number. */
const char *scan_number(const char *text, long double *value);

#endif
