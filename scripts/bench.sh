#!/usr/bin/env bash
# bench.sh [NAME...]: the measurements of docs/benchmarks.md, all or the named ones. Each makes its own
# cluster, with an aggregator that has one port a worker, and leaves NAME.json, NAME.svg and NAME.txt
# in build/bench/. Packets cross the links one by one, as on a wire.
. "$(dirname "$0")/common.sh"

out=build/bench
peers=openmpi,mpich,gloo,ring
only=" $* "

# measure NAME [options of trib bench allreduce]
measure() {
	local name=$1
	shift
	if [ "$only" != "  " ] && [[ $only != *" $name "* ]]; then
		return 0
	fi
	say "" "== $name: trib bench allreduce $*"
	build/src/cli/trib bench allreduce --no-offload "$@" --json "$out/$name.json" \
		--plot "$out/$name.svg" | tee "$out/$name.txt"
}

main() {
	local four="--hosts 4 --link 1gbit" rough="--loss 10% --dup 5% --reorder 5% --corrupt 1%"
	is_root || die "bench: needs root, for network namespaces"
	scripts/deps.sh bench
	scripts/build.sh
	mkdir -p "$out"
	# shellcheck disable=SC2086
	{
		measure four-hosts $four --sizes 1M,4M,16M,64M --against "$peers"
		measure eight-hosts --hosts 8 --link 500mbit --sizes 16M,64M --against "$peers"
		measure unlike-large-pool $four --link h2=500mbit --late h3=0.1 --sizes 16M --pool 64M
		measure unlike-small-pool $four --link h2=500mbit --late h3=0.1 --sizes 16M --pool 256K
		measure no-loss $four --sizes 16M,64M
		measure one-percent-loss $four --sizes 16M,64M --loss 1% --seed 1
		measure rough $four --sizes 1M --iterations 100 --repeats 1 --check $rough --seed 1
	}
}

main
