#!/usr/bin/env bash
# The demonstration. Four workers on a virtual cluster with 1 Gb/s links train a network to read digits. An
# aggregator sums their gradients. Then the same gradient goes around a ring on the same links. Without
# root, the cluster is in a user namespace. If that is not allowed, the workers use loopback, where links have
# no rate, and nothing is compared.
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
		say "Not root, and user namespaces are not allowed here: the workers talk over loopback."
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

# in_namespace ARGUMENT...: this script again, as root of a user namespace, where clusters can be made too.
in_namespace() {
	say "Not root: the virtual cluster is made in a user namespace, and goes with it."
	DEMO_INSIDE=yes exec unshare -Urmn bash -c 'mount -t tmpfs none /run && ip link set lo up && exec "$@"' - scripts/run.sh "$@"
}

may_have_namespace() { have ip && unshare -Urmn mount -t tmpfs none /run 2>/dev/null; }

# compare: prints the table, and leaves the figures in a file. On loopback there is no network to compare on.
compare() {
	if [ ${#net[@]} -eq 0 ]; then
		echo '{"results": []}' >"$scratch/ring.json"
		return
	fi
	say "" "The same gradient, through the aggregator and around a ring, in turns:" ""
	"$trib" bench allreduce -n 4 "${net[@]}" --sizes "$(gradient_bytes "$scratch/train.json")" \
		--against ring --json "$scratch/ring.json" || echo '{"results": []}' >"$scratch/ring.json"
}

main() {
	if [ -z "${DEMO_INSIDE:-}" ]; then
		scripts/build.sh src/cli/trib src/cli/tribd examples/train bench/peers/trib_allreduce bench/peers/ring
		is_root || ! may_have_namespace || in_namespace "$@"
	fi
	trap clean EXIT
	trap 'exit 130' INT TERM
	scratch=$(mktemp -d)
	cluster_start

	say "" "Four workers train through one aggregator:" ""
	"$trib" run -n 4 "${net[@]}" -- build/examples/train --json "$scratch/train.json" "$@"

	compare
	python3 scripts/demo_summary.py "$scratch/train.json" "$scratch/ring.json" "${net[1]:-}"
}

main "$@"
