# One build cache for all: the binaries of the embedded control plane, ours, and the tests.
export CGO_ENABLED := 0

SHELL := /bin/bash
BIN := $(CURDIR)/.bin
CONTROLPLANE := go run ./e2e/cmd/controlplane

# The form of the rules by which the embedded Karmada interprets our objects: webhook or lua.
export INTERPRETER ?= webhook

.DEFAULT_GOAL := help
.PHONY: help
help: ## Show what can be made.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: tools-present
tools-present:
	@for tool in go git kubectl; do command -v $$tool >/dev/null || \
		{ echo "$$tool is missing: install it and run make again" >&2; exit 1; }; done
	@go list -m >/dev/null

##@ See it work

.PHONY: demo
demo: tools-present ## Start an embedded Karmada and walk through the story on it.
	@$(CONTROLPLANE) demo --interpreter=$(INTERPRETER)

.PHONY: up
up: tools-present ## Start the embedded Karmada alone.
	@$(CONTROLPLANE) up --interpreter=$(INTERPRETER)

.PHONY: down
down: tools-present ## End it and leave nothing.
	@$(CONTROLPLANE) down

##@ Check it

.PHONY: test
test: tools-present unit e2e ## Run the unit tests, then the e2e suite on its own control plane.

.PHONY: unit
unit: ## Run the unit tests.
	go test $$(go list ./... | grep -v /e2e) ./e2e/controlplane

.PHONY: e2e
e2e: ## Run the e2e suites, each on its own embedded control plane.
	KUBEBUILDER_ASSETS="$$($(CONTROLPLANE) binaries)" go test ./e2e/cell ./e2e/grants -p=1 -count=1 -timeout=30m
	go test ./e2e -v -count=1 -timeout=60m -ginkgo.v
	INTERPRETER=lua go test ./e2e -v -count=1 -timeout=30m -ginkgo.v -ginkgo.label-filter=forms

FUZZTIME ?= 10s
.PHONY: fuzz
fuzz: ## Run each fuzz target for FUZZTIME (10s).
	@for package in $$(grep -rl --include=*_test.go '^func Fuzz' . | xargs -n1 dirname | sort -u); do \
		for target in $$(go test $$package -list '^Fuzz' | grep '^Fuzz'); do \
			echo "$$package $$target"; \
			go test $$package -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) || exit 1; \
		done; \
	done

.PHONY: vet
vet: ## Run go vet.
	go vet ./...

.PHONY: lint
lint: $(BIN)/golangci-lint ## Run golangci-lint.
	$(BIN)/golangci-lint run --allow-parallel-runners

##@ Install it

.PHONY: dist
dist: ## Render the charts as plain manifests, into dist.
	go run ./charts/dist dist

VERSION ?= 0.1.0
.PHONY: images
images: ## Make the images as OCI archives, with their bills of materials, into dist/images.
	@mkdir -p dist/images
	cd tools && go build -o $(BIN)/images ./images
	$(BIN)/images $(VERSION) dist/images

##@ Benchmarks: each ends with its figures, one a line, name and value

.PHONY: bench-latency
bench-latency: tools-present ## Compare a binding's way to Ready with Karmada's own way to applied.
	go run ./e2e/bench latency

.PHONY: bench-scale
bench-scale: tools-present ## Run the presence controller alone against 200, 2,000 and 10,000 bindings.
	go run ./e2e/bench scale

.PHONY: bench-interpreter
bench-interpreter: ## Run the rules of interpretation as functions and in Lua, and the webhook under load.
	go run ./e2e/bench interpreter

.PHONY: bench-filter
bench-filter: tools-present ## Run the scheduler's plugin beside Karmada's own, and schedulers with and without it.
	go run ./e2e/bench filter

.PHONY: bench-cell
bench-cell: tools-present ## Run the cell agent alone against waiting claims and against an MTU edit.
	KUBEBUILDER_ASSETS="$$($(CONTROLPLANE) binaries)" go test ./e2e/cell -run '^$$' -bench . -benchtime 1x -count 1 -timeout 30m

##@ Generated files

.PHONY: generate
generate: $(BIN)/controller-gen $(BIN)/crd-ref-docs $(BIN)/helm-docs ## Make the generated files.
	$(BIN)/controller-gen object applyconfiguration crd paths=./api/... output:crd:dir=api/crds
	$(BIN)/controller-gen rbac:roleName=network-presence-cell paths=./cell/... output:rbac:dir=cell/rbac
	go generate ./lua
	cp api/crds/*_network{bindings,contexts}.yaml api/crds/*_location{s,bindings}.yaml charts/network-presence-hub/files/crds/
	cp api/crds/*_network{contexts,interfaces,interfaceclaims}.yaml api/crds/*_locations.yaml charts/network-presence-cell/files/crds/
	cp cell/rbac/role.yaml charts/network-presence-cell/files/rbac/
	cp charts/network-presence/templates/_process.tpl charts/network-presence-cell/templates/
	$(BIN)/helm-docs --chart-search-root charts --log-level error
	$(BIN)/crd-ref-docs --source-path api/v1alpha --config docs/api.config.yaml --renderer markdown --output-path docs/api.md --log-level ERROR

.PHONY: generate-check
generate-check: generate ## Fail when the generated files in the tree are not current.
	@test -z "$$(git status --porcelain)" || \
		{ git status --short; git diff | head -50; echo "generated files differ: run make generate and commit" >&2; exit 1; }

$(BIN)/%: tools/go.mod tools/go.sum
	cd tools && go build -o $@ $$(go list -f '{{.ImportPath}}' tool | grep '/$*$$')
