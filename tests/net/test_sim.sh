#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# trib sim as people and programs use it, with a small trace of its own.
# Usage: test_sim.sh PATH_TO_TRIB
. "$(dirname "$0")/lib.sh"
start "$@"

sim() { "$trib" sim -t "$work" "$@" >"$work/out" 2>"$work/err"; }
says() { grep -qF -- "$1" "$work/out"; }
complains() { # CODE WORDS ARGUMENT...
	local code=$1 words=$2 is
	shift 2
	"$trib" sim -t "$work" "$@" >"$work/out" 2>"$work/err"
	is=$?
	[ $is = "$code" ] && grep -qF -- "$words" "$work/err" && [ ! -s "$work/out" ]
}
json() { python3 -c "import json, sys; v = json.load(open('$work/out')); sys.exit(not ($1))"; }
result() { "$trib" sim -t "$work" --models ours "$@" | sed -n 5p | sed 's/ [^ ]* M.s$//'; }

# A step of 100 ms whose second allreduce takes 80 ms more, or 40.
cat >"$work/ours.json" <<'END'
{"duration": 0.1, "allreduces": [{"start": 0.05, "size": 100000000},
                                 {"start": 0.1, "size": 1000000000}]}
END
printf '0,ours,2,10\n1,traces/ours.json,2,10\n2,ours,1,5,0.25\n' >"$work/jobs"
printf 'level 2 1\nlevel 2 2\n' >"$work/fabric"

check "a list of jobs" sim --jobs "$work/jobs" -f "$work/fabric" --per-job "$work/per-job"
check "... and what became of each" test "$(wc -l <"$work/per-job")" = 4
check "... their names" grep -q '^1,ours,2,10,' "$work/per-job"
if command -v python3 >/dev/null; then
	check "as JSON" sim --jobs "$work/jobs" -f leaf-spine:2:2:2 --json
	# 10 steps of 5 events and one more, twice; 5 steps for the job on one host.
	check "... events" json 'v["events"] == 2 * 51 + 26 and v["done"] == 3'
	check "... all aggregated" json 'abs(v["score"] - 1) < 1e-9 and v["gain"] > 0.15'
	check "... the settings" json 'v["settings"]["sharing"] == "frugal" and v["seed"] == 1'
	check "... of the fabric" json 'v["settings"]["levels"] == [[2, 1], [2, 2]] and v["settings"]["list"]'
	check "MINA's experiments" sim --models ours -n 20 --sizes 2:1 --paper table1 --seeds 2 --json
	check "... have theirs" json 'v["generate"] == 20 and len(v["cells"]) == 8 and
		all(c["settings"]["hosts"] == 1024 and c["events"] for c in v["cells"])'
	check "two jobs share one switch" sim --jobs "$work/jobs" -f "$work/fabric" --switch 1 \
		--link 0 -p random --seed 3 --json
	check "... and gain less" json '0 < v["score"] <= 1'
	check "seeds" sim --models ours -n 50 --sizes 1:1,4:2 -f fat-tree:4 --seeds 3 --json
	check "... each with its run" json 'len(v["runs"]) == 3 and v["runs"][2]["seed"] == 3'
	check "... and their spread" json 'v["score_low"] <= v["score_mean"] <= v["score_high"]'
else
	omit "python3 is not installed, and reads JSON"
fi
check "a switch for more jobs than it knows of" sim --models ours -n 300 --sizes 2:1 -p random \
	-f leaf-spine:16:8:1 --link 0 --switch 9
check "jobs on one host each" sim --models ours -n 5 --sizes 1:1
check "... gain nothing, and it says so" says "nothing to gain: no job has more than one host"
check "the same seed" test "$(result -n 50 -f fat-tree:4)" = "$(result -n 50 -f fat-tree:4)"
check "another" test "$(result -n 50 -f fat-tree:4)" != "$(result -n 50 -f fat-tree:4 --seed 2)"
check "arrivals" sim --models ours -n 50 -f fat-tree:4 --arrivals 2
check "steps that vary" sim --models ours -n 50 -f fat-tree:4 --jitter 0.1
check "... and it says so" says "varies by 10 %"
check "... from the seed" test "$(result -n 50 -f fat-tree:4 --jitter 0.1)" != "$(result -n 50 -f fat-tree:4)"
check "... not by more than the computation" complains 2 "--jitter is from 0" --models ours --jitter 5
check "pictures" sim --models ours -n 50 -f fat-tree:4 --plot "$work/plot"
for name in gain score time utilization; do
	check "... $name" grep -q '</svg>' "$work/plot-$name.svg"
done

printf 'timestamp,duration,num_gpus,gpu_time,cluster\n2017-10-09 07:01:55,66,16,1,x\n' >"$work/philly"
check "Philly's jobs" sim --models ours --philly "$work/philly" -f fat-tree:4
check "... one" says "; 1 job;"
printf 'A\tb\t-n\t1\t40\t3\t8\n' >"$work/gavel"
check "Gavel's, from the standard input" sim --models ours --gavel - -f fat-tree:4 <"$work/gavel"

sed 1d "$work/philly" >"$work/headless"
check "... also without a line of names" sim --models ours --philly "$work/headless" -f fat-tree:4
check "... one" says "; 1 job;"
printf 'A\tb\tc\t-n\t1\t40\t8\t1\t-1.0\t3\n' >"$work/physical"
check "Gavel's with ten fields" sim --models ours --gavel "$work/physical" -f fat-tree:4
check "the first jobs of a list" sim --jobs "$work/jobs" -f "$work/fabric" --limit 2
check "... two" says "; 2 jobs;"
check "... but not of random ones" complains 2 "use --generate" --models ours --limit 2

printf 'A\tb\t-n\t1\t40\t3\t8\nA\tb\t-n\t1\t40\t3\t8\t1\n' >"$work/wrong"
check "eight fields of Gavel's are refused" complains 1 "$work/wrong:2: expected 7 fields" \
	--models ours --gavel "$work/wrong"
printf '0,ours,2,10\n1,ours,many,10\n' >"$work/wrong"
check "a wrong line is named" complains 1 "$work/wrong:2: " --jobs "$work/wrong"
printf '{\n"duration": 1\n' >"$work/broken.json"
check "... of a step" complains 1 "$work/broken.json:3: " --models broken
printf 'level 2\n' >"$work/bad"
check "... of a fabric" complains 1 "$work/bad:1: " -f "$work/bad"
check "a model that is not there" complains 1 "none.json: No such file" --models none
check "a fabric that is none" complains 1 "expected fat-tree:DEGREE" -f fat-tree:x
check "a job that is too large" complains 1 "$work/jobs:1: the job wants 2 hosts, and the fabric has 1" --jobs "$work/jobs" \
	-f leaf-spine:1:1:1
check "a policy that is none" complains 2 "not one of the values" --sharing fair
check "not both" complains 2 "leave --generate" --jobs "$work/jobs" -n 3
check "not a file a job of many simulations" complains 2 "--paper runs many" --paper table1 --per-job "$work/x"
check "an experiment that is none" complains 2 "table1, fig11" --paper fig99
done_checking
