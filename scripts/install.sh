#!/usr/bin/env bash
# install.sh PREFIX [DESTDIR]: builds and installs, and says what is left to do until programs find the library.
. "$(dirname "$0")/common.sh"

# is_searched DIR: does the dynamic linker look there?
is_searched() { ldconfig -v -N -X 2>/dev/null | grep "^$1:" >/dev/null; } # -q would end ldconfig early: an error

main() {
	local prefix=$1 destdir=${2:-} libraries
	# A library knows the prefix: it is linked once if the prefix is set before.
	[ ! -f build/build.ninja ] || meson configure build --prefix="$prefix" >/dev/null
	scripts/build.sh
	meson configure build --prefix="$prefix" >/dev/null
	DESTDIR=$destdir meson install -C build --quiet >build/install.log || die "install: see build/install.log"
	libraries=$prefix/$(meson introspect build --buildoptions |
		python3 -c 'import json, sys; print(next(o["value"] for o in json.load(sys.stdin) if o["name"] == "libdir"))')
	say "Installed to $destdir$prefix."
	if [ -n "$destdir" ]; then
		return
	fi
	if is_root && is_searched "$libraries"; then
		ldconfig # programs find a new library only then
		return
	fi
	say "The dynamic linker does not look into $libraries. Before you build and start programs, type:" \
		"  export PKG_CONFIG_PATH=$libraries/pkgconfig LD_LIBRARY_PATH=$libraries PATH=$prefix/bin:\$PATH"
}

main "$@"
