# build/accel: the command-line tool.

TOOL_OBJECTS := $(patsubst %.c,$(BUILD)/%.o,$(wildcard tool/*.c))
# The tool looks for the library beside itself, then in libdir.
$(eval $(call flags,install,$(libdir)))
$(BUILD)/tool/preload.o: $(BUILD)/install.flags
$(BUILD)/tool/preload.o: INCLUDES += -DACCEL_LIBDIR='"$(libdir)"'

# json-c reads JSON. It is linked statically: the tool needs only libc, like the library.
JSON_C_LIBS ?= -l:libjson-c.a

$(BUILD)/accel: $(TOOL_OBJECTS) $(LAYERS) $(BUILD)/link.flags
	$(CC) $(CFLAGS) $(LDFLAGS) $(SANITIZE_FLAGS) -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack -Wl,--as-needed -o $@.new $(TOOL_OBJECTS) $(LAYERS) $(JSON_C_LIBS) -lm -ldl -lpthread
	mv $@.new $@

-include $(TOOL_OBJECTS:.o=.d)
