#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# All of test_tree.sh, deaths included, with sums in the kernel: test_tree_xdp.sh PATH_TO_TRIB
. "$(dirname "$0")/lib.sh"
start "$@"
need_xdp
TRIB_PLANE=xdp bash "$(dirname "$0")/test_tree.sh" "$trib"
