//! Curation from outside: files of the published shapes at full size, folders of pictures, and the photographs of the shared data where they are.

mod audit;
mod pictures;
mod prepare;
mod shapes;
mod splits;
