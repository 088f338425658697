#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# trib bench glm: its rows, its JSON, its plots, and what it refuses.
# Usage: test_bench_glm.sh PATH_TO_TRIB
. "$(dirname "$0")/lib.sh"
need_clusters "$@"
start "$@"

benchmark=glm
measure=(--epochs 2 --rows 64)
. "$(dirname "$0")/lib_bench.sh"

systems=model,vanilla,data
if [ -x "$build/bench/peers/openmpi" ] && [ -e "$build/src/glm/exchange/glm-mpi.so" ]; then
	systems+=,mpi
else
	omit "this build has no Open MPI (package libopenmpi-dev)"
fi
IFS=, read -ra names <<<"$systems"
IFS=, read -ra on <<<"$planes"
all=$((${#names[@]} + ${#on[@]} - 1))

bench "of all systems" --hosts 2 --features 200 --batch 16,64 --nonzeros 20 --systems "$systems" --plane "$planes" \
	--plot "$work/plot.svg"
for name in "${names[@]}"; do
	n=2
	[ "$name" != model ] || n=$((2 * ${#on[@]}))
	check "... $name has a row for each batch on each of its planes, and no run has failed" \
		rows $n "\"system\": \"$name\".*\"failed\": 0"
	check "... $name is in the table" grep -q " $name " "$work/out"
done
check "... and there is no other row" rows $((2 * all)) '"hosts": 2, "features": 200,'
for field in plane batch bits rows epoch_s samples_per_s loss; do
	check "... every row has $field" rows $((2 * all)) "\"$field\": [\"0-9]"
done
if [[ $systems == *mpi ]]; then
	check "... and how many times as long CPUSync takes" rows $((2 * all)) '"mpi_ratio": [0-9]'
	check "... 1 for itself" rows 2 '"system": "mpi".*"mpi_ratio": 1,'
fi
check "... all systems have the same losses" grep -q '"same_losses": true' "$work/json"
check "... the plot is there" grep -q '</svg>' "$work/plot.svg"

bench "dense, in two precisions, on one host and two" --hosts 1,2 --features 300 --batch 16 --dense --bits float,4 \
	--systems model --plane udp --plot "$work/plot.svg"
check "... a row for each" rows 4 '"system": "model".*"failed": 0'
check "... 2 of them with 4 bits" rows 2 '"bits": 4,'
check "... a plot for each precision" grep -q '</svg>' "$work/plot-0bit.svg" "$work/plot-4bit.svg"

bench "of one shape" --hosts 2 --features 100 --batch 32 --systems model --plane udp --plot "$work/loss.svg"
check "... the losses of all epochs are there" test "$(grep -c '"epoch": ' "$work/json")" = 3
check "... and are drawn" grep -q 'seconds of training' "$work/loss.svg"

# A signal ends the benchmark, wherever it comes: also between two trainings, and while one ends.
for wait in 0.4 0.7 1 1.3; do
	"$trib" bench glm --hosts 2 --features 100 --rows 64 --batch 16 --epochs 2 --repeats 1000 --systems model \
		--plane udp >"$work/out" 2>&1 &
	ended=$!
	sleep "$wait"
	kill -TERM $ended
	check "a signal after $wait s ends it" timeout 60 tail --pid=$ended -f /dev/null || kill -KILL $ended
	wait $ended
done

check "a wrong list of hosts is refused" refuses '"x" is not a whole number' --hosts 2,x
check "a wrong precision is refused" refuses 'is not float or from 1 to 8' --bits 9
check "a wrong system is refused" refuses 'is not one of model, vanilla, data, mpi' --systems foo
check "a wrong plane is refused" refuses 'is not one of xdp, udp, tcp, pisa' --plane foo
check "more workers than columns are refused" refuses 'each worker needs a column' --hosts 4 --features 3
check "a batch above the rows is refused" refuses 'larger than --rows' --rows 8 --batch 16
check "no epochs are refused" refuses 'at least 1' --epochs 0
check "too many epochs are refused" refuses '200 together' --epochs 200
check "a wrong option is refused" refuses 'not an option' --bogus
done_checking
