#define _GNU_SOURCE
#include "elf_image.h"

#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HEADERS_MOST = 64, PAGE = 4096 };

struct program_headers {
    ElfW(Phdr) part[HEADERS_MOST];
    int count;
};

/* Those of its segments. */
static bool read_headers(struct program_headers *headers, int fd)
{
    ElfW(Ehdr) header;
    if (pread(fd, &header, sizeof header, 0) != sizeof header ||
        memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
        header.e_phentsize != sizeof(ElfW(Phdr)) || header.e_phnum > HEADERS_MOST)
        return false;
    headers->count = header.e_phnum;
    const size_t bytes = sizeof(ElfW(Phdr)) * header.e_phnum;
    return pread(fd, headers->part, bytes, (off_t)header.e_phoff) == (ssize_t)bytes;
}

static bool map_part(const struct elf_image *image, const ElfW(Phdr) * part, size_t first,
                     off_t length, int fd)
{
    const size_t skipped = part->p_offset % PAGE;
    const size_t bytes = part->p_filesz + skipped;
    char *const at = (char *)image->begin + (part->p_vaddr - first) - skipped;
    if (part->p_type != PT_LOAD || part->p_filesz == 0)
        return true;
    /* A page beyond the file's end could not be read. */
    if (part->p_vaddr % PAGE != skipped || part->p_vaddr - skipped < first ||
        bytes > image->size - (size_t)(at - (char *)image->begin) ||
        part->p_offset + part->p_filesz > (size_t)length)
        return false;
    return mmap(at, bytes, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd,
                (off_t)(part->p_offset - skipped)) == at;
}

static bool map_parts(struct elf_image *image, const struct program_headers *headers, off_t length,
                      int fd)
{
    size_t first = SIZE_MAX, end = 0;
    for (int i = 0; i < headers->count; i++) {
        const ElfW(Phdr) *part = &headers->part[i];
        if (part->p_type != PT_LOAD || part->p_memsz > PTRDIFF_MAX - part->p_vaddr)
            continue;
        first = part->p_vaddr < first ? part->p_vaddr : first;
        end = part->p_vaddr + part->p_memsz > end ? part->p_vaddr + part->p_memsz : end;
    }
    first -= first % PAGE;
    if (end <= first)
        return false;
    image->size = (end - first + PAGE - 1) / PAGE * PAGE;
    image->begin =
        mmap(NULL, image->size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (image->begin == MAP_FAILED)
        return false;
    for (int i = 0; i < headers->count; i++)
        if (!map_part(image, &headers->part[i], first, length, fd)) {
            elf_image_unmap(image);
            return false;
        }
    return true;
}

bool elf_image_map(struct elf_image *image, const char *path)
{
    struct program_headers headers;
    struct stat st;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    *image = (struct elf_image){NULL, 0};
    if (fd < 0)
        return false;
    const bool mapped = fstat(fd, &st) == 0 && read_headers(&headers, fd) &&
                        map_parts(image, &headers, st.st_size, fd);
    close(fd);
    return mapped;
}

void elf_image_unmap(struct elf_image *image)
{
    munmap(image->begin, image->size);
}
