% Octave: products of all four types with every transposition.
1;

function report (name, a, b, c)
  k = columns (a);
  scale = k * max (abs (a(:))) * max (abs (b(:)));
  type = class (c);
  if (iscomplex (c))
    data = [real(c(:)), imag(c(:))].';
    label = ifelse (strcmp (type, "single"), "complex64", "complex128");
  else
    data = c(:);
    label = ifelse (strcmp (type, "single"), "float32", "float64");
  endif
  path = fullfile (argv (){end}, name);
  out = fopen (path, "wb");
  fwrite (out, data, type);
  fclose (out);
  printf ("result %s %s %.17g %s\n", name, label, scale, hash ("md5", fileread (path)));
endfunction

function value = ifelse (condition, yes, no)
  if (condition) value = yes; else value = no; endif
endfunction

rand ("twister", 4);
for type = {"double", "single"}
  t = type{1};
  real_matrix = @(m, n) cast (2 * rand (m, n) - 1, t);
  complex_matrix = @(m, n) complex (real_matrix (m, n), real_matrix (m, n));

  a = real_matrix (201, 173); b = real_matrix (173, 187);
  report ([t "_plain"], a, b, a * b);
  a = real_matrix (171, 203); b = real_matrix (171, 189);
  report ([t "_left"], a', b, a' * b);
  a = real_matrix (205, 169); b = real_matrix (191, 169);
  report ([t "_right"], a, b', a * b');

  a = complex_matrix (202, 174); b = complex_matrix (174, 188);
  report ([t "_complex"], a, b, a * b);
  a = complex_matrix (172, 204); b = complex_matrix (172, 190);
  report ([t "_complex_conjugated"], a', b, a' * b);
  a = complex_matrix (170, 206); b = complex_matrix (170, 192);
  report ([t "_complex_transposed"], a.', b, a.' * b);
endfor
