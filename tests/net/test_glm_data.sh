#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# trib glm on published data: accuracy at most 0.5 points below liblinear's (logistic, -c 1), and about the same
# losses for all precisions from 4 bits on. The data are in the folder TRIB_DATA, or in ../shared/data beside the checkout.
# Usage: test_glm_data.sh PATH_TO_TRIB
. "$(dirname "$0")/lib.sh"
published=$(realpath -m "${TRIB_DATA:-$(dirname "$0")/../../../shared/data}")
[ -e "$published/a9a/a9a.xz" ] && [ -e "$published/amazon-sentiment/books_train.svmlight.xz" ] ||
	skip "a9a and amazon-sentiment are not in $published"
start "$@"
cd "$work" || exit 1

train() { # OPTION...
	out=$work/out
	timeout -k 5 120 "$trib" glm train "$@" >"$out" 2>&1
}
# last FIELD: of the last epoch in $out
last() { awk -v field="$1" '/^ *[0-9]+ +[0-9.-]/ { value = $field } END { print value }' "$out"; }
# near A B BY: both are numbers, and differ by no more
near() { awk -v a="$1" -v b="$2" -v by="$3" 'BEGIN { d = a - b; exit !(a > 0 && b > 0 && d <= by && d >= -by) }'; }
# learns FILE TEST LEAST OPTION...: at least so many percent of the test rows are right
learns() {
	local file=$published/$1 test=$published/$2 least=$3 accuracy
	shift 3
	check "$(basename "$file")" train "$file" --test "$test" "$@" || cat "$out"
	accuracy=$(last 6)
	check "... test accuracy $accuracy %, liblinear's minus 0.5: $least %" \
		awk -v a="$accuracy" -v least="$least" 'BEGIN { exit !(a >= least) }'
}
learns a9a/a9a.xz a9a/a9a.t.xz 84.45
learns amazon-sentiment/kitchen_train.svmlight.xz amazon-sentiment/kitchen_test.svmlight.xz 87.05
learns amazon-sentiment/books_train.svmlight.xz amazon-sentiment/books_test.svmlight.xz 80.93
loss=$(last 2)
for bits in 8 6 4; do
	check "... with $bits bits" train "$published/amazon-sentiment/books_train.svmlight.xz" --bits $bits
	check "... the loss is $(last 2), and $loss as float" near "$(last 2)" "$loss" 0.001
done
done_checking
