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

/* ---- All that one instruction tells ---- */

static void test_whole_instructions(void **state)
{
    static const struct {
        const char *name, *bytes;
        size_t length;
        enum accel_action action;
        int to, from, base;
        int64_t offset;
        int size;
        uint32_t kills, halves, whole;
    } rows[] = {
        {CODE("mov %rdi,%rsi", "\x48\x89\xfe"), ACCEL_MOVE, RSI, RDI, NONE, 0, 0, 0, 0, 0},
        {CODE("mov %r9,%r10", "\x4d\x89\xca"), ACCEL_MOVE, R10, R9, NONE, 0, 0, 0, 0, 0},
        {CODE("mov %edi,%esi", "\x89\xfe"), ACCEL_OTHER, NONE, NONE, NONE, 0, 0, BIT(RSI), BIT(RDI),
         0},
        {CODE("mov %di,%si", "\x66\x89\xfe"), ACCEL_OTHER, NONE, NONE, NONE, 0, 0, BIT(RSI), 0, 0},
        {CODE("mov %dil,%sil", "\x40\x88\xfe"), ACCEL_OTHER, NONE, NONE, NONE, 0, 0, BIT(RSI), 0,
         0},
        {CODE("mov (%rdi),%rsi", "\x48\x8b\x37"), ACCEL_LOAD, RSI, NONE, RDI, 0, 8, 0, 0, 0},
        {CODE("mov (%rdi),%esi", "\x8b\x37"), ACCEL_LOAD, RSI, NONE, RDI, 0, 4, 0, 0, 0},
        {CODE("mov (%rdi),%si", "\x66\x8b\x37"), ACCEL_LOAD, RSI, NONE, RDI, 0, 2, 0, 0, 0},
        {CODE("mov (%rdi),%sil", "\x40\x8a\x37"), ACCEL_LOAD, RSI, NONE, RDI, 0, 1, 0, 0, 0},
        {CODE("mov %rsi,8(%rdi)", "\x48\x89\x77\x08"), ACCEL_STORE, NONE, RSI, RDI, 8, 8, 0, 0,
         BIT(RSI)},
        {CODE("mov %esi,8(%rdi)", "\x89\x77\x08"), ACCEL_STORE, NONE, RSI, RDI, 8, 4, 0, BIT(RSI),
         0},
        {CODE("mov %si,(%rdi)", "\x66\x89\x37"), ACCEL_STORE, NONE, RSI, RDI, 0, 2, 0, 0, 0},
        {CODE("mov %sil,(%rdi)", "\x40\x88\x37"), ACCEL_STORE, NONE, RSI, RDI, 0, 1, 0, 0, 0},
        {CODE("mov (%r8),%r9", "\x4d\x8b\x08"), ACCEL_LOAD, R9, NONE, R8, 0, 8, 0, 0, 0},
        {CODE("mov $5,%esi", "\xbe\x05\x00\x00\x00"), ACCEL_OTHER, NONE, NONE, NONE, 0, 0, BIT(RSI),
         0, 0},
        {CODE("mov $5,%sil", "\x40\xb6\x05"), ACCEL_OTHER, NONE, NONE, NONE, 0, 0, BIT(RSI), 0, 0},
        {CODE("mov $5,%r9b", "\x41\xb1\x05"), ACCEL_OTHER, NONE, NONE, NONE, 0, 0, BIT(R9), 0, 0},
        {CODE("movabs $0x123456789abcdef0,%r9", "\x49\xb9\xf0\xde\xbc\x9a\x78\x56\x34\x12"),
         ACCEL_OTHER, NONE, NONE, NONE, 0, 0, BIT(R9), 0, 0},
        {CODE("mov $5,%rsi", "\x48\xc7\xc6\x05\x00\x00\x00"), ACCEL_OTHER, NONE, NONE, NONE, 0, 0,
         BIT(RSI), 0, 0},
        {CODE("mov $0x1234,%si", "\x66\xbe\x34\x12"), ACCEL_OTHER, NONE, NONE, NONE, 0, 0, BIT(RSI),
         0, 0},
        {CODE("movb $5,(%rdi)", "\xc6\x07\x05"), ACCEL_OTHER, NONE, NONE, RDI, 0, 1, 0, 0, 0},
        {CODE("movw $5,(%rdi)", "\x66\xc7\x07\x05\x00"), ACCEL_OTHER, NONE, NONE, RDI, 0, 2, 0, 0,
         0},
        {CODE("movl $5,(%rdi)", "\xc7\x07\x05\x00\x00\x00"), ACCEL_OTHER, NONE, NONE, RDI, 0, 4, 0,
         0, 0},
        {CODE("movq $5,(%rdi)", "\x48\xc7\x07\x05\x00\x00\x00"), ACCEL_OTHER, NONE, NONE, RDI, 0, 8,
         0, 0, 0},
        {CODE("movslq %edi,%rsi", "\x48\x63\xf7"), ACCEL_OTHER, NONE, NONE, NONE, 0, 0, BIT(RSI),
         BIT(RDI), 0},
        {CODE("movslq (%rdi),%rsi", "\x48\x63\x37"), ACCEL_OTHER, NONE, NONE, RDI, 0, 4, BIT(RSI),
         0, 0},
        {CODE("movzbl (%rdi),%esi", "\x0f\xb6\x37"), ACCEL_OTHER, NONE, NONE, RDI, 0, 1, BIT(RSI),
         0, 0},
        {CODE("movzwl (%rdi),%esi", "\x0f\xb7\x37"), ACCEL_OTHER, NONE, NONE, RDI, 0, 2, BIT(RSI),
         0, 0},
        {CODE("movsbq (%rdi),%rsi", "\x48\x0f\xbe\x37"), ACCEL_OTHER, NONE, NONE, RDI, 0, 1,
         BIT(RSI), 0, 0},
        {CODE("movswl (%rdi),%esi", "\x0f\xbf\x37"), ACCEL_OTHER, NONE, NONE, RDI, 0, 2, BIT(RSI),
         0, 0},
        {CODE("movzbl %dil,%esi", "\x40\x0f\xb6\xf7"), ACCEL_OTHER, NONE, NONE, NONE, 0, 0,
         BIT(RSI), 0, 0},
        {CODE("movnti %rsi,(%rdi)", "\x48\x0f\xc3\x37"), ACCEL_STORE, NONE, RSI, RDI, 0, 8, 0, 0,
         0},
        {CODE("cmove %rdi,%rsi", "\x48\x0f\x44\xf7"), ACCEL_OTHER, NONE, NONE, NONE, 0, 0, BIT(RSI),
         0, BIT(RDI)},
        {CODE("cmovg %edi,%esi", "\x0f\x4f\xf7"), ACCEL_OTHER, NONE, NONE, NONE, 0, 0, BIT(RSI),
         BIT(RDI), 0},
        {CODE("cmovne (%rdi),%esi", "\x0f\x45\x37"), ACCEL_OTHER, NONE, NONE, RDI, 0, 4, BIT(RSI),
         0, 0},
        {CODE("sete %sil", "\x40\x0f\x94\xc6"), ACCEL_OTHER, NONE, NONE, NONE, 0, 0, BIT(RSI), 0,
         0},
        {CODE("setg (%rdi)", "\x0f\x9f\x07"), ACCEL_OTHER, NONE, NONE, RDI, 0, 1, 0, 0, 0},
        {CODE("lea 8(%rdi),%rsi", "\x48\x8d\x77\x08"), ACCEL_ADDRESS, RSI, NONE, RDI, 8, 0, 0, 0,
         BIT(RDI)},
        {CODE("lea -8(%rsp),%r9", "\x4c\x8d\x4c\x24\xf8"), ACCEL_ADDRESS, R9, NONE, RSP, -8, 0, 0,
         0, BIT(RSP)},
        {CODE("lea 8(%rdi),%esi", "\x8d\x77\x08"), ACCEL_OTHER, NONE, NONE, RDI, 8, 0, BIT(RSI),
         BIT(RDI), 0},
        {CODE("lea (%rdi,%rcx,8),%rsi", "\x48\x8d\x34\xcf"), ACCEL_OTHER, NONE, NONE, RDI, 0, 0,
         BIT(RSI), 0, BIT(RDI)},
        {CODE("lea 8(%rip),%rsi", "\x48\x8d\x35\x08\x00\x00\x00"), ACCEL_OTHER, NONE, NONE, NONE, 8,
         0, BIT(RSI), 0, 0},
        {CODE("lea 8(,%rcx,8),%rsi", "\x48\x8d\x34\xcd\x08\x00\x00\x00"), ACCEL_OTHER, NONE, NONE,
         NONE, 8, 0, BIT(RSI), 0, 0},
        {CODE("add $8,%rsi", "\x48\x83\xc6\x08"), ACCEL_ADDRESS, RSI, NONE, RSI, 8, 0, BIT(RSI), 0,
         BIT(RSI)},
        {CODE("add $0x12345678,%rsi", "\x48\x81\xc6\x78\x56\x34\x12"), ACCEL_ADDRESS, RSI, NONE,
         RSI, 305419896, 0, BIT(RSI), 0, BIT(RSI)},
        {CODE("sub $8,%rsp", "\x48\x83\xec\x08"), ACCEL_ADDRESS, RSP, NONE, RSP, -8, 0, BIT(RSP), 0,
         BIT(RSP)},
        {CODE("sub $-128,%r9", "\x49\x83\xe9\x80"), ACCEL_ADDRESS, R9, NONE, R9, 128, 0, BIT(R9), 0,
         BIT(R9)},
        {CODE("add $8,%esi", "\x83\xc6\x08"), ACCEL_OTHER, NONE, NONE, NONE, 0, 0, BIT(RSI),
         BIT(RSI), 0},
        {CODE("add $8,%sil", "\x40\x80\xc6\x08"), ACCEL_OTHER, NONE, NONE, NONE, 0, 0, BIT(RSI), 0,
         0},
        {CODE("or $8,%rsi", "\x48\x83\xce\x08"), ACCEL_OTHER, NONE, NONE, NONE, 0, 0, BIT(RSI), 0,
         BIT(RSI)},
        {CODE("adc $8,%rsi", "\x48\x83\xd6\x08"), ACCEL_OTHER, NONE, NONE, NONE, 0, 0, BIT(RSI), 0,
         BIT(RSI)},
        {CODE("sbb $8,%rsi", "\x48\x83\xde\x08"), ACCEL_OTHER, NONE, NONE, NONE, 0, 0, BIT(RSI), 0,
         BIT(RSI)},
        {CODE("and $8,%rsi", "\x48\x83\xe6\x08"), ACCEL_OTHER, NONE, NONE, NONE, 0, 0, BIT(RSI), 0,
         BIT(RSI)},
        {CODE("xor $8,%rsi", "\x48\x83\xf6\x08"), ACCEL_OTHER, NONE, NONE, NONE, 0, 0, BIT(RSI), 0,
         BIT(RSI)},
        {CODE("cmp $8,%rsi", "\x48\x83\xfe\x08"), ACCEL_OTHER, NONE, NONE, NONE, 0, 0, 0, 0,
         BIT(RSI)},
        {CODE("cmp $8,%esi", "\x83\xfe\x08"), ACCEL_OTHER, NONE, NONE, NONE, 0, 0, 0, BIT(RSI), 0},
        {CODE("addq $8,(%rdi)", "\x48\x83\x07\x08"), ACCEL_OTHER, NONE, NONE, RDI, 0, 8, 0, 0, 0},
        {CODE("subl $0x1234,4(%rdi)", "\x81\x6f\x04\x34\x12\x00\x00"), ACCEL_OTHER, NONE, NONE, RDI,
         4, 4, 0, 0, 0},
        {CODE("subw $0x1234,(%rdi)", "\x66\x81\x2f\x34\x12"), ACCEL_OTHER, NONE, NONE, RDI, 0, 2, 0,
         0, 0},
        {CODE("cmpb $8,(%rdi)", "\x80\x3f\x08"), ACCEL_OTHER, NONE, NONE, RDI, 0, 1, 0, 0, 0},
        {CODE("andq $-16,(%rsp)", "\x48\x83\x24\x24\xf0"), ACCEL_OTHER, NONE, NONE, RSP, 0, 8, 0, 0,
         0},
        {CODE("and $-16,%esp", "\x83\xe4\xf0"), ACCEL_OTHER, NONE, NONE, NONE, 0, 0, BIT(RSP),
         BIT(RSP), 0},
        {CODE("add %rdi,%rsi", "\x48\x01\xfe"), ACCEL_OTHER, NONE, NONE, NONE, 0, 0, BIT(RSI), 0,
         BIT(RSI) | BIT(RDI)},
        {CODE("add %edi,%esi", "\x01\xfe"), ACCEL_OTHER, NONE, NONE, NONE, 0, 0, BIT(RSI),
         BIT(RSI) | BIT(RDI), 0},
        {CODE("add %di,%si", "\x66\x01\xfe"), ACCEL_OTHER, NONE, NONE, NONE, 0, 0, BIT(RSI), 0, 0},
        {CODE("add %dil,%sil", "\x40\x00\xfe"), ACCEL_OTHER, NONE, NONE, NONE, 0, 0, BIT(RSI), 0,
         0},
        {CODE("add %rsi,(%rdi)", "\x48\x01\x37"), ACCEL_OTHER, NONE, NONE, RDI, 0, 8, 0, 0,
         BIT(RSI)},
        {CODE("sub %sil,(%rdi)", "\x40\x28\x37"), ACCEL_OTHER, NONE, NONE, RDI, 0, 1, 0, 0, 0},
        {CODE("add (%rdi),%esi", "\x03\x37"), ACCEL_OTHER, NONE, NONE, RDI, 0, 4, BIT(RSI),
         BIT(RSI), 0},
        {CODE("sbb (%rdi),%sil", "\x40\x1a\x37"), ACCEL_OTHER, NONE, NONE, RDI, 0, 1, BIT(RSI), 0,
         0},
        {CODE("adc (%rdi),%si", "\x66\x13\x37"), ACCEL_OTHER, NONE, NONE, RDI, 0, 2, BIT(RSI), 0,
         0},
        {CODE("or (%rdi),%rsi", "\x48\x0b\x37"), ACCEL_OTHER, NONE, NONE, RDI, 0, 8, BIT(RSI), 0,
         BIT(RSI)},
        {CODE("sub %esi,%esi", "\x29\xf6"), ACCEL_OTHER, NONE, NONE, NONE, 0, 0, BIT(RSI), 0, 0},
        {CODE("cmp %esi,%esi", "\x39\xf6"), ACCEL_OTHER, NONE, NONE, NONE, 0, 0, 0, BIT(RSI), 0},
        {CODE("cmp (%rdi),%rsi", "\x48\x3b\x37"), ACCEL_OTHER, NONE, NONE, RDI, 0, 8, 0, 0,
         BIT(RSI)},
        {CODE("cmp %esi,(%rdi)", "\x39\x37"), ACCEL_OTHER, NONE, NONE, RDI, 0, 4, 0, BIT(RSI), 0},
        {CODE("cmp %sil,(%rdi)", "\x40\x38\x37"), ACCEL_OTHER, NONE, NONE, RDI, 0, 1, 0, 0, 0},
        {CODE("sub $0x1234,%ax", "\x66\x2d\x34\x12"), ACCEL_OTHER, NONE, NONE, NONE, 0, 0, BIT(RAX),
         0, 0},
        {CODE("sub $0x12345,%rax", "\x48\x2d\x45\x23\x01\x00"), ACCEL_OTHER, NONE, NONE, NONE, 0, 0,
         BIT(RAX), 0, BIT(RAX)},
        {CODE("cmp $5,%al", "\x3c\x05"), ACCEL_OTHER, NONE, NONE, NONE, 0, 0, 0, 0, 0},
        {CODE("cmp $0x12345,%eax", "\x3d\x45\x23\x01\x00"), ACCEL_OTHER, NONE, NONE, NONE, 0, 0, 0,
         BIT(RAX), 0},
        {CODE("test %edi,%esi", "\x85\xfe"), ACCEL_OTHER, NONE, NONE, NONE, 0, 0, 0,
         BIT(RSI) | BIT(RDI), 0},
        {CODE("test %rdi,%rdi", "\x48\x85\xff"), ACCEL_OTHER, NONE, NONE, NONE, 0, 0, 0, 0,
         BIT(RDI)},
        {CODE("test %sil,%sil", "\x40\x84\xf6"), ACCEL_OTHER, NONE, NONE, NONE, 0, 0, 0, 0, 0},
        {CODE("test %esi,(%rdi)", "\x85\x37"), ACCEL_OTHER, NONE, NONE, RDI, 0, 4, 0, BIT(RSI), 0},
        {CODE("test %sil,(%rdi)", "\x40\x84\x37"), ACCEL_OTHER, NONE, NONE, RDI, 0, 1, 0, 0, 0},
        {CODE("test $5,%al", "\xa8\x05"), ACCEL_OTHER, NONE, NONE, NONE, 0, 0, 0, 0, 0},
        {CODE("test $5,%eax", "\xa9\x05\x00\x00\x00"), ACCEL_OTHER, NONE, NONE, NONE, 0, 0, 0,
         BIT(RAX), 0},
        {CODE("test $5,%rax", "\x48\xa9\x05\x00\x00\x00"), ACCEL_OTHER, NONE, NONE, NONE, 0, 0, 0,
         0, BIT(RAX)},
        {CODE("test $5,%esi", "\xf7\xc6\x05\x00\x00\x00"), ACCEL_OTHER, NONE, NONE, NONE, 0, 0, 0,
         BIT(RSI), 0},
        {CODE("test $5,%rsi", "\x48\xf7\xc6\x05\x00\x00\x00"), ACCEL_OTHER, NONE, NONE, NONE, 0, 0,
         0, 0, BIT(RSI)},
        {CODE("test $5,%sil", "\x40\xf6\xc6\x05"), ACCEL_OTHER, NONE, NONE, NONE, 0, 0, 0, 0, 0},
        {CODE("testb $5,(%rdi)", "\xf6\x07\x05"), ACCEL_OTHER, NONE, NONE, RDI, 0, 1, 0, 0, 0},
        {CODE("testw $5,(%rdi)", "\x66\xf7\x07\x05\x00"), ACCEL_OTHER, NONE, NONE, RDI, 0, 2, 0, 0,
         0},
        {CODE("testl $5,(%rdi)", "\xf7\x07\x05\x00\x00\x00"), ACCEL_OTHER, NONE, NONE, RDI, 0, 4, 0,
         0, 0},
        {CODE("not %rsi", "\x48\xf7\xd6"), ACCEL_OTHER, NONE, NONE, NONE, 0, 0, BIT(RSI), 0,
         BIT(RSI)},
        {CODE("neg %esi", "\xf7\xde"), ACCEL_OTHER, NONE, NONE, NONE, 0, 0, BIT(RSI), BIT(RSI), 0},
        {CODE("notb (%rdi)", "\xf6\x17"), ACCEL_OTHER, NONE, NONE, RDI, 0, 1, 0, 0, 0},
        {CODE("negl (%rdi)", "\xf7\x1f"), ACCEL_OTHER, NONE, NONE, RDI, 0, 4, 0, 0, 0},
        {CODE("mul %rsi", "\x48\xf7\xe6"), ACCEL_OTHER, NONE, NONE, NONE, 0, 0, BIT(RAX) | BIT(RDX),
         0, BIT(RSI)},
        {CODE("imul %esi", "\xf7\xee"), ACCEL_OTHER, NONE, NONE, NONE, 0, 0, BIT(RAX) | BIT(RDX),
         BIT(RSI), 0},
        {CODE("div %rsi", "\x48\xf7\xf6"), ACCEL_OTHER, NONE, NONE, NONE, 0, 0, BIT(RAX) | BIT(RDX),
         0, BIT(RSI)},
        {CODE("idivl (%rdi)", "\xf7\x3f"), ACCEL_OTHER, NONE, NONE, RDI, 0, 4, BIT(RAX) | BIT(RDX),
         0, 0},
        {CODE("mulb (%rdi)", "\xf6\x27"), ACCEL_OTHER, NONE, NONE, RDI, 0, 1, BIT(RAX) | BIT(RDX),
         0, 0},
        {CODE("imul %rdi,%rsi", "\x48\x0f\xaf\xf7"), ACCEL_OTHER, NONE, NONE, NONE, 0, 0, BIT(RSI),
         0, BIT(RDI)},
        {CODE("imul (%rdi),%esi", "\x0f\xaf\x37"), ACCEL_OTHER, NONE, NONE, RDI, 0, 4, BIT(RSI), 0,
         0},
        {CODE("imul $5,%rdi,%rsi", "\x48\x6b\xf7\x05"), ACCEL_OTHER, NONE, NONE, NONE, 0, 0,
         BIT(RSI), 0, BIT(RDI)},
        {CODE("imul $1000,(%rdi),%esi", "\x69\x37\xe8\x03\x00\x00"), ACCEL_OTHER, NONE, NONE, RDI,
         0, 4, BIT(RSI), 0, 0},
        {CODE("imul $1000,%di,%si", "\x66\x69\xf7\xe8\x03"), ACCEL_OTHER, NONE, NONE, NONE, 0, 0,
         BIT(RSI), 0, 0},
        {CODE("inc %rsi", "\x48\xff\xc6"), ACCEL_OTHER, NONE, NONE, NONE, 0, 0, BIT(RSI), 0,
         BIT(RSI)},
        {CODE("dec %esi", "\xff\xce"), ACCEL_OTHER, NONE, NONE, NONE, 0, 0, BIT(RSI), BIT(RSI), 0},
        {CODE("decl (%rdi)", "\xff\x0f"), ACCEL_OTHER, NONE, NONE, RDI, 0, 4, 0, 0, 0},
        {CODE("incw (%rdi)", "\x66\xff\x07"), ACCEL_OTHER, NONE, NONE, RDI, 0, 2, 0, 0, 0},
        {CODE("dec %sil", "\x40\xfe\xce"), ACCEL_OTHER, NONE, NONE, NONE, 0, 0, BIT(RSI), 0, 0},
        {CODE("shl $3,%rsi", "\x48\xc1\xe6\x03"), ACCEL_OTHER, NONE, NONE, NONE, 0, 0, BIT(RSI), 0,
         BIT(RSI)},
        {CODE("shl $1,%esi", "\xd1\xe6"), ACCEL_OTHER, NONE, NONE, NONE, 0, 0, BIT(RSI), BIT(RSI),
         0},
        {CODE("shr %cl,%rsi", "\x48\xd3\xee"), ACCEL_OTHER, NONE, NONE, NONE, 0, 0, BIT(RSI), 0,
         BIT(RSI)},
        {CODE("rol $3,%sil", "\x40\xc0\xc6\x03"), ACCEL_OTHER, NONE, NONE, NONE, 0, 0, BIT(RSI), 0,
         0},
        {CODE("shl %cl,%sil", "\x40\xd2\xe6"), ACCEL_OTHER, NONE, NONE, NONE, 0, 0, BIT(RSI), 0, 0},
        {CODE("sarl $3,(%rdi)", "\xc1\x3f\x03"), ACCEL_OTHER, NONE, NONE, RDI, 0, 4, 0, 0, 0},
        {CODE("shrb $1,(%rdi)", "\xd0\x2f"), ACCEL_OTHER, NONE, NONE, RDI, 0, 1, 0, 0, 0},
        {CODE("shlb %cl,(%rdi)", "\xd2\x27"), ACCEL_OTHER, NONE, NONE, RDI, 0, 1, 0, 0, 0},
        {CODE("rorw $3,(%rdi)", "\x66\xc1\x0f\x03"), ACCEL_OTHER, NONE, NONE, RDI, 0, 2, 0, 0, 0},
        {CODE("bsf %rdi,%rsi", "\x48\x0f\xbc\xf7"), ACCEL_OTHER, NONE, NONE, NONE, 0, 0, BIT(RSI),
         0, BIT(RDI)},
        {CODE("bsr %edi,%esi", "\x0f\xbd\xf7"), ACCEL_OTHER, NONE, NONE, NONE, 0, 0, BIT(RSI),
         BIT(RDI), 0},
        {CODE("tzcnt (%rdi),%rsi", "\xf3\x48\x0f\xbc\x37"), ACCEL_OTHER, NONE, NONE, RDI, 0, 8,
         BIT(RSI), 0, 0},
        {CODE("cwtl", "\x98"), ACCEL_OTHER, NONE, NONE, NONE, 0, 0, BIT(RAX), 0, 0},
        {CODE("cltd", "\x99"), ACCEL_OTHER, NONE, NONE, NONE, 0, 0, BIT(RDX), BIT(RAX), 0},
        {CODE("cqto", "\x48\x99"), ACCEL_OTHER, NONE, NONE, NONE, 0, 0, BIT(RDX), 0, BIT(RAX)},
        {CODE("flds 8(%rdi)", "\xd9\x47\x08"), ACCEL_OTHER, NONE, NONE, RDI, 8, 4, 0, 0, 0},
        {CODE("fldl 8(%rdi)", "\xdd\x47\x08"), ACCEL_OTHER, NONE, NONE, RDI, 8, 8, 0, 0, 0},
        {CODE("fldt 8(%rdi)", "\xdb\x6f\x08"), ACCEL_OTHER, NONE, NONE, RDI, 8, 10, 0, 0, 0},
        {CODE("fstps 8(%rdi)", "\xd9\x5f\x08"), ACCEL_OTHER, NONE, NONE, RDI, 8, 4, 0, 0, 0},
        {CODE("fstpl 8(%rdi)", "\xdd\x5f\x08"), ACCEL_OTHER, NONE, NONE, RDI, 8, 8, 0, 0, 0},
        {CODE("fstpt 8(%rdi)", "\xdb\x7f\x08"), ACCEL_OTHER, NONE, NONE, RDI, 8, 10, 0, 0, 0},
        {CODE("filds 8(%rdi)", "\xdf\x47\x08"), ACCEL_OTHER, NONE, NONE, RDI, 8, 2, 0, 0, 0},
        {CODE("fildl 8(%rdi)", "\xdb\x47\x08"), ACCEL_OTHER, NONE, NONE, RDI, 8, 4, 0, 0, 0},
        {CODE("fildll 8(%rdi)", "\xdf\x6f\x08"), ACCEL_OTHER, NONE, NONE, RDI, 8, 8, 0, 0, 0},
        {CODE("fistps 8(%rdi)", "\xdf\x5f\x08"), ACCEL_OTHER, NONE, NONE, RDI, 8, 2, 0, 0, 0},
        {CODE("fistpl 8(%rdi)", "\xdb\x5f\x08"), ACCEL_OTHER, NONE, NONE, RDI, 8, 4, 0, 0, 0},
        {CODE("fistpll 8(%rdi)", "\xdf\x7f\x08"), ACCEL_OTHER, NONE, NONE, RDI, 8, 8, 0, 0, 0},
        {CODE("fbld 8(%rdi)", "\xdf\x67\x08"), ACCEL_OTHER, NONE, NONE, RDI, 8, 10, 0, 0, 0},
        {CODE("fbstp 8(%rdi)", "\xdf\x77\x08"), ACCEL_OTHER, NONE, NONE, RDI, 8, 10, 0, 0, 0},
        {CODE("fadds 8(%rdi)", "\xd8\x47\x08"), ACCEL_OTHER, NONE, NONE, RDI, 8, 4, 0, 0, 0},
        {CODE("faddl 8(%rdi)", "\xdc\x47\x08"), ACCEL_OTHER, NONE, NONE, RDI, 8, 8, 0, 0, 0},
        {CODE("fmull 8(%rdi)", "\xdc\x4f\x08"), ACCEL_OTHER, NONE, NONE, RDI, 8, 8, 0, 0, 0},
        {CODE("fiaddl 8(%rdi)", "\xda\x47\x08"), ACCEL_OTHER, NONE, NONE, RDI, 8, 4, 0, 0, 0},
        {CODE("fiadds 8(%rdi)", "\xde\x47\x08"), ACCEL_OTHER, NONE, NONE, RDI, 8, 2, 0, 0, 0},
        {CODE("fisubs 8(%rdi)", "\xde\x67\x08"), ACCEL_OTHER, NONE, NONE, RDI, 8, 2, 0, 0, 0},
        {CODE("fldcw 8(%rdi)", "\xd9\x6f\x08"), ACCEL_OTHER, NONE, NONE, RDI, 8, 2, 0, 0, 0},
        {CODE("fnstcw 8(%rdi)", "\xd9\x7f\x08"), ACCEL_OTHER, NONE, NONE, RDI, 8, 2, 0, 0, 0},
        {CODE("fnstsw 8(%rdi)", "\xdd\x7f\x08"), ACCEL_OTHER, NONE, NONE, RDI, 8, 2, 0, 0, 0},
        {CODE("fnstsw %ax", "\xdf\xe0"), ACCEL_OTHER, NONE, NONE, NONE, 0, 0, BIT(RAX), 0, 0},
        {CODE("faddp", "\xde\xc1"), ACCEL_OTHER, NONE, NONE, NONE, 0, 0, 0, 0, 0},
        {CODE("fxch %st(1)", "\xd9\xc9"), ACCEL_OTHER, NONE, NONE, NONE, 0, 0, 0, 0, 0},
        {CODE("fucomi %st(1)", "\xdb\xe9"), ACCEL_OTHER, NONE, NONE, NONE, 0, 0, 0, 0, 0},
        {CODE("mulx %rsi,%rbx,%rcx", "\xc4\xe2\xe3\xf6\xce"), ACCEL_OTHER, NONE, NONE, NONE, 0, 0,
         BIT(RBX) | BIT(RCX), 0, 0},
        {CODE("mulx %rsi,%r10,%rcx", "\xc4\xe2\xab\xf6\xce"), ACCEL_OTHER, NONE, NONE, NONE, 0, 0,
         BIT(R10) | BIT(RCX), 0, 0},
        {CODE("pdep %rsi,%rbx,%rcx", "\xc4\xe2\xe3\xf5\xce"), ACCEL_OTHER, NONE, NONE, NONE, 0, 0,
         BIT(RBX) | BIT(RCX), 0, 0},
        {CODE("movmskps %xmm1,%esi", "\x0f\x50\xf1"), ACCEL_OTHER, NONE, NONE, NONE, 0, 0, BIT(RSI),
         0, 0},
        {CODE("vmovd %xmm1,%esi", "\xc5\xf9\x7e\xce"), ACCEL_OTHER, NONE, NONE, NONE, 0, 0,
         BIT(RSI), 0, 0},
        {CODE("vmovq %xmm1,%rsi", "\xc4\xe1\xf9\x7e\xce"), ACCEL_OTHER, NONE, NONE, NONE, 0, 0,
         BIT(RSI), 0, 0},
        {CODE("vmovd %esi,%xmm1", "\xc5\xf9\x6e\xce"), ACCEL_OTHER, NONE, NONE, NONE, 0, 0, 0,
         BIT(RSI), 0},
        {CODE("vmovq %rsi,%xmm1", "\xc4\xe1\xf9\x6e\xce"), ACCEL_OTHER, NONE, NONE, NONE, 0, 0, 0,
         0, BIT(RSI)},
        {CODE("cvtsi2sd %esi,%xmm1", "\xf2\x0f\x2a\xce"), ACCEL_OTHER, NONE, NONE, NONE, 0, 0, 0,
         BIT(RSI), 0},
        {CODE("cvttss2si %xmm1,%esi", "\xf3\x0f\x2c\xf1"), ACCEL_OTHER, NONE, NONE, NONE, 0, 0,
         BIT(RSI), 0, 0},
        {CODE("vmovq %xmm1,%xmm6", "\xc5\xfa\x7e\xf1"), ACCEL_OTHER, NONE, NONE, NONE, 0, 0, 0, 0,
         0},
        {CODE("movaps %xmm1,%xmm6", "\x0f\x28\xf1"), ACCEL_OTHER, NONE, NONE, NONE, 0, 0, 0, 0, 0},
        {CODE("movaps (%rdi),%xmm6", "\x0f\x28\x37"), ACCEL_OTHER, NONE, NONE, RDI, 0, 16, 0, 0, 0},
        {CODE("vpextrd $1,%xmm1,%esi", "\xc4\xe3\x79\x16\xce\x01"), ACCEL_OTHER, NONE, NONE, NONE,
         0, 0, BIT(RSI), 0, 0},
        {CODE("vpextrb $1,%xmm1,%esi", "\xc4\xe3\x79\x14\xce\x01"), ACCEL_OTHER, NONE, NONE, NONE,
         0, 0, BIT(RSI), 0, 0},
        {CODE("vpinsrd $1,(%rdi),%xmm1,%xmm2", "\xc4\xe3\x71\x22\x17\x01"), ACCEL_OTHER, NONE, NONE,
         RDI, 0, 4, 0, 0, 0},
        {CODE("vpinsrq $1,(%rdi),%xmm1,%xmm2", "\xc4\xe3\xf1\x22\x17\x01"), ACCEL_OTHER, NONE, NONE,
         RDI, 0, 8, 0, 0, 0},
        {CODE("vextractps $1,%xmm1,(%rdi)", "\xc4\xe3\x79\x17\x0f\x01"), ACCEL_OTHER, NONE, NONE,
         RDI, 0, 4, 0, 0, 0},
        {CODE("vextractf128 $1,%ymm1,(%rdi)", "\xc4\xe3\x7d\x19\x0f\x01"), ACCEL_OTHER, NONE, NONE,
         RDI, 0, 16, 0, 0, 0},
        {CODE("vinserti128 $1,(%rdi),%ymm1,%ymm2", "\xc4\xe3\x75\x38\x17\x01"), ACCEL_OTHER, NONE,
         NONE, RDI, 0, 16, 0, 0, 0},
        {CODE("vinserti64x4 $1,(%rdi),%zmm1,%zmm2", "\x62\xf3\xf5\x48\x3a\x17\x01"), ACCEL_OTHER,
         NONE, NONE, RDI, 0, 32, 0, 0, 0},
        {CODE("vinserti32x8 $1,(%rdi),%zmm1,%zmm2", "\x62\xf3\x75\x48\x3a\x17\x01"), ACCEL_OTHER,
         NONE, NONE, RDI, 0, 32, 0, 0, 0},
        {CODE("vextracti64x4 $1,%zmm2,(%rdi)", "\x62\xf3\xfd\x48\x3b\x17\x01"), ACCEL_OTHER, NONE,
         NONE, RDI, 0, 32, 0, 0, 0},
        {CODE("vbroadcastss (%rdi),%ymm1", "\xc4\xe2\x7d\x18\x0f"), ACCEL_OTHER, NONE, NONE, RDI, 0,
         4, 0, 0, 0},
        {CODE("vpbroadcastq (%rdi),%ymm1", "\xc4\xe2\x7d\x59\x0f"), ACCEL_OTHER, NONE, NONE, RDI, 0,
         8, 0, 0, 0},
        {CODE("vbroadcasti128 (%rdi),%ymm1", "\xc4\xe2\x7d\x5a\x0f"), ACCEL_OTHER, NONE, NONE, RDI,
         0, 16, 0, 0, 0},
        {CODE("vbroadcasti64x4 (%rdi),%zmm1", "\x62\xf2\xfd\x48\x5b\x0f"), ACCEL_OTHER, NONE, NONE,
         RDI, 0, 32, 0, 0, 0},
        {CODE("vfmadd132ss (%rdi),%xmm1,%xmm2", "\xc4\xe2\x71\x99\x17"), ACCEL_OTHER, NONE, NONE,
         RDI, 0, 4, 0, 0, 0},
        {CODE("vfnmsub231sd (%rdi),%xmm1,%xmm2", "\xc4\xe2\xf1\xbf\x17"), ACCEL_OTHER, NONE, NONE,
         RDI, 0, 8, 0, 0, 0},
        {CODE("vfmaddsub132pd (%rdi),%ymm1,%ymm2", "\xc4\xe2\xf5\x96\x17"), ACCEL_OTHER, NONE, NONE,
         RDI, 0, 32, 0, 0, 0},
        {CODE("vfmadd132pd (%rdi),%ymm1,%ymm2", "\xc4\xe2\xf5\x98\x17"), ACCEL_OTHER, NONE, NONE,
         RDI, 0, 32, 0, 0, 0},
        {CODE("vpmovzxbw (%rdi),%ymm1", "\xc4\xe2\x7d\x30\x0f"), ACCEL_OTHER, NONE, NONE, RDI, 0,
         16, 0, 0, 0},
        {CODE("vpmovzxbd (%rdi),%ymm1", "\xc4\xe2\x7d\x31\x0f"), ACCEL_OTHER, NONE, NONE, RDI, 0, 8,
         0, 0, 0},
        {CODE("vpmovzxbq (%rdi),%ymm1", "\xc4\xe2\x7d\x32\x0f"), ACCEL_OTHER, NONE, NONE, RDI, 0, 4,
         0, 0, 0},
        {CODE("vpmovzxwd (%rdi),%ymm1", "\xc4\xe2\x7d\x33\x0f"), ACCEL_OTHER, NONE, NONE, RDI, 0,
         16, 0, 0, 0},
        {CODE("vpmovzxwq (%rdi),%ymm1", "\xc4\xe2\x7d\x34\x0f"), ACCEL_OTHER, NONE, NONE, RDI, 0, 8,
         0, 0, 0},
        {CODE("vpmovzxdq (%rdi),%ymm1", "\xc4\xe2\x7d\x35\x0f"), ACCEL_OTHER, NONE, NONE, RDI, 0,
         16, 0, 0, 0},
        {CODE("addss (%rdi),%xmm1", "\xf3\x0f\x58\x0f"), ACCEL_OTHER, NONE, NONE, RDI, 0, 4, 0, 0,
         0},
        {CODE("addsd (%rdi),%xmm1", "\xf2\x0f\x58\x0f"), ACCEL_OTHER, NONE, NONE, RDI, 0, 8, 0, 0,
         0},
        {CODE("addps (%rdi),%xmm1", "\x0f\x58\x0f"), ACCEL_OTHER, NONE, NONE, RDI, 0, 16, 0, 0, 0},
        {CODE("mulsd (%rdi),%xmm1", "\xf2\x0f\x59\x0f"), ACCEL_OTHER, NONE, NONE, RDI, 0, 8, 0, 0,
         0},
        {CODE("subss (%rdi),%xmm1", "\xf3\x0f\x5c\x0f"), ACCEL_OTHER, NONE, NONE, RDI, 0, 4, 0, 0,
         0},
        {CODE("minsd (%rdi),%xmm1", "\xf2\x0f\x5d\x0f"), ACCEL_OTHER, NONE, NONE, RDI, 0, 8, 0, 0,
         0},
        {CODE("divss (%rdi),%xmm1", "\xf3\x0f\x5e\x0f"), ACCEL_OTHER, NONE, NONE, RDI, 0, 4, 0, 0,
         0},
        {CODE("maxss (%rdi),%xmm1", "\xf3\x0f\x5f\x0f"), ACCEL_OTHER, NONE, NONE, RDI, 0, 4, 0, 0,
         0},
        {CODE("sqrtsd (%rdi),%xmm1", "\xf2\x0f\x51\x0f"), ACCEL_OTHER, NONE, NONE, RDI, 0, 8, 0, 0,
         0},
        {CODE("rsqrtss (%rdi),%xmm1", "\xf3\x0f\x52\x0f"), ACCEL_OTHER, NONE, NONE, RDI, 0, 4, 0, 0,
         0},
        {CODE("rcpss (%rdi),%xmm1", "\xf3\x0f\x53\x0f"), ACCEL_OTHER, NONE, NONE, RDI, 0, 4, 0, 0,
         0},
        {CODE("movss (%rdi),%xmm1", "\xf3\x0f\x10\x0f"), ACCEL_OTHER, NONE, NONE, RDI, 0, 4, 0, 0,
         0},
        {CODE("movups (%rdi),%xmm1", "\x0f\x10\x0f"), ACCEL_OTHER, NONE, NONE, RDI, 0, 16, 0, 0, 0},
        {CODE("comisd (%rdi),%xmm1", "\x66\x0f\x2f\x0f"), ACCEL_OTHER, NONE, NONE, RDI, 0, 8, 0, 0,
         0},
        {CODE("comiss (%rdi),%xmm1", "\x0f\x2f\x0f"), ACCEL_OTHER, NONE, NONE, RDI, 0, 4, 0, 0, 0},
        {CODE("movsd %xmm1,(%rdi)", "\xf2\x0f\x11\x0f"), ACCEL_OTHER, NONE, NONE, RDI, 0, 8, 0, 0,
         0},
        {CODE("movlps %xmm1,(%rdi)", "\x0f\x13\x0f"), ACCEL_OTHER, NONE, NONE, RDI, 0, 8, 0, 0, 0},
        {CODE("movhps %xmm1,(%rdi)", "\x0f\x17\x0f"), ACCEL_OTHER, NONE, NONE, RDI, 0, 8, 0, 0, 0},
        {CODE("movq %xmm1,(%rdi)", "\x66\x0f\xd6\x0f"), ACCEL_OTHER, NONE, NONE, RDI, 0, 8, 0, 0,
         0},
        {CODE("vmovd %xmm1,(%rdi)", "\xc5\xf9\x7e\x0f"), ACCEL_OTHER, NONE, NONE, RDI, 0, 4, 0, 0,
         0},
        {CODE("cmpltsd (%rdi),%xmm1", "\xf2\x0f\xc2\x0f\x01"), ACCEL_OTHER, NONE, NONE, RDI, 0, 8,
         0, 0, 0},
        {CODE("cvtsd2si (%rdi),%rsi", "\xf2\x48\x0f\x2d\x37"), ACCEL_OTHER, NONE, NONE, RDI, 0, 8,
         BIT(RSI), 0, 0},
        {CODE("cvtss2si (%rdi),%esi", "\xf3\x0f\x2d\x37"), ACCEL_OTHER, NONE, NONE, RDI, 0, 4,
         BIT(RSI), 0, 0},
    };
    uint8_t code[32];
    (void)state;
    for (size_t row = 0; row < LENGTH(rows); row++) {
        const struct accel_instruction i = read_at(rows[row].bytes, rows[row].length, code);
        /* A register that it changes may be one that it computes with, too. */
        const uint32_t more = (i.halves & ~rows[row].halves) | (i.whole & ~rows[row].whole);
        check_length(rows[row].name, rows[row].bytes, rows[row].length);
        if (i.action != rows[row].action || i.to != rows[row].to || i.from != rows[row].from ||
            i.base != rows[row].base || i.offset != rows[row].offset || i.size != rows[row].size)
            fail_msg("%s: action %d of %d and %d, %d bytes at %lld(%d)", rows[row].name,
                     (int)i.action, i.to, i.from, i.size, (long long)i.offset, i.base);
        if (i.kills != rows[row].kills || (i.halves & rows[row].halves) != rows[row].halves ||
            (i.whole & rows[row].whole) != rows[row].whole || more & ~rows[row].kills)
            fail_msg("%s: kills %x, computes with %x, halves %x", rows[row].name, i.kills, i.whole,
                     i.halves);
        if (i.to2 != NONE || i.before || i.after || i.flow != ACCEL_NEXT || i.by_slot || i.target)
            fail_msg("%s: goes elsewhere", rows[row].name);
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
        uint32_t kills; /* these at least */
    } rows[] = {
        {CODE("loop", "\xe2\x06"), ACCEL_BRANCH, 8, false, BIT(RCX)},
        {CODE("loope", "\xe1\x10"), ACCEL_BRANCH, 18, false, BIT(RCX)},
        {CODE("loopne", "\xe0\xfe"), ACCEL_BRANCH, 0, false, BIT(RCX)},
        {CODE("jrcxz", "\xe3\x02"), ACCEL_BRANCH, 4, false, 0},
        {CODE("je, the short form", "\x74\x02"), ACCEL_BRANCH, 4, false, 0},
        {CODE("je", "\x0f\x84\x02\0\0\0"), ACCEL_BRANCH, 8, false, 0},
        {CODE("jmp, the short form", "\xeb\xfe"), ACCEL_JUMP, 0, false, 0},
        {CODE("jmp", "\xe9\xfb\xff\xff\xff"), ACCEL_JUMP, 0, false, 0},
        {CODE("jmp *%rax", "\x3e\xff\xe0"), ACCEL_JUMP, UNKNOWN, false, 0},
        {CODE("jmp *8(%rip)", "\xff\x25\x08\0\0\0"), ACCEL_JUMP, 14, true, 0},
        {CODE("jmp *8(%rdi)", "\xff\x67\x08"), ACCEL_JUMP, UNKNOWN, false, 0},
        {CODE("call", "\xe8\x03\0\0\0"), ACCEL_CALL, 8, false, 0},
        {CODE("call *%rax", "\xff\xd0"), ACCEL_CALL, UNKNOWN, false, 0},
        {CODE("ret", "\xc3"), ACCEL_END, UNKNOWN, false, 0},
        {CODE("ret $8", "\xc2\x08\0"), ACCEL_END, UNKNOWN, false, 0},
        {CODE("hlt", "\xf4"), ACCEL_END, UNKNOWN, false, 0},
        {CODE("int3", "\xcc"), ACCEL_END, UNKNOWN, false, 0},
        {CODE("ud2", "\x0f\x0b"), ACCEL_END, UNKNOWN, false, 0},
        {CODE("nop", "\x90"), ACCEL_NEXT, UNKNOWN, false, 0},
    };
    uint8_t code[32];
    (void)state;
    for (size_t row = 0; row < LENGTH(rows); row++) {
        const struct accel_instruction i = read_at(rows[row].bytes, rows[row].length, code);
        const uintptr_t target =
            rows[row].target == UNKNOWN ? 0 : (uintptr_t)(code + rows[row].target);
        check_length(rows[row].name, rows[row].bytes, rows[row].length);
        if (i.flow != rows[row].flow || i.target != target || i.by_slot != rows[row].by_slot ||
            i.base != NONE || i.size || (i.kills & rows[row].kills) != rows[row].kills)
            fail_msg("%s: flow %d%s, kills %x", rows[row].name, (int)i.flow,
                     i.by_slot ? ", by a slot" : "", i.kills);
    }
}

/* ---- Calls ---- */

/* Of the System V ABI: six arguments in registers, the others behind the return address; RBX, RBP,
 * RSP and R12 to R15 are kept. */
static void test_convention(void **state)
{
    static const int registers[] = {RDI, RSI, RDX, RCX, R8, R9};
    (void)state;
    assert_int_equal(accel_argument_register_count, LENGTH(registers));
    assert_memory_equal(accel_argument_registers, registers, sizeof registers);
    assert_int_equal(accel_stack_register, RSP);
    assert_int_equal(accel_stack_arguments, 8);
    assert_int_equal(accel_changed_by_calls,
                     0xffff & ~(BIT(RBX) | BIT(RBP) | BIT(RSP) | 0xf << 12));
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
#    define test_memory             other_architecture
#    define test_registers          other_architecture
#    define test_whole_instructions other_architecture
#    define test_stack              other_architecture
#    define test_flow               other_architecture
#    define test_convention         other_architecture
#    define test_unknown            other_architecture
#    define test_stubs              other_architecture

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_memory),
                                       cmocka_unit_test(test_registers),
                                       cmocka_unit_test(test_whole_instructions),
                                       cmocka_unit_test(test_stack),
                                       cmocka_unit_test(test_flow),
                                       cmocka_unit_test(test_convention),
                                       cmocka_unit_test(test_unknown),
                                       cmocka_unit_test(test_stubs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
