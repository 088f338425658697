#!/usr/bin/env bash
# Coverage of the unit tests and of one run over loopback; the report is in build-coverage/report/.
. "$(dirname "$0")/common.sh"

main() {
	local out=build-coverage/report
	build_flavour coverage
	find build-coverage -name '*.gcda' -delete
	TRIB_TEST_SHORT=1 meson test -C build-coverage --no-rebuild || true
	timeout 60 build-coverage/src/cli/trib run -n 3 -- build-coverage/bench/peers/trib_allreduce \
		--bytes 1000000 --iterations 5 --check || true
	mkdir -p "$out"
	gcovr --root . --object-directory build-coverage --exclude tests/ --exclude build-coverage/ \
		--txt "$out/coverage.txt" --html-details "$out/index.html" --print-summary
}

main
