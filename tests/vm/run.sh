#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs a program in a virtual machine with Debian's kernel 6.1 (see kernel.sh), emulated, as root.
# Its output comes out here, and its exit status is the script's; the kernel's log goes to stderr if
# the program fails. 77: something is missing on this machine; 124: out of time; 125: the machine broke down.
#
# Usage: run.sh [OPTION]... PROGRAM [ARGUMENT]...
#   --file     a file or folder that the program needs; libraries are found without
#   --host yes all files of this machine are there; what the program writes stays inside
#   --module   a kernel module, loaded before, besides those in $modules below
#   --kernel   an option that the kernel needs, such as RDMA_RXE=m (see kernel.sh)
#   --memory   of the machine; 1G
#   --processors  of the machine; 2. With one it takes far less time of this machine
#   --warnings ok: warnings of the kernel are no failure
#   --limit    how long the machine may live; 300
# Files have the same paths inside, and the working directory is the same too. A shell script is a
# program as well: the commands inside are busybox's and those that --file brings.
set -euo pipefail
umask 022
export LC_ALL=C
here=$(dirname "$(realpath "$0")")

modules=(veth sch_ingress cls_bpf)
files=()
options=()
share=()
memory=1G
processors=2
panic_on_warn=1
limit=300
boot_limit=100 # seconds for the kernel to start; it takes 3 to 30
mark=vm-$$-$RANDOM
load=''
machine=''

skip() {
	echo "skipped: $*" >&2
	exit 77
}
die() {
	echo "${0##*/}: $*" >&2
	exit 125
}
have() { command -v "$1" >/dev/null; }

usage() {
	sed -n 's/^# Usage: /usage: /p' "$0" >&2
	exit 125
}

# The slower -cpu max of aarch64 adds nothing that is needed; x86_64 programs want x86-64-v2.
case $(uname -m) in
aarch64)
	qemu=(qemu-system-aarch64 -M 'virt,gic-version=3' -cpu cortex-a72)
	console=ttyAMA0 package=qemu-system-arm
	;;
x86_64)
	qemu=(qemu-system-x86_64 -M q35 -cpu Nehalem)
	# On a busy machine the kernel may think that its timer does not work.
	console='ttyS0 no_timer_check' package=qemu-system-x86
	;;
*) skip "there is no virtual machine for $(uname -m)" ;;
esac
have "${qemu[0]}" || skip "${qemu[0]} is not installed (package $package)"
have busybox || skip "busybox is not installed (package busybox-static)"
have cpio || skip "cpio is not installed"

# add PATH: copies a file with its libraries, or a folder, to the same place inside.
add() {
	local path library
	path=$(realpath -ms "$1")
	[ -e "$path" ] || die "there is no $1"
	mkdir -p "$root${path%/*}"
	cp -rL "$path" "$root${path%/*}/"
	[ -f "$path" ] || return 0
	# ldd fails for what is not a dynamic program.
	for library in $(ldd "$path" 2>/dev/null | grep -o '/[^ ]*' || true); do
		library=$(realpath -ms "$library")
		[ -e "$root$library" ] || {
			mkdir -p "$root${library%/*}"
			cp -L "$library" "$root$library"
		}
	done
}

# share_host: the files of this machine, read-only, by 9p.
share_host() {
	modules+=(virtio_pci 9pnet_virtio 9p overlay)
	options+=('9P_FS=[my]' 'OVERLAY_FS=[my]')
	share=(-virtfs 'local,path=/,mount_tag=host,security_model=none,readonly=on,multidevs=remap')
}

# add_module NAME: the modules that it depends on first. $load is their order.
add_module() {
	local pattern=${1//[-_]/[-_]}.ko path other
	[[ " $load " != *" $1 "* ]] || return 0
	path=$(find "$module_folder" -name "$pattern")
	if [ -z "$path" ]; then
		grep -q "/$pattern\$" "$module_folder/modules.builtin" || die "the kernel has no module $1"
		return 0
	fi
	for other in $(grep -azo '^depends=.*' "$path" | tr -d '\0' | sed 's/^depends=//' | tr , ' '); do
		add_module "$other"
	done
	cp "$path" "$root/modules/$1.ko"
	load+=" $1"
}

# run_program PROGRAM ARGUMENT...: the commands that run it. With --host, this machine's files lie below a
# layer in memory, which takes what is written.
run_program() {
	if [ ${#share[@]} = 0 ]; then
		echo "cd ${PWD@Q}; ${*@Q}"
		return
	fi
	cat <<-END
		mkdir /host /layer /machine
		mount -t 9p -o ro,trans=virtio,version=9p2000.L,cache=loose,msize=262144 host /host
		mount -t tmpfs layer /layer
		mkdir /layer/upper /layer/work
		mount -t overlay -o lowerdir=/host,upperdir=/layer/upper,workdir=/layer/work machine /machine
		for folder in proc sys dev; do
			mount --rbind /\$folder /machine/\$folder
		done
		mount -t tmpfs run /machine/run
		PATH=\$PATH:/sbin:/bin chroot /machine sh -c 'cd "\$0" && exec "\$@"' ${PWD@Q} ${*@Q}
	END
}

# The first process. The lines with $mark tell the program's output from the rest.
write_init() { # PROGRAM ARGUMENT...
	cat <<-END
		#!/busybox/busybox sh
		/busybox/busybox --install -s /busybox
		export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/busybox HOME=/root TERM=dumb
		mount -t proc proc /proc
		mount -t sysfs sys /sys
		mount -t devtmpfs dev /dev
		mount -t bpf bpf /sys/fs/bpf
		mount -t debugfs debug /sys/kernel/debug
		stty -onlcr
		ip link set lo up
		dmesg -c >/dev/null
		echo "$mark begin"
		for module in $load; do
			insmod /modules/\$module.ko
		done
		$(run_program "$@") </dev/null 2>&1
		status=\$?
		printf '\n$mark end %d\n' \$status
		[ \$status = 0 ] || dmesg
		echo "$mark off"
		poweroff -f
	END
}

make_initrd() {
	local folder
	for folder in bin sbin lib lib64; do
		mkdir -p "$root/usr/$folder"
		ln -s "usr/$folder" "$root/$folder"
	done
	mkdir -p "$root"/{busybox,dev,modules,proc,root,run,sys,tmp,"$PWD"}
	add "$(command -v busybox)"
	ln -s "$(command -v busybox)" "$root/busybox/busybox"
	add /bin/sh # that of busybox prefers its own commands to those in the path
	for module in "${modules[@]}"; do
		add_module "$module"
	done
	for file in "${files[@]}"; do
		add "$file"
	done
	[ ${#share[@]} -gt 0 ] || add "$1"
	write_init "$@" >"$root/init"
	chmod +x "$root/init"
	(cd "$root" && find . -print0 | cpio --null --quiet --create --format=newc --owner=0:0) >"$work/initrd"
}

# boot: leaves what the machine says in $work/serial, and how qemu ended in $ended. An emulated machine
# sometimes hangs before its kernel has started, if this machine is busy: then it is started again.
boot() {
	local tries
	for tries in 1 2 3; do
		: >"$work/serial"
		start_machine
		if has_begun || [ "$tries" = 3 ]; then
			break
		fi
		echo "${0##*/}: the kernel did not start within $boot_limit s; starting the machine again" >&2
		kill "$machine" 2>/dev/null || true
		wait "$machine" || true
	done
	ended=0
	wait "$machine" || ended=$?
	machine=''
}

# has_begun: waits until the program starts, or the machine ends. False: neither within $boot_limit seconds.
has_begun() {
	local until=$((SECONDS + boot_limit))
	until grep -aq "^$mark begin" "$work/serial"; do
		kill -0 "$machine" 2>/dev/null || return 0
		[ "$SECONDS" -lt "$until" ] || return 1
		sleep 0.5
	done
}

# Nobody attacks this kernel, and emulated processors are slow with what protects against Spectre and its like.
start_machine() {
	timeout --foreground -k 5 "$limit" "${qemu[@]}" -accel tcg,thread=multi -smp "$processors" -m "$memory" "${share[@]}" \
		-nodefaults -display none -no-reboot -serial "file:$work/serial" \
		-kernel "$vmlinuz" -initrd "$work/initrd" \
		-append "console=$console quiet loglevel=1 panic=-1 oops=panic panic_on_warn=$panic_on_warn panic_print=0x20 mitigations=off" \
		</dev/null >"$work/qemu" 2>&1 &
	machine=$!
}

# The program's output; the newline before the mark is the script's own.
program_output() { sed "0,/^$mark begin/d; /^$mark end/,\$d" "$work/serial" | sed '${/^$/d}'; }

# report: the output, and the exit status.
report() {
	local status
	if ! grep -aq "^$mark begin" "$work/serial"; then
		cat "$work/qemu" "$work/serial" >&2
		die "the kernel did not start, or not within $limit s"
	fi
	program_output
	status=$(sed -n "s/^$mark end //p" "$work/serial")
	if [ -n "$status" ]; then
		[ "$status" = 0 ] || sed "0,/^$mark end/d; /^$mark off/,\$d" "$work/serial" >&2
		# Inside, the program is root on a kernel that was chosen for it: there is no reason to skip.
		[ "$status" != 77 ] || die "the program skipped itself inside the virtual machine"
		exit "$status"
	elif [ "$ended" = 124 ] || [ "$ended" = 137 ]; then
		echo "${0##*/}: the program did not end within $limit s" >&2
		exit 124
	fi
	die "the virtual machine broke down"
}

main() {
	local program kernel
	while [[ ${1:-} == --* ]]; do
		[ $# -ge 2 ] || usage
		case $1 in
		--file) files+=("$2") ;;
		--module) modules+=("$2") ;;
		--host) share_host ;;
		--kernel) options+=("$2") ;;
		--memory) memory=$2 ;;
		--processors) processors=$2 ;;
		--warnings) panic_on_warn=0 ;;
		--limit) limit=$2 ;;
		*) usage ;;
		esac
		shift 2
	done
	[ $# -gt 0 ] || usage
	program=$(type -P "$1") || die "there is no program $1"
	shift
	kernel=$("$here/kernel.sh" "${options[@]}")
	vmlinuz=${kernel%%$'\n'*}
	module_folder=${kernel#*$'\n'}
	work=$(mktemp -d)
	root=$work/root
	trap '[ -z "$machine" ] || kill "$machine" || true; rm -rf "$work"' EXIT
	trap 'exit 130' INT TERM
	make_initrd "$program" "$@"
	boot
	report
}

main "$@"
