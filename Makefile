# Tributary: a short way to the usual things. The build itself is Meson's (meson.build).
PREFIX ?= /usr/local
DESTDIR ?=

.DEFAULT_GOAL := help
.PHONY: build run test bench soak fuzz static install clean help

build: ## build the library, trib and tribd into build/
	@scripts/build.sh

run: ## the demonstration: four workers train through an aggregator, beside a ring
	@scripts/run.sh

test: ## every test; the last line is "N passed, N failed, N skipped"
	@scripts/test.sh

bench: ## the measurements of docs/benchmarks.md (root)
	@scripts/bench.sh

soak: ## lossy clusters with new seeds, SECONDS=3600 (root)
	@scripts/soak.sh $(SECONDS)

fuzz: ## every fuzz target in turn, SECONDS=600 in all
	@scripts/fuzz.sh $(SECONDS)

static: ## programs for machines without packages, ARCH=x86_64 or aarch64, as a tar.gz
	@scripts/static.sh $(ARCH)

install: build ## install to PREFIX=/usr/local, below DESTDIR= where it is given
	@meson configure build --prefix='$(abspath $(PREFIX))'
	@DESTDIR='$(DESTDIR)' meson install -C build

clean: ## remove everything that was built
	@rm -rf build build-*

help: ## this list
	@sed -n 's/^\([a-z]*\):[^#]*## \(.*\)/  make \1\t\2/p' $(firstword $(MAKEFILE_LIST)) | expand -t 18
