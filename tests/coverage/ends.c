/* What a process has counted is written before it ends in another way than by exit(). Linked with
 * --wrap=_exit,--wrap=abort. */

void __gcov_dump(void);
_Noreturn void __real__exit(int status);
_Noreturn void __real_abort(void);

__attribute__((visibility("hidden"))) _Noreturn void __wrap__exit(int status)
{
    __gcov_dump();
    __real__exit(status);
}

__attribute__((visibility("hidden"))) _Noreturn void __wrap_abort(void)
{
    __gcov_dump();
    __real_abort();
}
