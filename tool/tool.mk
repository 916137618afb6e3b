# build/accel: the command-line tool.

TOOL_OBJECTS := $(patsubst %.c,$(BUILD)/%.o,$(wildcard tool/*.c))
# The tool looks for the library beside itself, then in libdir: as seen from bindir, so that both may be moved together, and by its path.
LIBDIR_FROM_BINDIR := $(shell realpath -ms --relative-to='$(bindir)' '$(libdir)')
$(eval $(call flags,install,$(libdir) $(LIBDIR_FROM_BINDIR)))
$(BUILD)/tool/preload.o: $(BUILD)/install.flags
$(BUILD)/tool/preload.o: INCLUDES += -DACCEL_LIBDIR='"$(libdir)"' -DACCEL_LIBDIR_FROM_BINDIR='"$(LIBDIR_FROM_BINDIR)"'

# json-c reads JSON. It is linked statically: the tool needs only libc, like the library.
JSON_C_LIBS ?= -l:libjson-c.a

$(BUILD)/accel: $(TOOL_OBJECTS) $(LAYERS) $(BUILD)/link.flags
	$(CC) $(CFLAGS) $(LDFLAGS) $(SANITIZE_FLAGS) -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack -Wl,--as-needed -o $@.new $(TOOL_OBJECTS) $(LAYERS) $(JSON_C_LIBS) -lm -ldl -lpthread
	mv $@.new $@

-include $(TOOL_OBJECTS:.o=.d)
