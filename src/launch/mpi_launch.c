/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/mpi_launch.h"

#include "launch/local_daemon.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The command that binds another one to the core. */
static void binder_write(FILE *out, const cpu_set_t *core)
{
	unsigned number = 0;

	while (number < CPU_SETSIZE && !CPU_ISSET(number, core))
		number++;
	fprintf(out, " bind='taskset -c %u'", number);
}

/* Options are meant for ssh and are skipped. */
trib_status mpi_agent_write(const char *folder, const struct cluster *cluster, unsigned n,
                            const cpu_set_t *cores)
{
	char path[96], self[2048];
	FILE *out;

	snprintf(path, sizeof(path), "%s/agent", folder);
	out = fopen(path, "we");
	if (!self_find(self, sizeof(self)) || !out)
		return status_fail_errno("cannot write %s", path);
	fprintf(out, "#!/bin/sh\nbind=\n"
	             "while case $1 in -*) ;; *) false ;; esac; do shift; done\n"
	             "address=$1\nshift\ncase $address in\n");
	for (unsigned i = 0; i < n; i++) {
		fprintf(out, "%s) host=%s", cluster->hosts[i].address, cluster->hosts[i].name);
		if (cores)
			binder_write(out, &cores[i]);
		fprintf(out, " ;;\n");
	}
	/*
	 * Each host gets a folder of its own: all hosts have this machine's name,
	 * so Open MPI's daemons would otherwise share one folder, and about every
	 * tenth run would never begin.
	 */
	fprintf(out,
	        "*) echo \"no host has the address $address\" >&2; exit 1 ;;\nesac\n"
	        "mkdir -p %s/$host\nexport TMPDIR=%s/$host\n"
	        "exec $bind '%s' net exec --name '%s' \"$host\" -- sh -c \"$*\"\n",
	        folder, folder, self, cluster->name);
	if (fchmod(fileno(out), 0700) < 0 || fclose(out) != 0)
		return status_fail_errno("cannot write %s", path);
	return TRIB_OK;
}

bool mpi_adapter_find(const char *mpi, char *out, size_t room)
{
	/* trib is in build/src/cli, or installed in bin. */
	static const char *const folders[] = { "../../adapters/mpi", "../adapters/mpi" };
	char self[2048], *slash;

	slash = self_find(self, sizeof(self)) ? strrchr(self, '/') : NULL;
	if (slash)
		*slash = '\0';
	for (unsigned i = 0; slash && i < sizeof(folders) / sizeof(*folders); i++) {
		snprintf(out, room, "%s/%s/libtribmpi-%s.so", self, folders[i], mpi);
		if (access(out, R_OK) == 0)
			return true;
	}
	snprintf(out, room, TRIB_LIBDIR "/libtribmpi-%s.so", mpi);
	return access(out, R_OK) == 0;
}

void mpi_subnet_text(const struct cluster *cluster, char *out, size_t room)
{
	const char *address = cluster->hosts[0].address, *dot = strrchr(address, '.');

	if (cluster->n == 0 || !dot)
		snprintf(out, room, "127.0.0.0/8");
	else
		snprintf(out, room, "%.*s.0/24", (int)(dot - address), address);
}
