/* What a function's code tells of its arguments, for functions of this program: on each
 * architecture, by its compiler. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "shim/elf/code.h"
#include "shim/elf/reads.h"
#include "shim/elf/real_linker.h"
#include "tests/lib/sanitized.h"
#include "tests/lib/whole_function.h"

void *__real_mmap(void *at, size_t length, int access, int flags, int file, off_t offset);
void *__wrap_mmap(void *at, size_t length, int access, int flags, int file, off_t offset);

/* Calls of mmap() until one fails; 0: none does. */
static int until_short;

void *__wrap_mmap(void *at, size_t length, int access, int flags, int file, off_t offset)
{
    return until_short && --until_short == 0 ? MAP_FAILED
                                             : __real_mmap(at, length, access, flags, file, offset);
}

static struct accel_reads reads_of(void *function)
{
    struct accel_code code;
    struct accel_reads reads;
    accel_real_init();
    assert_true(accel_code_of_object(&code, accel_object_of(function)));
    assert_true(accel_reads_of(&reads, &code, function));
    return reads;
}

/* Ten arguments: the last ones are on the stack. */
FUNCTION double by_reference(const int32_t *a, const int64_t *b, const float *c, const double *d,
                             const int32_t *e, const int64_t *f, const float *g, const double *h,
                             const int32_t *i, const double *j)
{
    return (double)*a + (double)*b + (double)*c + *d + (double)*e + (double)*f + (double)*g + *h +
           (double)*i + *j;
}

static void test_by_reference(void **state)
{
    static const uint8_t sizes[] = {ACCEL_READS_4, ACCEL_READS_8, ACCEL_READS_4, ACCEL_READS_8};
    const struct accel_reads reads = reads_of((void *)(uintptr_t)by_reference);
    (void)state;
    for (int i = 0; i < 9; i++) {
        assert_int_equal(reads.argument[i].sizes, sizes[i % 4]);
        assert_int_equal(reads.argument[i].end, sizes[i % 4] == ACCEL_READS_4 ? 4 : 8);
    }
    assert_int_equal(reads.argument[9].sizes, ACCEL_READS_8);
    assert_int_equal(reads.argument[10].sizes, 0);
}

FUNCTION int64_t by_value(int32_t a, int64_t b, int32_t c, int64_t d)
{
    return (a > 7 ? 1 : 2) + (b > 7 ? 3 : 4) + (c < 9 ? 5 : 6) + (d < 9 ? 7 : 8);
}

static void test_by_value(void **state)
{
    const struct accel_reads reads = reads_of((void *)(uintptr_t)by_value);
    (void)state;
    for (int i = 0; i < 4; i++) {
        assert_int_equal(reads.argument[i].half, i % 2 == 0);
        assert_int_equal(reads.argument[i].whole, i % 2 == 1);
    }
}

FUNCTION void long_doubles(const long double *x, long double *y)
{
    *y = *x * 3;
}

static void test_long_doubles(void **state)
{
    const struct accel_reads reads = reads_of((void *)(uintptr_t)long_doubles);
    (void)state;
    const uint8_t size =
        sizeof(long double) == 16 && __LDBL_MANT_DIG__ == 64 ? ACCEL_READS_10 : ACCEL_READS_16;
    assert_int_equal(reads.argument[0].sizes, size);
    assert_int_equal(reads.argument[1].sizes, size);
}

/* Arguments wait in the registers that calls leave alone, or on the stack, and are passed on. */
FUNCTION int64_t passed_on(const int32_t *n, const int64_t *m)
{
    return *n > 0 ? *n : *m;
}

FUNCTION double kept(const int32_t *n, const int64_t *m, const double *x)
{
    const char *set = getenv("NOT_SET");
    double sum = set ? 1 : 0;
    for (int i = 0; i < 3; i++)
        sum += rand() * *x;
    return sum + (double)passed_on(n, m);
}

static void test_kept(void **state)
{
    const struct accel_reads reads = reads_of((void *)(uintptr_t)kept);
    (void)state;
    SKIP_SANITIZED("the code of calls");
    assert_int_equal(reads.argument[0].sizes, ACCEL_READS_4);
    assert_int_equal(reads.argument[1].sizes, ACCEL_READS_8);
    assert_int_equal(reads.argument[2].sizes, ACCEL_READS_8);
}

/* Nothing is read, and what lies behind a function that does not return is another's. */
FUNCTION void ends(const int32_t *n)
{
    (void)n;
    abort();
}

FUNCTION int written(int64_t *n, int32_t *info)
{
    *n = 5;
    *info = 6;
    return 0;
}

static void test_others(void **state)
{
    struct accel_reads reads = reads_of((void *)(uintptr_t)ends);
    (void)state;
    assert_int_equal(reads.argument[0].sizes, 0);
    reads = reads_of((void *)(uintptr_t)written);
    assert_int_equal(reads.argument[0].sizes, ACCEL_READS_8);
    assert_int_equal(reads.argument[1].sizes, ACCEL_READS_4);
}

/* Memory is short: nothing is told, and nothing is left over. */
static void test_no_memory(void **state)
{
    struct accel_code code;
    struct accel_reads reads;
    void *function = (void *)(uintptr_t)by_reference;
    (void)state;
    accel_real_init();
    assert_true(accel_code_of_object(&code, accel_object_of(function)));
    until_short = 1;
    assert_false(accel_reads_of(&reads, &code, function));
    assert_int_equal(until_short, 0);
    assert_int_equal(reads.argument[0].sizes, 0);
    assert_true(accel_reads_of(&reads, &code, function));
    assert_int_equal(reads.argument[0].sizes, ACCEL_READS_4);
}

#ifdef __x86_64__

/* Memory near to libc, for code that is written by hand. It is no object's. */
static uint8_t *code_page(void)
{
    void *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(page != MAP_FAILED);
    return page;
}

/* Reads code as if it were the program's. */
static struct accel_reads reads_at(const uint8_t *bytes, size_t length, bool is_loaded)
{
    struct accel_code code;
    struct accel_reads reads;
    accel_real_init();
    assert_true(accel_code_of_object(&code, accel_object_of((void *)(uintptr_t)reads_at)));
    code.is_loaded = is_loaded;
    code.parts = 1;
    code.part[0].begin = (uintptr_t)bytes;
    code.part[0].end = (uintptr_t)bytes + length;
    code.part[0].is_code = true;
    assert_true(accel_reads_of(&reads, &code, bytes));
    return reads;
}

/* Which argument's address is known, and its value read, by code that ends in a read of 4 bytes. */
static void test_addresses(void **state)
{
#    define CODE(text) .bytes = text, .length = sizeof text - 1
    static const struct {
        const char *name, *bytes;
        size_t length;
        int argument; /* -1: none */
    } rows[] = {
        {"at the argument", CODE("\x8b\x07\xc3"), 0},
        {"before it", CODE("\x8b\x47\xfe\xc3"), -1},
        {"far behind it", CODE("\x8b\x87\0\0\x01\0\xc3"), -1},
        {"far before it", CODE("\x8b\x87\0\0\xff\xff\xc3"), -1},
        {"behind what is not known", CODE("\x06\x8b\x07\xc3"), -1},
        /* mov 8(%rsp),%rax; mov (%rax),%ecx; ret */
        {"on the stack", CODE("\x48\x8b\x44\x24\x08\x8b\x08\xc3"), 6},
        {"beyond the arguments", CODE("\x48\x8b\x84\x24\0\x04\0\0\x8b\x08\xc3"), -1},
        {"far below the stack", CODE("\x48\x8b\x84\x24\0\xf8\xff\xff\x8b\x08\xc3"), -1},
        /* mov %rdi,-8(%rsp); mov -8(%rsp),%rax, or -7; mov (%rax),%ecx; ret */
        {"kept", CODE("\x48\x89\x7c\x24\xf8\x48\x8b\x44\x24\xf8\x8b\x08\xc3"), 0},
        {"a part kept", CODE("\x48\x89\x7c\x24\xf8\x48\x8b\x44\x24\xf9\x8b\x08\xc3"), -1},
        /* mov %rdi,-24(%rsp); vmovupd %xmm17,-32(%rsp), which EVEX writes as -2 operands */
        {"overwritten",
         CODE("\x48\x89\x7c\x24\xe8\x62\xe1\xfd\x08\x11\x4c\x24\xfe\x48\x8b\x44\x24\xe8\x8b\x08"
              "\xc3"),
         -1},
        /* and $-32,%rsp; mov %rdi,8(%rsp); mov 8(%rsp),%rax; mov (%rax),%ecx; ret */
        {"kept in an aligned frame",
         CODE("\x48\x83\xe4\xe0\x48\x89\x7c\x24\x08\x48\x8b\x44\x24\x08\x8b\x08\xc3"), 0},
        /* mov %rax,%rsp; and $-32,%rsp; mov 8(%rsp),%rax; mov (%rax),%ecx; ret */
        {"another stack", CODE("\x48\x89\xc4\x48\x83\xe4\xe0\x48\x8b\x44\x24\x08\x8b\x08\xc3"), -1},
    };
#    undef CODE
    (void)state;
    for (size_t row = 0; row < sizeof rows / sizeof *rows; row++) {
        const struct accel_reads reads =
            reads_at((const uint8_t *)rows[row].bytes, rows[row].length, true);
        for (int i = 0; i < ACCEL_READS_ARGUMENTS; i++)
            if (reads.argument[i].sizes != (i == rows[row].argument ? ACCEL_READS_4 : 0) ||
                reads.argument[i].end != (i == rows[row].argument ? 4 : 0))
                fail_msg("%s: argument %d, sizes %d, end %d", rows[row].name, i,
                         reads.argument[i].sizes, reads.argument[i].end);
    }
}

/* Which halves of the first two arguments' values code computes with, wherever they have been
 * meanwhile. */
static void test_values(void **state)
{
#    define CODE(text) .bytes = text, .length = sizeof text - 1
    enum { NOT, HALF, WHOLE };
    static const struct {
        const char *name, *bytes;
        size_t length;
        int first, second;
    } rows[] = {
        {"test %edi,%edi", CODE("\x85\xff\xc3"), HALF, NOT},
        {"test %rsi,%rsi", CODE("\x48\x85\xf6\xc3"), NOT, WHOLE},
        /* push %rdi, then: */
        {"moved back", CODE("\x57\x48\x8b\x04\x24\xc3"), NOT, NOT},
        {"a half moved back", CODE("\x57\x8b\x04\x24\xc3"), HALF, NOT},
        {"compared there", CODE("\x57\x48\x83\x3c\x24\x05\xc3"), WHOLE, NOT},
        {"a half compared there", CODE("\x57\x83\x3c\x24\x05\xc3"), HALF, NOT},
        {"another place compared", CODE("\x57\x83\x7c\x24\xf8\x05\xc3"), NOT, NOT},
        /* pop %rax; push %rdi; mov (%r10),%eax */
        {"a place that is not known", CODE("\x58\x57\x41\x8b\x02\xc3"), NOT, NOT},
        {"far below", CODE("\x57\x8b\x84\x24\0\xf0\xff\xff\xc3"), NOT, NOT},
        {"far above", CODE("\x57\x8b\x84\x24\0\x10\0\0\xc3"), NOT, NOT},
        {"push %rdi; pop %rax; cmp $5,%eax", CODE("\x57\x58\x83\xf8\x05\xc3"), HALF, NOT},
        {"push %rdi; push %rsi; pop %rax; pop %rcx; test %rcx,%rcx",
         CODE("\x57\x56\x58\x59\x48\x85\xc9\xc3"), WHOLE, NOT},
        {"mov %rdi,%rax; test %eax,%eax", CODE("\x48\x89\xf8\x85\xc0\xc3"), HALF, NOT},
        {"mov %rdi,%rax; xor %eax,%eax; test %eax,%eax", CODE("\x48\x89\xf8\x31\xc0\x85\xc0\xc3"),
         NOT, NOT},
        {"add $8,%rsi; test %esi,%esi: another number", CODE("\x48\x83\xc6\x08\x85\xf6\xc3"), NOT,
         WHOLE},
        /* push %rbp; mov %rsp,%rbp; push %rdi; mov -8(%rbp),%eax; leave */
        {"in a frame", CODE("\x55\x48\x89\xe5\x57\x8b\x45\xf8\xc9\xc3"), HALF, NOT},
        {"mov %rdi,%rbp; push %rbp; mov %rsp,%rbp; leave; test %ebp,%ebp",
         CODE("\x48\x89\xfd\x55\x48\x89\xe5\xc9\x85\xed\xc3"), HALF, NOT},
        {"a call keeps rbx", CODE("\x48\x89\xfb\xe8\x03\0\0\0\x85\xdb\xc3\xc3"), HALF, NOT},
        {"a call changes rdi", CODE("\xe8\x03\0\0\0\x85\xff\xc3\xc3"), NOT, NOT},
        {"what is called computes", CODE("\xe8\x01\0\0\0\xc3\x85\xff\xc3"), HALF, NOT},
        {"both sides of a branch", CODE("\x75\x03\x85\xff\xc3\x48\x85\xf6\xc3"), HALF, WHOLE},
        {"jumped over", CODE("\xeb\x02\x85\xff\xc3"), NOT, NOT},
        {"behind the end", CODE("\xc3\x85\xff\xc3"), NOT, NOT},
        {"behind ud2", CODE("\x0f\x0b\x85\xff\xc3"), NOT, NOT},
        {"a loop", CODE("\x85\xff\x75\xfc\x48\x85\xf6\xc3"), HALF, WHOLE},
    };
#    undef CODE
    (void)state;
    for (size_t row = 0; row < sizeof rows / sizeof *rows; row++) {
        const struct accel_reads reads =
            reads_at((const uint8_t *)rows[row].bytes, rows[row].length, true);
        const int wanted[] = {rows[row].first, rows[row].second};
        for (int i = 0; i < ACCEL_READS_ARGUMENTS; i++) {
            const struct accel_read *read = &reads.argument[i];
            const int value = i < 2 ? wanted[i] : NOT;
            if (read->half != (value == HALF) || read->whole != (value == WHOLE) || read->sizes)
                fail_msg("%s: argument %d, half %d, whole %d", rows[row].name, i, read->half,
                         read->whole);
        }
    }
}

/* Behind a call of a function that does not come back, there is another's code. */
void reads_behind_rand(void), reads_behind_abort(void), reads_behind_exit(void);
__asm__(".text\n"
        "reads_behind_rand: mov %rdi, %rbx\n call rand@PLT\n mov (%rbx), %eax\n ret\n"
        "reads_behind_abort: mov %rdi, %rbx\n call abort@PLT\n mov (%rbx), %eax\n ret\n"
        "reads_behind_exit: mov %rdi, %rbx\n call exit@PLT\n mov (%rbx), %eax\n ret\n");

static void test_calls_that_do_not_come_back(void **state)
{
    (void)state;
    assert_int_equal(reads_of((void *)reads_behind_rand).argument[0].sizes, ACCEL_READS_4);
    assert_int_equal(reads_of((void *)reads_behind_abort).argument[0].sizes, 0);
    assert_int_equal(reads_of((void *)reads_behind_exit).argument[0].sizes, 0);
}

/* Jumps, each to the next one, then a read. Of many, no more than some hundreds are followed. */
static void test_many_jumps(void **state)
{
    static const int counts[] = {20, 600};
    uint8_t *code = code_page();
    (void)state;
    for (int row = 0; row < 2; row++) {
        uint8_t *at = code;
        for (int i = 0; i < counts[row]; i++, at += 2)
            memcpy(at, "\xeb\x00", 2);
        memcpy(at, "\x8b\x07\xc3", 3);
        const struct accel_reads reads = reads_at(code, (size_t)(at + 3 - code), true);
        assert_int_equal(reads.argument[0].sizes, row == 0 ? ACCEL_READS_4 : 0);
    }
    munmap(code, 8192);
}

/* A jump to a function of another object, which reads what its argument points to. */
static void test_other_objects(void **state)
{
    uint8_t *code = code_page(), *no_object = code_page();
    const uint8_t *targets[] = {(const uint8_t *)(uintptr_t)rand_r, no_object};
    (void)state;
    SKIP_SANITIZED("the code of libc");
    memcpy(no_object, "\x8b\x07\xc3", 3);
    for (int i = 0; i < 2; i++) {
        const int64_t far = targets[i] - (code + 5);
        const int32_t offset = (int32_t)far;
        assert_true(offset == far);
        code[0] = 0xe9;
        memcpy(code + 1, &offset, sizeof offset);
        const struct accel_reads reads = reads_at(code, 5, true);
        assert_int_equal(reads.argument[0].sizes, i == 0 ? ACCEL_READS_4 : 0);
        /* Of a file that is only read, no other object is known. */
        assert_int_equal(reads_at(code, 5, false).argument[0].sizes, 0);
    }
    /* Through a slot: a function, data of libc, and what counts as libaccel's. */
    const uintptr_t through[] = {(uintptr_t)rand_r, (uintptr_t)stdout, (uintptr_t)written};
    for (int i = 0; i < 3; i++) {
        memcpy(code, "\xff\x25\0\0\0\0", 6);
        memcpy(code + 6, &through[i], sizeof through[i]);
        assert_int_equal(reads_at(code, 14, true).argument[0].sizes, i == 0 ? ACCEL_READS_4 : 0);
    }
    munmap(no_object, 8192);
    munmap(code, 8192);
}

#endif

/* A jump through a place that is none of the object's: bytes behind a function's end may be so. */
static void test_no_place(void **state)
{
    static const uint8_t jump[] = {0xff, 0x25, 0x00, 0xf0, 0xff, 0x3f}; /* x86-64's */
    const uintptr_t begin = (uintptr_t)jump;
    struct accel_code code;
    struct accel_reads reads;
    (void)state;
    accel_real_init();
    assert_true(accel_code_of_object(&code, accel_object_of(jump)));
    assert_int_equal(accel_code_pointer(&code, 8), 0);
    code.parts = 1;
    code.part[0].begin = begin;
    code.part[0].end = begin + sizeof jump;
    code.part[0].is_code = true;
    assert_int_equal(accel_code_pointer(&code, begin + sizeof jump - 4), 0);
    assert_true(accel_reads_of(&reads, &code, jump));
    assert_int_equal(reads.argument[0].sizes, 0);
}

/* What is no code is not followed. */
static void test_no_code(void **state)
{
    static int variable = 3;
    struct accel_code code;
    struct accel_reads reads;
    (void)state;
    accel_real_init();
    assert_true(accel_code_of_object(&code, accel_object_of(&variable)));
    assert_false(accel_reads_of(&reads, &code, &variable));
    assert_int_equal(accel_code_readable(&code, (uintptr_t)&code), 0);
    const char text[64] = "not an object's header";
    assert_false(accel_code_of_image(&code, text, sizeof text));
    assert_false(accel_code_of_image(&code, text, 3));
}

/* An object that nobody has loaded: its headers, and room behind them. */
struct image {
    ElfW(Ehdr) header;
    ElfW(Phdr) part[ACCEL_CODE_PARTS + 4];
    char room[64];
};

static struct image image_of(int parts)
{
    struct image image = {.header = {.e_ident = ELFMAG,
                                     .e_phoff = offsetof(struct image, part),
                                     .e_phentsize = sizeof(ElfW(Phdr)),
                                     .e_phnum = (ElfW(Half))(parts + 1)}};
    for (int i = 0; i < parts; i++)
        image.part[i] = (ElfW(Phdr)){.p_type = PT_LOAD,
                                     .p_flags = PF_R | PF_X,
                                     .p_offset = (ElfW(Off))i * 8,
                                     .p_vaddr = 0x1000 + (ElfW(Addr))i * 8,
                                     .p_filesz = 8};
    image.part[parts] = (ElfW(Phdr)){
        .p_type = PT_DYNAMIC, .p_flags = PF_R, .p_vaddr = 0x1000 + offsetof(struct image, room)};
    return image;
}

static bool is_read(const struct image *image, struct accel_code *code)
{
    return accel_code_of_image(code, image, sizeof *image);
}

static void test_image(void **state)
{
    struct image image = image_of(2);
    struct accel_code code;
    (void)state;
    assert_true(is_read(&image, &code));
    assert_int_equal(code.base, (uintptr_t)&image - 0x1000);
    assert_ptr_equal(code.dynamic, image.room);
    assert_int_equal(code.parts, 2);
    assert_int_equal(accel_code_readable(&code, (uintptr_t)&image + 10), 6);
    /* A segment that cannot be read is left out, and so are those for which there is no room. */
    image.part[1].p_flags = PF_X;
    assert_true(is_read(&image, &code));
    assert_int_equal(code.parts, 1);
    assert_int_equal(accel_code_readable(&code, (uintptr_t)&image + 10), 0);
    image = image_of(ACCEL_CODE_PARTS + 2);
    assert_true(is_read(&image, &code));
    assert_int_equal(code.parts, ACCEL_CODE_PARTS);
}

/* Headers that are none, lie beyond what can be read, or do not tell what is needed. */
static void test_bad_image(void **state)
{
    struct accel_code code;
    struct image image;
    (void)state;
    image = image_of(2);
    image.header.e_phentsize--;
    assert_false(is_read(&image, &code));
    image = image_of(2);
    image.header.e_phoff = sizeof image + 1;
    assert_false(is_read(&image, &code));
    image = image_of(2);
    image.header.e_phnum = UINT16_MAX;
    assert_false(is_read(&image, &code));
    image = image_of(2);
    image.part[0].p_offset = image.part[1].p_offset = 8; /* none has the file's begin */
    assert_false(is_read(&image, &code));
    image = image_of(2);
    image.part[2].p_type = PT_NOTE;
    assert_false(is_read(&image, &code));
    image = image_of(2);
    image.part[0].p_flags = image.part[1].p_flags = PF_X;
    assert_false(is_read(&image, &code));
}

/* An object that the dynamic linker does not list, as those of other namespaces, is known by its
 * first page: only if that has its headers. */
static void test_object_not_listed(void **state)
{
    struct link_map *own = (struct link_map *)(uintptr_t)accel_object_of(test_object_not_listed);
    struct accel_code code;
    ElfW(Dyn) *const dynamic = own->l_ld;
    static ElfW(Dyn) elsewhere[2];
    ElfW(Dyn) nowhere[2] = {{.d_tag = DT_NULL}};
    (void)state;
    own->l_ld = elsewhere;
    const bool found = accel_code_of_object(&code, own);
    own->l_ld = nowhere;
    const bool found_nowhere = accel_code_of_object(&code, own);
    own->l_ld = dynamic;
    assert_false(found);
    assert_false(found_nowhere);
    assert_true(accel_code_of_object(&code, own));
    assert_ptr_equal(code.dynamic, dynamic);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_by_reference),
                                       cmocka_unit_test(test_by_value),
                                       cmocka_unit_test(test_long_doubles),
                                       cmocka_unit_test(test_kept),
                                       cmocka_unit_test(test_others),
                                       cmocka_unit_test(test_no_memory),
#ifdef __x86_64__
                                       cmocka_unit_test(test_addresses),
                                       cmocka_unit_test(test_values),
                                       cmocka_unit_test(test_calls_that_do_not_come_back),
                                       cmocka_unit_test(test_many_jumps),
                                       cmocka_unit_test(test_other_objects),
#endif
                                       cmocka_unit_test(test_no_place),
                                       cmocka_unit_test(test_no_code),
                                       cmocka_unit_test(test_image),
                                       cmocka_unit_test(test_bad_image),
                                       cmocka_unit_test(test_object_not_listed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
