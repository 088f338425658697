/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"
#include "bench/plane/bench_plane.h"
#include "options/options.h"
#include "wire/packet.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const known[] = { "xdp",     PLANE_NIC, PLANE_RELAYED, "udp",
	                             "udp-nic", "tcp",     PLANE_COPIED,  "tcp-nic" };

/* Copies the next word of a list with commas; false: there is none. */
static bool word_next(const char **text, char *word, size_t size)
{
	size_t length = strcspn(*text, ",");

	if (!length)
		return false;
	snprintf(word, size, "%.*s", (int)length, *text);
	*text += length + ((*text)[length] == ',');
	return true;
}

static trib_status planes_take(void *target, const char *text)
{
	struct plane_options *o = target;
	char word[16];

	for (o->n_planes = 0; word_next(&text, word, sizeof(word));) {
		unsigned i = 0;

		while (i < PLANES_MAX && strcmp(known[i], word) != 0)
			i++;
		if (i == PLANES_MAX || o->n_planes == PLANES_MAX)
			return status_fail(TRIB_ERR_ARGUMENT,
			                   "planes are xdp, xdp-nic, xdp-relay, udp, udp-nic, tcp, "
			                   "tcp-copied and tcp-nic");
		o->planes[o->n_planes++] = known[i];
	}
	return o->n_planes ? TRIB_OK
	                   : status_fail(TRIB_ERR_ARGUMENT, "--plane needs at least one plane");
}

static trib_status cores_take(void *target, const char *text)
{
	struct plane_options *o = target;
	char word[16];

	for (o->n_cores = 0; word_next(&text, word, sizeof(word));) {
		unsigned long n = strtoul(word, NULL, 10);

		if (n < 1 || n > LOAD_LANES_MAX || o->n_cores == PLANE_CORES_MAX)
			return status_fail(TRIB_ERR_ARGUMENT,
			                   "cores are numbers from 1 to %u, at most %u of them",
			                   LOAD_LANES_MAX, PLANE_CORES_MAX);
		o->cores[o->n_cores++] = (unsigned)n;
	}
	return o->n_cores ? TRIB_OK
	                  : status_fail(TRIB_ERR_ARGUMENT, "--cores needs at least one number");
}

static const char *options_wrong(const struct plane_options *o)
{
	if (o->children < 1 || o->children > LOAD_CHILDREN_MAX)
		return "--children is 1 to 16";
	if (o->elements * 4 < WIRE_PAYLOAD_MIN || o->elements > 362 || o->elements % 2)
		return "--elements is an even number from 64 to 362";
	if (o->repeats < 1 || o->repeats > PLANE_REPEATS_MAX)
		return "--repeats is 1 to 99";
	if (o->window > 16384)
		return "--window is 16384 at most";
	if (o->offload && o->gro)
		return "--offload and --gro cannot be combined";
	for (unsigned i = 0; i < o->n_planes; i++)
		if ((o->mode == PLANE_LOAD || o->rate != PLANE_NO_RATE) &&
		    strcmp(o->planes[i], PLANE_NIC) == 0)
			return "xdp-nic has no rate; name other planes with --plane";
	if (o->mode == PLANE_LOAD && o->rate != PLANE_NO_RATE)
		return "load chooses its rates itself: leave --rate out";
	for (unsigned i = 0; i < o->n_planes; i++)
		if ((o->gro || o->offload) && bench_plane_is_framed(o->planes[i]))
			return "frames as in a NIC's driver come one by one, without --gro and "
			       "--offload; name other planes with --plane";
	for (unsigned i = 0; i < o->n_planes; i++)
		if (o->urgent && !o->gro &&
		    (strcmp(o->planes[i], "udp") == 0 || strcmp(o->planes[i], "tcp") == 0))
			return "--urgent: udp and tcp do not receive in threads; name other planes "
			       "with --plane";
	for (unsigned i = 0; i < o->n_cores; i++) {
		if (o->urgent && 2 * o->cores[i] > cpu_count())
			return "--urgent: with so few cores the load would keep the aggregator "
			       "from running";
		if (o->cores[i] > cpu_count())
			return "--cores: this machine has fewer cores";
		if (!o->one_port && o->cores[i] * o->children > CLUSTER_HOSTS_MAX - 30)
			return "--cores: too many children for a port each; use --one-port";
	}
	return NULL;
}

static void defaults_set(struct plane_options *o)
{
	if (!o->n_planes)
		planes_take(o, o->mode == PLANE_CORES  ? "xdp"
		               : o->mode == PLANE_LOAD ? "xdp,udp,tcp"
		               : o->urgent && !o->gro
		                       ? "xdp,xdp-nic,xdp-relay,udp-nic,tcp-copied,tcp-nic"
		               : o->gro || o->offload ? "xdp,xdp-nic,udp,tcp,tcp-copied"
		                                      : "xdp,xdp-nic,xdp-relay,udp,udp-nic,tcp,"
		                                        "tcp-copied,tcp-nic");
	if (!o->n_cores) {
		unsigned most = cpu_count() / 2;

		o->cores[o->n_cores++] = 1;
		for (unsigned n = 2; o->mode == PLANE_CORES && n <= most && n <= LOAD_LANES_MAX;
		     n *= 2)
			o->cores[o->n_cores++] = n;
	}
	if (o->mode == PLANE_LOAD)
		o->n_cores = 1;
}

static trib_status report_make(const struct plane_options *o)
{
	static struct plane_report report;
	trib_status status;

	report.options = o;
	status = bench_plane_measure(&report);
	if (!report.n)
		return status;
	if (!o->json || strcmp(o->json, "-") != 0)
		bench_plane_print(&report);
	if (o->json && bench_plane_json(&report, o->json) != TRIB_OK)
		return TRIB_ERR_SYSTEM;
	if (o->plot && bench_plane_plot(&report, o->plot) != TRIB_OK)
		return TRIB_ERR_SYSTEM;
	for (unsigned i = 0; i < report.n && status == TRIB_OK; i++)
		if (report.rows[i].failed[0])
			status = status_fail(TRIB_ERR_PEER, "%s: %s", report.rows[i].plane,
			                     report.rows[i].failed);
	return status;
}

static struct plane_options given = { .children = 2,
	                              .elements = 362,
	                              .pool_bytes = 64 << 20,
	                              .repeats = 3,
	                              .rate = PLANE_NO_RATE,
	                              .seconds = 1 };
static struct option_hook planes_hook = { planes_take, &given };
static struct option_hook cores_hook = { cores_take, &given };

static const struct option_row rows[] = {
	{ "plane", 0, OPTION_HOOK, &planes_hook, "LIST",
	  "planes: xdp, udp, tcp; xdp-nic, xdp-relay, udp-nic, tcp-nic (frames as from a "
	  "NIC's driver); tcp-copied (copies by veth, as xdp has) (default: all; load: "
	  "xdp,udp,tcp; cores: xdp)",
	  "xdp,tcp" },
	{ "cores", 0, OPTION_HOOK, &cores_hook, "LIST",
	  "cores of the aggregator, each with a lane and a load of its own (default 1; "
	  "cores: 1,2,4 ...)",
	  "1,2,4,8" },
	{ "children", 0, OPTION_COUNT, &given.children, "N", "children of a lane (default 2)",
	  "4" },
	{ "elements", 0, OPTION_COUNT, &given.elements, "N",
	  "elements of a packet, 4 bytes each (default 362)", "256" },
	{ "one-port", 0, OPTION_FLAG, &given.one_port, NULL,
	  "the children of a lane share a port, as behind a server with one link", NULL },
	{ "to-all", 0, OPTION_FLAG, &given.to_all, NULL,
	  "results go to every child, not to one (a parameter server)", NULL },
	{ "offload", 0, OPTION_FLAG, &given.offload, NULL,
	  "up to 64 KB cross a link at once (default: packets cross one by one)", NULL },
	{ "gro", 0, OPTION_FLAG, &given.gro, NULL,
	  "packets cross one by one, and the receiver joins them, as behind a NIC", NULL },
	{ "singly", 0, OPTION_FLAG, &given.singly, NULL,
	  "the load sends packets one by one, instead of 44 in a call", NULL },
	{ "rate", 0, OPTION_COUNT, &given.rate, "N",
	  "packets a second of all children of a lane (default: as many as the aggregator "
	  "takes)",
	  "100000" },
	{ "window", 0, OPTION_COUNT, &given.window, "N",
	  "fragments in flight if the rate is not limited (default 96; tcp: 512)", NULL },
	{ "pool", 0, OPTION_BYTES, &given.pool_bytes, "SIZE", "pool of a lane (default 64M)",
	  "256K" },
	{ "seconds", 0, OPTION_SECONDS, &given.seconds, "S", "duration of a run (default 1)",
	  "0.3" },
	{ "repeats", 0, OPTION_COUNT, &given.repeats, "N", "runs of each row, in turns (default 3)",
	  "5" },
	{ "check", 0, OPTION_FLAG, &given.check, NULL,
	  "check every word of every sum, not one word", NULL },
	{ "hurry", 0, OPTION_FLAG, &given.hurry, NULL,
	  "do not wait for a moment when nothing else uses the machine", NULL },
	{ "steady", 0, OPTION_FLAG, &given.steady, NULL,
	  "unused cores spin, so that all rows have the same clock rate", NULL },
	{ "urgent", 0, OPTION_FLAG, &given.urgent, NULL,
	  "run before everything else on the machine (real-time priority); CPU time is "
	  "then that of threads alone (not udp, tcp)",
	  NULL },
	{ "json", 0, OPTION_JSON_FILE, &given.json, "FILE",
	  "write the results to FILE as JSON (-: standard output)", NULL },
	{ "plot", 0, OPTION_TEXT, &given.plot, "FILE", "draw the results to FILE as SVG", NULL },
	{ 0 },
};

static const struct options options = {
	"trib bench plane [throughput|cores|load] [OPTION]...",
	"Measures how much an aggregator can sum on its cores, and its CPU time. A load "
	"that joins\n"
	"as workers do sends it fragments over links that are made for it (root).\n"
	"throughput: as fast as it takes them. cores: the same for several numbers of cores.\n"
	"load: CPU use, latency and loss, from no load to the most it takes.",
	"trib bench plane throughput --cores 1,2 --plot plane.svg",
	rows,
};

int bench_plane_run(int argc, char **argv)
{
	static const char *const modes[] = { "throughput", "cores", "load" };
	const char *wrong;
	trib_status status;
	int code, first;

	for (unsigned i = 0; i < 3 && argc > 1; i++)
		if (strcmp(argv[1], modes[i]) == 0) {
			given.mode = i;
			argc--;
			argv++;
			break;
		}
	first = options_parse(&options, argc, argv, &code);
	if (first < 0)
		return code;
	defaults_set(&given);
	wrong = first < argc ? "the modes are throughput, cores and load" : options_wrong(&given);
	if (wrong)
		return options_fail(&options, "%s", wrong);
	log_set_level_name("error");
	status = report_make(&given);
	if (status != TRIB_OK)
		fprintf(stderr, "trib bench plane: %s\n", trib_last_error());
	return status == TRIB_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
