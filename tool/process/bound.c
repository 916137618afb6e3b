#define _GNU_SOURCE
#include "bound.h"

#include <elf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "elf_file.h"
#include "ops/names.h"

#ifdef __aarch64__
enum { SLOT = R_AARCH64_JUMP_SLOT, DATA = R_AARCH64_GLOB_DAT, POINTER = R_AARCH64_ABS64 };
#else
enum { SLOT = R_X86_64_JUMP_SLOT, DATA = R_X86_64_GLOB_DAT, POINTER = R_X86_64_64 };
#endif

/* ---- What a process has mapped ---- */

FILE *bound_maps(pid_t pid)
{
    char name[64];
    snprintf(name, sizeof name, "/proc/%d/maps", (int)pid);
    return fopen(name, "re");
}

bool bound_next(FILE *maps, struct bound_mapping *mapping)
{
    char line[PATH_MAX + 200];
    while (fgets(line, sizeof line, maps)) {
        const char *const path = strchr(line, '/');
        if (!path || sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64, &mapping->from,
                            &mapping->to, &mapping->offset) != 3)
            continue;
        snprintf(mapping->path, sizeof mapping->path, "%.*s", (int)strcspn(path, "\n"), path);
        return true;
    }
    return false;
}

/* Whether the process has this file at an address. */
static bool has_at(pid_t pid, const char *path, uint64_t address)
{
    struct bound_mapping mapping;
    bool found = false;
    FILE *maps = bound_maps(pid);
    while (maps && !found && bound_next(maps, &mapping))
        found = address >= mapping.from && address < mapping.to && strcmp(mapping.path, path) == 0;
    if (maps)
        fclose(maps);
    return found;
}

/* ---- An object's slots ---- */

struct elf_bytes {
    const char *at; /* the file */
    size_t size;
    uint64_t base; /* what is added to its addresses */
};

static const void *part(const struct elf_bytes *object, uint64_t offset, uint64_t size)
{
    return offset <= object->size && size <= object->size - offset ? object->at + offset : NULL;
}

/* Where the first part of a file lies, less the address that the file itself gives that. False: it
 * is no ELF of ours. */
static bool find_base(struct elf_bytes *object, uint64_t from)
{
    const Elf64_Ehdr *header = part(object, 0, sizeof *header);
    if (!header || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
        header->e_ident[EI_CLASS] != ELFCLASS64)
        return false;
    const Elf64_Phdr *segment = part(object, header->e_phoff, header->e_phnum * sizeof(Elf64_Phdr));
    for (int i = 0; segment && i < header->e_phnum; i++)
        if (segment[i].p_type == PT_LOAD) {
            object->base = from - (segment[i].p_vaddr - segment[i].p_offset);
            return true;
        }
    return false;
}

static bool is_blas_name(const struct elf_bytes *object, const Elf64_Shdr *symbols,
                         const Elf64_Shdr *strings, uint64_t index)
{
    if (index >= symbols->sh_size / sizeof(Elf64_Sym))
        return false;
    const Elf64_Sym *symbol =
        part(object, symbols->sh_offset + index * sizeof *symbol, sizeof *symbol);
    const char *text = part(object, strings->sh_offset, strings->sh_size);
    if (!symbol || !text || strings->sh_size == 0 || text[strings->sh_size - 1] ||
        symbol->st_name >= strings->sh_size)
        return false;
    const int entry = accel_name_find(text + symbol->st_name);
    return entry >= 0 && (uint32_t)entry < accel_blas_name_count;
}

struct asked {
    pid_t pid;
    int memory; /* of the process */
    const char *library;
};

static bool leads_to(const struct asked *asked, uint64_t slot)
{
    uint64_t value = 0;
    return pread(asked->memory, &value, sizeof value, (off_t)slot) == sizeof value && value &&
           has_at(asked->pid, asked->library, value);
}

static bool has_slot(const struct asked *asked, const struct elf_bytes *object)
{
    const Elf64_Ehdr *header = part(object, 0, sizeof *header);
    const int count = header->e_shnum;
    const Elf64_Shdr *section = part(object, header->e_shoff, (uint64_t)count * sizeof(Elf64_Shdr));
    for (int i = 0; section && i < count; i++) {
        const Elf64_Rela *slot = part(object, section[i].sh_offset, section[i].sh_size);
        const Elf64_Shdr *symbols = section + section[i].sh_link;
        if (section[i].sh_type != SHT_RELA || !slot || section[i].sh_link >= (uint32_t)count ||
            symbols->sh_type != SHT_DYNSYM || symbols->sh_link >= (uint32_t)count)
            continue;
        for (uint64_t n = 0; n < section[i].sh_size / sizeof *slot; n++) {
            const uint32_t type = ELF64_R_TYPE(slot[n].r_info);
            if ((type == SLOT || type == DATA || type == POINTER) &&
                is_blas_name(object, symbols, section + symbols->sh_link,
                             ELF64_R_SYM(slot[n].r_info)) &&
                leads_to(asked, object->base + slot[n].r_offset))
                return true;
        }
    }
    return false;
}

static bool calls_it(const struct asked *asked, const struct bound_mapping *mapping)
{
    struct stat st;
    struct elf_bytes object = {.at = MAP_FAILED};
    const int fd = open(mapping->path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0) {
        object.size = (size_t)st.st_size;
        object.at = mmap(NULL, object.size, PROT_READ, MAP_PRIVATE, fd, 0);
    }
    close(fd);
    if (object.at == MAP_FAILED)
        return false;
    const bool calls = find_base(&object, mapping->from) && has_slot(asked, &object);
    munmap((void *)(uintptr_t)object.at, object.size);
    return calls;
}

void bound_past(char path[PATH_MAX], pid_t pid, const char *library)
{
    char name[64];
    struct bound_mapping mapping;
    snprintf(name, sizeof name, "/proc/%d/mem", (int)pid);
    const struct asked asked = {pid, open(name, O_RDONLY | O_CLOEXEC), library};
    FILE *maps = asked.memory < 0 ? NULL : bound_maps(pid);
    bool is_blas = true;
    *path = 0;
    while (maps && is_blas && bound_next(maps, &mapping)) {
        struct elf_file file;
        if (mapping.offset > 0 || strcmp(mapping.path, library) == 0 || !calls_it(&asked, &mapping))
            continue;
        snprintf(path, PATH_MAX, "%s", mapping.path);
        is_blas = elf_file_read(&file, path) && file.exported >= ELF_BLAS_NAMES;
    }
    if (maps)
        fclose(maps);
    if (asked.memory >= 0)
        close(asked.memory);
}
