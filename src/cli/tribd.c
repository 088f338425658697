/* SPDX-License-Identifier: Apache-2.0 */
/* tribd: the daemon. Today it aggregates, for whoever shows the cookie. */
#include "base/log.h"
#include "base/settings.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "plane/core/aggregator.h"
#include "wire/packet.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RECEIVE_BYTES (32 << 20)
#define SEND_BYTES (512 << 10)

static int fail(void)
{
	fprintf(stderr, "tribd: %s\n", trib_last_error());
	return EXIT_FAILURE;
}

static trib_status configure(struct aggregator_options *options, const char *listen,
                             uint64_t threads)
{
	uint64_t busy_poll, offload, multicast;
	const char *pin = setting_text(SETTING_PIN, NULL);
	trib_status status;

	if ((status = udp_resolve(listen, UDP_DEFAULT_PORT, &options->listen)) ||
	    (status = setting_count(SETTING_COOKIE, &options->cookie)) ||
	    (status = setting_count(SETTING_BUSY_POLL, &busy_poll)) ||
	    (status = setting_count(SETTING_OFFLOAD, &offload)) ||
	    (status = setting_count(SETTING_MULTICAST, &multicast)))
		return status;
	if (threads < 1 || threads > WIRE_LANES_MAX)
		return status_fail(TRIB_ERR_CONFIG, "%llu threads: 1 to %u are possible",
		                   (unsigned long long)threads, WIRE_LANES_MAX);
	options->threads = (unsigned)threads;
	options->multicast = multicast;
	options->pin = pin && strcmp(pin, "off") ? pin : NULL;
	options->socket = (struct udp_options){ .offload = offload,
		                                .busy_poll = (unsigned)busy_poll,
		                                .receive_bytes = RECEIVE_BYTES,
		                                .send_bytes = SEND_BYTES };
	return TRIB_OK;
}

int main(int argc, char **argv)
{
	const char *listen = ":7700", *plane = setting_text(SETTING_PLANE, NULL);
	const char *level = setting_text(SETTING_LOG, NULL);
	struct aggregator_options options = { 0 };
	struct aggregator *aggregator;
	bool generic = false;
	uint64_t threads = 4;
	char text[4096], address[64];
	sigset_t signals;
	int code, caught;
	const struct option_row rows[] = {
		{ "listen", 'l', OPTION_TEXT, &listen, "HOST:PORT",
		  "where workers find it; lane n is at PORT + n (default :7700)", "10.0.0.1:7700" },
		{ "threads", 't', OPTION_COUNT, &threads, "N",
		  "how many lanes a job may have, each with a thread (default 4)", "8" },
		{ "memory", 'm', OPTION_BYTES, &options.pool_bytes, "SIZE",
		  "the most that all jobs' pools may take (default: no limit)", "8G" },
		{ "plane", 'p', OPTION_TEXT, &plane, "PLANE",
		  "where sums are made: udp (in user space), xdp (in the kernel, where it lets us, "
		  "else udp), or tcp to compare with (default: TRIB_PLANE, udp)",
		  "xdp" },
		{ "interface", 'i', OPTION_TEXT, &options.interfaces, "NAME,...",
		  "xdp: the interfaces that lead to workers (default: those with the address)",
		  "eth0" },
		{ "generic", 0, OPTION_FLAG, &generic, NULL,
		  "xdp: not in the driver, though it could", NULL },
		{ 0 }
	};
	const struct options usage = {
		.usage = "tribd [OPTION]...",
		.about =
			"Aggregates vectors for the workers that show the cookie in TRIB_COOKIE. "
			"Runs until SIGTERM or SIGINT, then prints its counters as a line of JSON.",
		.example = "TRIB_COOKIE=5eed tribd --listen 10.0.0.1:7700",
		.rows = rows,
	};

	log_set_prefix("tribd");
	if (options_parse(&usage, argc, argv, &code) < 0)
		return code;
	if (level && log_set_level_name(level)) {
		fprintf(stderr,
		        "tribd: TRIB_LOG=\"%s\": expected error, warn, notice, info or debug\n",
		        level);
		return EXIT_USAGE;
	}
	options.plane = plane;
	options.native = !generic;
	/* Threads inherit the mask: signals come to sigwait below and nowhere else. */
	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	if (configure(&options, listen, threads) != TRIB_OK ||
	    aggregator_start(&options, &aggregator) != TRIB_OK)
		return fail();
	if (!options.cookie)
		log_warn("TRIB_COOKIE is not set: anyone who reaches this port may join");
	udp_set_port(&options.listen, aggregator_port(aggregator));
	printf("tribd: ready on %s, plane %s\n",
	       udp_text(&options.listen, address, sizeof(address)), aggregator_plane(aggregator));
	fflush(stdout);
	sigwait(&signals, &caught);
	aggregator_stop(aggregator);
	aggregator_describe(aggregator, text, sizeof(text));
	puts(text);
	aggregator_free(aggregator);
	return EXIT_SUCCESS;
}
