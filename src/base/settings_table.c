/* SPDX-License-Identifier: Apache-2.0 */
/* The settings: names, defaults, help, limits. */
#include "base/settings.h"
#include "base/log.h"

#include <limits.h>

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
	                         "ranks then sum among themselves; default: where torchrun, mpirun "
	                         "or srun says that rank 0 runs",
	                         NULL },
	[SETTING_RING] = { "TRIB_RING", "auto", SETTING_TEXT,
	                   "which vectors go around a ring of the ranks, or, if they are short or "
	                   "allreduces, directly between all ranks: auto (reduce-scatters and "
	                   "allgathers from 16 KiB on, where that is faster than an aggregator; "
	                   "every vector, if there is no aggregator), off or all (every vector, "
	                   "around the ring); the same on all ranks",
	                   NULL },
	[SETTING_WAY] = { "TRIB_WAY", "auto", SETTING_TEXT,
	                  "which way allreduces, reduces and broadcasts from 16 KiB take if there "
	                  "is an aggregator: auto (both are tried, and the faster is kept), "
	                  "aggregator, or ring (around the ring of the ranks, short ones "
	                  "directly); the same on all ranks",
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
	                     "on all ranks; aggregators serve other machines only with one",
	                     NULL },
	[SETTING_TIMEOUT] = { "TRIB_TIMEOUT", "30", SETTING_SECONDS,
	                      "timeout of joining and of blocking calls, in seconds; all other "
	                      "timeouts are derived from it",
	                      NULL },
	[SETTING_POOL] = { "TRIB_POOL", "64M", SETTING_BYTES,
	                   "memory requested at the aggregator; if the gradient fits, fast workers "
	                   "never wait for slow ones",
	                   NULL },
	[SETTING_LANES] = { "TRIB_LANES", "0", SETTING_COUNT,
	                    "independent streams to each tree, 1 to 16, each with its own thread; "
	                    "0: chosen by the number of cores, up to 4",
	                    NULL },
	[SETTING_LOCAL_SIZE] = { "TRIB_LOCAL_SIZE", "1", SETTING_COUNT,
	                         "workers on this host, which share its cores; also taken from "
	                         "mpirun, srun, torchrun",
	                         LAUNCHER_LOCAL_SIZE },
	[SETTING_RATE_LIMIT] = { "TRIB_RATE", "0", SETTING_RATE,
	                         "limit on sending, in bits a second, e.g. 1gbit; 0: unlimited",
	                         NULL },
	[SETTING_PACING] = { "TRIB_PACING", "auto", SETTING_TEXT,
	                     "how packets are paced: auto (by the kernel, if the interface's qdisc "
	                     "is fq) or bucket (always by a token bucket in user space)",
	                     NULL },
	[SETTING_MTU] = { "TRIB_MTU", "0", SETTING_COUNT,
	                  "largest IP packet to send, in bytes; 0: the route's MTU", NULL },
	[SETTING_PATHS] = { "TRIB_PATHS", "auto", SETTING_TEXT,
	                    "paths to a worker or an aggregator: auto (up to 8, found by probes), "
	                    "off (one), 1 to 16 (up to that many, found by probes), addresses "
	                    "(each pair of addresses is one), or xor:N (computed: the fabric "
	                    "hashes by XOR over N paths)",
	                    NULL },
	[SETTING_BALANCER] = { "TRIB_BALANCER", "bandwidth", SETTING_TEXT,
	                       "which path takes the next chunk: bandwidth (shares by measured "
	                       "bandwidth), round-robin, latency (the lowest among those with "
	                       "room) or flowlet (changes in gaps only)",
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
	                    "small vectors that may be in flight at once, 16 to 65536; rounded "
	                    "down to a power of two",
	                    NULL },
	[SETTING_PLANE] = { "TRIB_PLANE", "auto", SETTING_TEXT,
	                    "where sums are made, as in tribd --plane: auto (tc if possible, else "
	                    "udp), udp, tc or xdp (in the kernel), tcp (a baseline to compare "
	                    "with), or pisa (a model of a switch)",
	                    NULL },
	[SETTING_TRANSPORT] = { "TRIB_TRANSPORT", "sockets", SETTING_TEXT,
	                        "how bytes travel: sockets, udp (the same, without TCP between "
	                        "ranks), or verbs (by RDMA, around a ring and on the tcp plane, "
	                        "where both ends have a device)",
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
	[SETTING_MPI] = { "TRIB_MPI", "auto", SETTING_TEXT,
	                  "MPI adapter: off; auto, where it is faster than MPI itself; on: always, "
	                  "and an error where it cannot",
	                  NULL },
	[SETTING_MPI_EXACT] = { "TRIB_MPI_EXACT", "double", SETTING_TEXT,
	                        "MPI adapter: which sums are as exact as MPI's: none, double, or "
	                        "all (MPI itself then carries long sums of floats)",
	                        NULL },
};

const struct setting_limits setting_limits[SETTINGS_N] = {
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
	[SETTING_WAY] = { WAYS_AUTO, WAYS_RING, "auto aggregator ring" },
	[SETTING_SLOTS] = { 16, 65536, NULL },
	[SETTING_PLANE] = { PLANE_UDP, PLANE_AUTO, "udp tcp xdp pisa tc auto" },
	[SETTING_TRANSPORT] = { TRANSPORT_SOCKETS, TRANSPORT_UDP, "sockets verbs udp" },
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
	[SETTING_MPI] = { 0, 2, "off auto on" },
	[SETTING_MPI_EXACT] = { 0, 2, "none double all" },
};
