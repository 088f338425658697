#!/usr/bin/env bash
# bench.sh [NAME...]: the measurements of docs/benchmarks.md, all or the named ones. Each makes its own
# virtual cluster and leaves NAME.json, NAME.svg and NAME.txt in build/bench/. "sim" and "share" are all whose
# names begin so; these need MINA's traces, in the folder mina of TRIB_DATA (../shared/data).
. "$(dirname "$0")/common.sh"

out=build/bench
peers=gloo,ring,openmpi,openmpi-default,mpich
data=${TRIB_DATA:-../shared/data}/mina
only=" $* "

# is_wanted NAME: all are, or those that were named.
is_wanted() { [ "$only" = "  " ] || [[ $only == *" $1 "* ]]; }

# bench NAME BENCHMARK [its options]
bench() {
	local name=$1
	shift
	is_wanted "$name" || return 0
	say "" "== $name: trib bench $*"
	build/src/cli/trib bench "$@" --json "$out/$name.json" --plot "$out/$name.svg" |
		tee "$out/$name.txt"
}

# measure NAME [options of trib bench allreduce]
measure() {
	local name=$1
	shift
	bench "$name" allreduce "$@"
}

# has_traces NAME GROUP: whether it is wanted, by its own name or the group's, and can be had.
has_traces() {
	is_wanted "$1" || [[ $only == *" $2 "* ]] || return 1
	[ -d "$data" ] && return 0
	warn "== $1: skipped, there is no folder $data"
	return 1
}

# simulate NAME [options of trib sim]
simulate() {
	local name=$1
	shift
	has_traces "$name" sim || return 0
	say "" "== $name: trib sim -t $data $*"
	build/src/cli/trib sim -t "$data" "$@" | tee "$out/$name.txt"
}

# simulate_all: what docs/benchmarks.md has of many jobs on one fabric. No cluster is made.
simulate_all() {
	local list="--jobs $data/jobs_trace1_seed42.csv" dear="--bandwidth 25gbit --ratio 1.5 --speedup 1.5" paper i=0
	local sets=("-p first --trees first -s greedy" "--trees first -s smart" "-k 5 -s smart" "-s frugal")
	# shellcheck disable=SC2086
	{
		simulate sim-table1 $list --paper table1
		simulate sim-migrate $list --migrate 0.559
		simulate sim-seeds --seeds 10
		for paper in fig11 fig12 fig13 fig14; do simulate sim-$paper --paper $paper; done
		for set in "${sets[@]}"; do
			i=$((i + 1))
			simulate sim-dear-$i --seeds 10 $dear $set
			simulate sim-switch-$i --seeds 5 --link 0 --switch 1 $set
			simulate sim-switch-dear-$i --seeds 5 --link 0 --switch 1 $dear $set
			simulate sim-speed-$i $list $set
		done
		for degree in 34 74 160; do simulate sim-hosts-$degree -f fat-tree:$degree -n 20000; done
		simulate sim-at-once --sizes 4:1 -n 400 -p random
		simulate sim-at-once-switch --sizes 4:1 -n 400 -p random --link 0 --switch 1
	}
}

# share NAME TRACES [options of bench_share.py]: real jobs that share an aggregator.
share() {
	local name=$1 traces=$2
	shift 2
	has_traces "$name" share || return 0
	say "" "== $name: scripts/bench_share.py --traces $traces $*"
	nice -n -10 scripts/bench_share.py --traces "$traces" --data "$data" "$@" --json "$out/$name.json" \
		--plot "$out/$name.svg" | tee "$out/$name.txt"
}

main() {
	local stripes="--hosts 4 --link 500mbit --sizes 16M,64M --iterations 5"
	local of_paper='tree=s3(s1(0-2),s2(3-5),6)'
	local on_workers='hosts=h1(0-3);h2(0-3);h3(0-3);h4(0-3)'
	# XAgg's Fig. 12 at a 400th of its rates and a tenth of its models.
	local xagg="--hosts 7 --servers 3 --link 250mbit --link h1=100mbit --link h2=100mbit --link h3=100mbit \
		--no-offload --late h1=0.025 --late h2=0.025 --late h3=0.025 \
		--sizes 2500000,9700000,23300000,52800000,54200000 --iterations 1 --warmup 1 --repeats 3 --trees planned"
	# At a 125th, where cores are short and not links alone: the servers have a fifth of one.
	local xagg_cores="--hosts 7 --servers 3 --link 800mbit --link h1=320mbit --link h2=320mbit --link h3=320mbit \
		--late h1=0.008 --late h2=0.008 --late h3=0.008 --cores s1=1 --cores s2=1 --cores s3=1 --busy 0.8 \
		--nic --mtu 1450 --sizes 2500000,9700000,23300000,52800000,54200000 --iterations 1 --warmup 1 \
		--repeats 5 --plane xdp"
	local nic="--server --hosts 4 --link 500mbit --link s1=2gbit --sizes 16M --iterations 20 --repeats 7 \
		--cores s1=1 --nic --plane xdp --against trib-tcp"
	local unlike_planes="--hosts 4 --link 500mbit --link h2=250mbit --late h3=0.54 --no-offload --sizes 16M \
		--iterations 5 --against trib-xdp"
	local lossy="--hosts 4 --server --link 200mbit --link s1=800mbit --against trib-xdp"
	local four="--hosts 4 --link 1gbit" unlike="--hosts 4 --link 1gbit --link h2=500mbit --late h3=0.27"
	is_root || die "bench: needs root, for network namespaces"
	scripts/deps.sh bench
	scripts/build.sh
	mkdir -p "$out"
	# shellcheck disable=SC2086
	{
		measure four-hosts $four --sizes 1M,4M,16M,64M --against "$peers"
		measure four-hosts-wire $four --no-offload --sizes 16M --against ring
		measure eight-hosts --hosts 8 --link 500mbit --sizes 16M,64M \
			--against gloo,ring,openmpi,openmpi-default
		measure unlike-reduce-large-pool $unlike --to-one --sizes 16M --pool 64M
		measure unlike-reduce-small-pool $unlike --to-one --sizes 16M --pool 256K
		measure unlike-large-pool $unlike --sizes 16M --pool 64M
		measure unlike-small-pool $unlike --sizes 16M --pool 256K
		measure no-loss --hosts 4 --link 200mbit --no-offload --sizes 16M,64M --iterations 5
		measure one-percent-loss --hosts 4 --link 200mbit --sizes 16M,64M --iterations 5 --loss 0.01 \
			--seed 1
		measure rough --hosts 4 --link 200mbit --sizes 1M --iterations 100 --repeats 1 --check \
			--loss 0.1 --dup 0.05 --reorder 0.05 --corrupt 0.01 --seed 1
		measure cpu --hosts 4 --link 0 --sizes 64M
		measure planes-allreduce --hosts 4 --link 500mbit --no-offload --sizes 1M,4M,16M,64M \
			--against trib-xdp,trib-tcp
		measure stripes $stripes --servers 4 --trees striped --trees star \
			--against tributary@star,ring
		measure stripes-wire $stripes --servers 4 --no-offload --trees striped --trees star \
			--against trib-xdp,tributary@star,trib-xdp@star,ring
		measure stripes-two $stripes --servers 2 --trees planned --against ring
		measure stripes-two-wire $stripes --servers 2 --no-offload --trees planned --against trib-xdp,ring
		measure stripes-none $stripes --servers 1 --trees "$on_workers" --against ring
		measure stripes-none-wire $stripes --servers 1 --no-offload --trees "$on_workers" --against ring
		measure stripes-none-jumbo $stripes --servers 1 --mtu 9000 --trees "$on_workers" --against ring
		measure xagg $xagg --trees "$of_paper" --against trib-tcp@tree,tcp-agg@tree,openmpi,ps
		measure xagg-tree $xagg --trees "$of_paper" --against tributary@tree,trib-xdp@tree,ring
		measure xagg-cores $xagg_cores --trees "$of_paper" --against tcp-agg
		for pool in 64M 256K; do
			measure alike-$pool --hosts 4 --servers 3 --link 500mbit --late h1=0.2 --late h3=0.2 --sizes 16M \
				--iterations 8 --pool $pool --trees 'alike=s3(s1(0,2),s2(1,3))' --trees 'apart=s3(s1(0-1),s2(2-3))' \
				--against tributary@apart
		done
		measure planes-eight --hosts 8 --link 250mbit --no-offload --sizes 16M,64M --iterations 5 \
			--against trib-xdp
		for pool in 64M 256K; do
			measure planes-unlike-$pool $unlike_planes --pool $pool
			measure planes-unlike-reduce-$pool $unlike_planes --pool $pool --to-one
		done
		# Behind a bridge faults meet what goes up on xdp too.
		measure planes-no-loss $lossy --no-offload --sizes 16M,64M --iterations 5
		measure planes-loss $lossy --sizes 16M,64M --iterations 5 --loss 0.01 --seed 1
		measure planes-rough $lossy --sizes 1M --iterations 100 --repeats 5 --check --loss 0.1 --dup 0.05 \
			--reorder 0.05 --corrupt 0.01 --seed 1
		# What an aggregator with a core of its own costs there, its packets as in a NIC's driver; once
		# with an MTU at which veth fits two of them in a page.
		measure planes-cpu $nic --mtu 1450
		measure planes-cpu-1500 $nic
		bench planes-throughput plane throughput --repeats 5
		bench planes-urgent plane throughput --urgent --repeats 5 --seconds 0.6
		bench planes-four plane throughput --children 4 --elements 256 --repeats 5
		bench planes-gro plane throughput --gro
		bench planes-offload plane throughput --offload
		bench planes-load plane load --seconds 0.4
		bench planes-cores plane cores
		bench rates rates --runs 8
	}
	for plane in udp xdp; do
		is_wanted deploy || break
		say "" "== deploy: trib bench deploy --plane $plane"
		build/src/cli/trib bench deploy --plane $plane --json "$out/deploy-$plane.json" |
			tee "$out/deploy-$plane.txt"
	done
	if is_wanted profile; then
		say "" "== profile: scripts/bench_profile.py"
		scripts/bench_profile.py --repeats 4 --json "$out/profile.json" xdp tcp-copied xdp-nic tcp-nic |
			tee "$out/profile.txt"
	fi
	if is_wanted engine; then
		say "" "== engine: trib bench engine"
		build/src/cli/trib bench engine --repeats 9 --json "$out/engine.json" --plot "$out/engine.svg" |
			tee "$out/engine.txt"
	fi
	simulate_all
	share share-bert-base-opt-125m bert-base,opt-125m --repeats 2 --steps 14
	share share-opt-125m-opt-350m opt-125m,opt-350m --repeats 2 --steps 6 --warmup 3
	share share-bert-base-bert-large bert-base,bert-large --repeats 3 --steps 6 --warmup 3
	share share-three opt-125m,opt-350m,bert-large --repeats 3 --steps 6 --warmup 3
	if is_wanted traffic; then
		say "" "== traffic: scripts/bench_traffic.sh"
		scripts/bench_traffic.sh | tee "$out/traffic.txt"
	fi
}

main
