#!/usr/bin/env bash
# soak.sh [SECONDS]: first the unit tests with all their random cases. Then clusters with loss, duplicates,
# reordering and corruption, with a new seed and a new shape each time. Every sum of every rank is checked.
# The script ends at the first wrong sum, and says what to type to repeat it.
# soak.sh sparse [KILLS]: kills the aggregator, its standby and the server of sparse jobs at random, so many times.
# After each ten kills an audit checks that every push was applied exactly once.
# soak.sh paths [CUTS]: cuts and restores a random path of four every second while messages go over all of them.
# soak.sh rdma [SECONDS]: the same for RDMA programs with libtribverbs.so, in a virtual machine.
. "$(dirname "$0")/common.sh"

trib=build/src/cli/trib
cluster=soak-$$

clean() { "$trib" net down --name "$cluster" >/dev/null 2>&1 || true; }

# pick SEED NTH WORD...: one of the words, the same for the same seed.
pick() {
	local at
	at=$(printf '%s %s' "$1" "$2" | cksum | cut -d ' ' -f 1)
	shift 2
	printf '%s\n' "${@:at % $# + 1:1}"
}

# try COMMAND...: its output goes to the log of the round.
try() { timeout 300 "$@" >>build/soak.log 2>&1; }

# round SEED: mixed collectives, then allreduces of one size.
round() {
	local seed=$1 hosts up run mixed same
	hosts=$(pick "$seed" 1 2 3 4 4 6 8)
	up=("$trib" net up --name "$cluster" --hosts "$hosts" --servers 1 --link 1gbit
		--mtu "$(pick "$seed" 2 1500 1500 1400 9000)"
		--loss "$(pick "$seed" 3 0 0.001 0.01 0.05 0.1)" --dup "$(pick "$seed" 4 0 0.01 0.05)"
		--reorder "$(pick "$seed" 5 0 0.01 0.05)" --corrupt "$(pick "$seed" 6 0 0.001 0.01)"
		--seed "$seed")
	[ "$(pick "$seed" 7 yes no)" = no ] || up+=(--switch)
	run=("$trib" run -n "$hosts" --net "$cluster" --)
	mixed=("${run[@]}" build/tests/net/worker_check --seed "$seed" --rounds 100)
	same=("${run[@]}" build/bench/peers/trib_allreduce --check --iterations 50 --warmup 0
		--bytes "$(pick "$seed" 8 0 4 1000 65536 1048576 16777216)")
	clean
	: >build/soak.log
	if ! try "${up[@]}" || ! try "${mixed[@]}" || ! try "${same[@]}"; then
		grep -v SAMPLE build/soak.log | tail -n 50
		say "soak: seed $seed FAILED; again with:" "  ${up[*]}" "  ${mixed[*]}" "  ${same[*]}"
		return 1
	fi
	say "soak: right: ${up[*]:5}; ${same[*]: -2}"
}

sparse() {
	local seed=${TRIB_SEED:-$RANDOM}
	SEED=$seed tests/net/test_sparse_sums.sh "$PWD/$trib" "$1" ||
		die "soak: FAILED; again with TRIB_SEED=$seed scripts/soak.sh sparse $1"
}

main() {
	local until seed=${TRIB_SEED:-$(date +%s)} rounds=0
	is_root || die "soak: needs root, for network namespaces"
	scripts/build.sh
	if [ "${1:-}" = sparse ]; then
		sparse "${2:-30}"
		return
	fi
	if [ "${1:-}" = rdma ]; then
		tests/rdma/run.sh --limit $((${2:-120} * 4 + 200)) sh tests/rdma/test_faults.sh build "${2:-120}"
		return
	fi
	if [ "${1:-}" = paths ]; then
		tests/net/test_paths.sh "$PWD/$trib" "${2:-120}"
		return
	fi
	until=$(($(date +%s) + ${1:-3600}))
	say "soak: unit tests with all their random cases"
	TRIB_TEST_LONG=1 meson test -C build --no-rebuild --suite unit >build/soak.log ||
		die "soak: a unit test FAILED, see build/meson-logs/testlog.txt"
	trap clean EXIT
	trap 'exit 130' INT TERM
	while [ "$(date +%s)" -lt "$until" ]; do
		round "$seed" || exit 1
		seed=$((seed + 1))
		rounds=$((rounds + 1))
	done
	say "soak: $rounds clusters, every sum right"
}

main "$@"
