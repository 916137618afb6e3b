#define _GNU_SOURCE
#include "elf_file.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
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

static int count_names(const struct bytes *bytes, const Elf64_Shdr *symbols,
                       const Elf64_Shdr *strings)
{
    const uint64_t count = symbols->sh_size / sizeof(Elf64_Sym);
    const Elf64_Sym *symbol = part(bytes, symbols->sh_offset, count, sizeof *symbol);
    const char *text = part(bytes, strings->sh_offset, strings->sh_size, 1);
    int found = 0;
    if (!symbol || !text || strings->sh_size == 0 || text[strings->sh_size - 1])
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

static void read_symbols(struct elf_file *file, const struct bytes *bytes, const Elf64_Ehdr *header)
{
    const Elf64_Shdr *section = part(bytes, header->e_shoff, header->e_shnum, sizeof *section);
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

/* Whether a program's dynamic linker is glibc's: musl's, for example, could not load libaccel. */
static bool is_glibcs(const struct bytes *bytes, const Elf64_Phdr *interpreter)
{
    static const char name[] = "ld-linux";
    const char *path = part(bytes, interpreter->p_offset, interpreter->p_filesz, 1);
    return path && memmem(path, interpreter->p_filesz, name, sizeof name - 1);
}

#ifdef __aarch64__
enum { OWN_MACHINE = EM_AARCH64 };
#else
enum { OWN_MACHINE = EM_X86_64 };
#endif

static void read_header(struct elf_file *file, const struct bytes *bytes)
{
    const Elf64_Ehdr *header = part(bytes, 0, 1, sizeof *header);
    if (!header || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0)
        return;
    file->kind = ELF_OTHER;
    if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_machine != OWN_MACHINE)
        return;
    const Elf64_Phdr *program = part(bytes, header->e_phoff, header->e_phnum, sizeof *program);
    file->kind = ELF_STATIC;
    for (int i = 0; program && i < header->e_phnum; i++)
        if (program[i].p_type == PT_INTERP)
            file->kind = is_glibcs(bytes, &program[i]) ? ELF_DYNAMIC : ELF_OTHER;
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

bool elf_file_read(struct elf_file *file, const char *path)
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
        read_header(file, &bytes);
    munmap((void *)(uintptr_t)bytes.at, bytes.size);
    return true;
}
