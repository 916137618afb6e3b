#!/bin/bash
# A reference to a version of a symbol (answer@SECOND_1, recorded with the file that defines it) is
# bound by glibc's dynamic linker to an unversioned function of that name in a library that comes
# earlier; but not to one that an earlier library defines under any version of its own, of whatever
# name. So a library that exports names without versions takes other libraries' versioned calls, and
# one that gives its names a version never does, while it still serves all references without a
# version. Seen with Debian 12's glibc 2.36 and binutils 2.40. Needs gcc.
set -eu
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
cd "$folder"
ldd --version | sed -n 1p
echo 'SECOND_1 { global: answer; local: *; };' >second.map
echo 'UNRELATED { global: answer; local: *; };' >first.map
echo 'int answer(void) { return 2; }' >second.c
echo 'int answer(void) { return 1; } int first(void) { return 0; }' >first.c
echo 'int answer(void); int main(void) { return answer(); }' >program.c
gcc -shared -fPIC -Wl,-soname,libsecond.so second.c -o libsecond.so -Wl,--version-script=second.map
gcc -shared -fPIC -Wl,-soname,libfirst.so -x c /dev/null -o libfirst.so
gcc program.c -o program -Wl,--no-as-needed,-rpath,"$folder" -L. -lfirst -lsecond
readelf -W --dyn-syms program | grep -o 'answer@SECOND_1' | head -1
run() { local got=0; ./program || got=$?; echo "$1: $got"; [ "$got" = "$2" ]; }
run "the earlier library has no such name" 2
gcc -shared -fPIC -Wl,-soname,libfirst.so first.c -o libfirst.so
run "the earlier library has it without a version" 1
gcc -shared -fPIC -Wl,-soname,libfirst.so first.c -o libfirst.so -Wl,--version-script=first.map
run "the earlier library has it under a version of its own" 2
