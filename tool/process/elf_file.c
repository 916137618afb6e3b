#define _GNU_SOURCE
#include "elf_file.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ops/names.h"

struct bytes {
    const char *at;
    size_t size;
};

/* Returns `count` items of `size` bytes at an offset, NULL if they are not in the file. */
static const void *part(const struct bytes *bytes, uint64_t offset, uint64_t count, uint64_t size)
{
    if (offset > bytes->size || count > (bytes->size - offset) / size)
        return NULL;
    return bytes->at + offset;
}

/* Returns the sections, NULL if there are none. */
static const Elf64_Shdr *sections_of(const struct bytes *bytes, const Elf64_Ehdr *header)
{
    return part(bytes, header->e_shoff, header->e_shnum, sizeof(Elf64_Shdr));
}

/* Returns the strings of a section, which end with a NUL; NULL if they do not. */
static const char *strings_of(const struct bytes *bytes, const Elf64_Shdr *strings)
{
    const char *text = part(bytes, strings->sh_offset, strings->sh_size, 1);
    return text && strings->sh_size > 0 && !text[strings->sh_size - 1] ? text : NULL;
}

static int count_names(const struct bytes *bytes, const Elf64_Shdr *symbols,
                       const Elf64_Shdr *strings)
{
    const uint64_t count = symbols->sh_size / sizeof(Elf64_Sym);
    const Elf64_Sym *symbol = part(bytes, symbols->sh_offset, count, sizeof *symbol);
    const char *text = strings_of(bytes, strings);
    int found = 0;
    if (!symbol || !text)
        return 0;
    for (uint64_t i = 0; i < count; i++) {
        const int type = ELF64_ST_TYPE(symbol[i].st_info);
        if ((type != STT_FUNC && type != STT_GNU_IFUNC) || symbol[i].st_shndx == SHN_UNDEF ||
            symbol[i].st_name >= strings->sh_size)
            continue;
        const int entry = accel_name_find(text + symbol[i].st_name);
        found += entry >= 0 && (uint32_t)entry < accel_blas_name_count;
    }
    return found;
}

/* The runtimes of gcc and of clang. */
static bool is_asan(const char *library)
{
    static const char gcc[] = "libasan.so.", clang[] = "libclang_rt.asan";
    return strncmp(library, gcc, sizeof gcc - 1) == 0 ||
           strncmp(library, clang, sizeof clang - 1) == 0;
}

static void read_needed(struct elf_file *file, const struct bytes *bytes, const Elf64_Shdr *dynamic,
                        const Elf64_Shdr *strings)
{
    const uint64_t count = dynamic->sh_size / sizeof(Elf64_Dyn);
    const Elf64_Dyn *entry = part(bytes, dynamic->sh_offset, count, sizeof *entry);
    const char *text = strings_of(bytes, strings);
    for (uint64_t i = 0; entry && text && i < count; i++)
        if (entry[i].d_tag == DT_NEEDED && entry[i].d_un.d_val < strings->sh_size &&
            is_asan(text + entry[i].d_un.d_val))
            snprintf(file->asan, sizeof file->asan, "%s", text + entry[i].d_un.d_val);
}

static bool defines(const struct bytes *bytes, const Elf64_Shdr *symbols, const Elf64_Shdr *strings,
                    const char *name)
{
    const uint64_t count = symbols->sh_size / sizeof(Elf64_Sym);
    const Elf64_Sym *symbol = part(bytes, symbols->sh_offset, count, sizeof *symbol);
    const char *text = strings_of(bytes, strings);
    for (uint64_t i = 0; symbol && text && i < count; i++)
        if (symbol[i].st_shndx != SHN_UNDEF && symbol[i].st_name < strings->sh_size &&
            strcmp(text + symbol[i].st_name, name) == 0)
            return true;
    return false;
}

static void read_asan(struct elf_file *file, const struct bytes *bytes, const Elf64_Ehdr *header)
{
    const Elf64_Shdr *section = sections_of(bytes, header);
    for (int i = 0; section && i < header->e_shnum; i++)
        if (section[i].sh_type == SHT_DYNAMIC && section[i].sh_link < header->e_shnum)
            read_needed(file, bytes, &section[i], &section[section[i].sh_link]);
    for (int i = 0; section && *file->asan && i < header->e_shnum; i++)
        if (section[i].sh_type == SHT_DYNSYM && section[i].sh_link < header->e_shnum)
            file->asan_options |=
                defines(bytes, &section[i], &section[section[i].sh_link], "__asan_default_options");
}

static void read_symbols(struct elf_file *file, const struct bytes *bytes, const Elf64_Ehdr *header)
{
    const Elf64_Shdr *section = sections_of(bytes, header);
    int all = 0;
    for (int i = 0; section && i < header->e_shnum; i++) {
        if (section[i].sh_link >= header->e_shnum)
            continue;
        if (section[i].sh_type == SHT_DYNSYM)
            file->exported += count_names(bytes, &section[i], &section[section[i].sh_link]);
        if (section[i].sh_type == SHT_SYMTAB)
            all += count_names(bytes, &section[i], &section[section[i].sh_link]);
    }
    file->hidden = all > file->exported ? all - file->exported : 0;
}

/* Whether a program's dynamic linker has a name that begins so. */
static bool is_linked_by(const struct bytes *bytes, const Elf64_Phdr *interpreter, const char *name)
{
    const char *path = part(bytes, interpreter->p_offset, interpreter->p_filesz, 1);
    return path && memmem(path, interpreter->p_filesz, name, strlen(name));
}

/* glibc's dynamic linker could load libaccel; musl's, for example, could not. */
static void read_linker(struct elf_file *file, const struct bytes *bytes,
                        const Elf64_Phdr *interpreter)
{
    file->kind = is_linked_by(bytes, interpreter, "ld-linux") ? ELF_DYNAMIC : ELF_OTHER;
    file->other = is_linked_by(bytes, interpreter, "ld-musl") ? ELF_MUSL : ELF_C_LIBRARY;
    const char *const path = part(bytes, interpreter->p_offset, interpreter->p_filesz, 1);
    if (path)
        snprintf(file->interpreter, sizeof file->interpreter, "%.*s",
                 (int)strnlen(path, interpreter->p_filesz), path);
}

#ifdef __aarch64__
enum { OWN_MACHINE = EM_AARCH64 };
#else
enum { OWN_MACHINE = EM_X86_64 };
#endif

static void read_header(struct elf_file *file, const struct bytes *bytes, bool names)
{
    const Elf64_Ehdr *header = part(bytes, 0, 1, sizeof *header);
    if (!header || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0)
        return;
    file->kind = ELF_OTHER;
    file->other = header->e_ident[EI_CLASS] == ELFCLASS32 ? ELF_32_BITS : ELF_MACHINE;
    if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_machine != OWN_MACHINE)
        return;
    const Elf64_Phdr *program = part(bytes, header->e_phoff, header->e_phnum, sizeof *program);
    file->kind = ELF_STATIC;
    for (int i = 0; program && i < header->e_phnum; i++)
        if (program[i].p_type == PT_INTERP)
            read_linker(file, bytes, &program[i]);
    read_asan(file, bytes, header);
    if (names)
        read_symbols(file, bytes, header);
}

static void read_script(struct elf_file *file, const struct bytes *bytes)
{
    size_t n = 0;
    const char *from = bytes->at + 2, *end = bytes->at + bytes->size;
    file->kind = ELF_SCRIPT;
    while (from < end && (*from == ' ' || *from == '\t'))
        from++;
    while (from < end && *from != '\n' && *from && n < sizeof file->interpreter - 1)
        file->interpreter[n++] = *from++;
}

static bool read_file(struct elf_file *file, const char *path, bool names)
{
    struct stat st;
    struct bytes bytes = {NULL, 0};
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    *file = (struct elf_file){.kind = ELF_UNKNOWN};
    if (fd < 0)
        return false;
    bool good = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
    if (good && st.st_size > 0) {
        bytes.size = (size_t)st.st_size;
        bytes.at = mmap(NULL, bytes.size, PROT_READ, MAP_PRIVATE, fd, 0);
        good = bytes.at != MAP_FAILED;
    }
    close(fd);
    if (!good || bytes.size == 0)
        return good;
    if (bytes.size > 2 && memcmp(bytes.at, "#!", 2) == 0)
        read_script(file, &bytes);
    else
        read_header(file, &bytes, names);
    munmap((void *)(uintptr_t)bytes.at, bytes.size);
    return true;
}

bool elf_file_read(struct elf_file *file, const char *path)
{
    return read_file(file, path, true);
}

bool elf_file_read_kind(struct elf_file *file, const char *path)
{
    return read_file(file, path, false);
}
