/* SPDX-License-Identifier: Apache-2.0 */
#include "base/launcher.h"

#include "base/random_bits.h"
#include "base/settings.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Ports for meetings: above those of services, below those that the kernel gives away. */
#define PORT_FIRST 20000u
#define PORTS 10000u
#define ANCESTORS 16 /* processes between a rank and its launcher, at most */

/* Never NULL: "" if it is not set. */
static const char *variable(const char *name)
{
	const char *value = getenv(name);

	return value ? value : "";
}

static bool is_set(const char *name)
{
	return *variable(name);
}

/* Do both variables have the same value? */
static bool are_equal(const char *one, const char *other)
{
	return is_set(one) && !strcmp(variable(one), variable(other));
}

static uint64_t hash(const char *text)
{
	uint64_t sum = 0;

	for (; *text; text++)
		sum = bits_mix(sum + RANDOM_STEP + (uint8_t)*text);
	return sum ? sum : 1;
}

/* A host's name or address, and nothing else. */
static bool is_host(const char *text)
{
	if (!*text)
		return false;
	for (; *text; text++)
		if (!isalnum((unsigned char)*text) && !strchr(".-_:%", *text))
			return false;
	return true;
}

/* `id`: what identifies the job to its launcher. */
static void identify(struct launcher_meeting *meeting, const char *id)
{
	char text[640];

	snprintf(text, sizeof(text), "%s %.600s", meeting->launcher, id);
	meeting->identity = hash(text);
}

/* Rank 0 is at this host, or at loopback if all ranks run here. */
static void meet_at(struct launcher_meeting *meeting, const char *host)
{
	unsigned port = PORT_FIRST + (unsigned)(bits_mix(meeting->identity) % PORTS);

	if (meeting->is_local)
		host = "127.0.0.1";
	if (!is_host(host) || strlen(host) > 255)
		meeting->why = "the name of rank 0's host is malformed there";
	else
		snprintf(meeting->at, sizeof(meeting->at),
		         strchr(host, ':') ? "[%.255s]:%u" : "%.255s:%u", host, port);
}

static void meet_torchrun(struct launcher_meeting *meeting)
{
	const char *master = variable("MASTER_ADDR");
	char id[600];

	meeting->is_local = are_equal("LOCAL_WORLD_SIZE", "WORLD_SIZE") ||
	                    !strcmp(master, "localhost") || !strcmp(master, "127.0.0.1");
	if (!*master && !meeting->is_local) {
		meeting->why = "MASTER_ADDR is not set";
		return;
	}
	snprintf(id, sizeof(id), "%.255s %.15s %.255s", master, variable("MASTER_PORT"),
	         variable("TORCHELASTIC_RUN_ID"));
	identify(meeting, id);
	meet_at(meeting, master);
}

/* "node[01-04,7]x,other" begins with node01x. */
static void first_host(const char *list, char *host, size_t room)
{
	size_t used = 0;

	for (; *list && *list != ',' && used + 1 < room; list++) {
		if (*list != '[') {
			host[used++] = *list;
			continue;
		}
		for (list++; isdigit((unsigned char)*list) && used + 1 < room; list++)
			host[used++] = *list;
		list += strcspn(list, "]");
		if (!*list)
			break;
	}
	host[used] = '\0';
}

static const char *first_set(const char *one, const char *other, const char *last)
{
	return is_set(one) ? variable(one) : variable(is_set(other) ? other : last);
}

static void meet_srun(struct launcher_meeting *meeting)
{
	const char *job = first_set("SLURM_JOB_ID", "SLURM_JOBID", "");
	const char *list = first_set("SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST");
	char host[256], id[128];

	meeting->is_local = !strcmp(
		first_set("SLURM_STEP_NUM_NODES", "SLURM_JOB_NUM_NODES", "SLURM_NNODES"), "1");
	if (!*job || !*list) {
		meeting->why = "SLURM_JOB_ID or SLURM_STEP_NODELIST is not set";
		return;
	}
	snprintf(id, sizeof(id), "%.60s.%.60s", job,
	         first_set("SLURM_STEP_ID", "SLURM_STEPID", ""));
	identify(meeting, id);
	first_host(list, host, sizeof(host));
	meet_at(meeting, host);
}

/*
 * Open MPI tells ranks where mpirun itself runs: "123.0;tcp://10.0.0.1,10.1.0.1:4567". Mostly it is
 * rank 0's host as well. If not, rank 0 cannot listen there, and says so.
 */
static void meet_open_mpi(struct launcher_meeting *meeting)
{
	const char *uri = strstr(variable("OMPI_MCA_orte_hnp_uri"), "tcp://");
	const char *secret = variable("OMPI_MCA_orte_precondition_transports");
	const char *id =
		*secret ? secret : first_set("PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "");
	char host[256] = "";

	meeting->is_local = are_equal("OMPI_COMM_WORLD_LOCAL_SIZE", "OMPI_COMM_WORLD_SIZE");
	if (!*id) {
		meeting->why = "OMPI_MCA_ess_base_jobid is not set";
		return;
	}
	meeting->is_secret = *secret;
	identify(meeting, id);
	if (uri)
		snprintf(host, sizeof(host), "%.*s", (int)strcspn(uri + 6, ",:;"), uri + 6);
	if (*host || meeting->is_local)
		meet_at(meeting, host);
	else
		meeting->why = "Open MPI does not tell ranks where rank 0 runs";
}

/* The parent of a process, and its name. 0: unknown. */
static int parent_of(int process, char *name, size_t room)
{
	char path[64], line[256] = "", *end;
	int parent = 0;
	FILE *in;

	snprintf(path, sizeof(path), "/proc/%d/stat", process);
	in = fopen(path, "re");
	if (!in)
		return 0;
	/* "12 (name) S 11 ..."; a name may have blanks and brackets */
	if (fgets(line, sizeof(line), in) && strchr(line, '(') && (end = strrchr(line, ')'))) {
		*end = '\0';
		snprintf(name, room, "%s", strchr(line, '(') + 1);
		parent = (int)strtol(strlen(end + 1) > 3 ? end + 4 : "0", NULL, 10);
	}
	fclose(in);
	return parent > 0 ? parent : 0;
}

/* MPICH has a process on each host that starts its ranks there. 0: none is found. */
static int find_proxy(void)
{
	int process = getppid();

	for (int i = 0; i < ANCESTORS && process > 0; i++) {
		char name[64] = "";
		int parent = parent_of(process, name, sizeof(name));

		if (strstr(name, "pmi_proxy"))
			return process;
		process = parent;
	}
	return 0;
}

static void meet_mpich(struct launcher_meeting *meeting)
{
	char id[32];
	int proxy;

	if (!is_set("MPI_LOCALNRANKS") && is_set("SLURM_STEP_ID")) { /* srun --mpi=pmi2 */
		meeting->launcher = "srun";
		meet_srun(meeting);
		return;
	}
	proxy = find_proxy();
	meeting->is_local = are_equal("MPI_LOCALNRANKS", "PMI_SIZE") && proxy;
	if (!meeting->is_local) {
		meeting->why = "MPICH does not tell ranks where rank 0 runs";
		return;
	}
	snprintf(id, sizeof(id), "%d", proxy);
	identify(meeting, id);
	meet_at(meeting, "");
}

static const struct {
	const char *rank; /* the launcher's variable for it */
	const char *name;
	void (*meet)(struct launcher_meeting *meeting);
} launchers[] = {
	{ "RANK", "torchrun", meet_torchrun },
	{ "OMPI_COMM_WORLD_RANK", "Open MPI", meet_open_mpi },
	{ "PMI_RANK", "MPICH", meet_mpich },
	{ "PMIX_RANK", "srun", meet_srun },
	{ "SLURM_PROCID", "srun", meet_srun },
};

struct launcher_meeting launcher_meet(void)
{
	struct launcher_meeting meeting = { 0 };
	const char *origin = "";

	setting_text(SETTING_RANK, &origin);
	for (size_t i = 0; i < sizeof(launchers) / sizeof(*launchers); i++) {
		if (strcmp(origin, launchers[i].rank) != 0)
			continue;
		meeting.launcher = launchers[i].name;
		launchers[i].meet(&meeting);
		break;
	}
	return meeting;
}
