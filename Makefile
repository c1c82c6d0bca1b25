# Everything sets itself up: the virtual environment and the programs of Kubernetes are made when
# they are first needed and kept in the cache folder ($VNODE_CACHE, else ~/.cache/vnode).

PYTHON ?= python3
VENV = $(PYTHON) hack/venv
# Hundreds of commands and agents are started: each would compile all of its modules first.
unexport PYTHONDONTWRITEBYTECODE
RUN = python=$$($(VENV)) && $$python

.PHONY: help
help:
	@echo 'make demo         three clusters, pods that run in others; KEEP=1 leaves them up'
	@echo 'make decisions    the tests of what decides where pods go, in a minute'
	@echo 'make check        before each commit: lint types contracts unit, in six minutes'
	@echo 'make test         all of: lint types contracts unit integration coexistence chart e2e faults'
	@echo '                  random-inputs mixed-versions demo, and as root realnode docs-test'
	@echo '                  e2e-metrics dashboard-test;'
	@echo '                  JOBS=1 runs one suite after the other, and shows its progress'
	@echo 'make coverage     unit, with the branches of vnode that it runs, which must not be under a floor;'
	@echo '                  before a release: not part of make test'
	@echo 'make golden       write what becomes of pods in scenarios of placement anew, to see what has changed'
	@echo 'make coexistence  a busy source beside targets that come, are lost, return and go'
	@echo 'make docs-test    every command of the documentation, on a fleet; root only'
	@echo 'make simulation   pods in simulated clusters that fail, a minute; SIMULATION="--seed 7" repeats one'
	@echo 'make many-gangs   twenty gangs of sixteen in simulated clusters; not part of make test'
	@echo 'make gangs        the same on clusters, ten minutes, not part of make test'
	@echo 'make fuzz         an hour of mutated inputs; FUZZ="--seed 7" repeats them'
	@echo 'make mixed-versions  a few end-to-end tests with an older target, a minute; once, its programs are built'
	@echo 'make versions     the matrix of Kubernetes versions, an hour, not part of make test: docs/versions.md;'
	@echo '                  VERSIONS="--only 1.37:1.33" chooses'
	@echo 'make upgrades     from the version before to this one and back, under pods that run; ten minutes, not part'
	@echo '                  of make test: docs/testing.md'
	@echo 'make soak         an hour of random failures; SOAK="--seed 7" repeats one; make random-faults a minute'
	@echo 'make realnode     tests with real containers; root only, see docs/testing.md'
	@echo 'make isolation    what a bystander notices of attacks, not part of make test'
	@echo 'make inventories  Open Cluster Management'"'"'s accounts and placements in the source; not part of make test'
	@echo 'make kueue        the real Kueue in the source; root only, not part of make test: it and JobSet are'
	@echo '                  built first, which takes twenty minutes'
	@echo 'make frameworks   operators of frameworks in the source, real containers in targets; root only, not part'
	@echo '                  of make test: operators are built first, which takes minutes each'
	@echo 'make image-test   the image, and the chart in containers; root only, not part of make test'
	@echo 'make dashboard-test  the pages in a headless Chromium, which root gets from Debian'
	@echo 'make dashboard-images  the pictures of docs/dashboard.md'
	@echo 'make conformance  Kubernetes'"'"' own suite through a virtual node and straight, an hour; root only;'
	@echo '                  conformance-brief takes two minutes, conformance-short ten; CONFORMANCE="--focus Probing" chooses'
	@echo 'make conformance-all  all of [Conformance] and more, in hours; CONFORMANCE=--resume goes on; root only'
	@echo 'make bench        speed, beside a plain kube-scheduler; as root also requests on a real kubelet'
	@echo 'make bench-streams  exec, copies and logs, beside the target itself; root only'
	@echo 'make bench-scale  an agent with 10,000 pods, and with 100 targets'
	@echo 'make bench-distance  pods, logs and exec with targets that are 100 ms away'
	@echo 'make bench-leader  how many pods a second one leader can place, beside API servers in memory'
	@echo 'make bench-policies  costly placement policies that change all the time, and thousands of them'
	@echo 'make dist         the artefacts of a release, in dist/; DIST="--images none" leaves images out'
	@echo 'make dist-test    builds and installs them, in ten minutes; not part of make test'
	@echo 'make dist-image-test  the chart and the image that are in dist/, in clusters of real nodes; root only'
	@echo 'make audit        asks whether libraries have known vulnerabilities'
	@echo 'make format       let ruff format and fix'
	@echo 'make clean-cache  remove the virtual environments and programs'
	@echo 'PYTHON=python3.13 chooses the interpreter.'

.PHONY: demo
demo:
	@$(PYTHON) hack/demo

# Suites that start clusters mostly wait for them, so that three at a time keep two cores busy. Long
# ones come first. What they need is fetched or built before, beside what needs no programs.
SUITES = e2e faults integration coexistence chart random-inputs mixed-versions demo
OF_INVENTORIES = secretreader kubeconfig-secretreader
OF_OLDEST = $(addsuffix @1.33,kube-apiserver kube-controller-manager kube-scheduler)
PROGRAMS = helm promtool $(OF_INVENTORIES) $(OF_OLDEST)
PARTS = binaries
JOBS ?= 3

ifeq ($(shell id -u),0)
SUITES := realnode $(SUITES) docs-test e2e-metrics dashboard-test
PROGRAMS += metrics-server
PARTS += realnode-programs browser
REAL = realnode-programs  # what can also be done with a real node
else
test: left-out
endif

# What to run before each commit: the rest fills the gaps that the unit tests leave on two cores.
.PHONY: check
check: environment
	$(MAKE) --no-print-directory --keep-going --jobs=2 --output-sync=target $(CHECKS)

CHECKS = unit types contracts lint

# API servers take a third of the processor's time: with fewer collections of garbage, a fleet of
# three clusters took 18 s of it in its first half minute, not 19.5, and 1.5 GB of memory, not 1.0.
GOGC ?= 400
# Ten programs of Kubernetes share two cores: with one thread each they hand work over less. A burst of
# 300 pods took 76 and 70 ms of the processor's time a pod in all, not 98 and 82.
GOMAXPROCS ?= 1

.PHONY: test
test: environment
	@export VNODE_FAILURES=$$(mktemp -d) GOGC=$(GOGC) GOMAXPROCS=$(GOMAXPROCS); \
	$(SIDE_BY_SIDE) $(FIRST:%=watched-%) && $(SIDE_BY_SIDE) $(SUITES:%=watched-%); result=$$?; \
	cd $$VNODE_FAILURES && ls -t | xargs -r cat; rm -r $$VNODE_FAILURES; exit $$result

LEFT_OUT = dist frameworks gangs image inventories kueue upgrades
FIRST = programs unit types contracts lint collection
SIDE_BY_SIDE = $(MAKE) --no-print-directory --keep-going --jobs=$(JOBS) \
  --output-sync=$(if $(filter 1,$(JOBS)),none,recurse)

# What failed is shown again at the end, since the suites' own outputs are long: failures of tests,
# and the last lines of each suite, as not every suite is one of pytest. The first failure comes
# last: it is often the cause of the others, and the end of an output is what is read first.
watched-%:
	@log=$$VNODE_FAILURES/.$*; \
	{ $(MAKE) --no-print-directory $* 2>&1 || touch $$log.failed; } | tee $$log; \
	[ ! -e $$log.failed ] || { \
	  { echo "=== make $*, its last lines"; tail -n 15 $$log; } > $$VNODE_FAILURES/~$*; exit 1; }

# One after the other, because apt lets one in at a time.
.PHONY: programs
programs:
	@$(MAKE) --no-print-directory --jobs=1 $(PARTS)
	@$(PYTHON) hack/binaries $(PROGRAMS) > /dev/null

.PHONY: lint
lint:
	$(RUN) -m ruff check . && $$python -m ruff format --check .

.PHONY: format
format:
	$(RUN) -m ruff check --fix . ; $$python -m ruff format .

# Its cache is kept beside the packages that it has read, for the next checkout.
.PHONY: types
types:
	$(RUN) -m mypy --cache-dir $${python%/bin/python}/mypy

# What suites that are not part of `make test` import is there.
.PHONY: collection
collection:
	$(RUN) -m pytest $(LEFT_OUT:%=tests/%) --collect-only -qq

.PHONY: contracts
contracts:
	$(RUN) -c 'from importlinter.cli import lint_imports_command as lint; lint()'

# Some tests wait, so that three processes keep two cores busy.
SPREAD = -n 3 --dist worksteal

.PHONY: unit
unit:
	$(RUN) -m pytest tests/unit $(SPREAD) --hypothesis-profile quick

# A change that breaks a decision fails here, in a minute.
.PHONY: decisions
decisions: environment
	$(RUN) -m pytest $(DECIDING:%=tests/unit/%) $(SPREAD) --hypothesis-profile quick

DECIDING = gangs overrides placement planning scheduler_plugins scheduling scores

# The logs with which `make unit` compares how scenarios of placement go: `git diff` shows what is new.
.PHONY: golden
golden: environment
	$(RUN) -m tests.unit.placement.golden

# The unit tests, measured, which makes them a third as fast before Python 3.14: so `make test`, which
# has twenty minutes, leaves it out.
.PHONY: coverage
coverage:
	$(RUN) -m pytest tests/unit $(SPREAD) --cov --cov-report= --hypothesis-profile traced

# Pods in three simulated clusters that fail, in as many interleavings as there is time for.
.PHONY: simulation
simulation: environment
	$(RUN) -m tests.simulation $(SIMULATION)

# Twenty gangs of sixteen in three targets, with an agent that is killed and without: a minute.
.PHONY: many-gangs
many-gangs: environment
	$(RUN) -m tests.simulation.many_gangs $(MANY_GANGS)

# The same on clusters, with nothing beside it: figures are compared with those of the same run.
.PHONY: gangs
gangs: binaries
	@export GOGC=$(GOGC) GOMAXPROCS=$(GOMAXPROCS); $(RUN) -m pytest -s tests/gangs

# Mutated inputs to whole agents, whose API servers are simulated. Beside other suites they give way,
# and CPU time is no measure: callbacks of 20 ms were seen to take five times that.
.PHONY: random-inputs
random-inputs: environment
	python=$$($(VENV)) && nice -n 5 $$python -m tests.fuzz --seed 15 --rounds 0:7 \
	  --callback-limit 0.3 $(FUZZ)

.PHONY: fuzz
fuzz: environment
	$(RUN) -m tests.fuzz --minutes 60 $(FUZZ)

.PHONY: integration
integration: binaries
	$(RUN) -m pytest tests/integration

.PHONY: coexistence
coexistence: binaries
	$(RUN) -m pytest tests/coexistence

.PHONY: chart
chart: binaries
	@$(PYTHON) hack/binaries helm promtool > /dev/null
	$(RUN) -m pytest tests/chart

.PHONY: e2e
e2e: binaries
	$(RUN) -m pytest tests/e2e -n 2 --dist loadfile

# Every command of the documentation, in a shell, on a fleet. `make inventories` has the page whose
# controller of Open Cluster Management is built for minutes.
.PHONY: docs-test
docs-test: binaries
	@$(PYTHON) hack/binaries helm > /dev/null
	$(RUN) -m pytest tests/docs -k "not $(OF_OCM)"

OF_OCM = inventory-ocm

# A fleet with metrics servers, which take their time: two minutes, most of it waiting.
.PHONY: e2e-metrics
e2e-metrics: binaries
	@$(PYTHON) hack/binaries metrics-server > /dev/null
	$(RUN) -m pytest tests/metrics_e2e

# Failures that have a test each.
.PHONY: faults
faults: binaries
	@$(PYTHON) hack/binaries $(OF_INVENTORIES) > /dev/null
	$(RUN) -m pytest tests/faults

.PHONY: random-faults
random-faults: binaries
	$(RUN) -m tests.faults --minutes 1 $(FAULTS)

# A source of the usual version with a target of the oldest and one of the usual.
.PHONY: mixed-versions
mixed-versions: binaries
	@$(PYTHON) hack/binaries $(OF_OLDEST) > /dev/null
	$(RUN) -m tests.versions --brief

# Each version as source and as target: their programs are built first, a quarter of an hour for each.
.PHONY: versions
versions: binaries
	@export GOGC=$(GOGC) GOMAXPROCS=$(GOMAXPROCS); $(RUN) -m tests.versions $(VERSIONS)

# The version before comes from the history, which a shallow clone lacks.
.PHONY: upgrades
upgrades: binaries
	@$(PYTHON) hack/binaries helm secretreader > /dev/null
	@export GOGC=$(GOGC) GOMAXPROCS=$(GOMAXPROCS); $(RUN) -m pytest tests/upgrades

.PHONY: soak
soak: binaries
	$(RUN) -m tests.faults --minutes 60 --longest 120 --replicas 2 $(SOAK)

# What a bystander notices while another tenant, a target or a stranger attacks: half an hour, and a
# machine that does nothing else.
.PHONY: isolation
isolation: binaries
	$(RUN) -m tests.isolation $(ISOLATION)

.PHONY: realnode
realnode: binaries realnode-programs
	$(RUN) -m pytest tests/realnode

.PHONY: realnode-programs
realnode-programs:
	@$(PYTHON) hack/realnode-packages && $(PYTHON) hack/binaries kubelet > /dev/null

# The real Kueue and JobSet in the source of a fleet; they are built from their modules.
.PHONY: kueue
kueue: binaries
	@$(PYTHON) hack/binaries kueue jobset > /dev/null
	@export GOGC=$(GOGC) GOMAXPROCS=$(GOMAXPROCS); $(RUN) -m pytest tests/kueue

# Programs of Open Cluster Management in the source of a fleet, and the page about them; they are built
# from their modules. The page takes root.
.PHONY: inventories
inventories: binaries
	@$(PYTHON) hack/binaries helm msa cp-creds placement > /dev/null
	@export GOGC=$(GOGC) GOMAXPROCS=$(GOMAXPROCS); $(RUN) -m pytest tests/inventories \
	  && $$python -m pytest tests/docs -k $(OF_OCM)

# Operators of frameworks in the source of a fleet with real nodes; they are built from their modules.
OPERATORS = jobset lws mpi-operator trainer ray-operator spark-operator

.PHONY: frameworks
frameworks: binaries realnode-programs
	@$(PYTHON) hack/binaries kube-proxy coredns $(OPERATORS) > /dev/null
	@$(PYTHON) hack/spark > /dev/null
	@export GOGC=$(GOGC) GOMAXPROCS=$(GOMAXPROCS); $(RUN) -m pytest tests/frameworks

# The Containerfile's image, built without a registry, and a release of it on two real nodes.
.PHONY: image-test
image-test: binaries realnode-programs
	@$(PYTHON) hack/binaries helm kube-proxy coredns > /dev/null
	$(RUN) -m pytest tests/image --timeout 600

# Kubernetes' own suite through a virtual node and straight: docs/conformance.md.
.PHONY: conformance
conformance: binaries realnode-programs
	@$(PYTHON) hack/binaries agnhost nonewprivs ginkgo e2e.test > /dev/null
	$(RUN) hack/conformance $(CONFORMANCE)

.PHONY: conformance-short
conformance-short:
	@$(MAKE) --no-print-directory conformance CONFORMANCE="--short $(CONFORMANCE)"

# With kube-proxy and CoreDNS in the target, whose build takes minutes where they cannot be downloaded.
.PHONY: conformance-all
conformance-all:
	@$(PYTHON) hack/binaries kube-proxy coredns sample-apiserver > /dev/null
	@$(MAKE) --no-print-directory conformance CONFORMANCE="--all $(CONFORMANCE)"

# A few of its specs, through a virtual node only.
.PHONY: conformance-brief
conformance-brief:
	@$(MAKE) --no-print-directory conformance CONFORMANCE="--brief $(CONFORMANCE)"

.PHONY: browser
browser:
	@hack/browser-packages

# The pages in a headless Chromium, on a fleet.
.PHONY: dashboard-test
dashboard-test: binaries browser
	$(RUN) -m pytest tests/dashboard

# The pictures of docs/dashboard.md.
.PHONY: dashboard-images
dashboard-images: binaries browser
	@export VNODE_DASHBOARD_IMAGES=$(CURDIR)/docs/images; $(RUN) -m pytest tests/dashboard/test_pictures.py

.PHONY: left-out
left-out:
	@echo 'left out: tests/realnode runs containers, tests/metrics_e2e and tests/docs need network'
	@echo 'namespaces, and all need root, as the installation of a browser for tests/dashboard does'

.PHONY: bench
bench: binaries $(REAL)
	$(RUN) hack/bench $(BENCH)

.PHONY: bench-streams
bench-streams: binaries realnode-programs
	$(RUN) hack/bench-streams $(BENCH)

.PHONY: bench-scale
bench-scale: binaries
	$(RUN) hack/bench-scale $(BENCH)

# Whole agents, but API servers in memory: needs no programs.
.PHONY: bench-distance
bench-distance: binaries
	$(RUN) hack/bench-distance $(BENCH)

.PHONY: bench-leader
bench-leader: environment
	$(RUN) hack/bench-leader $(BENCH)

.PHONY: bench-policies
bench-policies: environment
	$(RUN) hack/bench-policies $(BENCH)

.PHONY: environment
environment:
	@$(VENV) > /dev/null

.PHONY: binaries
binaries:
	@$(PYTHON) hack/binaries > /dev/null

# The artefacts of a release, in dist/: docs/install.md says what they are. DIST="--images none" leaves
# images out, which take root, and for another architecture half an hour the first time.
.PHONY: dist
dist:
	@$(PYTHON) hack/dist $(DIST)

# Built, installed and checked from the artefacts alone; as root with images of this architecture.
.PHONY: dist-test
dist-test: environment
	@$(PYTHON) hack/binaries helm krew > /dev/null
	$(RUN) -m pytest tests/dist --timeout 3600

# The chart's package and the image's archive of DIST_FOLDER (`make dist` before), on real nodes; root only.
DIST_FOLDER ?= dist
.PHONY: dist-image-test
dist-image-test: binaries realnode-programs
	@$(PYTHON) hack/binaries helm kube-proxy coredns > /dev/null
	@export VNODE_TEST_DIST=$(abspath $(DIST_FOLDER)); $(RUN) -m pytest tests/image --timeout 600

# Known vulnerabilities of libraries, and of the workflows; asks a database on the network.
.PHONY: audit
audit:
	@python=$$($(PYTHON) -m hack.distlib.tools) && for file in $(PINNED); do \
	  $$python -m pip_audit --strict --disable-pip --no-deps --requirement $$file || exit 1; done
	@$$($(PYTHON) -m hack.distlib.tools | sed 's/python$$/zizmor/') --offline --min-severity medium .github

PINNED = constraints.txt build-constraints.txt hack/release-constraints.txt hack/constraints.txt

.PHONY: clean-cache
clean-cache:
	$(PYTHON) -c 'import shutil; from hack.fleetlib import cachefolder; \
	  shutil.rmtree(cachefolder.path(), ignore_errors=True)'
