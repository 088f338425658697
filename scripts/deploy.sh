#!/usr/bin/env bash
# deploy.sh [TIMES]: how long it takes from starting tribd --join until its controller can plan with it.
# On loopback; needs a build in build/ with the control plane, and curl.
. "$(dirname "$0")/common.sh"

main() {
	local times=${1:-20} work port=17600 i start list=() agent controller
	local tribd=build/src/cli/tribd
	have curl || die "deploy: curl is not installed"
	work=$(mktemp -d)
	export TRIB_STATE=$work/state TRIB_TOKEN=a-token-to-measure-with TRIB_LOG=error
	$tribd --controller 127.0.0.1:$port >"$work/controller" 2>&1 &
	controller=$!
	until grep -q ready "$work/controller"; do sleep 0.02; done
	for ((i = 0; i < times; i++)); do
		start=$(date +%s%N)
		$tribd --join 127.0.0.1:$port --listen "127.0.0.1:$((17700 + 20 * i))" --name "n$i" >/dev/null 2>&1 &
		agent=$!
		until curl -s -H "Authorization: Bearer $TRIB_TOKEN" "http://127.0.0.1:$port/v1/nodes" |
			grep -q "\"name\":\"n$i\".*\"state\":\"l"; do :; done
		list+=($((($(date +%s%N) - start) / 1000)))
		kill "$agent"
		wait "$agent" || true
	done
	kill "$controller"
	wait "$controller" || true
	rm -rf "$work"
	printf '%s\n' "${list[@]}" | sort -n |
		awk '{ t[NR] = $1 / 1000 } END { printf "deployed %d times: median %.0f ms, longest %.0f ms\n", NR, t[int((NR + 1) / 2)], t[NR] }'
}

main "$@"
