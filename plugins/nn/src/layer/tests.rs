//! Layers: the fused and the plain form agree.
