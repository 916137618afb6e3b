# Packages, from the release tarball (make dist): see docs/packages.md. DISTDIR is where they go.
.PHONY: deb wheel rpm check-packages
# They are built in folders of their own, with the compiler that this one has found.
deb wheel rpm: export NVCC := $(if $(findstring /,$(NVCC)),$(abspath $(NVCC)),$(NVCC))
deb:
	packaging/make-deb $(DISTDIR)
wheel:
	packaging/make-wheel $(DISTDIR)
rpm:
	packaging/make-rpm $(DISTDIR)

# Builds the packages, and installs and runs them in bare systems of their own (PACKAGES=... some of the tests). Needs root, and mount namespaces.
PACKAGES ?= $(wildcard tests/packages/test_*.py)
MAY_MOUNT := unshare --mount true 2>/dev/null
check-packages:
	@$(MAY_MOUNT) || echo 'check-packages: left out: it needs root, and mount namespaces of its own'
	! $(MAY_MOUNT) || scripts/install-deps build packages
	! $(MAY_MOUNT) || $(MAKE) -j$(JOBS) all testgpu
	! $(MAY_MOUNT) || BUILD=$(BUILD) prove --timer $(PACKAGES)
