#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The systemd units, and the rights that they give: test_units.sh PATH_TO_TRIB
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/lib_control.sh"
start "$@"
need_control
missing=''

if command -v systemd-analyze >/dev/null; then
	check "this build has units" test -f "$build/packaging/tribd-agent.service" || exit 1
	for unit in agent controller server; do
		sed "s#^ExecStart=[^ ]*#ExecStart=$tribd#; /^EnvironmentFile=/d; /^Documentation=/d" \
			"$build/packaging/tribd-$unit.service" >"$work/tribd-$unit.service"
		systemd-analyze verify "$work/tribd-$unit.service" >"$work/verify" 2>&1
		check "tribd-$unit.service is well formed: $(cat "$work/verify")" \
			test "$(grep -c "tribd-$unit" "$work/verify")" = 0
	done
	systemd-analyze --help | grep -q -e --offline || omit "this systemd-analyze has no --offline"
	for unit in $(systemd-analyze --help | grep -q -e --offline && echo agent controller server); do
		exposure=$(systemd-analyze security --offline=yes "$work/tribd-$unit.service" 2>/dev/null |
			sed -n 's/.*Overall exposure level[^:]*: \([0-9.]*\).*/\1/p')
		check "the $unit's exposure is $exposure of 10, which is below 2" \
			awk -v e="${exposure:-10}" 'BEGIN { exit !(e + 0 < 2) }'
	done
else
	missing=yes
	omit "systemd-analyze is not installed (package systemd)"
fi

# As the units have it: another user, no rights at all for the controller.
is_real_root && command -v setpriv >/dev/null || skip "becoming another user needs root and setpriv"
chmod 711 "$work"
mkdir "$work/state"
chown nobody "$work/state"
nobody=(setpriv --reuid nobody --regid nogroup --clear-groups --no-new-privs --bounding-set -all)
control=127.0.0.1:$(free_port)
# A copy: the build may be in a folder that is closed to others.
install -m 755 "$tribd" "$work/tribd-copy"
LD_LIBRARY_PATH=$build/src "${nobody[@]}" "$work/tribd-copy" --controller "$control" >"$work/controller" 2>&1 &
controller=$!
check "a controller runs as nobody, without any rights" wait_for 10 grep -q 'controller ready' "$work/controller"
job '{"size":1}'
check "... and makes jobs" test "$job" = 1
# agent_with NAME RIGHTS OPTION...: another one, with these alone; its pid is in $agent.
agent_with() {
	local name=$1 rights=$2 told=$3
	shift 3
	LD_LIBRARY_PATH=$build/src setpriv --reuid nobody --regid nogroup --clear-groups --no-new-privs \
		--inh-caps "-all,$rights" --ambient-caps "$rights" --bounding-set "-all,$rights" \
		"${trace[@]}" "$work/tribd-copy" --join "$control" --listen "127.0.0.1:$(free_port)" --name "$name" "$@" \
		>"$work/$name" 2>&1 &
	agent=$!
	check "an agent runs with $rights" wait_for 20 node_is "$name" live
	check "... which it tells" test "$(api GET /v1/nodes | jq -r ".nodes[] | select(.name == \"$name\").rights")" = "$told"
}
trace=()
agent_with three +bpf,+net_admin,+perfmon "net_admin perfmon bpf" --plane xdp
kill -TERM "$agent"
wait "$agent"
# With the rights of the unit. All its system calls have to pass the unit's filter.
if ! strace -o /dev/null true 2>/dev/null; then
	omit "strace is not installed, or may not trace"
elif [ -z "$missing" ]; then
	mkdir "$work/calls"
	chown nobody "$work/calls"
	trace=(strace -D -f -qq -o "$work/calls/list")
fi
agent_with one +net_admin net_admin
kill -TERM "$agent" "$controller"
wait "$agent" "$controller"
if [ ${#trace[@]} -gt 0 ]; then
	systemd-analyze syscall-filter >"$work/groups" 2>/dev/null
	# calls GROUP: all that are in it, and in those that it names
	calls() {
		local line
		while read -r line; do
			case $line in
			@*) calls "$line" ;;
			'#'* | '') ;;
			*) echo "$line" ;;
			esac
		done < <(awk -v g="$1" '$1 == g && !/^ / { on = 1; next } /^[^ ]/ { on = 0 } on' "$work/groups")
	}
	calls @system-service | sort -u >"$work/allowed"
	calls @privileged | sort -u | comm -23 "$work/allowed" - >"$work/left"
	sed -nE 's/^[0-9]+ +([a-z0-9_]+)\(.*/\1/p' "$work/calls/list" | sort -u >"$work/made"
	check "$(wc -l <"$work/made") kinds of system calls, none beyond the unit's: $(comm -23 "$work/made" "$work/left" | tr '\n' ' ')" \
		test -s "$work/made" -a -z "$(comm -23 "$work/made" "$work/left")"
fi
done_checking
