//! vit
