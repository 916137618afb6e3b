# Writes the examples of packages' manuals, a file for each topic: Rscript topics.R FOLDER PACKAGE...
words <- commandArgs(TRUE)
for (package in words[-1]) {
    folder <- file.path(words[1], package)
    stamp <- file.path(folder, "version")
    version <- as.character(packageVersion(package))
    if (file.exists(stamp) && readLines(stamp) == version) next
    unlink(folder, recursive = TRUE)
    dir.create(folder, recursive = TRUE)
    pages <- tools::Rd_db(package)
    for (page in names(pages)) {
        tools::Rd2ex(pages[[page]], file.path(folder, sub("[.]Rd$", ".R", basename(page))))
    }
    writeLines(version, stamp)
}
