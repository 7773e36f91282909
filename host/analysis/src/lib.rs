//! From stored predictions to every table of the benchmark: cells, subgroups, summaries, comparisons, in both tracks.
//! Pure and repeatable. It must not know models, plugins, images, or how a number is printed.
#![forbid(unsafe_code)]
