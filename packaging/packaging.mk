# Packages, from the release tarball (make dist): see docs/packages.md. DISTDIR is where they go.
.PHONY: deb wheel rpm check-packages
deb:
	packaging/make-deb $(DISTDIR)
wheel:
	packaging/make-wheel $(DISTDIR)
rpm:
	packaging/make-rpm $(DISTDIR)

# Builds the packages, and installs and runs them in bare systems of their own. Needs root.
check-packages:
	scripts/install-deps build packages
	$(MAKE) -j$(JOBS) all testgpu
	BUILD=$(BUILD) prove --timer $(wildcard tests/packages/test_*.py)
