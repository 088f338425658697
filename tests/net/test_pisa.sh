#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Small vectors on the model of a switch, over real sockets: the same bits as in user space, also with
# faults, and a named error for what a switch cannot do: test_pisa.sh PATH_TO_TRIB
. "$(dirname "$0")/lib.sh"
need_clusters "$@"
start "$@"
a=tp$$
export TRIB_COOKIE=000000000000cafe
# A switch has words of 32 bits. It adds two of them with a carry, but compares only one.
words=(--rounds 150 --max 3000 --types 'i32,u32,f16,bf16,f32' --split)
longs=(--rounds 100 --max 2000 --types 'i64,u64,f64' --ops 'sum,avg')
slots='--plane pisa'

# on_switch PACKETS: that many went through the switch at least, and each did several passes.
on_switch() {
	local packets passes again
	packets=$(counter switch_packets) passes=$(counter switch_passes) again=$(counter switch_recirculations)
	check "... ${packets:-0} packets on the switch" test "${packets:-0}" -ge "$1"
	check "... in ${passes:-0} passes, of which ${again:-0} are recirculations" \
		test "${again:-0}" -gt 0 -a "${passes:-0}" = $((${packets:-0} + ${again:-0}))
	check "... none was refused or broke a rule" test "$(counter switch_refused)$(counter switch_broken)" = 00
}
no_switch() { ! grep '"tribd":' "$out" | grep -q switch_; }

# within_budget: four stages, none above the budget of 70.83 %.
within_budget() {
	grep -o '"switch_memory":\[[0-9.,]*\]' "$out" | tail -n 1 | tr -c '0-9.\n' ' ' |
		awk '{ bad = NF != 4; for (i = 1; i <= NF; i++) bad = bad || $i <= 0 || $i > 70.84 } END { exit bad || !NR }'
}

# same_as_udp N WHAT SEED ARG...: on udp and on pisa, with small vectors in slots on both.
same_as_udp() {
	local n=$1 what=$2 seed=$3
	shift 3
	run_options='' TRIB_ENGINE=slot go_right "$what, $n ranks, udp" "$n" "$@" --seed "$seed"
	check "... without a switch" no_switch
	digests "$out" >"$work/udp"
	run_options=$slots TRIB_ENGINE=slot go_right "$what, $n ranks, pisa" "$n" "$@" --seed "$seed"
	check "... the bits of udp" same_digests "$work/udp"
	on_switch 500
}

# --- a switch
up $a --hosts 4 --servers 1 --switch
same_as_udp 2 "32 bits" 71 "${words[@]}"
same_as_udp 4 "64 bits" 72 "${longs[@]}"
TRIB_LOG=info same_as_udp 4 "32 bits" 73 "${words[@]}"
digests "$out" >"$work/expected"
check "the memory of each stage is told" within_budget
check "... and logged" grep -q 'switch: 1024 slots of 14[0-9]* bytes; stage 0: [0-9.]* % of its memory, stage 1' "$out"
run_options=$slots TRIB_ENGINE=dense go_right "TRIB_ENGINE=dense: all types" 4 --rounds 60 --max 5000 --seed 74
check "... without a switch" no_switch
TRIB_PLANE=pisa go_right "TRIB_PLANE=pisa" 4 --rounds 60 --max 300 --types f32 --seed 75
on_switch 100

# --- what a switch cannot do
# lacks TYPE OP WORDS: an error on all ranks that names the operation, and says what to do.
lacks() {
	go -n 4 --net $a $slots --timeout 20 -- "$worker" --only allreduce --types "$1" --ops "$2" --max 100 --linger 1
	check "$2 of $1: an error and no result" no_result
	check "... that names it" grep -q "rank [0-9]: allreduce: error .*refused.*: $3" "$out"
	check "... and says what to do" grep -q 'set TRIB_ENGINE=dense on all ranks, or use another plane' "$out"
	check "... and is counted" test "$(counter switch_refused)" -ge 1
}
no_result() { grep -q 'error' "$out" && [ "$(grep -c ': right, \|WRONG' "$out")" = 0 ]; }
lacks i8 sum 'a sum: Program slot refuses the operation WIRE_ADD8'
lacks f64 min 'a minimum: Program slot refuses the operation WIRE_MIN_I64'
lacks u64 max 'a maximum: Program slot refuses the operation WIRE_MAX_U64'
go -n 33 --net $a $slots --timeout 20 -- "$worker" --rounds 1 --linger 1
check "33 ranks: refused, with the loader's sentence" \
	grep -q "error .*refused rank.*Program slot breaks the rule 'form': .*, register mark: .*1 to 32 children" "$out"

# --- counters of a running aggregator
explain_has() { on s1 "$trib" explain "${@:2}" --aggregator "$at" >"$work/explain" 2>&1 && grep -q "$1" "$work/explain"; }
json() { on s1 "$trib" explain --json --aggregator "$at" | python3 -c 'import json, sys; json.load(sys.stdin)'; }
aggregator s1 --plane pisa && aggregator_ready
go -n 4 --net $a --aggregator "$at" --timeout 30 -- "$worker" --rounds 60 --max 300 --types f32 --seed 76
check "workers on udp: exact on all ranks" right 4
check "trib explain names the plane" explain_has 'pisa: small vectors on a model of a programmable switch'
check "trib explain --json has the counters" explain_has '"switch_recirculations":[1-9]' --json
if command -v python3 >/dev/null; then
	check "... and is JSON" json
fi
end_aggregator
down

# --- long packets: a switch recirculates up to 60 times for words, 32 bytes each, and has fewer slots
up $a --hosts 2 --servers 1 --switch --mtu 9000
TRIB_LOG=info run_options=$slots TRIB_ENGINE=slot go_right "MTU 9000" 2 "${words[@]}" --seed 77
on_switch 200
check "... with the memory that a switch has" within_budget
check "... packets as long as it can recirculate" grep -q 'switch: 1024 slots of 1920 bytes' "$out"
down

# --- faults
if has_bpf; then
	up $a --hosts 4 --servers 1 --switch --loss 0.05 --dup 0.05 --reorder 0.05 --seed 1
	limit=120 run_options=$slots TRIB_ENGINE=slot go_right "loss, duplicates, reordering" 4 "${words[@]}" --seed 73
	check "... bitwise as without" same_digests "$work/expected"
	on_switch 500
	check "... $(faults lost) packets were lost" test "$(faults lost)" -gt 50
	check "... $(faults duplicated) were duplicated" test "$(faults duplicated)" -gt 50
	check "... $(faults reordered) were reordered" test "$(faults reordered)" -gt 10
	down
else
	omit "links with faults need root, and a build with BPF programs"
fi
done_checking
