#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Busy loops overload the core of an aggregator while a job uses it. The agent measures the load of the
# cores that it may run on, the job migrates, and its sums are exact. Every node has a core of its own.
# test_migration.sh shows more with loads that are made up.
# Usage: test_burn.sh PATH_TO_TRIB
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/lib_control.sh"
need_clusters "$@"
start "$@"
need_control
mapfile -t cores < <(for core in /sys/devices/system/cpu/cpu[0-9]*; do
	taskset -c "${core##*cpu}" echo "${core##*cpu}" 2>/dev/null
done | sort -n)
[ ${#cores[@]} -ge 2 ] || skip "two cores are needed, one for each node"
export TRIB_LOAD_MAX=80 TRIB_BEAT=0.25 TRIB_EXIT_BELOW=0 TRIB_STRIPES=1
check "a cluster" up burn$$ --hosts 2 --servers 2 --link 300mbit || exit 1
control=$(address h1):7600
scheme=http
curl() { on h1 /usr/bin/env curl "$@"; }

export TRIB_CONTROLLER=http://$control
check "a controller starts" controller h1 --plain || exit 1
declare -A core=([s1]=${cores[0]} [s2]=${cores[1]})
for host in s1 s2; do
	agent_command=(taskset -c "${core[$host]}")
	agent_on $host
done
for host in s1 s2; do
	wait_for 20 node_is $host live || fail "$host has not joined: $(cat "$work/$host")"
done

# burns CORE: others use most of it, by what the kernel counts in a second and not by what an agent says.
burns() {
	local first second
	first=$(grep "^cpu$1 " /proc/stat)
	sleep 1
	second=$(grep "^cpu$1 " /proc/stat)
	awk '{ all = 0; for (i = 2; i <= 9; i++) all += $i; idle = $5 + $6 }
		NR == 1 { a = all; b = idle } NR == 2 { exit !(all - a > 2 * (idle - b)) }' <<<"$first"$'\n'"$second"
}

load() { api GET /v1/nodes | jq -r ".nodes[] | select(.name == \"$1\").load"; }

enough=$work/enough # ranks end when it is there
ranks 2 --rounds 1000000 --until "$enough" --max 20000 --pause 0.3
check "the job has a plan" wait_for 20 plan_is_past 0
if has_plan s1; then burnt=s1 spare=s2; else burnt=s2 spare=s1; fi
check "... at one of the nodes" has_plan $burnt
for host in s1 s2; do
	node_is $host loaded || continue
	! burns "${core[$host]}" || skip "others use core ${core[$host]} of this machine: load $(load $host)"
	check "nobody burns core ${core[$host]}, and $host is not loaded" wait_for 10 node_is $host live
done
before=$(generation "$TRIB_JOB")
hogs=()
for _ in 1 2 3; do
	taskset -c "${core[$burnt]}" bash -c 'while [ $SECONDS -lt 90 ]; do :; done' &
	hogs+=($!)
done
# Asking needs a core too, and the other core has to stay idle: so ask only every 0.5 s.
for ((tries = 50; tries > 0; tries--)); do
	sleep 0.5
	! plan_is_past "$before" || break
	if node_is $spare loaded && burns "${core[$spare]}"; then
		skip "others use core ${core[$spare]} of this machine, which is to be free"
	fi
done
echo "loads: $burnt $(load $burnt), $spare $(load $spare)"
check "loops burn the core of $burnt: the job leaves it" plan_is_past "$before"
check "... for a plan at $spare" has_plan $spare
check "... without $burnt" lacks_plan $burnt
check "... which is loaded" node_is $burnt loaded
check "... the controller says so" \
	grep -q "job $TRIB_JOB leaves node .* ($burnt): overloaded, others use \(100\|[89][0-9]\) % of its cores" "$work/controller"
check "... ranks were told why" grep -q 'leaves: overloaded, others use' "$work/rank.1"
kill "${hogs[@]}"
check "all ranks go on" wait_for 20 all_go_on
end_as_undisturbed 2 --max 20000
check "when the loops have ended the node is taken back" wait_for 30 node_is $burnt live
done_checking
