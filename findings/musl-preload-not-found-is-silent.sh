#!/usr/bin/env bash
# musl 1.2.3 and glibc 2.36 (Debian 12) treat a library to preload that they cannot use in opposite
# ways. musl's linker says nothing of one that is not there, or that is no ELF file, and runs the
# program; one that it finds, and of which a symbol is nowhere, ends the program before main with
# status 127. glibc's linker prints a line about the first two, and runs the program in all three
# cases, as long as nobody calls the function that is missing.
# Needs gcc, apt-get of Debian 12, and its libc6.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get -q -o APT::Sandbox::User=root download musl=1.2.3-1 musl-dev=1.2.3-1 >/dev/null 2>&1
for package in musl*.deb; do dpkg -x "$package" tree; done
include=tree/usr/include/x86_64-linux-musl library=tree/usr/lib/x86_64-linux-musl
linker=$folder/tree/lib/x86_64-linux-musl/libc.so

cat >program.c <<'END'
int puts(const char *);
int main(void) { return puts("ran") < 0; }
END
echo 'void nowhere(void); void calls(void) { nowhere(); }' >lacks.c
echo 'no ELF file' >text.so
gcc -fPIC -shared -nostdlib lacks.c -o lacks.so
gcc -nostdinc -isystem $include -fno-stack-protector -no-pie -nostdlib $library/crt1.o \
    program.c "$linker" -o with_musl
gcc program.c -o with_glibc
echo "musl $("$linker" 2>&1 | sed -n 's/^Version //p'), $(getconf GNU_LIBC_VERSION)"

# try LINKER PROGRAM LIBRARY: sets said and status.
try() {
    status=0
    said=$("$1" --preload "$3" "$2" 2>&1) || status=$?
    printf '%-12s %-14s status %s: %s\n' "$2" "$(basename "$3")" "$status" "$said"
}
expect() { [ "$1" = "$2" ] || { echo "differs: expected $1"; exit 1; }; }
for name in not_there.so text.so; do
    try "$linker" ./with_musl "$folder/$name"
    expect "0 ran" "$status $said"
done
try "$linker" ./with_musl "$folder/lacks.so"
expect 127 $status
case $said in *ran*) exit 1 ;; *"nowhere: symbol not found"*) ;; *) exit 1 ;; esac
for name in not_there.so text.so lacks.so; do
    try /lib64/ld-linux-x86-64.so.2 ./with_glibc "$folder/$name"
    expect 0 $status
    case $name:$said in
    lacks.so:ran) ;;
    lacks.so:*) exit 1 ;;
    *"cannot be preloaded"*ignored*ran) ;;
    *) exit 1 ;;
    esac
done
