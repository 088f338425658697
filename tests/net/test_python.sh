#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The Python package: its tests (tests/python), also beside an aggregator, and as a wheel: test_python.sh PATH_TO_TRIB
. "$(dirname "$0")/lib.sh"
start "$@"
root=$(realpath "$(dirname "$0")/../..")
export TRIB_LIBRARY=$build/src PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1

# has MODULE...: $python has all of them.
has() { "$python" -c "import ${*// /,}" 2>/dev/null; }
for python in python3 /usr/bin/python3; do
	has pytest && has numpy && break
done
has pytest || skip "pytest is not installed (package python3-pytest)"
has numpy || skip "numpy is not installed (package python3-numpy)"
has torch || omit "PyTorch is not installed (package python3-torch)"

export TEST_COOKIE=00000000000051ab
for _ in 1 2 3 4 5; do
	port=$((12000 + RANDOM % 18000)) TRIB_COOKIE=$TEST_COOKIE aggregator ''
	aggregator_ready && break
done
check "an aggregator at $at" aggregator_ready || exit 1
export TEST_AGGREGATOR=$at

"$trib" sparse serve --dir "$work/rows" --listen 127.0.0.1:0 >"$work/serve" 2>&1 &
check "a parameter server" wait_for 10 grep -q 'ready on' "$work/serve" || cat "$work/serve"
TRIB_SPARSE_SERVERS=127.0.0.1:$(sed -n 's/.*ready on 127.0.0.1:\([0-9]*\).*/\1/p' "$work/serve")
export TRIB_SPARSE_SERVERS

# Plugins that this machine's pytest happens to have stay out.
tests() { PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 timeout 250 "$python" -m pytest -q -p no:cacheprovider --tb=short "$root/tests/python"; }
check "all tests of the package" tests

# on_hosts: ranks on two hosts, with torch's variables and nothing of Tributary's. They meet through torch's store.
on_hosts() {
	local rank pids=()
	for rank in 0 1; do
		MASTER_ADDR=$(address h1) MASTER_PORT=29500 RANK=$rank WORLD_SIZE=2 timeout 60 "$trib" net exec --name "$cluster" \
			"h$((rank + 1))" -- "$python" "$root/tests/python/ddp_rank.py" >"$work/rank$rank" 2>&1 &
		pids+=($!)
	done
	wait "${pids[@]}"
	cat "$work"/rank?
	sed -n 's/^rank [01] of 2: //p' "$work"/rank? >"$work/digests" # torch may warn in other lines
	[ "$(wc -l <"$work/digests")" = 2 ] && [ "$(sort -u "$work/digests" | wc -l)" = 1 ]
}
if has torch && is_real_root; then
	up "py$$" --hosts 2
	check "two hosts, no launcher and no daemon" on_hosts
else
	omit "ranks on two hosts need torch, and root"
fi

# installed: the package by itself, with the library inside, far from the checkout.
installed() { (cd "$work" && env -u TRIB_LIBRARY PYTHONPATH="$work/there" "$python" "$@"); }
if has setuptools && has wheel; then
	check "a wheel" "$root/scripts/python_package.sh" --python "$python" --build "$build" wheel "$work"
	mkdir "$work/there"
	check "... that can be unpacked" "$python" -m zipfile -e "$work"/tributary-*.whl "$work/there"
	check "... and works by itself" installed -m tributary.check --json
	check "... with tables of rows" installed -c 'from tributary import sparse; sparse._load()'
else
	omit "setuptools or wheel is not installed (packages python3-setuptools, python3-wheel)"
fi
if command -v dpkg-deb >/dev/null; then
	check "a Debian package" "$root/scripts/python_package.sh" --python "$python" --build "$build" deb "$work"
	dpkg-deb -c "$work"/python3-tributary_*.deb >"$work/inside"
	check "... with the package inside" grep -q tributary/ddp.py "$work/inside"
else
	omit "dpkg-deb is not installed (package dpkg)"
fi
done_checking
