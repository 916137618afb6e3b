# build/accel: the command-line tool.

TOOL_OBJECTS := $(call object_of,$(call sources,$(addprefix tool/,util process log compare measure report serve) tool))
$(BUILD)/tool/report/report_html.o: tool/report/report.html
# The tool looks for the library beside itself, then in libdir: as seen from bindir, so that both
# may be moved together, and by its path.
LIBDIR_FROM_BINDIR := $(shell realpath -ms --relative-to='$(bindir)' '$(libdir)')
$(eval $(call flags,install,$(libdir) $(LIBDIR_FROM_BINDIR)))
$(BUILD)/tool/process/preload.o: $(BUILD)/install.flags
$(BUILD)/tool/process/preload.o: INCLUDES += -DACCEL_LIBDIR='"$(libdir)"' -DACCEL_LIBDIR_FROM_BINDIR='"$(LIBDIR_FROM_BINDIR)"'

# json-c reads JSON. It is linked statically: the tool needs only libc, like the library.
JSON_C_LIBS ?= -l:libjson-c.a

$(eval $(call flags,tool,$(TOOL_OBJECTS:$(BUILD)/%=%)))
$(BUILD)/accel: $(TOOL_OBJECTS) $(LAYERS) $(BUILD)/link.flags $(BUILD)/tool.flags
	$(CC) $(CFLAGS) $(LDFLAGS) $(SANITIZE_FLAGS) -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack -Wl,--as-needed -o $@.new $(TOOL_OBJECTS) $(LAYERS) $(JSON_C_LIBS) $(OLD_GLIBC_LINK) -lm -ldl -lpthread
	mv $@.new $@

-include $(TOOL_OBJECTS:.o=.d)

# The completion of shells and the manual pages, from the tool's own tables.
PAGES_OBJECTS := $(patsubst %.c,$(BUILD)/%.o,$(wildcard tool/pages/*.c))
$(BUILD)/pages: $(PAGES_OBJECTS) $(filter-out %/accel.o,$(TOOL_OBJECTS)) $(LAYERS) $(BUILD)/link.flags $(BUILD)/tool.flags
	$(CC) $(CFLAGS) $(LDFLAGS) $(SANITIZE_FLAGS) -Wl,--as-needed -o $@.new $(filter %.o %.a,$^) $(JSON_C_LIBS) -lm -ldl -lpthread
	mv $@.new $@
# As they are installed: completions below datarootdir, manual pages below mandir. A build for
# another machine cannot run the program that makes them.
COMPLETIONS := $(if $(CROSS),,bash-completion/completions/accel zsh/site-functions/_accel fish/vendor_completions.d/accel.fish)
MANUAL      := $(if $(CROSS),,man1/accel.1 man5/accel.conf.5 man7/libaccel.7)
SHARED      := $(addprefix $(BUILD)/share/,$(COMPLETIONS) $(addprefix man/,$(MANUAL)))
$(addprefix $(BUILD)/share/,$(COMPLETIONS)): $(BUILD)/pages
	@mkdir -p $(@D)
	$< $(firstword $(foreach shell,bash zsh fish,$(if $(findstring /$(shell),$@),$(shell)))) >$@.new
	mv $@.new $@
$(addprefix $(BUILD)/share/man/,$(MANUAL)): $(BUILD)/pages $(wildcard tool/pages/*.[0-9]) docs/settings.md
	@mkdir -p $(@D)
	$< man tool/pages/$(@F) docs/settings.md >$@.new
	mv $@.new $@
shared: $(SHARED)

-include $(PAGES_OBJECTS:.o=.d)
