## Runs the demos of a function, NUMBER.m in the folder that is the argument. The numbers that they draw go to
## $GALLERY_OUT, an array for each axes and property.
1;

function pause (varargin)
  ## Nobody is there to press a key, nor to see one picture after another.
endfunction

function write_array (path, values)
  ## NumPy's format, version 1.0: the header ends at a multiple of 64 bytes.
  header = sprintf ("{'descr': '<f8', 'fortran_order': False, 'shape': (%d,), }", numel (values));
  header = [header, blanks(63 - mod (10 + numel (header), 64)), "\n"];
  file = fopen (path, "w");
  fwrite (file, uint8 ([147, double("NUMPY"), 1, 0]));
  fwrite (file, numel (header), "uint16", 0, "ieee-le");
  fwrite (file, header, "char");
  fwrite (file, values(:), "double", 0, "ieee-le");
  fclose (file);
endfunction

function write_axes (handle, start)
  ## A line has limits, too, hidden ones: with the least positive number among its own, which is Inf where a rounding error is 0.
  write_array ([start, "limits.npy"], [get(handle, "xlim"), get(handle, "ylim")]);
  parts = findall (handle);
  for property = {"xdata", "ydata", "zdata", "cdata", "vertices"}
    values = [];
    for part = parts'
      if (isprop (part, property{1}))
        new = get (part, property{1});
        if (isnumeric (new) || islogical (new))
          values = [values; double(new(:))];
        endif
      endif
    endfor
    if (! isempty (values))
      values = values(1:floor (numel (values) / 2e5) + 1:end);
      write_array ([start, property{1}, ".npy"], values);
    endif
  endfor
endfunction

function write_figures (demo)
  for figure = sort (findall (0, "type", "figure"))'
    place = 0;
    for handle = findall (figure, "type", "axes")'
      place++;
      write_axes (handle, sprintf ("%s/%s_%02d_%02d_", getenv ("GALLERY_OUT"), demo, double (figure), place));
    endfor
  endfor
endfunction

function good = run_demo (path)
  close ("all");
  rand ("twister", 1); randn ("twister", 1); rande ("twister", 1);
  [~, demo] = fileparts (path);
  printf ("-- demo %s\n", demo);
  good = true;
  try
    evalin ("base", fileread (path));
  catch problem
    printf ("error: %s\n", problem.message);
    good = false;
  end_try_catch
  write_figures (demo);
endfunction

function good = show (folder)
  package = regexp (folder, "/packages/([a-z]+)-", "tokens", "once");
  if (! isempty (package))
    pkg ("load", package{1});
  endif
  if (! isempty (strfind (fileread ("/proc/self/maps"), "/libaccel.so")))
    fclose (fopen ([getenv("GALLERY_OUT"), "/libaccel"], "w"));
  endif
  set (0, "defaultfigurevisible", "off");
  good = any (cellfun (@run_demo, glob (fullfile (folder, "*.m"))));
  close ("all");
endfunction

if (! show (argv (){end}))
  exit (1);
endif
