#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# trib glm: every way to split a training gives the same model, bit for bit, also with loss and after a
# resume. Bad input ends with file and line. Needs no root but for links with faults.
# Usage: test_glm.sh PATH_TO_TRIB
. "$(dirname "$0")/lib.sh"
start "$@"
cd "$work" || exit 1
export TRIB_LOG=warn

# train MODEL OPTION...: output in $out; the loss table without times in MODEL.table.
train() {
	local model=$1
	shift
	out=$work/out
	timeout -k 5 "${limit:-60}" "$trib" glm train --model "$model" "$@" >"$out" 2>&1 || return
	awk '/^ *[0-9]+ +[0-9.-]/ { NF--; print }' "$out" >"$model.table"
	[ -s "$model.table" ]
}

quietly() { "$@" >"$work/out" 2>&1 || { cat "$work/out" && false; }; }

# same WHAT OPTION...: the model and the losses of $right.
same() {
	local what=$1
	shift
	if check "$what" train other "$@"; then
		check "... the same bits" cmp "$right" other
		check "... the same losses" cmp "$right.table" other.table
	else
		cat "$out"
	fi
}

# ends_badly WHAT WORDS OPTION...: fails with these words, and leaves no model.
ends_badly() {
	local what=$1 words=$2
	shift 2
	rm -f none
	out=$work/out
	timeout -k 5 60 "$trib" glm train --model none "$@" >"$out" 2>&1
	check "$what: fails" test $? = 1
	check "... says: $words" grep -qE -- "$words" "$out" || cat "$out"
	check "... and leaves no model" test ! -e none
}

check "sparse data are made" "$trib" glm make --rows 700 --columns 500 --density 0.03 --seed 2 sparse.svm
check "dense data are made" "$trib" glm make --rows 500 --columns 300 --seed 3 dense.svm
check "data of four classes are made" "$trib" glm make --rows 600 --columns 200 --density 0.1 --classes 4 classes.svm
check "data for a regression are made" "$trib" glm make --rows 600 --columns 100 --density 0.2 --regression numbers.svm

# --- every way to split the work
first=(--epochs 3 --batch 32 --seed 5)
for kind in float 4; do
	right=sparse.$kind
	data=(sparse.svm --test sparse.svm --bits "$kind" "${first[@]}")
	check "one worker, bits $kind" train $right "${data[@]}"
	for n in 2 3 4; do
		same "$n workers, micro-batches of 8" "${data[@]}" -n $n --micro 8
	done
	same "4 workers with 2 threads, micro-batches of 5" "${data[@]}" -n 4 --threads 2 --micro 5
	same "2 workers with 3 threads, no pipeline" "${data[@]}" -n 2 --threads 3 --pipeline off
	same "2 threads" "${data[@]}" --threads 2
	same "3 workers, data parallel" "${data[@]}" -n 3 --parallel data
	same "2 workers with 2 threads, data parallel" "${data[@]}" -n 2 --threads 2 --parallel data
done
right=dense.right
data=(dense.svm --loss squared-hinge --update sgd --l1 1e-4 "${first[@]}")
check "dense, one worker" train $right "${data[@]}"
same "dense, 3 workers" "${data[@]}" -n 3 --micro 8
same "dense, 2 workers, data parallel" "${data[@]}" -n 2 --parallel data
right=weaved.right
check "weaved, one worker" train $right "${data[@]}" --bits 3
same "weaved, 2 workers with 2 threads" "${data[@]}" --bits 3 -n 2 --threads 2
right=classes.right
data=(classes.svm --classes 4 "${first[@]}")
check "four classes, one worker" train $right "${data[@]}"
same "four classes, 3 workers" "${data[@]}" -n 3 --threads 2 --micro 7
right=numbers.right
data=(numbers.svm --loss linear "${first[@]}")
check "a regression, one worker" train $right "${data[@]}"
same "a regression, 4 workers" "${data[@]}" -n 4
same "a regression, 2 workers, micro-batches of 1" "${data[@]}" -n 2 --micro 1
rm -f other
check "three workers of trib run" quietly "$trib" run -n 3 -- "$trib" glm train --model other "${data[@]}"
check "... the same bits" cmp $right other

# --- every plane
for plane in tcp pisa; do
	same "3 workers on the plane $plane" "${data[@]}" -n 3 --plane $plane
done

# --- MPI
if [ -e "$build/src/glm/exchange/glm-mpi.so" ] && command -v mpirun >/dev/null; then
	mpi=(mpirun -n 2 --oversubscribe)
	[ "$(id -u)" != 0 ] || mpi+=(--allow-run-as-root)
	rm -f other
	check "2 workers over MPI" quietly "${mpi[@]}" "$trib" glm train --model other "${data[@]}" --exchange mpi
	check "... the same bits" cmp $right other
else
	omit "this build has no exchange over MPI"
fi

# --- resume
right=sparse.long
data=(sparse.svm --epochs 6 --batch 32 --seed 5)
check "six epochs" train $right "${data[@]}"
check "three epochs and a checkpoint" train half sparse.svm --epochs 3 --batch 32 --seed 5 --checkpoint ckp -n 2
same "three more after a resume, with other workers" "${data[@]}" --checkpoint ckp --resume -n 3
ends_badly "a checkpoint of other options" 'ckp is the checkpoint of other data or other options' \
	sparse.svm --epochs 6 --batch 16 --checkpoint ckp --resume
tac sparse.svm >turned.svm
ends_badly "a checkpoint of the same rows in another order" 'ckp is the checkpoint of other data or other options' \
	turned.svm --epochs 6 --batch 32 --seed 5 --checkpoint ckp --resume
head -c 300 ckp >"cut"
ends_badly "a checkpoint that was cut" 'cut: .*damaged or cut' "${data[@]}" --checkpoint cut --resume
check "a resume without a checkpoint starts anew" train other "${data[@]}" --checkpoint fresh --resume
check "... the same bits" cmp $right other

# --- a worker is killed, and the rest goes on after a resume
check "more data are made" "$trib" glm make --rows 20000 --columns 300 --density 0.1 --seed 4 long.svm
data=(long.svm --epochs 40 --batch 16 --seed 5)
right=long.right
check "an unbroken run" train $right "${data[@]}"
"$trib" glm train --model other "${data[@]}" -n 3 --checkpoint kill.ckp >"$work/out" 2>&1 &
job=$!
check "a checkpoint is written" wait_for 30 test -e kill.ckp
victim=$(pgrep -P "$job" -f "glm train" | xargs -I{} grep -lsz '^TRIB_RANK=2$' /proc/{}/environ | cut -d/ -f3)
check "rank 2 is killed" kill -KILL "${victim:-none}"
wait "$job"
check "the job ends with an error" test $? = 137
check "... that names the worker" grep -q 'rank 2 ended first, killed by SIGKILL' "$work/out" || cat "$work/out"
same "... and a resume gives the model of an unbroken run" "${data[@]}" -n 2 --checkpoint kill.ckp --resume

# --- on several machines no launcher sees the death: the other workers say it
# shellcheck disable=SC2034  # of aggregator, in lib.sh
port=$((12000 + RANDOM % 18000))
aggregator '' && check "an aggregator starts" aggregator_ready
pids=()
for rank in 0 1 2; do
	TRIB_RANK=$rank TRIB_SIZE=3 TRIB_TIMEOUT=10 TRIB_AGGREGATOR=$at "$trib" glm train "${data[@]}" --epochs 100000 \
		>"$work/rank.$rank" 2>&1 &
	pids[rank]=$!
done
check "three workers train" wait_for 30 grep -qE '^ +2 ' "$work/rank.0"
kill -KILL "${pids[1]}"
wait "${pids[1]}" 2>/dev/null
for rank in 0 2; do
	wait "${pids[rank]}"
	check "... rank $rank ends with an error" test $? = 1
	check "... that names the dead worker and its host" grep -qE 'trib glm train: .*rank 1 \(host' "$work/rank.$rank" ||
		cat "$work/rank.$rank"
done
# two WHAT OPTION...: rank 1 has other options, and both ranks say so
two() {
	local what=$1 rank
	shift
	TRIB_RANK=0 TRIB_SIZE=2 TRIB_TIMEOUT=10 TRIB_AGGREGATOR=$at "$trib" glm train sparse.svm >"$work/rank.0" 2>&1 &
	TRIB_RANK=1 TRIB_SIZE=2 TRIB_TIMEOUT=10 TRIB_AGGREGATOR=$at "$trib" glm train "$@" >"$work/rank.1" 2>&1
	wait $!
	for rank in 0 1; do
		check "$what: rank $rank says it" grep -q "worker $((1 - rank)) has other data or other options" "$work/rank.$rank" ||
			cat "$work/rank.$rank"
	done
}
two "another file" dense.svm
two "another batch" sparse.svm --batch 16
two "other micro-batches" sparse.svm --micro 8
end_aggregator

# --- prediction and inspection
right=sparse.float
check "a prediction" quietly "$trib" glm predict $right sparse.svm --output labels --scores
check "... of every row" test "$(wc -l <labels)" = 700
accuracy=$("$trib" glm predict $right sparse.svm --json | grep -o '"accuracy": *[0-9.]*')
check "... has an accuracy ($accuracy)" test -n "$accuracy"
check "an inspection" quietly "$trib" glm inspect $right --json
head -c 400 $right >"cut"
"$trib" glm predict cut sparse.svm >"$work/out" 2>&1
check "a model that was cut is refused" grep -q 'cut: .*damaged or cut' "$work/out"
"$trib" glm predict sparse.svm sparse.svm >"$work/out" 2>&1
check "a file that is no model is refused" grep -q 'not a model' "$work/out"

# --- plots and JSON
check "JSON and plots are written" train other sparse.svm "${first[@]}" --json table.json --plot loss.svg
check "... as JSON" python3 -c 'import json; assert len(json.load(open("table.json"))["epochs"]) == 3'
check "... and as SVG" test "$(grep -l '</svg>' loss.svg loss-time.svg | wc -l)" = 2
"$trib" glm train sparse.svm "${first[@]}" -n 2 --json - >stdout.json 2>"$work/out"
check "JSON on standard output stands alone" cmp <(jq 'del(.. | .seconds?, .total_s?, .load_s?) | del(.traffic)' stdout.json) \
	<(jq 'del(.. | .seconds?, .total_s?, .load_s?) | .setup.workers = 2 | .setup.exchange = "tributary"' table.json)

# --- a mini-batch that is not cut is one sum and one packet; up to 100 more are for the start, the losses and the end
for batch in 16 256; do
	quietly "$trib" glm train synthetic:rows=$((200 * batch)),columns=64,density=0.1 --batch $batch --epochs 5 -n 2 \
		--json counts.json
	check "1000 mini-batches of $batch: $(jq -c .traffic counts.json)" jq -e '.traffic | .sums >= 1000 and
		.sums <= 1100 and .sent_packets - .resent_packets <= 1100' counts.json
done
# --- activations of large weights do not fit 32 bits
right=large
data=("synthetic:rows=3200,columns=64,density=0.5" --rate 500 "${first[@]}")
check "large weights" train large "${data[@]}"
same "... of two workers" "${data[@]}" -n 2
same "... of two workers with rows of their own" "${data[@]}" -n 2 --parallel data

# --- bad input
printf '1 1:1 2:1\n-1 2:1\n1 3:nan\n-1 1:2\n' >nan.svm
ends_badly "NaN" 'nan.svm:3: ' nan.svm
ends_badly "NaN, two workers" 'nan.svm:3: ' nan.svm -n 2
check "bad rows are skipped where asked" train other nan.svm --bad-rows skip
check "... and counted" grep -q '1 bad rows skipped' "$out"
printf '1 1:1 2:1\n-1 3:1 2:1\n' >order.svm
ends_badly "features out of order" 'order.svm:2: ' order.svm
printf '1 1:1\n-1 2:1\n3 1:2\n' >three.svm
ends_badly "a third label" 'three.svm:3: .*third' three.svm
printf '1 1:1 2:1\n-1 2:1\n1 1:' >cut.svm
ends_badly "a file that was cut" 'cut.svm:3: ' cut.svm
printf '1 1:1\n-1 1:2\n1 1:3\n' >narrow.svm
ends_badly "more workers than columns" '2 workers for 1 columns' narrow.svm -n 2
: >empty.svm
ends_badly "an empty file" 'empty.svm' empty.svm
ends_badly "a missing file" 'missing.svm' missing.svm
printf '1 1:1\n-1 400:1\n1 1:2\n-1 400:2\n1 1:3\n' >gap.svm
check "columns without values" train gap gap.svm
right=gap
same "... on three workers, one with an empty shard" gap.svm -n 3

# --- as an ordinary user
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
	chmod 777 "$work"
	right=sparse.float
	rm -f other other.table
	check "without root" quietly setpriv --reuid 65534 --clear-groups "$trib" glm train sparse.svm --bits float \
		"${first[@]}" -n 3 --model other --json other.json
	check "... the same bits" cmp $right other || ls -l "$trib"
fi

# --- links that lose packets
if has_bpf; then
	up tg$$ --hosts 4 --servers 1 --loss 0.1 --seed 3
	right=sparse.float
	data=(sparse.svm --test sparse.svm "${first[@]}")
	same "10 % loss, 4 workers" "${data[@]}" -n 4 --net tg$$
	same "10 % loss, data parallel" "${data[@]}" -n 4 --net tg$$ --parallel data
	check "... $(faults lost) packets were lost" test "$(faults lost)" -gt 20
	if has_xdp; then
		same "10 % loss, in the kernel" "${data[@]}" -n 4 --net tg$$ --plane xdp
	else
		omit "this kernel has no XDP"
	fi
	down
else
	omit "links with faults need root, and a build with BPF programs"
fi
done_checking
