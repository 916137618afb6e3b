/*
 * The check of each operation's results, for the definitions of the operations (ops/op.h).
 */
#ifndef ACCEL_CPU_REF_CHECKS_H
#define ACCEL_CPU_REF_CHECKS_H

struct equation;
struct equation_source;
struct test;

/* The equation of a BLAS operation (equation.h): op->rules->equation. equation_of() alone calls
 * these. */
typedef void cpu_ref_equation(struct equation *e, const struct equation_source *from);

cpu_ref_equation equation_gemm, equation_symm, equation_trmm, equation_trsm, equation_syrk,
    equation_syr2k, equation_gemv, equation_symv, equation_trmv, equation_trsv, equation_ger,
    equation_syr, equation_syr2;

/* The error of a LAPACK call's results, noted in the test (verify_test.h): op->rules->check.
 * cpu_ref_verify() alone calls these. */
typedef void cpu_ref_check(struct test *t);

/* LU factors, and solutions and inverses from them (verify_factored.c). */
cpu_ref_check check_getrf, check_gesv, check_getrs, check_getri;

/* The same for Cholesky; lauum's U U^H, L^H L. */
cpu_ref_check check_potrf, check_posv, check_potrs, check_potri, check_lauum;

/* The same of packed triangles. */
cpu_ref_check check_pptrf, check_ppsv, check_pptrs, check_pptri;

/* sygst: A = L C L^H, or C = L^H A L, by B's Cholesky factor. */
cpu_ref_check check_sygst;

/* A triangular matrix: solutions and inverse. */
cpu_ref_check check_trtrs, check_trtri;

/* LDL, of Hermitian matrices too. */
cpu_ref_check check_sytrf, check_sysv, check_sytrs, check_sytri;

/* A = Q R; the columns of Q that the reflectors make; op(Q) C or C op(Q) (verify_qr.c). */
cpu_ref_check check_geqrf, check_orgqr, check_ormqr;

/* op(A)^H (b - op(A) x) = 0, or b - op(A) x = 0 if the system has a solution. gelss: the singular
 * values too; those that count as zero leave an error of rcond |A| |b|. */
cpu_ref_check check_gels, check_gelss;

/* A Z = Z W (verify_eigen.c). */
cpu_ref_check check_syev;

/* A Z = B Z W, A B Z = Z W, B A Z = Z W; Z^H B Z = 1, or Z Z^H = B. Without vectors only B's factor
 * is judged. */
cpu_ref_check check_sygv;

/* A V = U S; with vectors of one side only A A^H U = U S^2 or A^H A V = V S^2
 * (verify_singular.c). */
cpu_ref_check check_gesvd;

/* B = A, or a triangle of it (verify_lapack.c). */
cpu_ref_check check_lacpy;

#endif
