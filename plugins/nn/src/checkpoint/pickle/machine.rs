//! The stack machine. Builds nodes, calls nothing. Knows opcodes and the few names that make tensors; not where bytes of storages are.
//!
//! Limits: [`MAX_NODES`] values, [`MAX_DEPTH`] open marks, [`MAX_STACK`] values on the stack, [`MAX_NAME`] bytes in a class name. No
//! length that a pickle claims is believed before its bytes are there, and what is copied is charged against the limit on nodes.

pub(super) use super::opcode::PROTO;
use super::opcode::{
    ADDITEMS, APPEND, APPENDS, BINBYTES, BINBYTES8, BINFLOAT, BINGET, BININT, BININT1, BININT2,
    BINPERSID, BINPUT, BINSTRING, BINUNICODE, BINUNICODE8, BUILD, BYTEARRAY8, DICT, DUP,
    EMPTY_DICT, EMPTY_LIST, EMPTY_SET, EMPTY_TUPLE, FLOAT, FRAME, FROZENSET, GET, GLOBAL, INT,
    LIST, LONG, LONG_BINGET, LONG_BINPUT, LONG1, LONG4, MARK, MEMOIZE, NEWFALSE, NEWOBJ, NEWOBJ_EX,
    NEWTRUE, NONE, POP, POP_MARK, PUT, REDUCE, SETITEM, SETITEMS, SHORT_BINBYTES, SHORT_BINSTRING,
    SHORT_BINUNICODE, STACK_GLOBAL, STOP, STRING, TUPLE, TUPLE1, TUPLE2, TUPLE3, UNICODE,
};
use super::value::{Heap, Id, Node, View};
use crate::checkpoint::Kind;
use crate::checkpoint::tensor::MAX_RANK;
use std::collections::HashMap;

/// Most values of one pickle. A ViT-L with its optimiser has about ten thousand.
const MAX_NODES: usize = 8_000_000;
/// Most marks open at once.
const MAX_DEPTH: usize = 1000;
/// Most values on the stack.
const MAX_STACK: usize = 4_000_000;
/// Longest `module.name`.
const MAX_NAME: usize = 256;

/// Why a pickle was refused, and where.
#[derive(Debug, PartialEq)]
pub(super) struct Fault {
    pub(super) at: usize,
    pub(super) reason: String,
}

/// Runs one pickle. `run` leaves `at` behind its end, so that another can follow.
pub(super) struct Machine<'a> {
    bytes: &'a [u8],
    pub(super) at: usize,
    heap: Heap,
    spent: usize,
    stack: Vec<Id>,
    marks: Vec<usize>,
    memo: HashMap<u32, Id>,
}

type Outcome<T> = Result<T, String>;

impl<'a> Machine<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            at: 0,
            heap: Heap::default(),
            spent: 0,
            stack: Vec::new(),
            marks: Vec::new(),
            memo: HashMap::new(),
        }
    }

    /// Run from `at` to the next STOP; the root. Nodes of earlier runs stay; stack and memo do not.
    pub(super) fn run(&mut self) -> Result<Id, Fault> {
        self.stack.clear();
        self.marks.clear();
        self.memo.clear();
        loop {
            let at = self.at;
            match self.step() {
                Ok(None) => {}
                Ok(Some(root)) => return Ok(root),
                Err(reason) => return Err(Fault { at, reason }),
            }
        }
    }

    pub(super) fn into_heap(self) -> Heap {
        self.heap
    }

    fn step(&mut self) -> Outcome<Option<Id>> {
        let opcode = self.take(1)?[0];
        match opcode {
            PROTO => {
                let version = self.take(1)?[0];
                if version > 5 {
                    return Err(format!("expected protocol 5 or older, found {version}"));
                }
            }
            FRAME => {
                self.take(8)?;
            }
            STOP => return self.pop().map(Some),
            MARK => {
                if self.marks.len() >= MAX_DEPTH {
                    return Err(format!("more than {MAX_DEPTH} marks are open"));
                }
                self.marks.push(self.stack.len());
            }
            POP => {
                // Pops a mark where one lies on top, as Python does.
                if self.marks.last() == Some(&self.stack.len()) {
                    self.marks.pop();
                } else {
                    self.pop()?;
                }
            }
            POP_MARK => {
                self.pop_mark()?;
            }
            DUP => {
                let top = self.top()?;
                self.push_id(top)?;
            }
            NONE => self.push(Node::None)?,
            NEWTRUE => self.push(Node::Bool(true))?,
            NEWFALSE => self.push(Node::Bool(false))?,
            INT => {
                let line = self.line()?;
                let node = match line {
                    "00" => Node::Bool(false),
                    "01" => Node::Bool(true),
                    other => Node::Int(other.parse().map_err(|_| "an integer is malformed")?),
                };
                self.push(node)?;
            }
            BININT => {
                let value = i32::from_le_bytes(self.array()?);
                self.push(Node::Int(value.into()))?;
            }
            BININT1 => {
                let [value] = self.array()?;
                self.push(Node::Int(value.into()))?;
            }
            BININT2 => {
                let value = u16::from_le_bytes(self.array()?);
                self.push(Node::Int(value.into()))?;
            }
            LONG => {
                let line = self.line()?;
                let node = line
                    .trim_end_matches('L')
                    .parse()
                    .map_or(Node::Number, Node::Int);
                self.push(node)?;
            }
            LONG1 => {
                let [len] = self.array()?;
                self.long(len.into())?;
            }
            LONG4 => {
                let len = self.length4()?;
                self.long(len)?;
            }
            FLOAT => {
                self.line()?;
                self.push(Node::Number)?;
            }
            BINFLOAT => {
                self.take(8)?;
                self.push(Node::Number)?;
            }
            STRING => {
                let line = self.line()?;
                let text = line.trim_matches(|c| c == '\'' || c == '"').to_owned();
                self.push(Node::Text(text))?;
            }
            UNICODE => {
                let text = self.line()?.to_owned();
                self.push(Node::Text(text))?;
            }
            SHORT_BINUNICODE | SHORT_BINSTRING => {
                let [len] = self.array()?;
                self.text(len.into())?;
            }
            BINUNICODE | BINSTRING => {
                let len = self.length4()?;
                self.text(len)?;
            }
            BINUNICODE8 => {
                let len = self.length8()?;
                self.text(len)?;
            }
            SHORT_BINBYTES => {
                let [len] = self.array()?;
                self.take(len.into())?;
                self.push(Node::Bytes)?;
            }
            BINBYTES => {
                let len = self.length4()?;
                self.take(len)?;
                self.push(Node::Bytes)?;
            }
            BINBYTES8 | BYTEARRAY8 => {
                let len = self.length8()?;
                self.take(len)?;
                self.push(Node::Bytes)?;
            }
            EMPTY_LIST => self.push(Node::List(Vec::new()))?,
            EMPTY_TUPLE => self.push(Node::Tuple(Vec::new()))?,
            EMPTY_DICT => self.push(Node::Dict(Vec::new()))?,
            EMPTY_SET => self.push(Node::Object)?,
            LIST => {
                let items = self.pop_mark()?;
                self.push(Node::List(items))?;
            }
            TUPLE => {
                let items = self.pop_mark()?;
                self.push(Node::Tuple(items))?;
            }
            TUPLE1 | TUPLE2 | TUPLE3 => {
                let count = usize::from(opcode - TUPLE1) + 1;
                let mut items = vec![0; count];
                for slot in items.iter_mut().rev() {
                    *slot = self.pop()?;
                }
                self.push(Node::Tuple(items))?;
            }
            FROZENSET => {
                self.pop_mark()?;
                self.push(Node::Object)?;
            }
            DICT => {
                let items = self.pop_mark()?;
                let dict = pairs(&items)?;
                self.push(Node::Dict(dict))?;
            }
            APPEND => {
                let item = self.pop()?;
                self.extend(vec![item])?;
            }
            APPENDS | ADDITEMS => {
                let items = self.pop_mark()?;
                self.extend(items)?;
            }
            SETITEM => {
                let value = self.pop()?;
                let key = self.pop()?;
                self.set(vec![(key, value)])?;
            }
            SETITEMS => {
                let items = self.pop_mark()?;
                let items = pairs(&items)?;
                self.set(items)?;
            }
            GLOBAL => {
                let module = self.line()?;
                let name = self.line()?;
                let global = global(module, name)?;
                self.push(global)?;
            }
            STACK_GLOBAL => {
                let (name, module) = (self.pop()?, self.pop()?);
                let (Some(module), Some(name)) = (self.heap.text(module), self.heap.text(name))
                else {
                    return Err("a class is named by something other than text".into());
                };
                let global = global(module, name)?;
                self.push(global)?;
            }
            REDUCE | NEWOBJ => {
                let (args, callee) = (self.pop()?, self.pop()?);
                let node = self.reduce(callee, args)?;
                self.push(node)?;
            }
            NEWOBJ_EX => {
                for _ in 0..3 {
                    self.pop()?;
                }
                self.push(Node::Object)?;
            }
            BUILD => {
                // State of an object, or attributes of a dictionary: neither is weights.
                self.pop()?;
                self.top()?;
            }
            BINPERSID => {
                let id = self.pop()?;
                let node = self.storage(id)?;
                self.push(node)?;
            }
            PUT => {
                let key = self
                    .line()?
                    .parse()
                    .map_err(|_| "a memo key is malformed")?;
                self.memoize(key)?;
            }
            BINPUT => {
                let [key] = self.array()?;
                self.memoize(key.into())?;
            }
            LONG_BINPUT => {
                let key = u32::from_le_bytes(self.array()?);
                self.memoize(key)?;
            }
            MEMOIZE => {
                let key = self.memo.len() as u32;
                self.memoize(key)?;
            }
            GET => {
                let key = self
                    .line()?
                    .parse()
                    .map_err(|_| "a memo key is malformed")?;
                self.recall(key)?;
            }
            BINGET => {
                let [key] = self.array()?;
                self.recall(key.into())?;
            }
            LONG_BINGET => {
                let key = u32::from_le_bytes(self.array()?);
                self.recall(key)?;
            }
            other => return Err(format!("opcode {other:#04x} has no place in a checkpoint")),
        }
        Ok(None)
    }

    fn take(&mut self, count: usize) -> Outcome<&'a [u8]> {
        let taken = self
            .at
            .checked_add(count)
            .and_then(|end| self.bytes.get(self.at..end))
            .ok_or("it ends in the middle")?;
        self.at += count;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Outcome<[u8; N]> {
        Ok(self.take(N)?.try_into().expect("as many as asked for"))
    }

    fn length4(&mut self) -> Outcome<usize> {
        Ok(u32::from_le_bytes(self.array()?) as usize)
    }

    fn length8(&mut self) -> Outcome<usize> {
        usize::try_from(u64::from_le_bytes(self.array()?))
            .map_err(|_| "it ends in the middle".into())
    }

    fn line(&mut self) -> Outcome<&'a str> {
        let rest = &self.bytes[self.at..];
        let length = rest
            .iter()
            .position(|&byte| byte == b'\n')
            .ok_or("a line has no end")?;
        self.at += length + 1;
        std::str::from_utf8(&rest[..length]).map_err(|_| "a line is not UTF-8".into())
    }

    fn text(&mut self, length: usize) -> Outcome<()> {
        // Python 2's byte strings need not be UTF-8; none of those is a name.
        let text = String::from_utf8_lossy(self.take(length)?).into_owned();
        self.push(Node::Text(text))
    }

    fn long(&mut self, length: usize) -> Outcome<()> {
        let bytes = self.take(length)?;
        let node = if length > 8 {
            Node::Number
        } else {
            let negative = bytes.last().is_some_and(|&byte| byte >= 0x80);
            let mut value = if negative { [0xff; 8] } else { [0; 8] };
            value[..length].copy_from_slice(bytes);
            Node::Int(i64::from_le_bytes(value))
        };
        self.push(node)
    }

    fn charge(&mut self, count: usize) -> Outcome<()> {
        self.spent += count;
        if self.spent > MAX_NODES {
            return Err(format!("it builds more than {MAX_NODES} values"));
        }
        Ok(())
    }

    fn push(&mut self, node: Node) -> Outcome<()> {
        self.charge(1)?;
        let id = self.heap.push(node);
        self.push_id(id)
    }

    fn push_id(&mut self, id: Id) -> Outcome<()> {
        if self.stack.len() >= MAX_STACK {
            return Err(format!("more than {MAX_STACK} values are on the stack"));
        }
        self.stack.push(id);
        Ok(())
    }

    fn pop(&mut self) -> Outcome<Id> {
        let floor = self.marks.last().copied().unwrap_or(0);
        if self.stack.len() <= floor {
            return Err("a value is taken from an empty stack".into());
        }
        Ok(self.stack.pop().expect("longer than its floor"))
    }

    fn top(&self) -> Outcome<Id> {
        let top = self.stack.last().copied();
        top.ok_or_else(|| "a value is taken from an empty stack".into())
    }

    fn pop_mark(&mut self) -> Outcome<Vec<Id>> {
        let mark = self.marks.pop().ok_or("a mark is missing")?;
        Ok(self.stack.split_off(mark))
    }

    fn memoize(&mut self, key: u32) -> Outcome<()> {
        let top = self.top()?;
        self.charge(1)?;
        self.memo.insert(key, top);
        Ok(())
    }

    fn recall(&mut self, key: u32) -> Outcome<()> {
        let id = *self.memo.get(&key).ok_or("a memo entry is missing")?;
        self.push_id(id)
    }

    fn extend(&mut self, items: Vec<Id>) -> Outcome<()> {
        let top = self.top()?;
        match self.heap.get_mut(top) {
            Node::List(list) => list.extend(items),
            Node::Object => {}
            _ => return Err("items are added to what is not a list".into()),
        }
        Ok(())
    }

    fn set(&mut self, items: Vec<(Id, Id)>) -> Outcome<()> {
        let top = self.top()?;
        match self.heap.get_mut(top) {
            Node::Dict(dict) => dict.extend(items),
            Node::Object => {}
            _ => return Err("entries are set in what is not a dictionary".into()),
        }
        Ok(())
    }

    /// What a call would give, for the calls that make tensors and dictionaries; an inert object for the rest.
    fn reduce(&mut self, callee: Id, args: Id) -> Outcome<Node> {
        let Node::Global(name) = self.heap.get(callee) else {
            return match self.heap.get(callee) {
                Node::Object => Ok(Node::Object),
                _ => Err("something other than a class is called".into()),
            };
        };
        let args = self.heap.tuple(args).ok_or("arguments are not a tuple")?;
        let argument = |index: usize| args.get(index).copied().ok_or("an argument is missing");
        match name.as_str() {
            "torch._utils._rebuild_tensor_v2" | "torch._utils._rebuild_tensor" => {
                let storage = argument(0)?;
                if !matches!(self.heap.get(storage), Node::Storage(..)) {
                    return Err("a tensor has no storage".into());
                }
                let offset = self
                    .heap
                    .size(argument(1)?)
                    .ok_or("a tensor's offset is no count")?;
                let shape = self.sizes(argument(2)?)?;
                let strides = self.sizes(argument(3)?)?;
                Ok(Node::Tensor(View {
                    storage,
                    offset,
                    shape,
                    strides,
                }))
            }
            "torch._utils._rebuild_parameter" | "torch._utils._rebuild_parameter_with_state" => {
                match self.heap.get(argument(0)?) {
                    Node::Tensor(view) => Ok(Node::Tensor(view.clone())),
                    _ => Err("a parameter has no tensor".into()),
                }
            }
            "collections.OrderedDict"
            | "builtins.dict"
            | "__builtin__.dict"
            | "collections.defaultdict" => {
                let Some(&first) = args.first() else {
                    return Ok(Node::Dict(Vec::new()));
                };
                // Python 2 wrote a list of pairs; a defaultdict has its factory here.
                let Node::List(rows) = self.heap.get(first) else {
                    return Ok(Node::Dict(Vec::new()));
                };
                let pair = |&row: &Id| match self.heap.get(row) {
                    Node::List(pair) | Node::Tuple(pair) if pair.len() == 2 => {
                        Ok((pair[0], pair[1]))
                    }
                    _ => Err("a dictionary is made from what are not pairs"),
                };
                let dict = rows.iter().map(pair).collect::<Result<Vec<_>, _>>()?;
                self.charge(dict.len())?;
                Ok(Node::Dict(dict))
            }
            _ => Ok(Node::Object),
        }
    }

    fn sizes(&self, id: Id) -> Outcome<Vec<usize>> {
        let items = self
            .heap
            .tuple(id)
            .ok_or("a tensor's shape is not a tuple")?;
        if items.len() > MAX_RANK {
            return Err(format!("a tensor has more than {MAX_RANK} axes"));
        }
        items
            .iter()
            .map(|&item| {
                self.heap
                    .size(item)
                    .ok_or_else(|| "a tensor's side is no count".into())
            })
            .collect()
    }

    /// `("storage", torch.FloatStorage, key, device, count)`, with one more entry in the older form.
    fn storage(&self, id: Id) -> Outcome<Node> {
        let parts = self
            .heap
            .tuple(id)
            .ok_or("a reference to a storage is not a tuple")?;
        let [tag, class, key, _, count, ..] = *parts else {
            return Err("a reference to a storage is too short".into());
        };
        if self.heap.text(tag) != Some("storage") {
            return Err("a reference is to something other than a storage".into());
        }
        let Node::Global(class) = self.heap.get(class) else {
            return Err("a storage has no type".into());
        };
        let kind = match class.as_str() {
            "torch.FloatStorage" => Kind::F32,
            "torch.DoubleStorage" => Kind::F64,
            "torch.HalfStorage" => Kind::F16,
            "torch.BFloat16Storage" => Kind::Bf16,
            "torch.LongStorage" => Kind::I64,
            "torch.IntStorage" => Kind::I32,
            "torch.ShortStorage" => Kind::I16,
            "torch.ByteStorage" | "torch.BoolStorage" | "torch.storage.UntypedStorage" => Kind::U8,
            other => return Err(format!("storages of type `{other}` are not supported")),
        };
        if self.heap.text(key).is_none() {
            return Err("a storage has no key".into());
        }
        let count = self
            .heap
            .size(count)
            .ok_or("a storage's length is no count")?;
        Ok(Node::Storage(kind, key, count))
    }
}

fn pairs(items: &[Id]) -> Outcome<Vec<(Id, Id)>> {
    if !items.len().is_multiple_of(2) {
        return Err("a dictionary has a key without a value".into());
    }
    Ok(items
        .chunks_exact(2)
        .map(|pair| (pair[0], pair[1]))
        .collect())
}

/// Modules that reach the system; nothing a checkpoint holds comes from them.
const DENIED: [&str; 22] = [
    "os",
    "posix",
    "nt",
    "sys",
    "subprocess",
    "commands",
    "pty",
    "socket",
    "shutil",
    "importlib",
    "runpy",
    "code",
    "codeop",
    "ctypes",
    "pickle",
    "_pickle",
    "marshal",
    "multiprocessing",
    "asyncio",
    "webbrowser",
    "platform",
    "signal",
];

/// Of Python's own, what makes plain data.
const PLAIN: [&str; 14] = [
    "set",
    "frozenset",
    "list",
    "dict",
    "tuple",
    "int",
    "float",
    "complex",
    "bool",
    "str",
    "bytes",
    "bytearray",
    "object",
    "slice",
];

fn global(module: &str, name: &str) -> Outcome<Node> {
    if module.len() + name.len() >= MAX_NAME {
        return Err(format!("a class has a name of more than {MAX_NAME} bytes"));
    }
    let first = module.split('.').next().unwrap_or_default();
    let builtin = matches!(first, "builtins" | "__builtin__");
    if DENIED.contains(&first) || (builtin && !PLAIN.contains(&name)) {
        return Err(format!("it asks for `{module}.{name}`"));
    }
    Ok(Node::Global(format!("{module}.{name}")))
}
