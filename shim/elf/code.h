/*
 * The code of an object, as it lies in memory: the dynamic linker has loaded it, or a tool has
 * mapped its file. Nothing here runs any of it. All functions are thread-safe.
 */
#ifndef ACCEL_CODE_H
#define ACCEL_CODE_H

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ACCEL_CODE_PARTS = 12 };

struct accel_code {
    ElfW(Addr) base;
    const ElfW(Dyn) * dynamic;
    bool is_loaded; /* its pointers have been relocated */
    int parts;      /* segments that can be read */
    struct {
        uintptr_t begin, end;
        bool is_code; /* it can be run, too */
    } part[ACCEL_CODE_PARTS];
};

/* Fills in the code of a loaded object, which must stay meanwhile. False if its headers do not
 * tell where it is. */
bool accel_code_of_object(struct accel_code *code, const struct link_map *object);

/* The same of an object whose first byte is at `begin`, `size` bytes of which can be read; its
 * segments lie as its headers say. */
bool accel_code_of_image(struct accel_code *code, const void *begin, size_t size);

/* Returns how many bytes of code there are from an address on, 0 if it is not the object's. */
size_t accel_code_readable(const struct accel_code *code, uintptr_t at);

/* Returns the pointer that a place of the object's has, 0 if the object has no such place. */
uintptr_t accel_code_pointer(const struct accel_code *code, uintptr_t place);

/* Returns a function that the object defines, NULL if there is none, or a function of its own
 * chooses one (STT_GNU_IFUNC). */
const void *accel_code_function(const struct accel_code *code, const char *name);

/* Returns the name that the object's relocation of a slot for a function has, NULL if there is
 * none. */
const char *accel_code_slot_name(const struct accel_code *code, uintptr_t slot);

#endif
