/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRIB_CLI_NET_H
#define TRIB_CLI_NET_H

int net_list(int argc, char **argv);
/* Prints the thread's error sentence; returns the exit code 1. */
int net_fail(const char *command);

#endif
