# Counts from a release without deniable: how many rows satisfy a public condition and hold one of some sensitive values.
#
#   Rscript reconstruct.R FOLDER VALUES [COLUMN=VALUE ...]
#
# FOLDER is a release saved as CSV, VALUES are sensitive values with | between them, and conditions are on public columns.
# Needs R with the package jsonlite. It knows releases of one sensitive column whose cells are published.

suppressPackageStartupMessages(library(jsonlite))

given <- commandArgs(trailingOnly = TRUE)
if (length(given) < 2) stop("usage: Rscript reconstruct.R FOLDER VALUES [COLUMN=VALUE ...]")
manifest <- fromJSON(file.path(given[1], "manifest.json"), simplifyVector = FALSE)
if (length(manifest$parts) != 1) stop("This release perturbs several parts: a row's weight is a product over them.")
part <- manifest$parts[[1]]
if (length(part$columns) != 1) stop("This release perturbs several columns together.")
for (unknown in c("range", "lineups", "swapped")) {
  if (!is.null(part[[unknown]])) stop("This release has ", unknown, ", which this script does not know.")
}
hidden <- length(part$cells) > 1 && !isTRUE(part$cells_published)
if (length(part$cells) == 0 || hidden) stop("This release hides its cells, which this script does not know.")

# Everything is read as text: a value is what it is written as. Missing values are empty, and a missing value of the domain is NA.
as_text <- function(value) if (is.null(value[[1]])) NA_character_ else as.character(value[[1]])
domain <- vapply(part$domain, as_text, "")
file <- file.path(given[1], "data.csv")
if (!file.exists(file)) stop("There is no ", file, ": the rows are Parquet. Fix: dn.open_release(..).save(.., format='csv').")
rows <- read.csv(file, colClasses = "character", na.strings = "", check.names = FALSE)
shown <- rows[[part$columns[[1]]]]
cell <- if ("cell" %in% names(rows)) as.integer(rows$cell) else rep(0L, nrow(rows))

# w = ([y in S] - (1 - p_y) s) / p_y with s = (sum of r/p over S) / (sum of r/p), in each cell.
asked <- strsplit(given[2], "|", fixed = TRUE)[[1]]
if (!all(asked %in% domain)) stop("Not a value of ", part$columns[[1]], ": ", setdiff(asked, domain)[1])
weight <- rep(NA_real_, nrow(rows))
for (number in seq_along(part$cells)) {
  own <- part$cells[[number]]
  values <- domain[unlist(own$values) + 1]
  p <- unlist(own$keep) / 2^32
  r <- unlist(own$replace) / 2^32
  if (any(p == 0)) stop("A value of this release is always replaced: it has no weight of its own.")
  inside <- values %in% asked
  s <- if (all(inside)) 1 else sum((r / p)[inside]) / sum(r / p)
  w <- if (all(inside)) rep(1, length(p)) else if (!any(inside)) rep(0, length(p)) else (inside - (1 - p) * s) / p
  here <- which(cell == number - 1)
  weight[here] <- w[match(shown[here], values)]
}
if (identical(part$missing, "exempt")) weight[is.na(shown)] <- 0  # published as they are, and none of the values asked for
if (anyNA(weight)) stop("The rows hold a value that the manifest does not list.")

kept <- rep(TRUE, nrow(rows))
for (condition in given[-(1:2)]) {
  named <- regmatches(condition, regexpr("=", condition), invert = TRUE)[[1]]
  if (length(named) != 2 || !named[1] %in% names(rows)) stop("Not a condition on a column: ", condition)
  kept <- kept & !is.na(rows[[named[1]]]) & rows[[named[1]]] == named[2]
}
w <- weight[kept]
count <- sum(w)
error <- sqrt(max(sum(w^2 - w), 0))
cat(sprintf("count %.6f\nstderr %.6f\nlow %.6f\nhigh %.6f\n", count, error, count - 1.96 * error, count + 1.96 * error))
