# OLD_GLIBC=1: the library and the tool run with glibc 2.28 and newer ones, for packages that are
# built once for many systems. Otherwise they need the glibc of the machine that they are built on,
# or 2.34. The linker finds the names of packaging/glibc/old_names in libraries that have nothing
# else, and puts the versions that these say into what it links. What 2.28 lacks is in lacking.c and
# program.c.
OLD_GLIBC ?=
ifeq ($(OLD_GLIBC),1)
OLD_GLIBC_LIBRARIES := $(addprefix $(BUILD)/packaging/glibc/,libdl.so.2 libpthread.so.0)
OLD_GLIBC_LINK      := $(BUILD)/packaging/glibc/lacking.o $(OLD_GLIBC_LIBRARIES)
$(BUILD)/accel: OLD_GLIBC_LINK += $(BUILD)/packaging/glibc/program.o
$(BUILD)/accel: $(BUILD)/packaging/glibc/program.o
$(OLD_GLIBC_LIBRARIES): packaging/glibc/old_names
	@mkdir -p $(@D)
	awk '$$1 == "$(@F)" { for (i = 3; i <= NF; i++) print ".globl " $$i "\n.type " $$i ", @function\n" $$i ": ret" }' $< >$@.s
	awk '$$1 == "$(@F)" { for (i = 3; i <= NF; i++) names[$$2] = names[$$2] " " $$i ";" } \
	    END { for (version in names) print version " {" names[version] " };" }' $< >$@.map
	$(CC) -shared -nostdlib -Wl,-soname,$(@F) -Wl,--version-script=$@.map -o $@ $@.s
$(BUILD)/libaccel.so $(BUILD)/accel: $(OLD_GLIBC_LINK)
-include $(BUILD)/packaging/glibc/lacking.d $(BUILD)/packaging/glibc/program.d
endif
$(eval $(call flags,glibc,$(OLD_GLIBC)))
$(BUILD)/libaccel.so $(BUILD)/accel: $(BUILD)/glibc.flags
