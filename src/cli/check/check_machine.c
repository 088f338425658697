/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/check/finding.h"
#include "cli/plan/plan_exact.h"
#include "base/settings.h"
#include "control/control.h"
#include "glm/kernel/glm_kernel.h"
#include "glm/text/byte_stream.h"
#include "net/fault.h"
#include "options/setting_names.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

/* 3 ms at 10 Gb/s: a thread may wait that long for a core. */
#define RCVBUF_WANTED (4 << 20)

static void check_kernel(struct check *check)
{
	unsigned major = 0, minor = 0;
	struct utsname name;

	uname(&name);
	sscanf(name.release, "%u.%u", &major, &minor);
	if (major > 6 || (major == 6 && minor >= 1))
		check_tell(check, CHECK_OK, "kernel", NULL, "%s %s on %s", name.sysname,
		           name.release, name.machine);
	else
		check_tell(check, CHECK_FAIL, "kernel", "use Linux 6.1 or newer",
		           "%s %s is too old", name.sysname, name.release);
}

static uint64_t capabilities_read(void)
{
	FILE *file = fopen("/proc/self/status", "re");
	uint64_t effective = 0;
	char line[256];

	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "CapEff: %" SCNx64, &effective) == 1)
			break;
	}
	if (file)
		fclose(file);
	return effective;
}

static void check_privileges(struct check *check)
{
	static const struct {
		unsigned bit;
		const char *name;
	} wanted[] = { { CAP_NET_ADMIN, "CAP_NET_ADMIN" },
		       { CAP_SYS_ADMIN, "CAP_SYS_ADMIN" },
		       { 39, "CAP_BPF" } };
	uint64_t have = capabilities_read();
	char missing[80] = "";

	for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++) {
		if (have >> wanted[i].bit & 1)
			continue;
		size_t used = strlen(missing);

		snprintf(missing + used, sizeof(missing) - used, " %s", wanted[i].name);
	}
	if (!*missing)
		check_tell(check, CHECK_OK, "privileges", NULL,
		           "%s, with CAP_NET_ADMIN, CAP_SYS_ADMIN and CAP_BPF",
		           geteuid() == 0 ? "root" : "not root");
	else
		check_tell(check, CHECK_WARN, "privileges",
		           "workers and tribd need none; for trib net, use sudo or a privileged "
		           "container",
		           "%s, without%s", geteuid() == 0 ? "root" : "not root", missing);
}

/* In a child process, since a namespace cannot be left again. */
static void check_namespaces(struct check *check)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0)
		_exit(unshare(CLONE_NEWNET) == 0 ? 0 : errno);
	if (pid > 0)
		waitpid(pid, &status, 0);
	if (pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0)
		check_tell(check, CHECK_OK, "namespaces", NULL,
		           "network namespaces can be made: trib net works");
	else
		check_tell(check, CHECK_WARN, "namespaces",
		           "virtual clusters need root; in a container, --privileged or "
		           "--cap-add SYS_ADMIN",
		           "network namespaces cannot be made: %s",
		           strerror(pid > 0 ? WEXITSTATUS(status) : errno));
}

static void check_offload(struct check *check)
{
	int segment = 1400, on = 1, fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool gso, gro;

	if (fd < 0) {
		check_tell(check, CHECK_FAIL, "sockets", "allow UDP sockets (seccomp, container?)",
		           "no UDP socket can be made: %s", strerror(errno));
		return;
	}
	gso = setsockopt(fd, IPPROTO_UDP, UDP_SEGMENT, &segment, sizeof(segment)) == 0;
	gro = setsockopt(fd, IPPROTO_UDP, UDP_GRO, &on, sizeof(on)) == 0;
	close(fd);
	if (gso && gro)
		check_tell(check, CHECK_OK, "offload", NULL,
		           "UDP segmentation (GSO) and receive offload (GRO) work");
	else
		check_tell(check, CHECK_WARN, "offload",
		           "Linux 5.0 or newer has both; without them more CPU goes per packet",
		           "UDP %s%s%s not there", gso ? "" : "GSO", gso || gro ? "" : " and ",
		           gro ? "" : "GRO");
}

/* The largest buffer that a socket gets, up to RCVBUF_WANTED. */
static int rcvbuf_try(int option)
{
	int bytes = RCVBUF_WANTED, fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	socklen_t length = sizeof(bytes);

	setsockopt(fd, SOL_SOCKET, option, &bytes, sizeof(bytes));
	if (getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, &length) < 0)
		bytes = 0;
	if (fd >= 0)
		close(fd);
	return bytes / 2; /* the kernel doubles it for its own needs */
}

static void check_rcvbuf(struct check *check)
{
	int plain = rcvbuf_try(SO_RCVBUF), forced = rcvbuf_try(SO_RCVBUFFORCE);

	if (plain >= RCVBUF_WANTED)
		check_tell(check, CHECK_OK, "receive buffer", NULL, "a socket can have %d KB",
		           plain >> 10);
	else if (forced >= RCVBUF_WANTED)
		check_tell(check, CHECK_OK, "receive buffer", NULL,
		           "net.core.rmem_max is %d KB, which this process may exceed",
		           plain >> 10);
	else
		check_tell(check, CHECK_WARN, "receive buffer",
		           "as root: sysctl -w net.core.rmem_max=4194304 (and in /etc/sysctl.d)",
		           "net.core.rmem_max is %d KB; bursts may be dropped and sent again",
		           plain >> 10);
}

static void check_cores(struct check *check)
{
	cpu_set_t set;
	int usable = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;

	if (usable > 1)
		check_tell(check, CHECK_OK, "cores", NULL, "%d of %ld usable", usable,
		           sysconf(_SC_NPROCESSORS_ONLN));
	else
		check_tell(check, CHECK_WARN, "cores", "give it more than one core",
		           "there is only one core, which workers and aggregator share");
}

static void check_faults(struct check *check)
{
	if (fault_available())
		check_tell(check, CHECK_OK, "fault injection", NULL,
		           "built in: trib net up takes --loss, --dup, --reorder, --corrupt");
	else
		check_tell(check, CHECK_WARN, "fault injection",
		           "install clang, bpftool and libbpf-dev, and build again",
		           "left out of this build; only tests need it");
}

static void check_control(struct check *check)
{
	if (control_is_built())
		check_tell(check, CHECK_OK, "control plane", NULL,
		           "built in: tribd takes --controller and --join");
	else
		check_tell(check, CHECK_WARN, "control plane",
		           "install libmicrohttpd-dev, libjansson-dev, libsqlite3-dev, "
		           "libcurl4-gnutls-dev and libgnutls28-dev, and build again",
		           "left out of this build; jobs can still run with TRIB_AGGREGATOR");
}

static void check_programs(struct check *check)
{
	if (exact_rate)
		check_tell(check, CHECK_OK, "linear programs", NULL,
		           "built in: trib plan takes --check");
	else
		check_tell(check, CHECK_WARN, "linear programs",
		           "install libglpk-dev, and build again",
		           "left out of this build; only trib plan --check needs them");
}

/* Compressed files, and the loops for the processor. */
static void check_models(struct check *check)
{
	if (byte_gzip.open && byte_xz.open)
		check_tell(check, CHECK_OK, "linear models", NULL,
		           "built in: trib glm reads also .gz and .xz, and computes with %s",
		           kernel_name());
	else
		check_tell(check, CHECK_WARN, "linear models",
		           "install zlib1g-dev and liblzma-dev, and build again",
		           "trib glm reads no %s files in this build",
		           byte_xz.open     ? ".gz"
		           : byte_gzip.open ? ".xz"
		                            : ".gz and .xz");
}

static void check_settings(struct check *check)
{
	unsigned wrong = 0;

	for (int i = 0; i < SETTINGS_N; i++) {
		if (setting_check((enum setting_id)i) == TRIB_OK)
			continue;
		wrong++;
		check_tell(check, CHECK_FAIL, "settings", "trib show config shows all of them",
		           "%s", trib_last_error());
	}
	if (!wrong)
		check_tell(check, CHECK_OK, "settings", NULL, "well formed");
}

static void tell_setting_name(void *check, const char *name, const char *hint)
{
	check_tell(check, CHECK_WARN, "settings", hint, "%s is set, but is not a setting", name);
}

void check_machine(struct check *check)
{
	check_kernel(check);
	check_privileges(check);
	check_namespaces(check);
	check_offload(check);
	check_rcvbuf(check);
	check_cores(check);
	check_faults(check);
	check_control(check);
	check_programs(check);
	check_models(check);
	check_settings(check);
	setting_names_check(tell_setting_name, check);
}
