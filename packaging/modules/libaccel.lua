-- For Lmod: `module load libaccel` puts accel and its manual on the paths. It preloads nothing: `accel run` does, for one program.
-- As modulefiles/libaccel/VERSION.lua; the folder where libaccel is installed is asked for by LIBACCEL_ROOT, or is /opt/libaccel/VERSION.
local root = os.getenv("LIBACCEL_ROOT") or pathJoin("/opt/libaccel", myModuleVersion())

whatis("Name: libaccel")
whatis("Description: runs the BLAS and LAPACK calls of existing programs on an NVIDIA GPU")
help([[
accel run -- PROGRAM starts a program with libaccel; accel doctor says whether its calls can go to a GPU.
]])

prepend_path("PATH", pathJoin(root, "bin"))
prepend_path("MANPATH", pathJoin(root, "share/man"))
