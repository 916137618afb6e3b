/* The template of `accel report --html`, as a string. */
        .section .rodata, "a", @progbits
        .globl report_html
report_html:
        .incbin "tool/report/report.html"
        .byte 0
        .section .note.GNU-stack, "", @progbits
