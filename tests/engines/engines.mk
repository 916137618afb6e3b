# Jobs on Dask, Ray, Spark, gunicorn and MPICH of PyPI, which nothing else needs. ENGINES=... for
# some of the tests; those whose engine cannot be had say so.
ENGINES ?= $(sort $(wildcard tests/engines/test_*.py))
.PHONY: engines
engines:
	scripts/install-deps build engines
	$(MAKE) all testgpu
	BUILD=$(BUILD) prove $(ENGINES)
