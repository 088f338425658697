/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd: the subcommands of trib, one file each. The table in src/cli/trib.c lists
 * them. A subcommand takes (argc, argv) with argv[0] its own name and returns an
 * exit code: 0 done, 1 failed, 2 wrong usage.
 *
 * This room reads options and prints; the work is done by src/launch, src/net,
 * src/control and src/bench.
 */
#ifndef TRIB_CLI_CMD_CMD_H
#define TRIB_CLI_CMD_CMD_H

int cli_bench(int argc, char **argv);
int cli_cookie(int argc, char **argv);
int cli_glm(int argc, char **argv);
int cli_check(int argc, char **argv);
int cli_net(int argc, char **argv);
int cli_plan(int argc, char **argv);
int cli_run(int argc, char **argv);
int cli_explain(int argc, char **argv);
int cli_sim(int argc, char **argv);
int cli_sparse(int argc, char **argv);
int cli_show(int argc, char **argv);
int cli_show_paths(int argc, char **argv);
int cli_top(int argc, char **argv);

/* These are NULL in a build without the control plane. */
int cli_job(int argc, char **argv) __attribute__((weak));
int cli_jobs(int argc, char **argv) __attribute__((weak));
int cli_node(int argc, char **argv) __attribute__((weak));
int cli_nodes(int argc, char **argv) __attribute__((weak));

/* Says that this build has no control plane, which the command needs; returns EXIT_FAILURE. */
int cmd_left_out(const char *command);

#endif
