/*
 * Whether this kernel can prove to a process that its memory was not written: asynchronous write protection by userfaultfd(2), and
 * ioctl(PAGEMAP_SCAN), as Linux 6.7 and newer have them. Facts: linux/userfaultfd.h, linux/fs.h, admin-guide/mm/pagemap of the kernel.
 */
#ifndef ACCEL_TRACKING_H
#define ACCEL_TRACKING_H

/* Tries it on two pages. Returns NULL, or what fails: one line, constant. errno says why, 0: the kernel's answer is wrong. */
const char *tracking_fault(void);

#endif
