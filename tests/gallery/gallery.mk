# Examples of scikit-learn, SciPy, statsmodels, R's recommended packages and Octave: hours, of which
# what has been found stays. GALLERY=... for those of such a name, GALLERY_JOBS at a time,
# GALLERY_LIMIT seconds for each. `make gallery-sample` runs some, for CI.
GALLERY       ?=
GALLERY_JOBS  ?= $(JOBS)
GALLERY_LIMIT ?= 60
.PHONY: gallery gallery-sample
define gallery_parts
	scripts/install-deps build gallery
	$(MAKE) -j$(JOBS) all testgpu
endef
gallery:
	$(gallery_parts)
	BUILD=$(BUILD) tests/gallery/run --jobs $(GALLERY_JOBS) --limit $(GALLERY_LIMIT) $(GALLERY)
gallery-sample:
	$(gallery_parts)
	BUILD=$(BUILD) prove tests/gallery/test_gallery.py
