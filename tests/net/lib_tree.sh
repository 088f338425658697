# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# What the tests of trees share; sourced behind lib.sh.
# shellcheck disable=SC2154,SC2034  # what lib.sh sets, and what tests read
two='s1(s2(0-2),s3(3-5))'
three='s1(s2(0,2),s3(s4(1,4),3),5)'
declare -A tribds=()
declare -A six=() # addresses, where it is IPv6

# tribd_on HOST...: an aggregator on each, with $tribd_options; its output goes to $work/tribd.HOST.
tribd_on() {
	local host
	for host; do
		: >"$work/tribd.$host"
		# shellcheck disable=SC2086  # options, if any
		"$trib" net exec --name "$cluster" "$host" -- "$tribd" --open ${tribd_options:-} \
			--listen "$(at_host "$host")" >"$work/tribd.$host" 2>&1 &
		tribds[$host]=$!
	done
	for host; do
		wait_for 10 grep -q 'ready on' "$work/tribd.$host" || { cat "$work/tribd.$host"; exit 1; }
	done
}

end_tribds() { # they write their counters
	local host
	for host in "${!tribds[@]}"; do
		kill -TERM "${tribds[$host]}"
		wait "${tribds[$host]}"
	done 2>/dev/null
	tribds=()
}

at_host() { if [ -n "${six[$1]:-}" ]; then echo "[${six[$1]}]:7700"; else echo "$(address "$1"):7700"; fi; }

# tree_of SHAPE: names of hosts become their addresses.
tree_of() {
	local text=$1 host
	for host in s1 s2 s3 s4 h1 h2; do
		[[ $text != *$host* ]] || text=${text//$host/$(at_host $host)}
	done
	echo "$text"
}

# tree_right WHAT SHAPE N WORKER_ARG...
tree_right() {
	local what=$1 shape=$2 n=$3
	shift 3
	# shellcheck disable=SC2086  # options of trib run, if any
	TRIB_TREES=$(tree_of "$shape") go -n "$n" --net "$cluster" \
		--timeout 30 ${run_options:-} -- "$worker" "$@"
	check "$what: exact on all ranks" right "$n"
}
