#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The systemd units, and the rights that they give: test_units.sh PATH_TO_TRIB
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/lib_control.sh"
start "$@"
need_control
missing=''

if command -v systemd-analyze >/dev/null && [ -f "$build/packaging/tribd-agent.service" ]; then
	for unit in agent controller; do
		sed "s#^ExecStart=[^ ]*#ExecStart=$tribd#; /^EnvironmentFile=/d; /^Documentation=/d" \
			"$build/packaging/tribd-$unit.service" >"$work/tribd-$unit.service"
		systemd-analyze verify "$work/tribd-$unit.service" >"$work/verify" 2>&1
		check "tribd-$unit.service is well formed: $(cat "$work/verify")" \
			test "$(grep -c "tribd-$unit" "$work/verify")" = 0
	done
	exposure=$(systemd-analyze security --offline=yes "$work/tribd-controller.service" 2>/dev/null |
		sed -n 's/.*Overall exposure level[^:]*: \([0-9.]*\).*/\1/p')
	if [ -n "$exposure" ]; then
		check "the controller's exposure is $exposure of 10, which is below 2" \
			awk -v e="$exposure" 'BEGIN { exit !(e < 2) }'
	fi
else
	missing="systemd-analyze is not installed"
fi

# As the units have it: another user, no rights at all for the controller.
[ "$(id -u)" = 0 ] && command -v setpriv >/dev/null || skip "${missing:-becoming another user needs root and setpriv}"
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
rights='+bpf,+net_admin,+perfmon'
three=(setpriv --reuid nobody --regid nogroup --clear-groups --no-new-privs
	--inh-caps "-all,$rights" --ambient-caps "$rights" --bounding-set "-all,$rights")
LD_LIBRARY_PATH=$build/src "${three[@]}" "$work/tribd-copy" --join "$control" --listen "127.0.0.1:$(free_port)" \
	--plane xdp --name three >"$work/agent" 2>&1 &
agent=$!
check "an agent runs with the three rights of its unit" wait_for 20 node_is three live
check "... which it tells" test "$(api GET /v1/nodes | jq -r '.nodes[0].rights')" = "net_admin perfmon bpf"
kill -TERM "$agent" "$controller"
wait "$agent" "$controller"
[ $failures = 0 ] || exit 1
[ -z "$missing" ] || skip "$missing; the rights have been tried"
