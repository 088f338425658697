/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"
#include "cli/bench.h"
#include "cli/bench_plane.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "wire/packet.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const known[] = { "xdp",     PLANE_NIC, PLANE_RELAYED, "udp",
	                             "udp-nic", "tcp",     PLANE_COPIED,  "tcp-nic" };

/* One word after the other of a list with commas; false: it is over. */
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
	return o->n_planes ? TRIB_OK : status_fail(TRIB_ERR_ARGUMENT, "which planes?");
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
	return o->n_cores ? TRIB_OK : status_fail(TRIB_ERR_ARGUMENT, "how many cores?");
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
		return "--offload and --gro exclude one another";
	for (unsigned i = 0; i < o->n_planes; i++)
		if ((o->mode == PLANE_LOAD || o->rate != PLANE_NO_RATE) &&
		    strcmp(o->planes[i], PLANE_NIC) == 0)
			return "xdp-nic has no rate; name other planes with --plane";
	if (o->mode == PLANE_LOAD && o->rate != PLANE_NO_RATE)
		return "load finds its rates by itself";
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
			return "--urgent: the load would not let the aggregator run on so few "
			       "cores";
		if (o->cores[i] > cpu_count())
			return "--cores: there are not so many";
		if (!o->one_port && o->cores[i] * o->children > CLUSTER_HOSTS_MAX - 30)
			return "--cores with so many children needs --one-port";
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

int bench_plane_run(int argc, char **argv)
{
	static struct plane_options o = { .children = 2,
		                          .elements = 362,
		                          .pool_bytes = 64 << 20,
		                          .repeats = 3,
		                          .rate = PLANE_NO_RATE,
		                          .seconds = 1 };
	struct option_hook planes = { planes_take, &o }, cores = { cores_take, &o };
	const struct option_row rows[] = {
		{ "plane", 0, OPTION_HOOK, &planes, "LIST",
		  "of xdp, udp, tcp; xdp-nic, xdp-relay, udp-nic, tcp-nic (frames as in a NIC's "
		  "driver); tcp-copied (veth's copies, which xdp has) (all; load: xdp,udp,tcp; "
		  "cores: xdp)",
		  "xdp,tcp" },
		{ "cores", 0, OPTION_HOOK, &cores, "LIST",
		  "of the aggregator, each with a lane and a load of its own (1; cores: 1,2,4 ...)",
		  "1,2,4,8" },
		{ "children", 0, OPTION_COUNT, &o.children, "N", "of a lane (2)", "4" },
		{ "elements", 0, OPTION_COUNT, &o.elements, "N", "of a packet, 4 bytes each (362)",
		  "256" },
		{ "one-port", 0, OPTION_FLAG, &o.one_port, NULL,
		  "a lane's children share a port, as behind a server's one link", NULL },
		{ "to-all", 0, OPTION_FLAG, &o.to_all, NULL,
		  "results go to every child, not to one (a parameter server)", NULL },
		{ "offload", 0, OPTION_FLAG, &o.offload, NULL,
		  "up to 64 KB cross a link at once (default: packets cross singly)", NULL },
		{ "gro", 0, OPTION_FLAG, &o.gro, NULL,
		  "packets cross singly, and the receiver joins them, as behind a NIC", NULL },
		{ "singly", 0, OPTION_FLAG, &o.singly, NULL,
		  "the load hands over each packet by itself, instead of 44 to be cut", NULL },
		{ "rate", 0, OPTION_COUNT, &o.rate, "N",
		  "packets a second of a lane's children together (as many as it takes)",
		  "100000" },
		{ "window", 0, OPTION_COUNT, &o.window, "N",
		  "fragments under way where the rate is not limited (96; tcp: 512)", NULL },
		{ "pool", 0, OPTION_BYTES, &o.pool_bytes, "SIZE", "of a lane (64M)", "256K" },
		{ "seconds", 0, OPTION_SECONDS, &o.seconds, "S", "of a run (1)", "0.3" },
		{ "repeats", 0, OPTION_COUNT, &o.repeats, "N", "runs of each, in turns (3)", "5" },
		{ "check", 0, OPTION_FLAG, &o.check, NULL,
		  "look at every word of every sum, not at one", NULL },
		{ "hurry", 0, OPTION_FLAG, &o.hurry, NULL,
		  "do not wait for a moment when nobody else uses the machine", NULL },
		{ "steady", 0, OPTION_FLAG, &o.steady, NULL,
		  "cores that are not in use spin, so that all rows have the same clock", NULL },
		{ "urgent", 0, OPTION_FLAG, &o.urgent, NULL,
		  "run before all others on the machine (real-time priority); CPU time is then "
		  "that "
		  "of threads alone (not udp, tcp)",
		  NULL },
		{ "json", 0, OPTION_TEXT, &o.json, "FILE", "write the results there (-: here)",
		  NULL },
		{ "plot", 0, OPTION_TEXT, &o.plot, "FILE", "draw them there, as SVG", NULL },
		{ 0 },
	};
	const struct options options = {
		"trib bench plane [throughput|cores|load] [OPTION]...",
		"What an aggregator can take on its cores, and what that costs them: a load that\n"
		"joins as workers do sends it fragments over links that are made for it (root).\n"
		"throughput: as fast as it takes them. cores: the same over the number of cores.\n"
		"load: use of a core, latency and loss from nothing to what it can take.",
		"trib bench plane throughput --cores 1,2 --plot plane.svg",
		rows,
	};
	static const char *const modes[] = { "throughput", "cores", "load" };
	const char *wrong;
	trib_status status;
	int code, first;

	for (unsigned i = 0; i < 3 && argc > 1; i++)
		if (strcmp(argv[1], modes[i]) == 0) {
			o.mode = i;
			argc--;
			argv++;
			break;
		}
	first = options_parse(&options, argc, argv, &code);
	if (first < 0)
		return code;
	defaults_set(&o);
	wrong = first < argc ? "the modes are throughput, cores and load" : options_wrong(&o);
	if (wrong)
		return options_fail(&options, "%s", wrong);
	log_set_level_name("error");
	status = report_make(&o);
	if (status != TRIB_OK)
		fprintf(stderr, "trib bench plane: %s\n", trib_last_error());
	return status == TRIB_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
