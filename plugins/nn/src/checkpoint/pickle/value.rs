//! What a pickle builds: nodes in one heap, referring to each other by number, so that sharing costs nothing, cycles do no harm and
//! dropping never recurses. Knows no opcodes.

use crate::checkpoint::Kind;

/// A node's number.
pub(super) type Id = u32;

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Node {
    None,
    Bool(bool),
    Int(i64),
    /// A number whose value nobody needs: floats, and integers beyond 64 bits.
    Number,
    Text(String),
    Bytes,
    List(Vec<Id>),
    Tuple(Vec<Id>),
    Dict(Vec<(Id, Id)>),
    /// `module.name`, not yet called.
    Global(String),
    /// A storage: type, its key as a text node, number of values.
    Storage(Kind, Id, usize),
    Tensor(View),
    /// An instance of a class that is not looked into.
    Object,
}

/// A tensor: a storage seen through offset, shape and strides, in values.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct View {
    pub(super) storage: Id,
    pub(super) offset: usize,
    pub(super) shape: Vec<usize>,
    pub(super) strides: Vec<usize>,
}

/// All nodes.
#[derive(Debug, Default)]
pub(super) struct Heap(Vec<Node>);

impl Heap {
    pub(super) fn push(&mut self, node: Node) -> Id {
        self.0.push(node);
        (self.0.len() - 1) as Id
    }

    pub(super) fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.0.iter()
    }

    pub(super) fn get(&self, id: Id) -> &Node {
        &self.0[id as usize]
    }

    pub(super) fn get_mut(&mut self, id: Id) -> &mut Node {
        &mut self.0[id as usize]
    }

    pub(super) fn text(&self, id: Id) -> Option<&str> {
        match self.get(id) {
            Node::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn tuple(&self, id: Id) -> Option<&[Id]> {
        match self.get(id) {
            Node::Tuple(items) => Some(items),
            _ => None,
        }
    }

    pub(super) fn dict(&self, id: Id) -> Option<&[(Id, Id)]> {
        match self.get(id) {
            Node::Dict(items) => Some(items),
            _ => None,
        }
    }

    /// A count or an offset.
    pub(super) fn size(&self, id: Id) -> Option<usize> {
        match self.get(id) {
            Node::Int(value) => usize::try_from(*value).ok(),
            _ => None,
        }
    }
}
