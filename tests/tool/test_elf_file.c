/* Executables that can have libaccel: this one can, and one for another machine cannot. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

#include "tool/process/elf_file.h"

static void machines(void **state)
{
    struct elf_file file;
    Elf64_Ehdr header;
    char path[] = "/tmp/accel-test-elf-XXXXXX";
    (void)state;
    assert_true(elf_file_read(&file, "/proc/self/exe"));
    assert_int_equal(file.kind, ELF_DYNAMIC);
    FILE *self = fopen("/proc/self/exe", "re");
    assert_non_null(self);
    assert_int_equal(fread(&header, sizeof header, 1, self), 1);
    fclose(self);
    header.e_machine = EM_RISCV;
    int fd = mkstemp(path);
    assert_true(fd >= 0 && write(fd, &header, sizeof header) == sizeof header);
    close(fd);
    assert_true(elf_file_read(&file, path));
    assert_int_equal(file.kind, ELF_OTHER);
    assert_int_equal(file.other, ELF_MACHINE);
    header.e_ident[EI_CLASS] = ELFCLASS32;
    fd = open(path, O_WRONLY | O_CLOEXEC);
    assert_true(fd >= 0 && write(fd, &header, sizeof header) == sizeof header);
    close(fd);
    assert_true(elf_file_read_kind(&file, path));
    assert_int_equal(file.kind, ELF_OTHER);
    assert_int_equal(file.other, ELF_32_BITS);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(machines)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
