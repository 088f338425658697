#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs several tests of this folder one after the other: a virtual machine a test takes too long.
# Usage: several.sh BUILD-FOLDER NAME...
build=$1
shift
failed=0
for name; do
	echo "== $name"
	sh "${0%/*}/test_$name.sh" "$build" || failed=1
done
exit $failed
