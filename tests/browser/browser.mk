# Pages in a browser, headless Chromium: a large package that nothing else needs. KEEP=FOLDER keeps the screenshots.
.PHONY: browser
browser:
	scripts/install-deps build browser
	$(MAKE) all
	BUILD=$(BUILD) prove tests/browser/test_report.py
