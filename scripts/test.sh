#!/usr/bin/env bash
# Every test there is. One line for each test, then the list of skipped tests with their reasons. The
# last line is "N passed, N failed, N skipped".
#
# A test is a command. Exit code 0: passed. Exit code 77: skipped, and the last line of output is the
# reason. Anything else: failed, and the log is shown. Logs stay in build/test-logs/.
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

logs=build/test-logs
passed=0 failed=0 skipped=0 verdict=0
measuring=(burn) # network tests that need the cores for themselves
# Network tests that run one by one, beside the analyses only. In nic and plane, work with real-time priority takes
# most of a core: other tests would stand still.
counting=(plane rates multicast nic)
# The longest network tests start first, so that none runs alone at the end.
slowest=(slot xdp_tree tree_xdp partition tree tcp share share_tcp xdp recover link_probe telemetry admit star_migration)
skips=() # "NAME: REASON"
repeated=() # tests that failed beside others
# A crowded machine makes a test late. It makes no wrong sum, no fault that a sanitizer finds, and no crash.
never_excused='wrong (at|from|members)|is wrong|Sanitizer|runtime error:|ERROR: libFuzzer|Segmentation fault|exit code -(4|6|7|8|11)\)'
# A check of cmocka that fails ends a test at once: what it had allocated is lost, which is no fault of its own.
leaks='LeakSanitizer|byte\(s\) leaked'
# What a test, cmocka, a sanitizer or a compiler says about the fault itself.
cause='^FAILED|^\[  ERROR   \]|:[0-9]+: (fatal )?error: |runtime error:|ERROR: [A-Za-z]*(Sanitizer|Fuzzer)'

pass() {
	passed=$((passed + 1))
	say "PASS $1 ($2)"
}

skip() {
	skipped=$((skipped + 1))
	skips+=("$1: $2")
	say "SKIP $1: $2"
}

# causes LOG: the first lines that say what failed.
causes() { grep -aE -m 10 -- "$cause" "$1" || true; }

# fail NAME LOG: the causes come first, for readers who see only the beginning of the output.
fail() {
	failed=$((failed + 1))
	say "FAIL $1"
	causes "$2" | sed 's/^/  > /'
	tail -n 200 "$2" | sed -e 's/^/  | /' -e '$a\'
}

# excusable LOG [NOTE]: the fault may come from the tests that ran beside this one.
excusable() {
	local found=0 ignored='^$'
	! grep -qa '^\[  FAILED  \]' "$1" || ignored=$leaks
	cat "$1" - <<<"${2:-}" | grep -vaE -- "$ignored" | grep -qaE -- "$never_excused" || found=$?
	[ -f "$1" ] && [ "$found" -eq 1 ]
}

# again NAME LOG COMMAND...: a test failed beside others. `run_again` runs the command.
again() {
	local name=$1 log=$2 first
	shift 2
	first=$logs/crowded-${log##*/}
	mv "$log" "$first"
	say "AGAIN $name, alone"
	causes "$first" | sed 's/^/  > /'
	say "$name" "$(printf '%q ' "$@")" >"$first.again"
}

# run_again ALONE: one by one. If ALONE is yes, nothing else runs, and a test that fails here has failed. If ALONE is
# no, analyses run too, and a test that fails has one more chance.
run_again() {
	local file lines alone=$1
	for file in "$logs"/*.again; do
		[ -e "$file" ] || continue
		mapfile -t lines <"$file"
		rm "$file"
		repeated+=("${lines[0]}")
		eval "${lines[1]}"
	done
}

log_of() { printf '%s/%s.log' "$logs" "${1//[^a-zA-Z0-9]/-}"; }

# check NAME COMMAND...: runs one test, counts it and leaves the verdict in $verdict.
# Never call it in a condition: the shell would ignore set -e inside the command.
check() {
	local name=$1 log start code
	log=$(log_of "$name")
	start=$(date +%s.%N)
	shift
	set +e
	(set -e; "$@") >"$log" 2>&1 </dev/null
	code=$?
	set -e
	case $code in
	0) pass "$name" "$(seconds_since "$start")" ;;
	77) skip "$name" "$(tail -n 1 "$log" | sed 's/^skipped: //')" ;;
	124 | 137) fail "$name, which did not end in time" "$log" ;;
	*) fail "$name" "$log" ;;
	esac
	verdict=$code
}

seconds_since() {
	awk -v a="$1" -v b="$(date +%s.%N)" 'BEGIN { printf "%.1f s", b - a }'
}

# tool COMMAND: the test that calls it needs this program, and is skipped without.
tool() {
	have "$1" || {
		say "$1 is not installed"
		exit 77
	}
}

build_test() {
	case $1 in
	asan | tsan) tool clang ;;
	esac
	build_flavour "$1"
}

# meson_tests LABEL DIR [meson test options]: every test of a build folder counts as one. If $wrapper is
# set, its words come before meson. If $behind is set, the tests have a low priority, and one runs on
# each core. Otherwise one more runs than there are cores, because many of them wait for a deadline. A test
# that fails beside others is run again later, alone.
meson_tests() {
	local label=$1 dir=$2 json=$2/meson-logs/testlog.json log name result note many=$(($(nproc) + 1))
	local expected seen=0
	shift 2
	log=$(log_of "meson $label${behind:+ behind}")
	expected=$(meson test -C "$dir" --no-rebuild --list "$@" 2>/dev/null | grep -c ' / ' || true)
	if [ -n "${behind:-}" ]; then
		json=$dir/meson-logs/testlog-behind.sh.json many=$(nproc)
		set -- --wrapper "$PWD/scripts/behind.sh" --timeout-multiplier 10 "$@"
	fi
	rm -f "$json"
	${wrapper:-} meson test -C "$dir" --no-rebuild --num-processes "$many" "$@" >"$log" 2>&1 || true
	if [ ! -s "$json" ]; then # also if the build has no such tests
		fail "$label" "$log"
		return
	fi
	while IFS=$'\t' read -r result name note; do
		case $result in
		PASS) pass "$label $name" "$note" ;;
		SKIP) skip "$label $name" "$note" ;;
		*) meson_failed ;;
		esac
		seen=$((seen + 1))
	done < <(python3 scripts/testlog.py "$json" "$logs/$label-")
	if [ "$seen" -ne "$expected" ]; then
		fail "$label: $seen of $expected tests ran" "$log"
	fi
}

# seed_of LOG: the seed of the first test that failed, if it draws its inputs.
seed_of() { awk '/^seed [0-9]+/ { seed = $2 } /^\[  FAILED  \]/ { print seed; exit }' "$1"; }

# seeded SEED COMMAND...: the same inputs again. Without a seed, tests choose one.
seeded() {
	local -x TRIB_TEST_SEED=$1 TRIB_SEED=$1
	[ -n "$1" ] || unset TRIB_TEST_SEED TRIB_SEED
	"${@:2}"
}

# A part of meson_tests, whose variables it reads.
meson_failed() {
	local own=$logs/$label-$name.log
	if [ "${alone:-no}" = no ] && excusable "$own" "$note"; then
		again "$label $name" "$own" ${under:-} seeded "$(seed_of "$own")" meson_tests "$label" "$dir" "$name"
	else
		fail "$label $name, $note" "$own"
	fi
}

# Three workers and an aggregator without a cluster: the threads of the library and of the daemon,
# every sum looked at, and a small network of each kind trained until the weights are compared.
test_loopback() {
	local dir=$1 start model
	read -ra start <<<"$(fixed_addresses) timeout -k 10 120 $dir/src/cli/trib run -n 3 --timeout 60 --"
	"${start[@]}" "$dir/bench/peers/trib_allreduce" --check --bytes 1000000 --iterations 20 \
		--warmup 0 | sed '/SAMPLE/d'
	for model in mlp conv; do
		"${start[@]}" "$dir/examples/train" --model $model --data drawn --samples 1000 --epochs 1 --hidden 32 --quiet
	done
}

# sanitized COMMAND...: TRIB_TEST_SHORT asks tests for less, as sanitizers make them slow.
sanitized() {
	local wrapper under=sanitized
	wrapper=$(fixed_addresses)
	export ASAN_OPTIONS=detect_leaks=1 UBSAN_OPTIONS=print_stacktrace=1 TRIB_TEST_SHORT=1
	export TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1
	"$@"
	unset ASAN_OPTIONS UBSAN_OPTIONS TSAN_OPTIONS TRIB_TEST_SHORT
}

# threads_tests FLAVOUR [meson test options]: threads of a test wait for each other, so nothing else runs
# at the same time but the analyses, which have a low priority.
threads_tests() {
	# `trib run` starts the programs that TSan is for. TSan's build has none, as it would take half as long again.
	[ "$1" != tsan ] || ln -f build/src/cli/trib build-tsan/src/cli/
	meson_tests "$1" "build-$1" --suite threads "${@:2}"
	check "$1 loopback" test_loopback "build-$1"
}

c_files() {
	find include src tests bench examples \( -name '*.[ch]' -o -name '*.cc' \) ! -name vmlinux.h
}

# Versions of clang-format disagree on details. The style was made with version 14, so only version 14
# can fail this test.
test_format() {
	local format=clang-format
	if have clang-format-14; then
		format=clang-format-14
	fi
	tool "$format"
	if c_files | xargs "$format" --dry-run -Werror 2>"$logs/format-details"; then
		return 0
	fi
	sed -n 's/^\([^ :]*\):[0-9:]* error: .*/\1/p' "$logs/format-details" | sort | uniq -c
	say "(places per file; $format -i FILE puts them right)"
	"$format" --version | grep -q 'version 14\.' && return 1
	say "$("$format" --version) formats unlike version 14, which the style is held to"
	exit 77
}

# Without BPF programs, and without tests: cmocka's macros cause too many false warnings.
lint_files() { c_files | grep -vE '(\.bpf\.c|\.cc)$|^tests/'; }

# Headers are checked with the files that include them.
test_cppcheck() {
	tool cppcheck
	lint_files | grep '\.c$' | cppcheck --file-list=- --quiet --inline-suppr --error-exitcode=1 -j "$(nproc)" \
		--enable=warning,performance --std=c11 -I include -I src -D_GNU_SOURCE \
		--suppressions-list=.cppcheck-suppressions
}

test_clang_tidy() {
	tool clang-tidy
	lint_files | grep '\.c$' | xargs python3 scripts/tidy.py build-asan >"$logs/clang-tidy-details" 2>&1 || {
		grep ' error: ' "$logs/clang-tidy-details" | sort -u || tail -n 5 "$logs/clang-tidy-details"
		say "(the path to each fault: $logs/clang-tidy-details)"
		return 1
	}
	tail -n 1 "$logs/clang-tidy-details"
}

test_shellcheck() {
	tool shellcheck
	find scripts tests bench .ci \( -name '*.sh' -o -path .ci/run \) -print0 |
		xargs -0 -n 8 -P "$(nproc)" shellcheck -S warning
}

# A file of more than 800 lines has to become two.
test_sizes() {
	local long
	long=$(c_files | xargs wc -l | awk '$1 > 800 && $2 != "total"')
	say "$long"
	[ -z "$long" ]
}

# What the house rules of CONTRIBUTING.md say about files and folders of src/.
test_structure() {
	python3 scripts/knots.py --self-test
	python3 scripts/knots.py build
}

# Links and file names in the pages, and the blocks of the benchmark report.
test_docs() {
	git rev-parse --git-dir >/dev/null || {
		say "this is no git checkout, which tells the project's files from others"
		exit 77
	}
	python3 scripts/check_docs.py
	python3 scripts/bench_report.py --check
	python3 scripts/test_bench_report.py
}

test_harness() { bash tests/harness/test_harness.sh; }

# exports_only PATTERN NAME LIBRARY: NAME leaves the library, and only names that match. Names of versions do not count.
exports_only() {
	local strange
	nm -D --defined-only "$3" | tee /dev/stderr | grep -E " [TDR] $2(@|\$)" >/dev/null
	strange=$(nm -D --defined-only "$3" | awk -v pattern="$1" '$2 != "A" && $3 !~ pattern')
	say "$strange"
	[ -z "$strange" ]
}

# library NAME FOLDER: the file behind the links libNAME.so and libNAME.so.0.
library() { find "$2" -maxdepth 1 -name "lib$1.so*" -type f | head -n 1; }

test_symbols() {
	exports_only '^trib_' trib_init "$(library tributary build/src)"
	exports_only '^trib_glm_' trib_glm_train "$(library tributary-glm build/src/glm/library)"
	exports_only '^trib_sparse_' trib_sparse_push "$(library tributary-sparse build/src/sparse/library)"
	exports_only '^nccl(Coll)?NetPlugin_v' ncclNetPlugin_v11 build/adapters/nccl/libnccl-net-tributary.so
}

test_install() {
	local to name
	to=$(mktemp -d)
	DESTDIR=$to meson install -C build --no-rebuild
	find "$to" ! -type d | tee "$logs/installed"
	rm -rf "$to"
	for name in bin/trib bin/tribd include/tributary.h libtributary.so tributary.pc man1/trib.1 \
		completions/trib include/tributary/glm.h libtributary-glm.so tributary-glm.pc \
		include/tributary/sparse.h libtributary-sparse.so tributary-sparse.pc libnccl-net-tributary.so; do
		grep -q "/$name" "$logs/installed" || {
			say "$name was not installed"
			return 1
		}
	done
}

# options_of COMMAND...: the long ones, as its help has them.
options_of() { "$@" --help | sed -nE 's/^ +(-[a-zA-Z0-9], )?(--[a-z-]+).*/\2/p'; }

# missing_in PAGE: those of the words that come in which it does not name.
missing_in() { sort -u | comm -23 - <(sed 's/\\-/-/g' "$1" | grep -oE -- '--[a-z-]+' | sort -u); }

# Every option is in a man page. The sections of trib.1 name the commands.
test_man() {
	local command missing
	[ "$(options_of build/src/cli/trib run | wc -l)" -gt 5 ]
	[ "$(options_of build/src/cli/tribd | wc -l)" -gt 5 ]
	missing=$(
		while read -ra command; do
			options_of build/src/cli/trib "${command[@]}"
		done < <(sed -n 's/^\.SS trib //p' man/trib.1) | missing_in man/trib.1
		options_of build/src/cli/tribd | missing_in man/tribd.8
	)
	say "$missing"
	[ -z "$missing" ]
}

kernel_log() { dmesg 2>/dev/null || return 1; }

test_kernel_log() {
	kernel_log >"$logs/kernel-after" || {
		say "dmesg cannot be read here"
		exit 77
	}
	if diff "$logs/kernel-before" "$logs/kernel-after" | grep '^>' |
		grep -E 'BUG:|WARNING:|Oops|Call trace|Call Trace|general protection|soft lockup'; then
		return 1
	fi
}

network_test() {
	check "net $1" timeout -k 10 300 bash "tests/net/test_$1.sh" "$PWD/build/src/cli/trib"
}

# crowded_network_test NAME: the same beside others. Rates and deadlines may suffer from those.
crowded_network_test() {
	local name="net $1" log lines
	log=$(log_of "$name")
	lines=$(network_test "$1")
	if [ "${lines%% *}" = FAIL ] && [ "${alone:-no}" = no ] && excusable "$log"; then
		again "$name" "$log" network_again "$1"
	else
		say "$lines"
	fi
}

network_again() {
	beside "again-$1" crowded_network_test "$1"
	gather "again-$1"
}

# Analyses have a low priority, so they disturb these tests little.
counting_tests() {
	local name
	for name in "${counting[@]}"; do
		crowded_network_test "$name"
	done
}

network_names() { find tests/net -name 'test_*.sh' | sed 's|.*/test_\(.*\)\.sh|\1|' | sort; }

# At a time three more than there are cores, as they mostly wait for links and deadlines. Each test has
# virtual clusters of its own.
network_tests() {
	local name
	for name in "${slowest[@]}" $(network_names |
		grep -vxFf <(printf '%s\n' "${measuring[@]}" "${counting[@]}" "${slowest[@]}")); do
		while [ "$(beside_count 'net-*')" -gt "$(($(nproc) + 2))" ]; do
			sleep 0.2
		done
		beside "net-$name" crowded_network_test "$name"
	done
	gather 'net-*'
}

# What only computes has a low priority, and runs while the tests wait.
analyses() {
	local behind=yes
	renice -n 19 -p "$BASHPID" >/dev/null
	check "build with ASan and UBSan, by clang" build_test asan
	check "build with TSan, by clang" build_test tsan
	if was_built ASan; then
		sanitized meson_tests asan build-asan --no-suite net --no-suite threads --no-suite timed
	fi
	check format test_format
	check cppcheck test_cppcheck
	check clang-tidy test_clang_tidy
	check shellcheck test_shellcheck
	check "file sizes" test_sizes
	check harness test_harness
}

# What was built, and the pages.
products() {
	check "gcc loopback" test_loopback build
	check "symbols of the library" test_symbols
	check install test_install
	check "man pages" test_man
	check "no knots" test_structure
	check docs test_docs
}

# beside NAME COMMAND...: runs checks in the background; `gather` shows their lines.
beside() {
	local name=$1
	shift
	touch "$logs/$name.running"
	{
		trap 'beside_end "$name" $?' EXIT
		"$@"
	} >"$logs/$name.lines" 2>&1 &
}

# beside_end NAME CODE
beside_end() {
	[ "$2" -eq 0 ] || say "FAIL $1: this part of scripts/test.sh ended early, with exit code $2"
	rm "$logs/$1.running"
}

# beside_count PATTERN: how many of these run now.
beside_count() { find "$logs" -name "$1.running" | wc -l; }

# gather PATTERN: waits for those in the background, shows their lines and counts them.
gather() {
	local mark lines
	while [ "$(beside_count "$1")" -gt 0 ]; do
		sleep 0.2
	done
	mapfile -t lines < <(find "$logs" -name "$1.lines" | sort)
	cat "${lines[@]}"
	for mark in PASS FAIL SKIP; do
		count "$mark" "$(cat "${lines[@]}" | grep -c "^$mark ")"
	done
	mapfile -t -O ${#skips[@]} skips < <(sed -n 's/^SKIP //p' "${lines[@]}")
}

# was_built NAME: waits until the build has ended.
was_built() {
	while [ "$(beside_count analyses)" -gt 0 ] && ! grep -q "^[A-Z]* build with $1" "$logs/analyses.lines"; do
		sleep 0.2
	done
	grep -q "^PASS build with $1" "$logs/analyses.lines"
}

# count MARK N
count() {
	case $1 in
	PASS) passed=$((passed + $2)) ;;
	FAIL) failed=$((failed + $2)) ;;
	SKIP) skipped=$((skipped + $2)) ;;
	esac
}

report() {
	if [ ${#skips[@]} -gt 0 ]; then
		say "" "Skipped:"
		printf '  %s\n' "${skips[@]}"
		say ""
	fi
	if [ ${#repeated[@]} -gt 0 ]; then
		say "" "Failed beside other tests, so run again alone (first logs: $logs/crowded-*.log):"
		printf '  %s\n' "${repeated[@]}"
		say ""
	fi
	say "$passed passed, $failed failed, $skipped skipped"
	[ "$failed" -eq 0 ]
}

main() {
	local built name
	mkdir -p "$logs"
	rm -f "$logs"/*
	check dependencies scripts/deps.sh build test
	if [ "$verdict" -ne 0 ]; then
		report
		return
	fi
	if grep '^deps: these packages' "$(log_of dependencies)" >"$logs/lacking"; then
		skip packages "$(sed 's/^deps: //' "$logs/lacking")"
	fi
	check "build with gcc" build_test gcc
	built=$verdict
	kernel_log >"$logs/kernel-before" || true
	if [ "$built" -eq 0 ]; then
		for name in "${measuring[@]}"; do
			network_test "$name"
		done
	fi
	beside analyses analyses
	if [ "$built" -eq 0 ]; then
		beside counting counting_tests
		gather counting
		meson_tests gcc build --no-suite vm
		beside products products
		beside vm meson_tests vm build --suite vm --num-processes 1 # each of them fills all cores
		network_tests
		gather vm
		gather products
	fi
	# Each setting of a test runs with one of the two sanitizers; trees over tcp have the threads of both.
	if was_built ASan; then
		sanitized threads_tests asan --suite timed --no-suite trees_tcp --no-suite ways
	fi
	if was_built TSan; then
		sanitized threads_tests tsan --no-suite trees_udp --no-suite planes --no-suite wires
	fi
	run_again no
	gather analyses
	run_again yes
	if [ "$built" -eq 0 ]; then
		check "kernel log after the tests" test_kernel_log
	fi
	report
}

# The tests of this script source it.
[ "${BASH_SOURCE[0]}" != "$0" ] || main
