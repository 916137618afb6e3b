# accel-preload/PLATFORM/libaccel.so, beside libaccel.so: LD_PRELOAD has that path with $PLATFORM in
# it, and each program's dynamic linker puts its own there. So programs of this machine get
# libaccel, those of 32 bits and of a machine that is emulated get an empty library, and musl's
# linker, which knows no $PLATFORM, finds nothing and goes on. Without it, each of these would print
# a line, or end. The names are the kernel's (AT_PLATFORM); glibc says haswell or xeon_phi on newer
# processors.
PLATFORMS_x86_64  := x86_64 haswell xeon_phi
PLATFORMS_i386    := i386 i486 i586 i686
PLATFORMS_aarch64 := aarch64
PLATFORMS_arm     := v6l v7l v8l
EMPTY_MACHINES    := $(filter-out $(ARCH),x86_64 i386 aarch64 arm)
preload_files      = $(patsubst %,accel-preload/%/libaccel.so,$(PLATFORMS_$(1)))
# The last one is for a shell that has taken $PLATFORM for a variable of its own, and put nothing
# there.
PRELOAD_LINKS     := $(call preload_files,$(ARCH)) accel-preload/libaccel.so
PRELOAD_EMPTY     := $(foreach machine,$(EMPTY_MACHINES),$(call preload_files,$(machine)))
PRELOAD_FILES     := $(PRELOAD_LINKS) $(PRELOAD_EMPTY)
# Those within it come first.
PRELOAD_FOLDERS   := $(filter-out accel-preload/,$(sort $(dir $(PRELOAD_FILES)))) accel-preload

# accel run looks for them beside the library.
$(BUILD)/accel: | $(addprefix $(BUILD)/,$(PRELOAD_FILES))
$(addprefix $(BUILD)/,$(PRELOAD_LINKS)): | $(BUILD)/libaccel.so
	@mkdir -p $(@D)
	ln -sf $(if $(filter %accel-preload/,$(dir $@)),,../)../libaccel.so $@
define empty_for
$(addprefix $(BUILD)/,$(call preload_files,$(1))): packaging/preload/make-empty
	@mkdir -p $$(@D)
	$$< $(1) $$@
endef
$(foreach machine,$(EMPTY_MACHINES),$(eval $(call empty_for,$(machine))))
