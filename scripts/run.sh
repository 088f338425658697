#!/usr/bin/env bash
# The demonstration. Four workers on a virtual cluster with 1 Gb/s links train a network to read digits. An
# aggregator sums their gradients. Then the same gradient goes around a ring on the same links. Without
# root, the workers use loopback, where links have no rate.
#
# Arguments go to the training program, e.g. scripts/run.sh --epochs 1 --hidden 1024.
. "$(dirname "$0")/common.sh"

trib=build/src/cli/trib
cluster=demo-$$
net=()
scratch=

clean() {
	[ ${#net[@]} -eq 0 ] || "$trib" net down --name "$cluster" >/dev/null 2>&1 || true
	[ -z "$scratch" ] || rm -rf "$scratch"
}

# Sets net to the options that put a command on the cluster. If there is no cluster, net stays empty.
cluster_start() {
	if ! is_root; then
		say "Not root: the workers talk over loopback, whose links have no rate to share."
		say "What is gained there says nothing about a network; sudo make run makes one."
		return
	fi
	net=(--net "$cluster")
	if ! "$trib" net up --name "$cluster" --hosts 4 --servers 1 --switch --link 1gbit; then
		"$trib" net down --name "$cluster" >/dev/null 2>&1 || true
		net=()
		say "No virtual cluster can be made here: the workers talk over loopback instead."
	fi
}

gradient_bytes() {
	python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["gradient_bytes"])' "$1"
}

main() {
	scripts/build.sh
	trap clean EXIT
	trap 'exit 130' INT TERM
	scratch=$(mktemp -d)
	cluster_start

	say "" "Four workers train through one aggregator:" ""
	# The aggregator's counters, a line of JSON at its end, are for programs.
	"$trib" run -n 4 "${net[@]}" -- build/examples/train --json "$scratch/train.json" "$@" |
		sed -u '/^\[aggregator\] {/d'

	say "" "The same gradient, through the aggregator and around a ring, in turns:" ""
	"$trib" bench allreduce -n 4 "${net[@]}" --sizes "$(gradient_bytes "$scratch/train.json")" \
		--against ring --json "$scratch/ring.json" || echo '{"results": []}' >"$scratch/ring.json"

	python3 scripts/demo_summary.py "$scratch/train.json" "$scratch/ring.json" "${net[1]:-}"
}

main "$@"
