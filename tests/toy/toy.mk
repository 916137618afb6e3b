# A libaccel that knows libtoy, which is no BLAS, beside BLAS and LAPACK: test_toy.py. All objects
# are those of the other build, except those that are made from the tables.
TOY := $(BUILD)/tests/toy
TOY_OBJECTS := $(addprefix $(TOY)/,ops/names.o ops/op.o shim/arch/$(ARCH)/entry.o tests/toy/toy_op.o)
$(eval $(call tables,tests/toy/,$(OPS_LIBRARIES) tests/toy))
$(TOY_OBJECTS): INCLUDES := -I. -I$(TOY)
$(TOY)/%.o: %.c $(BUILD)/compiler.flags | $(TOY)/functions.def $(TOY)/other_ops.def
	@mkdir -p $(@D)
	$(CC) $(SHIM_CFLAGS) $(SANITIZE_FLAGS) $(INCLUDES) $(CPPFLAGS) -MMD -MP -c -o $@ $<
$(TOY)/%.o: %.S $(BUILD)/compiler.flags | $(TOY)/functions.def $(TOY)/other_ops.def
	@mkdir -p $(@D)
	$(CC) $(INCLUDES) $(CPPFLAGS) -MMD -MP -c -o $@ $<
$(TOY)/libaccel.so: $(filter-out $(TOY_OBJECTS:$(TOY)/%=$(BUILD)/%),$(OBJECTS)) $(TOY_OBJECTS) $(TOY)/symbols.map shim/start.ld $(BUILD)/link.flags
	$(CC) $(CFLAGS) $(LDFLAGS) $(SHIM_LDFLAGS) $(SANITIZE_FLAGS) -Wl,--version-script=$(TOY)/symbols.map -o $@ $(filter %.o,$^) -ldl -lpthread
-include $(TOY_OBJECTS:.o=.d)

TOY_PROGRAMS := $(TOY)/libaccel.so $(TOY)/1/libtoy.so $(TOY)/2/libtoy.so $(TOY)/witness/libtoy.so $(TOY)/witness2/libtoy.so \
                $(TOY)/libtoy102.so $(TOY)/toy_call
test-programs: $(TOY_PROGRAMS) $(TOY)/libtoy_cost.so $(TOY)/libtoy102_cost.so
$(TOY)/1/libtoy.so: TOY_FLAGS := -DTOY_VERSION=100
$(TOY)/2/libtoy.so: TOY_FLAGS := -DTOY_VERSION=200
$(TOY)/witness/libtoy.so: TOY_FLAGS := -DTOY_VERSION=100 -DTOY_WITNESS
$(TOY)/witness2/libtoy.so: TOY_FLAGS := -DTOY_VERSION=200 -DTOY_WITNESS
$(TOY)/%/libtoy.so: tests/fixtures/toy/toy.c tests/fixtures/toy/toy_call.h tests/toy/toy.h
	@mkdir -p $(@D)
	$(CC) $(TEST_FLAGS) $(TOY_FLAGS) -shared -fPIC -Wl,-soname,libtoy.so -o $@ $<
# A second libtoy in one process.
$(TOY)/libtoy102.so: tests/fixtures/toy/toy.c tests/fixtures/toy/toy_call.h tests/toy/toy.h
	$(CC) $(TEST_FLAGS) -DTOY_VERSION=102 -shared -fPIC -Wl,-soname,libtoy102.so -o $@ $<
$(TOY)/libtoy_cost.so: $(TOY)/1/libtoy.so
$(TOY)/libtoy102_cost.so: $(TOY)/libtoy102.so
$(TOY)/libtoy_cost.so $(TOY)/libtoy102_cost.so: tests/fixtures/toy/toy_cost.c tests/fixtures/entry_cost/counting.c tests/fixtures/entry_cost/counting.h tests/toy/toy.h
	$(CC) $(TEST_FLAGS) -shared -fPIC -o $@ $(filter %.c,$^) $(filter %.so,$^) -Wl,-rpath,$(abspath $(dir $(filter %.so,$^)))
$(TOY)/toy_call: tests/fixtures/toy/toy_call.c tests/fixtures/toy/toy_call.h tests/toy/toy.h $(TOY)/1/libtoy.so
	$(CC) $(TEST_FLAGS) -o $@ $< -L$(TOY)/1 -ltoy -Wl,-z,now
