#define _GNU_SOURCE
#include "code.h"

#include <string.h>

#include "objects.h"
#include "real_linker.h"

enum { HEADERS_MOST = 4096 }; /* a page: the first segment has it */

static void add_part(struct accel_code *code, const ElfW(Phdr) * header)
{
    if (header->p_type != PT_LOAD || !(header->p_flags & PF_R) || code->parts == ACCEL_CODE_PARTS)
        return;
    const uintptr_t begin = code->base + header->p_vaddr;
    code->part[code->parts].begin = begin;
    code->part[code->parts].is_code = header->p_flags & PF_X;
    code->part[code->parts++].end = begin + header->p_filesz;
}

/* Finds the program's headers behind that of the file. The first segment begins with it. */
static const ElfW(Phdr) * headers_of(const void *begin, size_t size, int *count)
{
    ElfW(Ehdr) header;
    if (size < sizeof header)
        return NULL;
    memcpy(&header, begin, sizeof header);
    if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_phentsize != sizeof(ElfW(Phdr)) ||
        header.e_phoff > size || (size - header.e_phoff) / sizeof(ElfW(Phdr)) < header.e_phnum)
        return NULL;
    *count = header.e_phnum;
    return (const ElfW(Phdr) *)(const void *)((const char *)begin + header.e_phoff);
}

static bool read_headers(struct accel_code *code, const void *begin, size_t size)
{
    int count = 0;
    const ElfW(Phdr) *header = headers_of(begin, size, &count);
    bool based = false;
    for (int i = 0; header && i < count; i++) {
        if (header[i].p_type == PT_LOAD && !based) {
            code->base = (uintptr_t)begin - header[i].p_vaddr;
            based = header[i].p_offset == 0;
        }
        if (header[i].p_type == PT_DYNAMIC)
            code->dynamic = (const ElfW(Dyn) *)(code->base + header[i].p_vaddr);
        add_part(code, &header[i]);
    }
    return based && code->dynamic && code->parts > 0;
}

static void take_headers(const struct dl_phdr_info *info, void *data)
{
    struct accel_code *code = data;
    code->base = info->dlpi_addr;
    for (int i = 0; i < info->dlpi_phnum; i++)
        add_part(code, &info->dlpi_phdr[i]);
}

/* The headers need not lie in the first page: the dynamic linker knows them. It tells those of
 * another namespace to code there alone. */
bool accel_code_of_object(struct accel_code *code, const struct link_map *object)
{
    *code = (struct accel_code){.is_loaded = true, .dynamic = object->l_ld};
    if (accel_objects_headers(object->l_ld, take_headers, code))
        return code->parts > 0;
    const void *begin = accel_object_begin(object);
    return begin && read_headers(code, begin, HEADERS_MOST) && code->dynamic == object->l_ld;
}

bool accel_code_of_image(struct accel_code *code, const void *begin, size_t size)
{
    *code = (struct accel_code){.is_loaded = false};
    return read_headers(code, begin, size < HEADERS_MOST ? size : HEADERS_MOST);
}

size_t accel_code_readable(const struct accel_code *code, uintptr_t at)
{
    for (int i = 0; i < code->parts; i++)
        if (code->part[i].is_code && at >= code->part[i].begin && at < code->part[i].end)
            return code->part[i].end - at;
    return 0;
}

uintptr_t accel_code_pointer(const struct accel_code *code, uintptr_t place)
{
    uintptr_t pointer = 0;
    for (int i = 0; i < code->parts; i++)
        if (place >= code->part[i].begin && place < code->part[i].end &&
            code->part[i].end - place >= sizeof pointer)
            memcpy(&pointer, (const void *)place, sizeof pointer);
    return pointer;
}

const void *accel_code_function(const struct accel_code *code, const char *name)
{
    return accel_object_function(code->base, code->dynamic, name);
}

const char *accel_code_slot_name(const struct accel_code *code, uintptr_t slot)
{
    return accel_object_slot_name(code->base, code->dynamic, slot);
}
