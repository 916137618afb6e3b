/*
 * How the results of each operation are judged: for the operations' definitions (ops/op.h).
 */
#ifndef ACCEL_CPU_REF_CHECKS_H
#define ACCEL_CPU_REF_CHECKS_H

struct equation;
struct equation_source;
struct test;

/* What an operation of BLAS computes, as equation.h has it: op->equation, called by equation_of() alone. */
typedef void cpu_ref_equation(struct equation *e, const struct equation_source *from);

cpu_ref_equation equation_gemm, equation_symm, equation_trmm, equation_trsm, equation_syrk,
    equation_syr2k, equation_gemv, equation_symv, equation_trmv, equation_trsv, equation_ger,
    equation_syr, equation_syr2;

/* How far the results of a call of LAPACK are from what they should be, noted in the test (verify_test.h): op->check, called by
 * cpu_ref_verify() alone. */
typedef void cpu_ref_check(struct test *t);

/* Factors by LU, and the solutions and inverses by them (verify_factored.c). */
cpu_ref_check check_getrf, check_gesv, check_getrs, check_getri;

/* The same by Cholesky; U U^H, L^H L. */
cpu_ref_check check_potrf, check_posv, check_potrs, check_potri, check_lauum;

/* By a triangle as it is. */
cpu_ref_check check_trtrs, check_trtri;

/* By LDL; of Hermitian matrices too. */
cpu_ref_check check_sytrf, check_sysv, check_sytrs;

/* A = Q R; the columns of Q that the reflectors make; op(Q) C or C op(Q) (verify_qr.c). */
cpu_ref_check check_geqrf, check_orgqr, check_ormqr;

/* op(A)^H (b - op(A) x) = 0; where the system has a solution, b - op(A) x itself. gelss: the singular values too, of which those
 * that count as zero leave rcond |A| |b|. */
cpu_ref_check check_gels, check_gelss;

/* A Z = Z W (verify_eigen.c). */
cpu_ref_check check_syev;

/* A Z = B Z W, A B Z = Z W, B A Z = Z W; Z^H B Z = 1, or Z Z^H = B. The values alone are not judged, except for B's factor. */
cpu_ref_check check_sygv;

/* A V = U S; with one side alone A A^H U = U S^2 or A^H A V = V S^2 (verify_singular.c). */
cpu_ref_check check_gesvd;

/* B = A, or a triangle of it (verify_lapack.c). */
cpu_ref_check check_lacpy;

#endif
