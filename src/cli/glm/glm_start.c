/* SPDX-License-Identifier: Apache-2.0 */
/* Starts the workers of trib glm train: this program again, with ranks. */
#include "cli/glm/glm_command.h"

#include "launch/local_daemon.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KEPT 8u

/* What the processes of a job have said. */
struct said {
	bool bar;         /* a bar is on the terminal */
	char error[1024]; /* the last line of a worker */
	char aggregator[KEPT][512];
	unsigned n; /* lines of aggregators */
};

/* What aggregators say matters only if the job fails by their error. */
static void aggregator_print(const struct said *said)
{
	for (unsigned i = said->n > KEPT ? said->n - KEPT : 0; i < said->n; i++)
		if (strstr(said->aggregator[i % KEPT], "error"))
			fprintf(stderr, "aggregator: %s\n", said->aggregator[i % KEPT]);
}

/* Worker 0 speaks for all. A sentence that several workers say is printed once. */
static void line_print(void *context, int rank, const char *line, bool is_stderr)
{
	struct said *said = context;
	size_t word = strlen(VIEW_BAR_LINE);
	double share;
	int at;

	if (rank == 0 && !is_stderr && !strncmp(line, VIEW_BAR_LINE, word)) {
		if (sscanf(line + word, "%lf %n", &share, &at) == 1)
			view_bar(share, line + word + at);
		said->bar = true;
		return;
	}
	if (rank < 0) {
		if (is_stderr)
			snprintf(said->aggregator[said->n++ % KEPT], sizeof(*said->aggregator),
			         "%s", line);
		return;
	}
	if (said->bar)
		view_bar(-1, "");
	said->bar = false;
	if (!is_stderr) {
		puts(line);
		fflush(stdout);
	} else if (strcmp(said->error, line) != 0) {
		snprintf(said->error, sizeof(said->error), "%s", line);
		fflush(stdout);
		fprintf(stderr, "%s\n", line);
	}
}

int glm_workers_start(struct run_options *run, int argc, char **argv)
{
	static char self[4096];
	static struct said said;
	char **command = calloc((size_t)argc + 3, sizeof(*command));
	int code;

	if (!command || !self_find(self, sizeof(self))) {
		fprintf(stderr, "trib glm train: cannot find this program\n");
		free(command);
		return 1;
	}
	command[0] = self;
	command[1] = "glm";
	memcpy(command + 2, argv, (size_t)argc * sizeof(*command));
	run->command = command;
	run->line = line_print;
	run->context = &said;
	if (isatty(STDERR_FILENO))
		setenv(VIEW_BAR_SETTING, "1", 1);
	setenv("TRIB_LOG", "warn", 0);
	code = run_job(run);
	if (said.bar)
		view_bar(-1, "");
	if (code)
		aggregator_print(&said);
	free(command);
	return code;
}
