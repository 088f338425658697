/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRIB_CLI_CMD_NET_LIST_H
#define TRIB_CLI_CMD_NET_LIST_H

/* trib net list; also what a plain `trib net` shows. */
int net_list(int argc, char **argv);

#endif
