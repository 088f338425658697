# Short commands for the usual tasks. Meson does the build itself (meson.build).
PREFIX ?= /usr/local
DESTDIR ?=

.DEFAULT_GOAL := help
.PHONY: build run test test-rdma test-mpi bench soak fuzz static python install clean help

build: ## build the library, trib and tribd into build/
	@scripts/build.sh

run: ## the demonstration: four workers train through an aggregator, beside a ring
	@scripts/run.sh

test: ## every test, then what was skipped; the last line is "N passed, N failed, N skipped"
	@scripts/test.sh

test-rdma: ## all tests of RDMA programs, on RDMA devices or in a virtual machine
	@scripts/test_rdma.sh

test-mpi: build ## HPCC and all of mpi4py's own tests, with the adapter and without; ten minutes
	@tests/net/test_mpi_suite.sh build/src/cli/trib all

bench: ## measure again and rewrite docs/benchmarks (root); ONLY=allreduce,rates QUICK=1
	@ONLY='$(ONLY)' QUICK='$(QUICK)' DOCS='$(DOCS)' scripts/bench.sh

soak: ## lossy clusters with new seeds, SECONDS=3600 (root); KILLS=30: random kills in sparse training; CUTS=120: random cuts of paths; RDMA=120: of RDMA programs
	@scripts/soak.sh $(if $(KILLS),sparse $(KILLS),$(if $(CUTS),paths $(CUTS),$(if $(RDMA),rdma $(RDMA),$(SECONDS))))

fuzz: ## every fuzz target in turn, SECONDS=600 in all
	@scripts/fuzz.sh $(SECONDS)

static: ## programs for machines without packages, ARCH=x86_64 or aarch64, as a tar.gz
	@scripts/static.sh $(ARCH)

python: build ## the Python package, as a wheel and as a Debian package, into build/
	@scripts/deps.sh python
	@scripts/python_package.sh wheel
	@scripts/python_package.sh deb

install: ## install to PREFIX=/usr/local, below DESTDIR= where it is given
	@scripts/install.sh '$(abspath $(PREFIX))' '$(DESTDIR)'

clean: ## remove everything that was built
	@rm -rf build build-*

help: ## this list
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/  make \1\t\2/p' $(firstword $(MAKEFILE_LIST)) | expand -t 18
