/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli: one subcommand, one file, one table that lists them (trib.c). A
 * subcommand takes (argc, argv) with argv[0] its own name and returns an exit
 * code: 0 done, 1 failed, 2 wrong usage.
 */
#ifndef TRIB_CLI_H
#define TRIB_CLI_H

#define EXIT_USAGE 2

int cli_bench(int argc, char **argv);
int cli_check(int argc, char **argv);
int cli_net(int argc, char **argv);
int cli_plan(int argc, char **argv);
int cli_run(int argc, char **argv);
int cli_explain(int argc, char **argv);
int cli_job(int argc, char **argv);
int cli_jobs(int argc, char **argv);
int cli_node(int argc, char **argv);
int cli_nodes(int argc, char **argv);
int cli_sim(int argc, char **argv);
int cli_show(int argc, char **argv);
int cli_top(int argc, char **argv);

#endif
