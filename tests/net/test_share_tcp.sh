#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# All of test_share.sh on connections: test_share_tcp.sh PATH_TO_TRIB
exec bash "$(dirname "$0")/test_share.sh" "${1:?usage: ${0##*/} PATH_TO_TRIB}" tcp
