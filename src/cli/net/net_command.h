/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/net: `trib net`. net_command.c has the table of its commands, and up, down and exec.
 * net_list.c prints clusters, net_link.c changes links in use.
 *
 * This room must not touch namespaces and links itself: src/net does.
 */
#ifndef TRIB_CLI_NET_NET_COMMAND_H
#define TRIB_CLI_NET_NET_COMMAND_H

/* Also what a plain `trib net` shows. */
int net_list(int argc, char **argv);

int net_cut(int argc, char **argv);
int net_slow(int argc, char **argv);
int net_restore(int argc, char **argv);

#endif
