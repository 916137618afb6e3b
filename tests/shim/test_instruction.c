/* What the reader of x86-64 instructions tells: bytes as the assembler writes them, and what the
 * manual says of each instruction. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/arch/instruction.h"

#ifdef __x86_64__

enum { RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, R8, R9, R10, R11 };
enum { NONE = ACCEL_NO_REGISTER };

#    define BIT(reg)         (1u << (reg))
#    define LENGTH(rows)     (sizeof(rows) / sizeof *(rows))
#    define CODE(text, code) .name = text, .bytes = code, .length = sizeof code - 1

/* Reads an instruction of `length` bytes with others behind it. */
static struct accel_instruction read_at(const char *bytes, size_t length, uint8_t code[32])
{
    memset(code, 0xcc, 32);
    memcpy(code, bytes, length);
    return accel_instruction_at(code, 32);
}

/* Reads it where it is all that can be read, too, and where a part of it is: then it is not known.
 * A memory checker sees reads beyond the end. */
static void check_length(const char *name, const char *bytes, size_t length)
{
    uint8_t code[32];
    const int told = read_at(bytes, length, code).length;
    if (told != (int)length)
        fail_msg("%s: %d bytes, not %zu", name, told, length);
    for (size_t part = 0; part <= length; part++) {
        uint8_t *copy = malloc(part ? part : 1);
        assert_non_null(copy);
        memcpy(copy, bytes, part);
        const int of_part = accel_instruction_at(copy, part).length;
        free(copy);
        if (of_part != (part == length ? told : 0))
            fail_msg("%s: %d bytes of the first %zu", name, of_part, part);
    }
}

/* ---- Operands in memory ---- */

static void test_memory(void **state)
{
    static const struct {
        const char *name, *bytes;
        size_t length;
        int size, base;
        int64_t offset;
        bool indexed;
    } rows[] = {
        {CODE("mov (%rdi),%eax", "\x8b\x07"), 4, RDI, 0, false},
        {CODE("mov -8(%rdi),%rax", "\x48\x8b\x47\xf8"), 8, RDI, -8, false},
        {CODE("mov 0x12345678(%rdi),%ax", "\x66\x8b\x87\x78\x56\x34\x12"), 2, RDI, 0x12345678,
         false},
        {CODE("mov %fs:0,%eax", "\x64\x8b\x04\x25\0\0\0\0"), 4, NONE, 0, false},
        {CODE("mov %gs:8(%rdi),%eax", "\x65\x8b\x47\x08"), 4, NONE, 8, false},
        {CODE("mov (%edi),%eax", "\x67\x8b\x07"), 4, NONE, 0, false},
        {CODE("mov %es:(%rdi),%eax", "\x26\x8b\x07"), 4, RDI, 0, false},
        {CODE("mov %ss:(%rdi),%eax", "\x36\x8b\x07"), 4, RDI, 0, false},
        {CODE("mov %ds:(%rdi),%eax", "\x3e\x8b\x07"), 4, RDI, 0, false},
        {CODE("lock add %eax,(%rdi)", "\xf0\x01\x07"), 4, RDI, 0, false},
        {CODE("cs nopw (%rax,%rax,1)", "\x2e\x66\x0f\x1f\x04\0"), 0, NONE, 0, true},
        {CODE("prefetcht0 (%rdi)", "\x0f\x18\x0f"), 0, NONE, 0, false},
        {CODE("prefetchw (%rdi)", "\x0f\x0d\x0f"), 0, NONE, 0, false},
        {CODE("incb (%rdi)", "\xfe\x07"), 1, RDI, 0, false},
        {CODE("xchg %al,(%rdi)", "\x86\x07"), 1, RDI, 0, false},
        {CODE("xchg %eax,(%rdi)", "\x87\x07"), 4, RDI, 0, false},
        {CODE("push (%rdi)", "\xff\x37"), 8, RDI, 0, false},
        {CODE("movnti %eax,(%rdi)", "\x0f\xc3\x07"), 4, RDI, 0, false},
        {CODE("movnti %rax,8(%rdi)", "\x48\x0f\xc3\x47\x08"), 8, RDI, 8, false},
        {CODE("cmpxchg %rsi,(%rdi)", "\x48\x0f\xb1\x37"), 8, RDI, 0, false},
        {CODE("cmpxchg %sil,(%rdi)", "\x40\x0f\xb0\x37"), 1, RDI, 0, false},
        {CODE("xadd %al,(%rdi)", "\x0f\xc0\x07"), 1, RDI, 0, false},
        {CODE("cmpxchg8b (%rdi)", "\x0f\xc7\x0f"), 8, RDI, 0, false},
        {CODE("cmpxchg16b (%rdi)", "\x48\x0f\xc7\x0f"), 16, RDI, 0, false},
        {CODE("btcl $3,(%rdi)", "\x0f\xba\x3f\x03"), 4, RDI, 0, false},
        {CODE("stmxcsr (%rdi)", "\x0f\xae\x1f"), 4, RDI, 0, false},
        {CODE("vldmxcsr (%rdi)", "\xc5\xf8\xae\x17"), 4, RDI, 0, false},
        {CODE("crc32l (%rdi),%eax", "\xf2\x0f\x38\xf1\x07"), 4, RDI, 0, false},
        {CODE("movbe (%rdi),%eax", "\x0f\x38\xf0\x07"), 4, RDI, 0, false},
        {CODE("movbe %rax,(%rdi)", "\x48\x0f\x38\xf1\x07"), 8, RDI, 0, false},
        {CODE("mulx (%rdi),%eax,%ecx", "\xc4\xe2\x7b\xf6\x0f"), 4, RDI, 0, false},
        {CODE("mulx (%rdi),%rax,%rcx", "\xc4\xe2\xfb\xf6\x0f"), 8, RDI, 0, false},
        /* Vectors, and one element of them. */
        {CODE("pshufb (%rdi),%xmm0", "\x66\x0f\x38\0\x07"), 16, RDI, 0, false},
        {CODE("cvttss2si (%rdi),%eax", "\xf3\x0f\x2c\x07"), 4, RDI, 0, false},
        {CODE("cvttsd2si (%rdi),%rax", "\xf2\x48\x0f\x2c\x07"), 8, RDI, 0, false},
        {CODE("pinsrw $1,(%rdi),%xmm0", "\x66\x0f\xc4\x07\x01"), 2, RDI, 0, false},
        {CODE("movsldup (%rdi),%xmm0", "\xf3\x0f\x12\x07"), 16, RDI, 0, false},
        {CODE("movshdup (%rdi),%xmm0", "\xf3\x0f\x16\x07"), 16, RDI, 0, false},
        {CODE("movddup (%rdi),%xmm0", "\xf2\x0f\x12\x07"), 8, RDI, 0, false},
        {CODE("movlpd (%rdi),%xmm0", "\x66\x0f\x12\x07"), 8, RDI, 0, false},
        {CODE("movhpd (%rdi),%xmm0", "\x66\x0f\x16\x07"), 8, RDI, 0, false},
        {CODE("cvtpi2ps (%rdi),%xmm0", "\x0f\x2a\x07"), 8, RDI, 0, false},
        {CODE("cvtsi2ssl (%rdi),%xmm0", "\xf3\x0f\x2a\x07"), 4, RDI, 0, false},
        {CODE("cvtsi2sdq (%rdi),%xmm0", "\xf2\x48\x0f\x2a\x07"), 8, RDI, 0, false},
        {CODE("cvtps2pd (%rdi),%xmm0", "\x0f\x5a\x07"), 8, RDI, 0, false},
        {CODE("cvtpd2ps (%rdi),%xmm0", "\x66\x0f\x5a\x07"), 16, RDI, 0, false},
        {CODE("cvtss2sd (%rdi),%xmm0", "\xf3\x0f\x5a\x07"), 4, RDI, 0, false},
        {CODE("cvtsd2ss (%rdi),%xmm0", "\xf2\x0f\x5a\x07"), 8, RDI, 0, false},
        {CODE("movd (%rdi),%xmm0", "\x66\x0f\x6e\x07"), 4, RDI, 0, false},
        {CODE("movq (%rdi),%xmm0", "\xf3\x0f\x7e\x07"), 8, RDI, 0, false},
        {CODE("ucomiss (%rdi),%xmm0", "\x0f\x2e\x07"), 4, RDI, 0, false},
        {CODE("ucomisd (%rdi),%xmm0", "\x66\x0f\x2e\x07"), 8, RDI, 0, false},
        {CODE("cvtdq2pd (%rdi),%xmm0", "\xf3\x0f\xe6\x07"), 8, RDI, 0, false},
        {CODE("cvttpd2dq (%rdi),%xmm0", "\x66\x0f\xe6\x07"), 16, RDI, 0, false},
        {CODE("vfmadd213ss (%rdi),%xmm1,%xmm0", "\xc4\xe2\x71\xa9\x07"), 4, RDI, 0, false},
        {CODE("vfmadd213sd (%rdi),%xmm1,%xmm0", "\xc4\xe2\xf1\xa9\x07"), 8, RDI, 0, false},
        {CODE("vfmadd213pd (%rdi),%ymm1,%ymm0", "\xc4\xe2\xf5\xa8\x07"), 32, RDI, 0, false},
        {CODE("vfmsubadd213pd (%rdi),%ymm1,%ymm0", "\xc4\xe2\xf5\xa7\x07"), 32, RDI, 0, false},
        {CODE("sha256msg2 (%rdi),%xmm0", "\x0f\x38\xcd\x07"), 16, RDI, 0, false},
        {CODE("vpbroadcastd (%rdi),%ymm0", "\xc4\xe2\x7d\x58\x07"), 4, RDI, 0, false},
        {CODE("vbroadcastsd (%rdi),%ymm0", "\xc4\xe2\x7d\x19\x07"), 8, RDI, 0, false},
        {CODE("vbroadcastf128 (%rdi),%ymm0", "\xc4\xe2\x7d\x1a\x07"), 16, RDI, 0, false},
        {CODE("roundss $1,(%rdi),%xmm0", "\x66\x0f\x3a\x0a\x07\x01"), 4, RDI, 0, false},
        {CODE("roundsd $1,(%rdi),%xmm0", "\x66\x0f\x3a\x0b\x07\x01"), 8, RDI, 0, false},
        {CODE("pextrb $1,%xmm0,(%rdi)", "\x66\x0f\x3a\x14\x07\x01"), 1, RDI, 0, false},
        {CODE("pextrw $1,%xmm0,(%rdi)", "\x66\x0f\x3a\x15\x07\x01"), 2, RDI, 0, false},
        {CODE("pextrd $1,%xmm0,(%rdi)", "\x66\x0f\x3a\x16\x07\x01"), 4, RDI, 0, false},
        {CODE("pextrq $1,%xmm0,(%rdi)", "\x66\x48\x0f\x3a\x16\x07\x01"), 8, RDI, 0, false},
        {CODE("pinsrb $1,(%rdi),%xmm0", "\x66\x0f\x3a\x20\x07\x01"), 1, RDI, 0, false},
        {CODE("insertps $1,(%rdi),%xmm0", "\x66\x0f\x3a\x21\x07\x01"), 4, RDI, 0, false},
        {CODE("pblendw $1,(%rdi),%xmm0", "\x66\x0f\x3a\x0e\x07\x01"), 16, RDI, 0, false},
        {CODE("vmovupd (%r9,%r10,8),%ymm1", "\xc4\x81\x7d\x10\x0c\xd1"), 32, R9, 0, true},
        /* EVEX: an offset of one byte counts operands; one element may stand for all of them. */
        {CODE("vmovupd (%rdi),%zmm0", "\x62\xf1\xfd\x48\x10\x07"), 64, RDI, 0, false},
        {CODE("vmovupd (%rdi),%ymm17", "\x62\xe1\xfd\x28\x10\x0f"), 32, RDI, 0, false},
        {CODE("vmovupd (%rdi),%xmm17", "\x62\xe1\xfd\x08\x10\x0f"), 16, RDI, 0, false},
        {CODE("vmovupd (%r9,%r10,8),%zmm0", "\x62\x91\xfd\x48\x10\x04\xd1"), 64, R9, 0, true},
        {CODE("vmovupd 0x40(%rdi),%zmm0", "\x62\xf1\xfd\x48\x10\x47\x01"), 64, RDI, 64, false},
        {CODE("vmovupd %zmm30,-0x40(%rsp)", "\x62\x61\xfd\x48\x11\x74\x24\xff"), 64, RSP, -64,
         false},
        {CODE("vmovsd 8(%rdi),%xmm17", "\x62\xe1\xff\x08\x10\x4f\x01"), 8, RDI, 8, false},
        {CODE("vcvtps2pd 0x20(%rdi),%zmm0", "\x62\xf1\x7c\x48\x5a\x47\x01"), 32, RDI, 32, false},
        {CODE("vcvtdq2pd 0x20(%rdi),%zmm0", "\x62\xf1\x7e\x48\xe6\x47\x01"), 32, RDI, 32, false},
        {CODE("vmovddup (%rdi),%ymm0", "\xc5\xff\x12\x07"), 32, RDI, 0, false},
        {CODE("vmovsldup (%rdi),%ymm0", "\xc5\xfe\x12\x07"), 32, RDI, 0, false},
        {CODE("vpmovzxbd (%rdi),%ymm0", "\xc4\xe2\x7d\x31\x07"), 8, RDI, 0, false},
        {CODE("vpmovsxdq 0x10(%rdi),%ymm17", "\x62\xe2\x7d\x28\x25\x4f\x01"), 16, RDI, 16, false},
        {CODE("pmovzxbq (%rdi),%xmm0", "\x66\x0f\x38\x32\x07"), 2, RDI, 0, false},
        {CODE("vbroadcastf64x4 0x20(%rdi),%zmm0", "\x62\xf2\xfd\x48\x1b\x47\x01"), 32, RDI, 32,
         false},
        {CODE("vpbroadcastb (%rdi),%ymm0", "\xc4\xe2\x7d\x78\x07"), 1, RDI, 0, false},
        {CODE("vpbroadcastw (%rdi),%ymm0", "\xc4\xe2\x7d\x79\x07"), 2, RDI, 0, false},
        {CODE("vinsertf128 $1,(%rdi),%ymm1,%ymm0", "\xc4\xe3\x75\x18\x07\x01"), 16, RDI, 0, false},
        {CODE("vextracti128 $1,%ymm0,(%rdi)", "\xc4\xe3\x7d\x39\x07\x01"), 16, RDI, 0, false},
        {CODE("vextractf64x4 $1,%zmm0,0x20(%rdi)", "\x62\xf3\xfd\x48\x1b\x47\x01\x01"), 32, RDI, 32,
         false},
        {CODE("vpmaxsd (%rdi),%ymm1,%ymm0", "\xc4\xe2\x75\x3d\x07"), 32, RDI, 0, false},
        {CODE("vpminsb (%rdi),%ymm1,%ymm0", "\xc4\xe2\x75\x38\x07"), 32, RDI, 0, false},
        {CODE("vptestmb (%rdi),%zmm1,%k1", "\x62\xf2\x75\x48\x26\x0f"), 64, RDI, 0, false},
        {CODE("vmovupd 0x12345678(%rdi),%zmm0", "\x62\xf1\xfd\x48\x10\x87\x78\x56\x34\x12"), 64,
         RDI, 0x12345678, false},
        {CODE("vmulpd (%rdi){1to8},%zmm1,%zmm0", "\x62\xf1\xf5\x58\x59\x07"), 8, RDI, 0, false},
        {CODE("vmulps 4(%rdi){1to16},%zmm1,%zmm0", "\x62\xf1\x74\x58\x59\x47\x01"), 4, RDI, 4,
         false},
    };
    uint8_t code[32];
    (void)state;
    for (size_t row = 0; row < LENGTH(rows); row++) {
        const struct accel_instruction i = read_at(rows[row].bytes, rows[row].length, code);
        check_length(rows[row].name, rows[row].bytes, rows[row].length);
        if (i.size != rows[row].size || i.base != rows[row].base || i.offset != rows[row].offset ||
            i.indexed != rows[row].indexed)
            fail_msg("%s: %d bytes at %lld(%d%s)", rows[row].name, i.size, (long long)i.offset,
                     i.base, i.indexed ? ", indexed" : "");
    }
}

/* ---- Registers ---- */

static void test_registers(void **state)
{
    enum { ALL = 0xffff };
    /* Those that have other values behind it at least, those that keep theirs, and those that it
     * computes with. */
    static const struct {
        const char *name, *bytes;
        size_t length;
        uint32_t kills, keeps, halves, whole;
    } rows[] = {
        {CODE("cmp %rdi,%rdi", "\x48\x39\xff"), 0, ALL, 0, BIT(RDI)},
        {CODE("cmp %edi,%esi", "\x39\xfe"), 0, ALL, BIT(RDI) | BIT(RSI), 0},
        {CODE("and $7,%al", "\x24\x07"), BIT(RAX), ALL ^ BIT(RAX), 0, 0},
        {CODE("add $5,%eax", "\x05\x05\0\0\0"), BIT(RAX), ALL ^ BIT(RAX), BIT(RAX), 0},
        {CODE("cmp $5,%rax", "\x48\x3d\x05\0\0\0"), 0, ALL, 0, BIT(RAX)},
        {CODE("xor %rdi,%rdi", "\x48\x31\xff"), BIT(RDI), ALL ^ BIT(RDI), 0, 0},
        {CODE("and $16,%rsp", "\x48\x83\xe4\x10"), BIT(RSP), ALL ^ BIT(RSP), 0, BIT(RSP)},
        {CODE("and $-32,%rdi", "\x48\x83\xe7\xe0"), BIT(RDI), ALL ^ BIT(RDI), 0, BIT(RDI)},
        {CODE("mov %ds,%esi", "\x8c\xde"), BIT(RSI), ALL ^ BIT(RSI), 0, 0},
        {CODE("mov %eax,%es", "\x8e\xc0"), 0, ALL ^ BIT(RAX), 0, 0},
        {CODE("inc %sil", "\x40\xfe\xc6"), BIT(RSI), ALL ^ BIT(RSI), 0, 0},
        {CODE("xchg %dil,%sil", "\x40\x86\xfe"), BIT(RSI) | BIT(RDI), BIT(RAX), 0, 0},
        {CODE("xchg %rdi,%rsi", "\x48\x87\xfe"), BIT(RSI) | BIT(RDI), BIT(RAX), 0, 0},
        {CODE("xchg %al,(%rdi)", "\x86\x07"), BIT(RAX), ALL ^ BIT(RAX), 0, 0},
        {CODE("xchg %rax,%rdi", "\x48\x97"), BIT(RAX) | BIT(RDI), BIT(RSI), 0, 0},
        {CODE("xchg %rax,%r8", "\x49\x90"), BIT(RAX) | BIT(R8), BIT(RSI), 0, 0},
        {CODE("nop", "\x90"), 0, ALL, 0, 0},
        {CODE("pause", "\xf3\x90"), 0, ALL, 0, 0},
        {CODE("fwait", "\x9b"), 0, ALL, 0, 0},
        {CODE("sahf", "\x9e"), 0, ALL, 0, 0},
        {CODE("lahf", "\x9f"), 0, ALL ^ BIT(RAX), 0, 0},
        {CODE("cmc", "\xf5"), 0, ALL, 0, 0},
        {CODE("clc", "\xf8"), 0, ALL, 0, 0},
        {CODE("std", "\xfd"), 0, ALL, 0, 0},
        {CODE("cltq", "\x48\x98"), BIT(RAX), ALL ^ BIT(RAX), BIT(RAX), 0},
        {CODE("cqo", "\x48\x99"), BIT(RDX), ALL ^ BIT(RDX), 0, BIT(RAX)},
        {CODE("lods (%rsi),%al", "\xac"), BIT(RAX) | BIT(RSI), BIT(R8), 0, 0},
        {CODE("crc32 %rdi,%rax", "\xf2\x48\x0f\x38\xf1\xc7"), BIT(RAX), BIT(RDI), 0, 0},
        {CODE("syscall", "\x0f\x05"), BIT(RAX) | BIT(RCX) | BIT(R11), BIT(RDI), 0, 0},
        {CODE("rdtsc", "\x0f\x31"), BIT(RAX) | BIT(RDX), BIT(RDI), 0, 0},
        {CODE("rdtscp", "\x0f\x01\xf9"), BIT(RAX) | BIT(RCX) | BIT(RDX), BIT(RDI), 0, 0},
        {CODE("xgetbv", "\x0f\x01\xd0"), BIT(RAX) | BIT(RDX), BIT(RDI), 0, 0},
        {CODE("sgdt (%rdi)", "\x0f\x01\x07"), 0, ALL, 0, 0},
        {CODE("cpuid", "\x0f\xa2"), BIT(RAX) | BIT(RBX) | BIT(RCX) | BIT(RDX), BIT(RDI), 0, 0},
        {CODE("popcnt %rdi,%rax", "\xf3\x48\x0f\xb8\xc7"), BIT(RAX), ALL ^ BIT(RAX), 0, BIT(RDI)},
        {CODE("bswap %rdi", "\x48\x0f\xcf"), BIT(RDI), ALL ^ BIT(RDI), 0, 0},
        {CODE("bswap %r9d", "\x41\x0f\xc9"), BIT(R9), ALL ^ BIT(R9), 0, 0},
        {CODE("cmpxchg %rsi,(%rdi)", "\x48\x0f\xb1\x37"), BIT(RAX), BIT(RDI), 0, 0},
        {CODE("xadd %esi,%edi", "\x0f\xc1\xf7"), BIT(RSI) | BIT(RDI), BIT(RCX), 0, 0},
        {CODE("bt %rsi,%rdi", "\x48\x0f\xa3\xf7"), 0, BIT(RCX), 0, 0},
        {CODE("shld $3,%rsi,%rdi", "\x48\x0f\xa4\xf7\x03"), BIT(RDI), BIT(RCX), 0, 0},
        {CODE("shld %cl,%esi,%edi", "\x0f\xa5\xf7"), BIT(RDI), BIT(RCX), 0, 0},
        {CODE("bts %rsi,%rdi", "\x48\x0f\xab\xf7"), BIT(RDI), BIT(RCX), 0, 0},
        {CODE("shrd $3,%rsi,%rdi", "\x48\x0f\xac\xf7\x03"), BIT(RDI), BIT(RCX), 0, 0},
        {CODE("shrd %cl,%rsi,%rdi", "\x48\x0f\xad\xf7"), BIT(RDI), BIT(RCX), 0, 0},
        {CODE("btr %rsi,%rdi", "\x48\x0f\xb3\xf7"), BIT(RDI), BIT(RCX), 0, 0},
        {CODE("btc %rsi,%rdi", "\x48\x0f\xbb\xf7"), BIT(RDI), BIT(RCX), 0, 0},
        {CODE("rsm", "\x0f\xaa"), 0, 0, 0, 0},
        {CODE("clts", "\x0f\x06"), 0, ALL, 0, 0},
        {CODE("invd", "\x0f\x08"), 0, ALL, 0, 0},
        {CODE("wbinvd", "\x0f\x09"), 0, ALL, 0, 0},
        {CODE("femms", "\x0f\x0e"), 0, ALL, 0, 0},
        {CODE("wrmsr", "\x0f\x30"), 0, ALL, 0, 0},
        {CODE("emms", "\x0f\x77"), 0, ALL, 0, 0},
        {CODE("pshufd $1,%xmm0,%xmm7", "\x66\x0f\x70\xf8\x01"), 0, ALL, 0, 0},
        {CODE("psrlq $1,%xmm7", "\x66\x0f\x73\xd7\x01"), 0, ALL, 0, 0},
        {CODE("pcmpeqb %xmm0,%xmm7", "\x66\x0f\x74\xf8"), 0, ALL, 0, 0},
        {CODE("movmskpd %xmm0,%eax", "\x66\x0f\x50\xc0"), BIT(RAX), ALL ^ BIT(RAX), 0, 0},
        {CODE("cvtsd2si %xmm7,%rax", "\xf2\x48\x0f\x2d\xc7"), BIT(RAX), ALL ^ BIT(RAX), 0, 0},
        {CODE("pextrw $1,%xmm0,%edi", "\x66\x0f\xc5\xf8\x01"), BIT(RDI), ALL ^ BIT(RDI), 0, 0},
        {CODE("pmovmskb %xmm0,%edi", "\x66\x0f\xd7\xf8"), BIT(RDI), ALL ^ BIT(RDI), 0, 0},
        {CODE("kmovw %k1,%edi", "\xc5\xf8\x93\xf9"), BIT(RDI), ALL ^ BIT(RDI), 0, 0},
        {CODE("movd %xmm0,%edi", "\x66\x0f\x7e\xc7"), BIT(RDI), ALL ^ BIT(RDI), 0, 0},
        {CODE("pextrq $1,%xmm0,%rdi", "\x66\x48\x0f\x3a\x16\xc7\x01"), BIT(RDI), BIT(RAX), 0, 0},
        {CODE("movd %edi,%xmm0", "\x66\x0f\x6e\xc7"), 0, ALL, BIT(RDI), 0},
        {CODE("cvtsi2sd %rdi,%xmm0", "\xf2\x48\x0f\x2a\xc7"), 0, ALL, 0, BIT(RDI)},
        {CODE("andn %rsi,%rdi,%rax", "\xc4\xe2\xc0\xf2\xc6"), BIT(RAX), BIT(RSI), 0, 0},
        {CODE("mulx %rsi,%rax,%rcx", "\xc4\xe2\xfb\xf6\xce"), BIT(RAX) | BIT(RCX), BIT(RSI), 0, 0},
        {CODE("rorx $3,%rdi,%rax", "\xc4\xe3\xfb\xf0\xc7\x03"), BIT(RAX), ALL ^ BIT(RAX), 0, 0},
        {CODE("vcvttsd2si %xmm20,%rdi", "\x62\xb1\xff\x08\x2c\xfc"), BIT(RDI), BIT(RSP), 0, 0},
        {CODE("mfence", "\x0f\xae\xf0"), 0, BIT(RDI), 0, 0},
    };
    uint8_t code[32];
    (void)state;
    for (size_t row = 0; row < LENGTH(rows); row++) {
        const struct accel_instruction i = read_at(rows[row].bytes, rows[row].length, code);
        check_length(rows[row].name, rows[row].bytes, rows[row].length);
        if ((i.kills & rows[row].kills) != rows[row].kills || (i.kills & rows[row].keeps) ||
            i.halves != rows[row].halves || i.whole != rows[row].whole)
            fail_msg("%s: kills %x, computes with %x, halves %x", rows[row].name, i.kills, i.whole,
                     i.halves);
    }
}

/* ---- The stack, and where it goes on ---- */

static void test_stack(void **state)
{
    static const struct {
        const char *name, *bytes;
        size_t length;
        enum accel_action action;
        int to, from, base, before, after;
    } rows[] = {
        {CODE("push %rdi", "\x57"), ACCEL_STORE, NONE, RDI, RSP, -8, 0},
        {CODE("push %rdi, the long form", "\xff\xf7"), ACCEL_STORE, NONE, RDI, RSP, -8, 0},
        {CODE("push $5", "\x6a\x05"), ACCEL_STORE, NONE, NONE, RSP, -8, 0},
        {CODE("push %fs", "\x0f\xa0"), ACCEL_STORE, NONE, NONE, RSP, -8, 0},
        {CODE("push %gs", "\x0f\xa8"), ACCEL_STORE, NONE, NONE, RSP, -8, 0},
        {CODE("pop %fs", "\x0f\xa1"), ACCEL_LOAD, NONE, NONE, RSP, 0, 8},
        {CODE("pop %gs", "\x0f\xa9"), ACCEL_LOAD, NONE, NONE, RSP, 0, 8},
        {CODE("pop %r9", "\x41\x59"), ACCEL_LOAD, R9, NONE, RSP, 0, 8},
        {CODE("push (%rdi)", "\xff\x37"), ACCEL_PUSH, NONE, NONE, RDI, 0, 0},
        {CODE("leave", "\xc9"), ACCEL_LEAVE, NONE, RBP, NONE, 0, 0},
        {CODE("and $-32,%rsp", "\x48\x83\xe4\xe0"), ACCEL_ALIGN, NONE, NONE, NONE, 0, 0},
        {CODE("and $32,%rsp", "\x48\x83\xe4\x20"), ACCEL_OTHER, NONE, NONE, NONE, 0, 0},
    };
    uint8_t code[32];
    (void)state;
    for (size_t row = 0; row < LENGTH(rows); row++) {
        const struct accel_instruction i = read_at(rows[row].bytes, rows[row].length, code);
        check_length(rows[row].name, rows[row].bytes, rows[row].length);
        if (i.action != rows[row].action || i.to != rows[row].to || i.from != rows[row].from ||
            i.base != rows[row].base || i.before != rows[row].before || i.after != rows[row].after)
            fail_msg("%s: action %d of %d and %d at %d", rows[row].name, (int)i.action, i.to,
                     i.from, i.base);
    }
}

static void test_flow(void **state)
{
    enum { UNKNOWN = 99 };
    /* The target, from the instruction's begin. */
    static const struct {
        const char *name, *bytes;
        size_t length;
        enum accel_flow flow;
        int target;
        bool by_slot;
    } rows[] = {
        {CODE("loop", "\xe2\x06"), ACCEL_BRANCH, 8, false},
        {CODE("loopne", "\xe0\xfe"), ACCEL_BRANCH, 0, false},
        {CODE("jrcxz", "\xe3\x02"), ACCEL_BRANCH, 4, false},
        {CODE("je, the short form", "\x74\x02"), ACCEL_BRANCH, 4, false},
        {CODE("je", "\x0f\x84\x02\0\0\0"), ACCEL_BRANCH, 8, false},
        {CODE("jmp, the short form", "\xeb\xfe"), ACCEL_JUMP, 0, false},
        {CODE("jmp", "\xe9\xfb\xff\xff\xff"), ACCEL_JUMP, 0, false},
        {CODE("jmp *%rax", "\x3e\xff\xe0"), ACCEL_JUMP, UNKNOWN, false},
        {CODE("jmp *8(%rip)", "\xff\x25\x08\0\0\0"), ACCEL_JUMP, 14, true},
        {CODE("jmp *8(%rdi)", "\xff\x67\x08"), ACCEL_JUMP, UNKNOWN, false},
        {CODE("call", "\xe8\x03\0\0\0"), ACCEL_CALL, 8, false},
        {CODE("call *%rax", "\xff\xd0"), ACCEL_CALL, UNKNOWN, false},
        {CODE("ret", "\xc3"), ACCEL_END, UNKNOWN, false},
        {CODE("ret $8", "\xc2\x08\0"), ACCEL_END, UNKNOWN, false},
        {CODE("hlt", "\xf4"), ACCEL_END, UNKNOWN, false},
        {CODE("int3", "\xcc"), ACCEL_END, UNKNOWN, false},
        {CODE("ud2", "\x0f\x0b"), ACCEL_END, UNKNOWN, false},
        {CODE("nop", "\x90"), ACCEL_NEXT, UNKNOWN, false},
    };
    uint8_t code[32];
    (void)state;
    for (size_t row = 0; row < LENGTH(rows); row++) {
        const struct accel_instruction i = read_at(rows[row].bytes, rows[row].length, code);
        const uintptr_t target =
            rows[row].target == UNKNOWN ? 0 : (uintptr_t)(code + rows[row].target);
        check_length(rows[row].name, rows[row].bytes, rows[row].length);
        if (i.flow != rows[row].flow || i.target != target || i.by_slot != rows[row].by_slot)
            fail_msg("%s: flow %d%s", rows[row].name, (int)i.flow, i.by_slot ? ", by a slot" : "");
    }
}

/* ---- What is not known ---- */

static void test_unknown(void **state)
{
    static const struct {
        const char *name, *bytes;
        size_t length;
    } rows[] = {
        {CODE("push %es, not in 64-bit mode", "\x06")},
        {CODE("pop into what ModRM says", "\x8f\xc0")},
        {CODE("one REX behind another", "\x40\x40\x90")},
        {CODE("call far", "\xff\x1f")},
        {CODE("jmp far", "\xff\x2f")},
        {CODE("FF /7", "\xff\xff")},
        {CODE("moves by an absolute address", "\xa0\0\0\0\0\0\0\0\0")},
        {CODE("pushf", "\x9c")},
        {CODE("enter", "\xc8\x08\0\0")},
        {CODE("VEX of map 0", "\xc4\xe0\x78\x10\x07")},
        {CODE("VEX of map 4", "\xc4\xe4\x78\x10\x07")},
        {CODE("EVEX of map 0", "\x62\xf0\x7c\x08\x10\x07")},
        {CODE("EVEX of map 5: vaddsh", "\x62\xf5\x76\x08\x58\x07")},
        {CODE("prefixes alone",
              "\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x90")},
    };
    uint8_t code[32];
    (void)state;
    for (size_t row = 0; row < LENGTH(rows); row++) {
        const int length = read_at(rows[row].bytes, rows[row].length, code).length;
        if (length)
            fail_msg("%s: %d bytes", rows[row].name, length);
    }
}

/* ---- Stubs ---- */

static void test_stubs(void **state)
{
    /* The slot, from the code's begin; 0: it is no stub. */
    static const struct {
        const char *name, *bytes;
        size_t length;
        int slot;
    } rows[] = {
        {CODE("jmp *8(%rip)", "\xff\x25\x08\0\0\0"), 14},
        {CODE("bnd jmp *8(%rip)", "\xf2\xff\x25\x08\0\0\0"), 15},
        {CODE("endbr64; jmp *8(%rip)", "\xf3\x0f\x1e\xfa\xff\x25\x08\0\0\0"), 18},
        {CODE("endbr64", "\xf3\x0f\x1e\xfa"), 0},
        {CODE("endbr64; ret", "\xf3\x0f\x1e\xfa\xc3"), 0},
        {CODE("and $16,%rsp; jmp *8(%rip)", "\x48\x83\xe4\x10\xff\x25\x08\0\0\0"), 0},
        {CODE("call *8(%rip)", "\xff\x15\x08\0\0\0"), 0},
        {CODE("jmp *%rax", "\xff\xe0"), 0},
        {CODE("jmp", "\xe9\x08\0\0\0"), 0},
        {CODE("what is not known", "\x06"), 0},
    };
    (void)state;
    for (size_t row = 0; row < LENGTH(rows); row++) {
        const uint8_t *code = (const uint8_t *)rows[row].bytes;
        const uintptr_t slot = accel_instruction_stub(code, rows[row].length);
        if (slot != (rows[row].slot ? (uintptr_t)(code + rows[row].slot) : 0))
            fail_msg("%s: slot %zx", rows[row].name, (size_t)slot);
    }
}

#else

static void other_architecture(void **state)
{
    (void)state;
    skip();
}
#    define test_memory    other_architecture
#    define test_registers other_architecture
#    define test_stack     other_architecture
#    define test_flow      other_architecture
#    define test_unknown   other_architecture
#    define test_stubs     other_architecture

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory),  cmocka_unit_test(test_registers),
        cmocka_unit_test(test_stack),   cmocka_unit_test(test_flow),
        cmocka_unit_test(test_unknown), cmocka_unit_test(test_stubs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
