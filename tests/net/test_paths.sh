#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Messages over four paths of a fabric, while packets are lost and paths are cut and restored.
# Usage: test_paths.sh PATH_TO_TRIB [CUTS]. With CUTS, only a path at random is cut and restored so often, a second each.
. "$(dirname "$0")/lib.sh"
need_clusters "$@"
start "$@"
name=path$$

passed() { on "spine$1" awk '$1 == "leaf1:" { print $3 }' /proc/net/dev; }
has_passed() { [ "$(passed "$1")" -ge "$2" ]; } # SPINE PACKETS
# busy SPINE: messages go by this spine. An idle path has a few probes.
busy() { wait_for 10 has_passed "$1" $(($(passed "$1") + 500)); }
# bench OPTION...: all bytes are compared, until it is stopped.
bench() {
	"$trib" bench path --net "$name" --paths 4 --transport ours --check --warm 0.1 --seconds 100 "$@" \
		>"$work/bench" 2>&1 &
	bench=$!
}
end_bench() {
	kill -INT "$bench"
	ends_badly "$bench"
}
# right: messages have come, and all were right.
right() {
	grep -q '^ours  *4  *65536 .* 0\.[0-9]*[1-9]' "$work/bench" && lacks failed "$work/bench" ||
		! cat "$work/bench"
}

faults=()
if has_bpf; then
	faults=(--loss 0.01 --dup 0.01 --reorder 0.01 --corrupt 0.01)
else
	omit "links with faults need root, and a build with BPF programs"
fi
up "$name" --hosts 4 --leaf 2 --spine 4 --route static --core 50mbit "${faults[@]}"
if [ "${2:-}" ]; then
	bench --size 64K --seconds $((2 * $2 + 60))
	check "messages begin" busy 2
	for ((i = 0; i < $2; i++)); do
		link=leaf$((RANDOM % 2 + 1))-spine$((RANDOM % 4 + 1))
		"$trib" net cut --name "$name" $link >/dev/null
		sleep 0.5 # as long as the cut lasts
		"$trib" net restore --name "$name" $link >/dev/null
		sleep 0.5
	done
	for spine in 1 2 3 4; do
		check "path $spine is used after $2 cuts" busy $spine
	done
	check "the benchmark ends when it is told" end_bench
	check "every byte is right" right
	done_checking
fi
for spine in 1 4; do # the first path, too
	"$trib" net cut --name "$name" leaf1-spine$spine >/dev/null
done
bench --size 64K
check "messages begin on the paths that work" busy 2
for spine in 1 4; do
	"$trib" net restore --name "$name" leaf1-spine$spine >/dev/null
	check "path $spine appears, and is used" busy $spine
done
for spine in 1 2 3; do
	"$trib" net cut --name "$name" leaf2-spine$spine >/dev/null
done
check "three paths are cut: the last one goes on" busy 4
for spine in 1 2 3; do
	"$trib" net restore --name "$name" leaf2-spine$spine >/dev/null
done
for spine in 1 2 3; do
	check "path $spine is used again" busy $spine
done
check "the benchmark ends when it is told" end_bench
check "every byte is right" right

bench --size 64K --find
for spine in 1 2 3 4; do
	check "found by probes: path $spine is used" busy $spine
done
check "the benchmark ends when it is told" end_bench
check "every byte is right" right

# --- a path is cut by the benchmark itself, beside short flows
check "a timeline with events and mice" "$trib" bench path --net "$name" --paths 4 --transport ours --size 64K --check \
	--warm 0.1 --seconds 1 --timeline --events 0.4:cut=2 --mice 4K --json "$work/timeline.json"
check "... has points and short flows" python3 - "$work/timeline.json" <<'END'
import json, sys
result = json.load(open(sys.argv[1]))
points = result["timeline"]
assert 5 <= len(points) <= 40 and any(point["gbps"] > 0 for point in points), points
assert result["rows"][0]["mice_s"] > 0 and result["rows"][0]["mice_p99_s"] >= result["rows"][0]["mice_s"]
END
"$trib" bench path --net "$name" --events 1:break=2 >"$work/refused" 2>&1
check "wrong events are refused" grep -q -e "--events: expected" "$work/refused"
# Loss strikes other transports, too: a TCP flow that loses a third of its packets cannot fill its path.
suffers() {
	"$trib" bench path --paths 1 --transport tcp --loss leaf1-spine1=0.33 --warm 0.5 --seconds 1 >"$work/tcp" 2>&1
	grep -Eq '^tcp .* ([0-7]?[0-9]\.[0-9] %|failed: nothing has come)' "$work/tcp" || ! cat "$work/tcp"
}
if [ ${#faults[@]} -gt 0 ]; then
	check "TCP packets are lost" suffers
fi
done_checking
