/* The kernels of gpu/own/, compiled; no bytes if the build had no compiler for them. In pages of
 * their own: a program that uses none of them touches none. */
        .section .accel_own, "a", @progbits
        .balign 4096
        .globl own_image, own_image_bytes
        .hidden own_image, own_image_bytes
own_image:
        .incbin "gpu/own/own.fatbin"
own_image_end:
        .section .rodata, "a", @progbits
        .balign 8
own_image_bytes:
        .quad own_image_end - own_image
        .section .note.GNU-stack, "", @progbits
