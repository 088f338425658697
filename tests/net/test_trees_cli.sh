#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# trib run and trib bench with --trees: an aggregator on each host that is named, its share of the
# work there, exact sums. No speeds. Usage: test_trees_cli.sh PATH_TO_TRIB
. "$(dirname "$0")/lib.sh"
need_clusters "$@"
start "$@"
sums=(--rounds 6 --seed 41)

# worked NAME: did that aggregator complete results?
worked() { grep "^\[aggregator $1\] .*\"tribd\":" "$out" | grep -q '"results":[1-9]'; }

# says WORDS ARG...: trib run with these arguments fails, in these words.
says() {
	local words=$1
	shift
	! go "$@" && grep -q "$words" "$out"
}

# --- on this machine, several ports ---
go -n 3 --trees 'a(0-2);2*b(0-2)' --timeout 30 -- "$worker" "${sums[@]}"
check "two trees on loopback: exact" right 3
check "... each has its share" eval 'worked a && worked b'
go -n 3 --trees striped --timeout 30 -- "$worker" "${sums[@]}"
check "striped on loopback: exact" right 3

# --- on hosts ---
check "up with unlike servers" up trees$$ --hosts 3 --servers 2 --link 200mbit --link s2=100mbit --link h3=100mbit
run_options='--trees striped' go_right "a star a server" 3 "${sums[@]}"
check "... both servers have worked" eval 'worked s1 && worked s2'
run_options='--trees h1(0-2);s2(0-2)' go_right "on a worker's host and a server" 3 "${sums[@]}"
check "... both have worked" eval 'worked h1 && worked s2'
run_options='--trees planned' go_right "as planned" 3 "${sums[@]}"
run_options='--trees star --plane tcp' go_right "a star over tcp" 3 "${sums[@]}"
cat >"$work/forest" <<-'END'
	# the faster server takes more
	2*s1(0-2);
	s2(0-2)
END
run_options="--trees $work/forest" go_right "from a file" 3 "${sums[@]}"
check "... both servers have worked" eval 'worked s1 && worked s2'
# shellcheck disable=SC2016  # for the shell of the worker
go -n 3 --net "$cluster" --trees striped -- sh -c 'echo "rate $TRIB_RATE"'
# Half of the 100 Mb/s of s2, over three workers: the rest of a packet is headers.
check "workers are told what the links allow" test "$(sed -n 's/.*rate //p' "$out" | sort -u | cut -c 1-2)" = 64

# --- what is wrong is said ---
check "an unknown host" says 'has no host s7' -n 3 --net "$cluster" --trees 's7(0-2)' -- true
check "a rank that is missing" says 'ranks 0 to 2' -n 3 --net "$cluster" --trees 's1(0-1)' -- true
check "text that is no tree" says 'at character 3' -n 3 --net "$cluster" --trees 's1(0-' -- true
check "a file that is not there" says 'cannot read nowhere' -n 3 --trees nowhere -- true
check "an aggregator as well" says 'cannot be combined' -n 3 --trees star --aggregator a:1 -- true

# --- the benchmark: ours on two sets of trees, the parameter server ---
"$trib" bench allreduce --net "$cluster" --sizes 64K --iterations 2 --repeats 1 --check --trees striped \
	--trees 'one=s1(0-2)' --trees 'deep=s1(s2(0-1),2)' \
	--against tributary@one,trib-tcp@one,tributary@deep,tcp-agg@deep,ps --late h1=0.01 --late h2=0.02 \
	--json "$work/json" --plot "$work/svg" >"$work/bench" 2>"$work/said"
check "bench: all ran, all sums right" test $? = 0 || cat "$work/bench" "$work/said"
check "... six rows" test "$(grep -c '"median_s": [0-9]' "$work/json")" = 6
check "... none failed" test "$(grep -c '"failed": 0' "$work/json")" = 6

# --- what was saved, shown again
plots() { "$trib" bench plot "$@" >"$work/again" 2>&1; }
check "plot: the JSON is enough" plots --plot "$work/again.svg" "$work/json" || cat "$work/again"
check "... for the same table" diff "$work/bench" "$work/again"
check "... and the same picture" cmp "$work/svg" "$work/again.svg"
sed 's/"bytes": 65536/"bytes": 131072/; s/"iterations": 2/"iterations": 3/' "$work/json" >"$work/larger"
check "plot: two files in one table" plots "$work/larger" "$work/json" || cat "$work/again"
check "... the smaller size first" test "$(grep -o '^ *[0-9]*K' "$work/again" | xargs)" = "64K 128K"
check "... and how often each was measured" grep -q 'median of 1 x 3, 1 x 2,' "$work/again"
# refused WORDS FILE...
refused() { ! plots "${@:2}" && grep -qF "$1" "$work/again"; }
sed 's/"tcp-agg@deep"/"ring"/' "$work/json" >"$work/other"
check "plot: files that have systems in common" plots "$work/json" "$work/other" || cat "$work/again"
check "... each is shown once" test "$(grep -c 'tributary@striped  ' "$work/again")" = 1
check "... which is said" \
	grep -qF "tributary@striped with 65536 bytes is in $work/json and in $work/other: the first is shown" "$work/again"
check "... with what is new" grep -q '^ *ring .* x$' "$work/again"
head -n 10 "$work/json" >"$work/torn"
check "... a file without an end" refused "$work/torn:11: expected" "$work/torn"
check "... one that is not there" refused "$work/nowhere: No such file" "$work/json" "$work/nowhere"
sed 's/"ps"/"pps"/' "$work/json" >"$work/strange"
check "... a system that nobody knows" refused "$work/strange: pps is no system" "$work/strange"
"$trib" bench allreduce --net "$cluster" --sizes 64K --iterations 2 --repeats 1 --json - >"$work/json" 2>&1
check "... --json - is here, and only that" test "$(head -c 1 "$work/json")$(tail -n 1 "$work/json")" = '{}'
check "... what was measured otherwise does not belong into that table" refused "$work/json: \"late\" is not" "$work/larger" "$work/json"
check "... with what was sent again" grep -q '"fragments_again": [0-9].*"results_again": [0-9]' "$work/json"
check "... trees that nobody named" grep -q 'behind the @' \
	<("$trib" bench allreduce --trees striped --against trib-tcp@other 2>&1)
# Lanes share a link: together they leave in its queue no more than one would.
"$trib" bench allreduce --hosts 2 --link 200mbit --sizes 8M --lanes 4 --iterations 1 --warmup 0 --repeats 1 \
	--json "$work/json" >"$work/bench" 2>&1
check "bench: four lanes do not overrun their link" grep -qE '"fragments_again": (0(\.0[0-9]*)?|[0-9.]+e-[0-9]+),' "$work/json"
"$trib" bench deploy --repeats 3 >"$work/bench" 2>&1
check "deploy: three answers" grep -q ', 3 times' "$work/bench"
done_checking
