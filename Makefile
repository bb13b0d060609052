# Sallyport. Each target is one step; what it does stands in the script it calls.
PREFIX  ?= /usr
PAMDIR  ?= $(shell pam/pamdir)
DESTDIR ?=
SECONDS ?= 60
export PREFIX PAMDIR DESTDIR

.PHONY: help build demo fleet-demo test fuzz sanitize mutants torture timing stacks access bench check shown ci install uninstall deb rpm release clean

build:          ## the module and the command, into .build/stage
	pam/build

help:           ## this list
	@sed -nE 's/^([a-z-]+): *## /make \1\t/p' Makefile | expand -t 16

demo:           ## a throwaway user enrolls and logs in, under your eyes
	Tests/Demo/run

fleet-demo:     ## a fleet on this machine: database, verifiers, hosts; parts are killed; root
	Tests/Demo/fleet

test:           ## the four rings, one verdict: minutes
	Tests/run

ci:             ## parts alone, fuzzers, packages, thread sanitizer, a part of the torture: after check and test; root
	Tests/ci

torture:        ## faults, power cuts, races, hosts, stacks; root; half an hour, SHORT=1 for a part
	Tests/Torture/run
	Tests/Torture/stacks

timing:         ## does the time to a refusal tell who is enrolled? part of torture
	Tests/Torture/run timing

stacks:         ## stacks of PAM by chance beside the real libpam; COUNT, SEED; part of torture
	Tests/Torture/stacks

access:         ## machines by chance: who gets in, beside real logins, and faults planted; COUNT, SEED; root
	Tests/Acceptance/machines/run

fuzz:           ## SECONDS for each of the fuzzers, coverage-guided
	Tests/Fuzz/run --seconds $(SECONDS)

sanitize:       ## rings 1 and 2 under the address sanitizer, threads under theirs, ring 3 under valgrind
	Tests/sanitize

mutants:        ## faults planted one at a time: rings 1 to 3 must see them; hours, before a release
	Tests/Mutants/run

bench:          ## what a login costs, beside Debian's modules; root; SHORT=1 for four minutes
	Tests/Bench/run

check:          ## the shape of the module, the walls, format, manuals
	Tests/check

shown:          ## which test shows which promise of the threat model, into .build/shown.md
	@mkdir -p .build
	Tests/Checks/shows --table >.build/shown.md

install:        ## what `make build` made; root, or DESTDIR
	pam/install

uninstall:      ## takes it away again
	pam/install --remove

deb:            ## Debian packages, into .build/deb
	pam/deb

rpm:            ## packages for Fedora and EL, into .build/rpm
	pam/build module command service verifier
	pam/rpm/build

release:        ## packages, repositories, source, SBOM, into .build/dist; VERSION, KEY: docs/releasing.md
	pam/release

clean:          ## removes .build
	rm -rf .build
