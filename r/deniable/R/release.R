# Releases, read and counted. A row that shows y counts w(y) for what is asked for, 1 on average where its original has it
# and 0 elsewhere; the file of weights beside the rows says w by what is shown, in one of three forms:
#
#   values    a line for what is shown and a value: w
#   compact   a line for each value: own, rest, share;  w(y) = own(y) [y asked for] - rest(y) sum of share
#   members   of line-ups, a line for a member and a value; w(set) = sum over its members

NOTHING <- "\001"  # the key of a missing value

#' Read a release.
read_release <- function(folder) {
  manifest <- jsonlite::fromJSON(file.path(folder, "manifest.json"), simplifyVector = FALSE)
  if (is.null(manifest$weights)) {
    stop("The rows of this release have no weights, so they cannot be counted here. Fix: deniable query ", folder, " \"SELECT ..\"")
  }
  types <- vapply(manifest$columns, function(one) one$type, "")
  names(types) <- vapply(manifest$columns, function(one) one$name, "")
  release <- list(
    folder = folder, manifest = manifest, types = types,
    data = read_table(folder, manifest$data$file), weights = read_table(folder, manifest$weights$file),
    lineups = if (!is.null(manifest$lineups)) read_table(folder, manifest$lineups$file)
  )
  sensitive <- sensitive_columns(release)
  for (name in setdiff(names(release$data), sensitive)) release$data[[name]] <- typed(release$data[[name]], types[[name]])
  structure(release, class = "deniable_release")
}

print.deniable_release <- function(x, ...) {
  cat("<Release of ", format(nrow(x$data), big.mark = ","), " rows, ", paste(sensitive_columns(x), collapse = ", "),
      " by ", x$manifest$mechanism, ">\n", sep = "")
  invisible(x)
}

# A file of a release, every column as text but those of weights.
read_table <- function(folder, name) {
  file <- file.path(folder, name)
  if (!file.exists(file)) stop("There is no ", file, ": ask for the whole release.")
  if (grepl("\\.csv$", name)) {
    table <- read.csv(file, colClasses = "character", na.strings = "", check.names = FALSE, encoding = "UTF-8")
  } else {
    if (!requireNamespace("arrow", quietly = TRUE)) {
      stop("Parquet needs the R package arrow. Fix: install it, or ask for the release as CSV: ",
           "dn.open_release(..).save(.., format='csv') in Python.")
    }
    table <- as.data.frame(arrow::read_parquet(file))
  }
  for (number in intersect(names(table), c("w", "own", "rest", "share"))) table[[number]] <- as.numeric(table[[number]])
  table
}

# Values as the type of their column.
typed <- function(values, type) {
  if (is_number(type)) return(as.numeric(values))
  if (type == "bool") return(as_truth(values))
  if (grepl("^date", type)) return(as.Date(values))
  if (grepl("^timestamp", type)) return(as.POSIXct(values, tz = "UTC"))
  values
}

as_truth <- function(values) if (is.logical(values)) values else tolower(values) == "true"

# How values are compared: numbers as numbers, sets as they are written, all else as text.
key <- function(values, type) {
  if (is.list(values)) return(vapply(values, function(one) paste(key(one, type), collapse = "\037"), ""))
  gone <- is.na(values)
  text <- as.character(values)
  number <- if (is_number(type)) suppressWarnings(as.numeric(text))
  if (is_number(type) && !anyNA(number[!gone])) text <- sprintf("%.15g", number)  # codes of sets stand beside texts
  if (type == "bool") text <- as.character(as_truth(values))
  ifelse(gone, NOTHING, text)
}

is_number <- function(type) grepl("^(u?int|float|double|half|decimal)", type)

sensitive_columns <- function(release) {
  unlist(lapply(release$manifest$parts, function(part) unlist(part$columns)))
}

#' A range for a condition, both ends in.
between <- function(low, high) structure(list(low = low, high = high), class = "deniable_between")

# Which values satisfy a condition on a column.
satisfies <- function(values, condition, type) {
  if (inherits(condition, "deniable_between")) {
    values <- typed(values, type)
    return(!is.na(values) & values >= condition$low & values <= condition$high)
  }
  key(values, type) %in% key(condition, type)
}

#' One weight a row: 1 or 0 on average, as its original satisfies a condition or not.
#' where: a list, column = values, or column = between(low, high); NA is missing.
weights.deniable_release <- function(object, where = list(), ...) {
  known <- c(names(object$data), sensitive_columns(object))
  unknown <- setdiff(names(where), known)
  if (length(unknown) > 0) stop("There is no column '", unknown[1], "'. The columns are: ", paste(unique(known), collapse = ", "))
  sensitive <- sensitive_columns(object)
  w <- rep(1, nrow(object$data))
  for (name in setdiff(names(where), sensitive)) w <- w * satisfies(object$data[[name]], where[[name]], object$types[[name]])
  for (part in object$manifest$parts) {
    columns <- intersect(unlist(part$columns), names(where))
    if (length(columns) > 0) w <- w * part_weights(object, part, where[columns])
  }
  w
}

# The same for conditions on the columns of one part.
part_weights <- function(release, part, where) {
  columns <- unlist(part$columns)
  own <- part_columns(release, part)  # what its columns are called in the file of weights
  table <- release$weights
  if ("part" %in% names(table)) table <- table[table$part == paste(own, collapse = ", ") | table$part == paste(columns, collapse = ", "), ]
  asked <- rep(TRUE, nrow(table))
  for (i in seq_along(columns)) {
    if (columns[i] %in% names(where)) {
      values <- table[[paste0("value_", own[i])]]
      asked <- asked & satisfies(values, where[[columns[i]]], release$types[[columns[i]]])
    }
  }
  exempt <- identical(part$missing, "exempt")
  if (!any(asked) && !exempt) stop("None of the values asked for occurs in ", paste(columns, collapse = ", "), ".")
  if ("member" %in% substr(names(table), 1, 6)) {
    w <- member_weights(release, part, table, asked, own)
  } else {
    prefix <- if ("own" %in% names(table)) "value_" else "shown_"
    shown <- joined_key(table, if (prefix == "value_") paste0("value_", own) else paste0("shown_", own), release$types[columns])
    rows <- joined_key(release$data, columns, release$types[columns])
    if ("cell" %in% names(table)) {
      cell <- as.integer(table$cell)
      shown <- paste(cell, shown)
      rows <- paste(as.integer(release$data$cell), rows)
    } else {
      cell <- rep(0L, nrow(table))
    }
    if ("own" %in% names(table)) {
      shares <- rowsum(table$share * asked, cell)
      w_table <- table$own * asked - table$rest * shares[match(cell, rownames(shares)), 1]
      w <- w_table[match(rows, shown)]
    } else {
      sums <- rowsum(table$w[asked], shown[asked])
      w <- sums[match(rows, rownames(sums)), 1]
      w[is.na(w) & rows %in% shown] <- 0
    }
  }
  if (exempt) {
    gone <- Reduce(`&`, lapply(columns, function(name) is.na(release$data[[name]])))
    wanted <- all(vapply(where, function(one) !inherits(one, "deniable_between") && anyNA(one), NA))
    w[gone] <- as.numeric(wanted)
  }
  w[is.na(w)] <- 0
  as.numeric(w)
}

# The items of a list share the name of the list in the file of weights.
part_columns <- function(release, part) {
  if (is.null(part$item)) unlist(part$columns) else part$item$list
}

joined_key <- function(table, columns, types) {
  do.call(paste, c(lapply(seq_along(columns), function(i) key(table[[columns[i]]], types[[i]])), sep = "\036"))
}

# Line-ups of many values: the scores of a set's members are added up.
member_weights <- function(release, part, table, asked, own) {
  column <- unlist(part$columns)
  type <- release$types[[column]]
  m <- length(part$domain)
  place <- as.integer(table$place)
  score <- numeric(m)
  sums <- rowsum(table$w[asked], place[asked])
  score[as.integer(rownames(sums)) + 1] <- sums[, 1]
  name <- key(table[[paste0("member_", own)]], type)[match(seq_len(m) - 1L, place)]
  sets <- unique(release$data[[column]])
  one <- function(set) {
    if (is.na(set)) return(NA_real_)
    if (grepl("^\\[", set)) return(sum(score[match(key(unlist(jsonlite::fromJSON(set)), type), name)]))
    code <- as.numeric(set)
    lineups <- release$lineups
    if ("value" %in% names(lineups)) {
      held <- as.numeric(lineups$first) <= code & code <= as.numeric(lineups$last)
      return(sum(score[match(key(lineups$value[held], type), name)]))
    }
    places <- as.numeric(lineups$place[as.numeric(lineups$block) == code %/% m])
    sum(score[(code + places) %% m + 1])
  }
  vapply(as.character(sets), one, 0)[match(as.character(release$data[[column]]), as.character(sets))]
}

#' How many rows satisfy a condition: the sum of their weights, whose variance is the sum of w^2 - w.
#' by: columns to group by, public ones.
count <- function(release, where = list(), by = NULL, confidence = 0.95) {
  w <- weights(release, where)
  hidden <- intersect(by, sensitive_columns(release))
  if (length(hidden) > 0) stop(hidden[1], " is sensitive: ask for its values in where, one count each.")
  if (any(vapply(release$manifest$parts, function(part) !is.null(part$learned), NA))) {
    stop("Rows of a learned release count as they are, and their error is the model's. Fix: deniable query ", release$folder)
  }
  groups <- if (is.null(by)) list(rep(1L, length(w))) else release$data[by]
  public <- setdiff(names(where), sensitive_columns(release))
  inside <- Reduce(`&`, lapply(public, function(name) satisfies(release$data[[name]], where[[name]], release$types[[name]])), TRUE)
  inside <- rep_len(inside, length(w))
  code <- joined_key(as.data.frame(groups, check.names = FALSE), seq_along(groups), rep("string", length(groups)))
  code <- factor(code[inside], levels = unique(code[inside]))
  sums <- rowsum(cbind(w, w^2 - w, 1)[inside, , drop = FALSE], code, reorder = FALSE)
  stderr <- sqrt(pmax(sums[, 2], 0))
  z <- qnorm((1 + confidence) / 2)
  answer <- data.frame(
    value = sums[, 1], stderr = stderr,
    low = pmin(sums[, 1], pmax(sums[, 1] - z * stderr, 0)), high = pmax(sums[, 1], pmin(sums[, 1] + z * stderr, sums[, 3])),
    row.names = NULL
  )
  if (is.null(by)) return(answer)
  first <- match(levels(code), code)
  cbind(release$data[inside, by, drop = FALSE][first, , drop = FALSE], answer, row.names = NULL)
}

#' A design of the package survey: the rows, and a column of weights for each condition that is named.
#' The mean of such a column is a share, the ratio of v * column to column the mean of v, and a linear model of it is the
#' linear model of having the value; standard errors hold both draws, that of people and that of the randomization.
#' replicates: how many replicate weights (bootstrap); 0: errors by linearisation.
survey_design <- function(release, values, weights = NULL, strata = NULL, clusters = NULL, replicates = 400) {
  if (!requireNamespace("survey", quietly = TRUE)) stop("This needs the R package survey. Fix: install.packages(\"survey\")")
  data <- release$data
  taken <- intersect(names(values), names(data))
  if (length(taken) > 0) stop("The release has a column '", taken[1], "' already. Fix: another name in values.")
  for (name in names(values)) data[[name]] <- weights.deniable_release(release, values[[name]])
  of <- function(name) if (is.null(name)) NULL else data[[name]]
  design <- survey::svydesign(
    ids = if (is.null(clusters)) ~1 else of_formula(clusters), strata = if (!is.null(strata)) of_formula(strata),
    weights = if (is.null(weights)) rep(1, nrow(data)) else of(weights), data = data, nest = !is.null(strata)
  )
  if (replicates == 0) return(design)
  survey::as.svrepdesign(design, type = "bootstrap", replicates = replicates)
}

of_formula <- function(name) stats::as.formula(paste0("~`", name, "`"))
