# A libaccel whose only kind of device is the host: test_host_device.py. All objects are those of
# the other build, except those of gpu/cuda/.
HOST_DEVICE := $(BUILD)/tests/hostdevice
HOST_DEVICE_OBJECTS := $(patsubst %.c,$(HOST_DEVICE)/%.o,$(notdir $(wildcard tests/hostdevice/*.c)))
$(HOST_DEVICE)/%.o: tests/hostdevice/%.c $(BUILD)/compiler.flags | $(BUILD)/functions.def $(BUILD)/other_ops.def
	@mkdir -p $(@D)
	$(CC) $(SHIM_CFLAGS) $(SANITIZE_FLAGS) $(INCLUDES) $(CPPFLAGS) -MMD -MP -c -o $@ $<
$(HOST_DEVICE)/libaccel.so: $(filter-out $(BUILD)/gpu/cuda/%,$(OBJECTS)) $(HOST_DEVICE_OBJECTS) $(BUILD)/symbols.map shim/start.ld $(BUILD)/link.flags
	$(CC) $(CFLAGS) $(LDFLAGS) $(SHIM_LDFLAGS) $(SANITIZE_FLAGS) -Wl,--version-script=$(BUILD)/symbols.map -o $@ $(filter %.o,$^) -ldl -lpthread
-include $(HOST_DEVICE_OBJECTS:.o=.d)

test-programs: $(HOST_DEVICE)/libaccel.so
