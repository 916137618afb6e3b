/* Who may hold pages of the process, by the files that it has open. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/memory/pins.h"

static void ordinary_files_hold_none(void **state)
{
    static const char *const paths[] = {"/data/matrix.bin",
                                        "pipe:[4711]",
                                        "socket:[4711]",
                                        "/dev/null",
                                        "/dev/urandom",
                                        "/dev/pts/3",
                                        "/dev/shm/sem (deleted)",
                                        "/dev/nvidia0",
                                        "/dev/nvidiactl",
                                        "/dev/nvidia-uvm",
                                        "anon_inode:[eventpoll]",
                                        "anon_inode:[eventfd]",
                                        "/memfd:x (deleted)",
                                        "/proc/1/status",
                                        "/dev/tty",
                                        "/dev/shm",
                                        "/dev/nvmap",
                                        "/dev/nvhost-ctrl-gpu",
                                        "/dev/nvgpu/igpu0/ctrl",
                                        "/dev/hvc0",
                                        "/dev/dri/renderD128"};
    (void)state;
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        assert_null(pins_holder(paths[i]));
}

/* Also a device that nobody has heard of. */
static void devices_may_hold_some(void **state)
{
    static const char *const paths[] = {"/dev/infiniband/uverbs0",
                                        "/dev/cxi0",
                                        "/dev/hfi1_0",
                                        "/dev/vfio/vfio",
                                        "/dev/iommu",
                                        "/dev/xpmem",
                                        "/dev/knem",
                                        "/dev/video0",
                                        "/dev/nvidia-fs0",
                                        "/dev/of/tomorrow",
                                        "anon_inode:[io_uring]",
                                        "anon_inode:[userfaultfd]"};
    (void)state;
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        assert_non_null(pins_holder(paths[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(ordinary_files_hold_none),
                                       cmocka_unit_test(devices_may_hold_some)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
