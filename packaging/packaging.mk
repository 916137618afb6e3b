# Packages, from the release tarball (make dist): see docs/packages.md. DISTDIR is where they go.
.PHONY: deb wheel rpm check-packages
# They have the kernels of gpu/own/, unless NVCC is given as empty: where no nvcc is found, NVIDIA's
# wheel of it is fetched first.
ifeq ($(origin NVCC):$(strip $(NVCC)),file:)
FETCH_NVCC := BUILD=$(BUILD) scripts/install-deps compiler
PACKAGES_NVCC := $(BUILD)/cuda-compiler/bin/nvcc
else
PACKAGES_NVCC := $(NVCC)
endif
# They are built in folders of their own.
deb wheel rpm: export NVCC := $(if $(findstring /,$(PACKAGES_NVCC)),$(abspath $(PACKAGES_NVCC)),$(PACKAGES_NVCC))
deb:
	scripts/install-deps deb
	$(FETCH_NVCC)
	packaging/make-deb $(DISTDIR)
wheel:
	$(FETCH_NVCC)
	packaging/make-wheel $(DISTDIR)
rpm:
	$(FETCH_NVCC)
	packaging/make-rpm $(DISTDIR)

# Builds the packages, and installs and runs them in bare systems of their own (PACKAGES=... some of
# the tests). Needs root, and mount namespaces.
PACKAGES ?= $(wildcard tests/packages/test_*.py)
MAY_MOUNT := unshare --mount true 2>/dev/null
check-packages:
	@$(MAY_MOUNT) || echo 'check-packages: left out: it needs root, and mount namespaces of its own'
	! $(MAY_MOUNT) || scripts/install-deps build packages
	! $(MAY_MOUNT) || $(MAKE) -j$(JOBS) all testgpu
	! $(MAY_MOUNT) || BUILD=$(BUILD) prove --timer $(PACKAGES)
