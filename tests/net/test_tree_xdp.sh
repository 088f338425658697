#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The deaths of test_tree.sh, with sums in the kernel: test_tree_xdp.sh PATH_TO_TRIB
# The sums of test_tree.sh are in test_xdp_tree.sh too, which also looks where they were made.
. "$(dirname "$0")/lib.sh"
start "$@"
need_xdp
TRIB_PLANE=xdp bash "$(dirname "$0")/test_tree.sh" "$trib" deaths
