#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The TCP plane: the same bits as on the UDP plane with all links and lanes, errors that name the dead one, and
# connections of strangers that do no harm. Usage: test_tcp.sh PATH_TO_TRIB
. "$(dirname "$0")/lib.sh"
need_clusters "$@"
start "$@"
options=''
mixed=(--rounds 60 --max 30000)
large=(--rounds 4 --max 4000000 --only allreduce)

# same_bits WHAT N WORKER_ARG...: on both planes, exact and alike.
same_bits() {
	local what=$1
	shift
	run_options="$options --plane udp" go_right "$what, udp" "$@"
	digests "$out" >"$work/udp"
	run_options="$options --plane tcp" go_right "$what, tcp" "$@"
	check "$what: the bits of the UDP plane" same_digests "$work/udp"
	check "... by TCP" grep -q '"plane":"tcp"' "$out"
	check "... no fragment was dropped" test "$(counter ahead)" = 0
	check "... nor sent again without need" test "$(counter repeats)" = 0
}

up tt$$ --hosts 4 --servers 1 --switch --link 1gbit
options='' same_bits "all collectives" 4 "${mixed[@]}" --seed 21
options='' same_bits "long vectors" 4 "${large[@]}" --seed 22
options='--lanes 4' same_bits "4 lanes" 4 "${mixed[@]}" --seed 23
options='--pool 64K' same_bits "a small pool" 4 "${mixed[@]}" --seed 24
options='--pool 16K --lanes 2' same_bits "a tiny pool, 2 lanes" 4 --rounds 20 --max 30000 --seed 25
options='' same_bits "more ranks than hosts" 7 --rounds 30 --max 30000 --seed 26
export TRIB_RATE=100mbit
options='' same_bits "paced" 4 --rounds 20 --max 30000 --seed 27
unset TRIB_RATE
export TRIB_MTU=9000
options='' same_bits "an MTU that the links do not have" 4 "${mixed[@]}" --seed 28
unset TRIB_MTU

# --- strangers
export TRIB_COOKIE=000000000000feed TRIB_SIZE=4 TRIB_TIMEOUT=10
held=()
shout() { # COMMAND: with a connection to the aggregator as descriptor 3
	"$trib" net exec --name "$cluster" h1 -- bash -c "exec 3<>/dev/tcp/${at%:*}/${at#*:}; $1" \
		>/dev/null 2>&1 &
	held+=($!)
}
end() { # PID...
	kill -KILL "$@"
	wait "$@"
} 2>/dev/null
aggregator s1 --plane tcp && aggregator_ready
for _ in 1 2 3; do
	shout 'head -c 1000000 /dev/urandom >&3'
	shout 'printf "T2\1\0\377\377\377\377" >&3; exec sleep 60'
	shout 'printf "T2\1\0\50\0\0\0" >&3; exec sleep 60'
	shout 'printf "T2\11\0\50\0\0\0" >&3; head -c 32 /dev/zero >&3; exec sleep 60'
	# DATA of one that has not joined, to the communicator that will be there soon
	for wait in 0.2 0.4 0.6 0.8 1 1.5 2 3; do
		shout "sleep $wait"'; printf "T2\1\0\40\0\0\0\1\0\0\1" >&3; head -c 20 /dev/zero >&3; exec sleep 60'
	done
	shout 'printf T >&3; exec sleep 60'
	shout 'exec sleep 60'
	shout 'while printf "GET / HTTP/1.1\r\n" >&3; do :; done'
done
for rank in 0 1 2 3; do
	TRIB_PLANE=tcp TRIB_RANK=$rank TRIB_AGGREGATOR=$at "$trib" net exec --name "$cluster" \
		"h$((rank + 1))" -- "$worker" --rounds 200 --max 30000 --seed 29 >"$work/rank.$rank" 2>&1 &
	pids[rank]=$!
done
asked() { on h2 env TRIB_AGGREGATOR="$at" "$trib" top --json 2>&1 | grep -q '"plane":"tcp"'; }
check "trib top is answered, and says tcp" wait_for 20 asked
wait "${pids[@]}"
cat "$work"/rank.? >"$work/out"
out=$work/out
check "strangers at the port: exact on all ranks" right 4
end "${held[@]}"
kill -TERM "$aggregator"
wait "$aggregator" 2>/dev/null
sed -i 's/.*"drops":/"tribd":/' "$work/tribd" # a verdict has the name of a drop
for drop in magic length cookie stranger; do
	check "... drops by $drop are counted" test "$(counter $drop "$work/tribd")" -gt 0
done

# --- the other plane
export TRIB_TIMEOUT=2
aggregator s1 --plane udp && aggregator_ready
TRIB_PLANE=tcp TRIB_RANK=0 TRIB_AGGREGATOR=$at on h1 -- "$worker" >"$work/out" 2>&1
check "a TCP worker at a UDP aggregator is told of --plane" grep -q 'refused.*--plane tcp' "$work/out" ||
	cat "$work/out"
end "$aggregator"
aggregator s1 --plane tcp && aggregator_ready
TRIB_PLANE=udp TRIB_RANK=0 TRIB_AGGREGATOR=$at on h1 -- "$worker" >"$work/out" 2>&1
check "a UDP worker at a TCP aggregator is told of TRIB_PLANE" grep -q 'TRIB_PLANE=tcp' "$work/out" ||
	cat "$work/out"
end "$aggregator"
unset TRIB_TIMEOUT TRIB_COOKIE TRIB_SIZE
down

# --- links that lose: TCP fills their queues until they do. Faults are for datagrams.
faulty=(--loss 0.01 --corrupt 0.01 --seed 3)
has_bpf || { faulty=() && omit "links with faults need root, and a build with BPF programs"; }
up tt$$ --hosts 4 --servers 1 --switch --link 30mbit "${faulty[@]}"
options='' same_bits "slow links" 4 --rounds 20 --max 200000 --seed 30
down

# --- deaths, and trees
for name in death tree; do
	TRIB_PLANE=tcp bash "$(dirname "$0")/test_$name.sh" "$trib" >"$work/log" 2>&1
	code=$?
	if [ $code = 77 ]; then
		omit "test_$name.sh: $(tail -n 1 "$work/log")"
	else
		check "test_$name.sh on the TCP plane" test $code = 0 || grep -v '^ok' "$work/log"
	fi
done
done_checking
