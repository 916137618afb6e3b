# Runs a topic of topics.R as R CMD check does; what it draws goes to $GALLERY_OUT as text.
.gallery <- commandArgs(TRUE)[1]
library(basename(dirname(.gallery)), character.only = TRUE)
options(warn = 1, useFancyQuotes = FALSE)
if (any(grepl("/libaccel.so", readLines("/proc/self/maps"), fixed = TRUE))) invisible(file.create(file.path(Sys.getenv("GALLERY_OUT"), "libaccel")))
set.seed(1)
grDevices::pdf(file.path(Sys.getenv("GALLERY_OUT"), "drawn.txt"), compress = FALSE)
source(.gallery, echo = TRUE, max.deparse.length = Inf, keep.source = FALSE)
graphics.off()
