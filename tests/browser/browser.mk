# Pages and traces in a browser, headless Chromium: a large package that nothing else needs.
# KEEP=FOLDER keeps the screenshots.
.PHONY: browser
browser:
	scripts/install-deps build test browser
	$(MAKE) all testgpu
	BUILD=$(BUILD) prove tests/browser/test_report.py tests/browser/test_perfetto.py
