% Octave: its linear algebra. Prints what lapack.py reads: norms are largest column sums.
1;

function mark (type, name)
  global current eps_of
  current = [type "_" name];
  eps_of = eps (precision (type));
  fprintf (stderr, "case %s\n", current);
  fflush (stderr);
endfunction

function name = precision (type)
  name = ifelse (any (strcmp (type, {"float32", "complex64"})), "single", "double");
endfunction

function value = ifelse (condition, yes, no)
  if (condition) value = yes; else value = no; endif
endfunction

function residual (difference, varargin)
  global current eps_of
  unit = eps_of;
  for scale = varargin
    unit *= norm (double (scale{1}), 1);
  endfor
  printf ("residual %s %.17g\n", current, norm (double (difference), 1) / unit);
endfunction

function check (good)
  global current
  printf ("residual %s %g\n", current, ifelse (good, 0, Inf));
endfunction

function orthonormal (q)
  q = double (q);
  residual (q' * q - eye (columns (q)), rows (q));
endfunction

% (I - 2 v v') a: orthogonal, made without LAPACK.
function a = reflected (a, v)
  a -= (2 / (v' * v)) * (v * (v' * a));
endfunction

function a = dense (a, left, right)
  a = double (a);
  for i = 1:columns (left)
    a = reflected (a, left(:, i));
    a = reflected (a', right(:, i))';
  endfor
endfunction

rand ("twister", 7);
n = 100;
spread = linspace (0.5, 2, n)';   # singular values, or eigenvalues, far from 0
signed = linspace (-1, 2, n)';
few = 24;   # for what stays on the CPU, and calls BLAS on the GPU column by column

for type = {"float32", "float64", "complex64", "complex128"}
  t = type{1};
  kind = precision (t);
  if (t(1) == "c")
    random = @(m, n) complex (2 * rand (m, n) - 1, 2 * rand (m, n) - 1);
  else
    random = @(m, n) 2 * rand (m, n) - 1;
  endif
  to = @(x) cast (x, kind);
  near = @(values, exact) residual (sort (double (values(:))) - exact, rows (exact), exact);
  d = @double;

  a = to (dense (diag (spread), random (n, 2), random (n, 2)));
  v = random (n, 3);
  spd = dense (diag (spread), v, v);
  spd = to ((spd + spd') / 2);
  h = dense (diag (signed), v, v);
  h = to ((h + h') / 2);
  b = to (random (n, 5));

  mark (t, "solve");
  x = a \ b;
  residual (d(a) * d(x) - b, a, x, n);
  mark (t, "divide");
  x = b' / a;
  residual (d(x) * d(a) - b', a, x', n);
  mark (t, "solve_spd");
  x = spd \ b;
  residual (d(spd) * d(x) - b, spd, x, n);
  for upper = [true, false]
    mark (t, "solve_triangular");
    tri = ifelse (upper, triu (a), tril (a)) + 4 * eye (n);
    x = tri \ b;
    residual (d(tri) * d(x) - b, tri, x, n);
    mark (t, "inv_triangular");
    x = inv (tri);
    residual (d(tri) * d(x) - eye (n), tri, x, n);
  endfor
  mark (t, "inv");
  x = inv (a);
  residual (d(a) * d(x) - eye (n), a, x, n);
  mark (t, "inv_spd");
  x = inv (spd);
  residual (d(spd) * d(x) - eye (n), spd, x, n);
  mark (t, "det");
  # A relative change of A by eps changes the determinant by n cond(A) eps of itself.
  small = to (dense (diag (spread(1:30)), random (30, 2), random (30, 2)));
  residual (d(det (small)) - prod (spread(1:30)), 30, 4, prod (spread(1:30)));
  mark (t, "lu");
  [l, u, p] = lu (a);
  residual (d(l) * d(u) - p * d(a), a, n);
  mark (t, "chol");
  c = chol (spd);
  residual (d(c)' * d(c) - spd, spd, n);
  c = chol (spd, "lower");
  residual (d(c) * d(c)' - spd, spd, n);
  mark (t, "chol_refused");
  [~, p] = chol (h);
  check (p > 0);
  mark (t, "cholinv");
  x = cholinv (spd);
  residual (d(spd) * d(x) - eye (n), spd, x, n);
  mark (t, "chol2inv");
  x = chol2inv (chol (spd));
  residual (d(spd) * d(x) - eye (n), spd, x, n);

  for shape = [120, 70; 70, 120]
    m = shape(1); k = min (m, shape(2)); g = to (random (m, shape(2)));
    mark (t, "qr");
    [q, r] = qr (g);
    residual (d(q) * d(r) - g, g, m);
    orthonormal (q);
    mark (t, "qr_economy");
    [q, r] = qr (g, 0);
    residual (d(q) * d(r) - g, g, m);
    orthonormal (q);
    mark (t, "qr_r");
    r = triu (qr (g));
    residual (d(r)' * d(r) - d(g)' * d(g), g, g', m);
    mark (t, "qr_pivoting");
    g = g(1:m-50, 1:end-50);
    [q, r, p] = qr (g);
    residual (d(q) * d(r) - d(g) * p, g, m);
    orthonormal (q);

    g = to (dense (eye (m, shape(2)) .* linspace (0.5, 2, shape(2)), random (m, 2), random (shape(2), 2)));
    exact = linspace (0.5, 2, shape(2))'(1:k);
    c = to (random (m, 4));
    mark (t, "solve_rectangular");
    x = g \ c;
    residual (d(g)' * (d(g) * d(x) - c), g, g', m, max (norm (d(x), 1), norm (d(c), 1)));
    for driver = {"gesvd", "gesdd"}
      svd_driver (driver{1});
      mark (t, ["svd_" driver{1}]);
      [u, s, w] = svd (g);
      residual (d(u) * d(s) * d(w)' - g, g, m);
      orthonormal (u);
      orthonormal (w);
      near (diag (s), exact);
      [u, s, w] = svd (g, "econ");
      residual (d(u) * d(s) * d(w)' - g, g, m);
      mark (t, ["svd_values_" driver{1}]);
      near (svd (g), exact);
    endfor
    svd_driver ("gesvd");
    mark (t, "pinv");
    p = pinv (g);
    residual (d(g) * d(p) * d(g) - g, g, p, g, m);
  endfor
  mark (t, "lscov");
  g = to (dense (eye (120, 70) .* spread(1:70)', random (120, 2), random (70, 2)));
  c = to (random (120, 4));
  x = lscov (g, c);
  residual (d(g)' * (d(g) * d(x) - c), g, g', 120, max (norm (d(x), 1), norm (d(c), 1)));
  mark (t, "ols");
  x = ols (c, g);
  residual (d(g)' * (d(g) * d(x) - c), g, max (norm (d(x), 1), norm (d(c), 1)));
  mark (t, "norm_2");
  residual ([norm(a), cond(a)] - [2, 4], n, 4);
  mark (t, "rank_null_orth");
  g = to (dense (eye (n) .* [ones(37, 1); zeros(n - 37, 1)]', random (n, 2), random (n, 2)));
  check (rank (g, 1e-3) == 37);
  z = null (g, 1e-3);
  orthonormal (z);
  check (columns (z) == n - 37);
  orthonormal (orth (g, 1e-3));

  mark (t, "eig_symmetric");
  [v, w] = eig (h);
  residual (d(h) * d(v) - d(v) * d(w), h, n);
  orthonormal (v);
  near (diag (w), signed);
  mark (t, "eig_symmetric_values");
  near (eig (h), signed);
  mark (t, "eig_generalized");
  [v, w] = eig (h, spd);
  residual (d(h) * d(v) - d(spd) * d(v) * d(w), h, v, spd, n);
  mark (t, "eig_generalized_values");
  near (eig (h, spd), sort (d(diag (w))));
  g = to (random (few, few));
  mark (t, "eig");
  [v, w] = eig (g);
  residual (d(g) * d(v) - d(v) * d(w), g, v, few);
  mark (t, "eig_values");
  w = d(eig (g));
  residual ([sum(w), sum(w .^ 2)] - [trace(d(g)), trace(d(g) * d(g))], few, g, g);
  if (! strcmp (t, "float32"))   # for which Octave 7 returns zeros
    mark (t, "eig_left");
    [v, w, u] = eig (g);
    residual (d(g)' * d(u) - d(u) * d(w)', g', u, few);
  endif
  mark (t, "eig_generalized_full");
  one = spd(1:few, 1:few);   # eigenvalues of a part lie between those of the whole
  w = d(eig (g, one));
  residual (sum (w) - trace (d(one) \ d(g)), few, g, 2 * few);
  mark (t, "schur");
  [u, s] = schur (g);
  residual (d(u) * d(s) * d(u)' - g, g, few);
  orthonormal (u);
  mark (t, "hess");
  [u, s] = hess (g);
  residual (d(u) * d(s) * d(u)' - g, g, few);
  mark (t, "sqrtm");
  s = sqrtm (one);
  residual (d(s) * d(s) - one, s, s, few);
  mark (t, "sylvester");
  x = sylvester (one, one, g);
  residual (d(one) * d(x) + d(x) * d(one) - g, one, x, 2 * few);
  mark (t, "expm");
  e = expm (h);
  f = expm (-h);
  residual (d(e) * d(f) - eye (n), e, f, n);
endfor

mark ("float64", "polyfit");
at = linspace (-1, 1, 200);
p = polyfit (at, polyval (1:9, at), 8);
residual (p - (1:9), 200, 1e3, 9);
mark ("float64", "roots");
residual (roots ([1, zeros(1, 39), -1]) .^ 40 - 1, 40, 40);
