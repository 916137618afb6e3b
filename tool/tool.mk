# build/accel: the command-line tool.

TOOL_OBJECTS := $(patsubst %.c,$(BUILD)/%.o,$(wildcard tool/*.c))
# Where the tool looks for the library, if it is not beside it.
$(eval $(call flags,install,$(libdir)))
$(BUILD)/tool/preload.o: $(BUILD)/install.flags
$(BUILD)/tool/preload.o: INCLUDES += -DACCEL_LIBDIR='"$(libdir)"'

# json-c reads JSON. It is linked statically: the tool needs libc alone, as the library does.
JSON_C_LIBS ?= -l:libjson-c.a

$(BUILD)/accel: $(TOOL_OBJECTS) $(LAYERS) $(BUILD)/link.flags
	$(CC) $(CFLAGS) $(LDFLAGS) $(SANITIZE_FLAGS) -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack -Wl,--as-needed -o $@.new $(TOOL_OBJECTS) $(LAYERS) $(JSON_C_LIBS) -lm -ldl -lpthread
	mv $@.new $@

-include $(TOOL_OBJECTS:.o=.d)
