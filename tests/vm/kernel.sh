#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The kernel of the virtual machine: Debian's 6.1, downloaded and unpacked, never installed.
# Prints two lines: the path of vmlinuz, and the folder of the modules.
#
# Usage: kernel.sh [OPTION=VALUE]...
# The kernel has these options besides those that BPF and the tests of pacing need: RDMA_RXE=m, for example.
# What was unpacked stays in $XDG_CACHE_HOME/tributary or, where that is not set, in build/vm.
# Needs no rights. The archive is asked for its newest 6.1; without a network the one at hand will do.
set -euo pipefail
umask 022

skip() {
	echo "skipped: $*" >&2
	exit 77
}

case $(uname -m) in
aarch64) architecture=arm64 ;;
x86_64) architecture=amd64 ;;
*) skip "there is no kernel for $(uname -m) to boot" ;;
esac

if [ -n "${XDG_CACHE_HOME:-}" ]; then
	cache=$XDG_CACHE_HOME/tributary
else
	cache=$(realpath "$(dirname "$0")/../..")/build/vm
fi

newest() { sort -V | tail -n 1; }

# The cloud flavour has a third of the modules. They are enough for most tests.
patterns=("linux-image-6\.1\.0-[0-9]+-cloud-$architecture" "linux-image-6\.1\.0-[0-9]+-$architecture")

# archived PATTERN, cached PATTERN: the newest package of that name.
archived() {
	apt-cache search --names-only "^$1\$" 2>/dev/null | cut -d ' ' -f 1 | newest
}
cached() {
	find "$cache" -mindepth 1 -maxdepth 1 -printf '%f\n' 2>/dev/null | { grep -Ex "$1" || true; } | newest
}

# fetch PACKAGE: unpacks it into the cache, in one step for those who look.
fetch() {
	[ ! -d "$cache/$1" ] || return 0
	if [ -z "$work" ]; then
		mkdir -p "$cache" && work=$(mktemp -d "$cache/tmp.XXXXXX") || return 1
	fi
	(
		cd "$work" && timeout -k 5 240 \
			apt-get download -qq -o Acquire::Retries=0 -o APT::Sandbox::User=root "$1" >&2 &&
			dpkg -x "$1"_*.deb "$1"
	) || return 1
	mv -T "$work/$1" "$cache/$1" 2>/dev/null || [ -d "$cache/$1" ] # another was faster
}

options=(BPF_SYSCALL=y BPF_JIT=y DEBUG_INFO_BTF=y 'VETH=[my]' XDP_SOCKETS=y 'NET_SCH_FQ=[my]' "$@")

# suitable PACKAGE: the kernel has all the options.
suitable() {
	local config option
	config=$(echo "$cache/$1"/boot/config-*)
	for option in "${options[@]}"; do
		grep -qx "CONFIG_$option" "$config" || return 1
	done
}

work='' known=''
trap '[ -z "$work" ] || rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
for pattern in "${patterns[@]}"; do
	for package in $(archived "$pattern") $(cached "$pattern"); do
		known=$package
		if fetch "$package" && suitable "$package"; then
			echo "$cache/$package"/boot/vmlinuz-*
			echo "$cache/$package"/lib/modules/*
			exit 0
		fi
	done
done
[ -n "$known" ] || skip "apt knows no linux-image-6.1.0-*-$architecture; Debian 12 has it, after apt-get update"
skip "$known cannot be downloaded, or lacks something; apt-get update may help"
