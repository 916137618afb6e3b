/*
 * A library's file in memory as the dynamic linker would lay it out, without anything that it is
 * linked to, and without running any of it.
 */
#ifndef TOOL_ELF_IMAGE_H
#define TOOL_ELF_IMAGE_H

#include <stdbool.h>
#include <stddef.h>

struct elf_image {
    void *begin;
    size_t size;
};

/* False if the file cannot be read, or is no library or program of this machine. */
bool elf_image_map(struct elf_image *image, const char *path);
void elf_image_unmap(struct elf_image *image);

#endif
