% Control theory (SLICOT): Riccati equations, a regulator, norms, reduction and pole placement of a chain of masses.
pkg load control
n = 20;
K = 2 * eye(n) - diag(ones(n - 1, 1), 1) - diag(ones(n - 1, 1), -1);
A = [zeros(n), eye(n); -K, -0.1 * eye(n) - 0.01 * K];
B = [zeros(n, 2); eye(n)(:, [1, n])];
C = eye(2 * n)([1, n], :);

[X, L] = care(A, B, eye(2 * n), eye(2));
printf("care %.9g\n", X(1:3:end, 1:5:end));
printf("poles %.9g\n", sort(abs(L)));

[Ad, Bd] = ssdata(c2d(ss(A, B, C), 0.1));
[X, L] = dare(Ad, Bd, eye(2 * n), eye(2));
printf("dare %.9g\n", X(1:3:end, 1:5:end));
printf("lqr %.9g\n", lqr(A, B, C' * C, 0.1 * eye(2)));

printf("lyap %.9g\n", diag(lyap(A, eye(2 * n))));
printf("dlyap %.9g\n", diag(dlyap(Ad, eye(2 * n))));
printf("gram %.9g\n", diag(gram(ss(A, B, C), "c")));
printf("hsvd %.7g\n", hsvd(ss(A, B, C))(1:10));
printf("norm %.9g\n", norm(ss(A, B, C), 2));
