//! Arrow arrays across the border: the Arrow C data interface in types of our own, so that layout checking does not depend on
//! the version of arrow-rs on either side. The owner frees through its release callback; dropping an unread array calls it.
//!
//! Must not know what the arrays mean.

use super::{ErrorKind, PluginError};
use abi_stable::StableAbi;
use arrow_array::ArrayRef;
use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi, to_ffi};
use std::ffi::{c_char, c_void};
use std::fmt;
use std::mem::{ManuallyDrop, align_of, size_of};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Children, buffers and depth that an import accepts: far above any array of this contract, far below what could overflow.
const MAX_PARTS: i64 = 1 << 16;
const MAX_DEPTH: u32 = 16;
const MAX_LENGTH: i64 = 1 << 40;

/// `struct ArrowArray` of the C data interface.
#[repr(C)]
#[derive(StableAbi)]
struct ArrowArray {
    length: i64,
    null_count: i64,
    offset: i64,
    n_buffers: i64,
    n_children: i64,
    buffers: *mut *const c_void,
    // Really `*mut *mut ArrowArray` and so on: a layout description cannot contain itself.
    children: *mut *mut c_void,
    dictionary: *mut c_void,
    release: Option<unsafe extern "C" fn(array: *mut c_void)>,
    private_data: *mut c_void,
}

/// `struct ArrowSchema` of the C data interface.
#[repr(C)]
#[derive(StableAbi)]
struct ArrowSchema {
    format: *const c_char,
    name: *const c_char,
    metadata: *const c_char,
    flags: i64,
    n_children: i64,
    children: *mut *mut c_void,
    dictionary: *mut c_void,
    release: Option<unsafe extern "C" fn(schema: *mut c_void)>,
    private_data: *mut c_void,
}

// The C data interface fixes these sizes on 64-bit machines; arrow-rs must agree, because the structs are reinterpreted.
const _: () = assert!(
    size_of::<ArrowArray>() == 80 && size_of::<ArrowArray>() == size_of::<FFI_ArrowArray>()
);
const _: () = assert!(
    size_of::<ArrowSchema>() == 72 && size_of::<ArrowSchema>() == size_of::<FFI_ArrowSchema>()
);
const _: () = assert!(align_of::<ArrowArray>() == align_of::<FFI_ArrowArray>());
const _: () = assert!(align_of::<ArrowSchema>() == align_of::<FFI_ArrowSchema>());

impl Drop for ArrowArray {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: the interface says: call it once with the struct itself, which marks itself released.
            unsafe { release(std::ptr::from_mut(self).cast()) }
        }
    }
}

impl Drop for ArrowSchema {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: as for `ArrowArray`.
            unsafe { release(std::ptr::from_mut(self).cast()) }
        }
    }
}

/// One Arrow array with its type, owned by whoever made it until this is imported or dropped.
#[repr(C)]
#[derive(StableAbi)]
pub struct Array {
    data: ArrowArray,
    schema: ArrowSchema,
}

impl fmt::Debug for Array {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Array")
            .field("length", &self.data.length)
            .finish_non_exhaustive()
    }
}

impl Array {
    /// Lend an arrow-rs array: no value is copied; the buffers stay alive until the other side releases them.
    pub fn export(array: &dyn arrow_array::Array) -> Result<Self, PluginError> {
        let (data, schema) = to_ffi(&array.to_data()).map_err(|error| {
            PluginError::new(
                ErrorKind::INTERNAL,
                format!("Cannot export an Arrow array: {error}"),
            )
        })?;
        // SAFETY: both pairs are the structs of the C data interface, equal in size and alignment (checked above), and the
        // release callbacks move with them.
        Ok(unsafe {
            Self {
                data: std::mem::transmute::<FFI_ArrowArray, ArrowArray>(data),
                schema: std::mem::transmute::<FFI_ArrowSchema, ArrowSchema>(schema),
            }
        })
    }

    /// Take the array in without copying values. Lengths, counts and null pointers are checked first, the logical content after;
    /// what a false length would read past the end of a buffer cannot be checked by anybody.
    pub fn import(self) -> Result<ArrayRef, PluginError> {
        // SAFETY: the other side filled the structs in by the interface's rules; only pointers it counted are followed.
        unsafe {
            check_array(&raw const self.data, 0)?;
            check_schema(&raw const self.schema, 0)?;
        }
        let this = ManuallyDrop::new(self);
        // SAFETY: same layout (checked above); `this` is never used or dropped again, so each release callback has one owner.
        let (data, schema) = unsafe {
            (
                std::ptr::read((&raw const this.data).cast::<FFI_ArrowArray>()),
                std::ptr::read((&raw const this.schema).cast::<FFI_ArrowSchema>()),
            )
        };
        // arrow-rs asserts where the parts do not fit the type.
        let imported = catch_unwind(AssertUnwindSafe(|| {
            // SAFETY: `from_ffi` trusts the interface's rules; see the doc comment for what has been checked.
            let data = unsafe { from_ffi(data, &schema) }?;
            data.validate_full()?;
            Ok::<_, arrow_schema::ArrowError>(arrow_array::make_array(data))
        }));
        match imported {
            Ok(Ok(array)) => Ok(array),
            Ok(Err(error)) => Err(broken(&error.to_string())),
            Err(_) => Err(broken("its parts do not fit its type")),
        }
    }
}

fn broken(what: &str) -> PluginError {
    PluginError::new(
        ErrorKind::INVALID_REQUEST,
        format!("Arrow array breaks the C data interface: {what}"),
    )
}

/// # Safety
/// `array` and what it counts can be read.
unsafe fn check_array(array: *const ArrowArray, depth: u32) -> Result<(), PluginError> {
    // SAFETY: the caller's promise.
    let a = unsafe { &*array };
    if depth > MAX_DEPTH {
        return Err(broken("children nest too deeply"));
    }
    // Children may have been released with their parent; only the top is required to be live.
    if depth == 0 && a.release.is_none() {
        return Err(broken("the array was released before it was read"));
    }
    let lengths = [a.length, a.offset];
    if lengths.iter().any(|&n| !(0..=MAX_LENGTH).contains(&n))
        || !(-1..=a.length).contains(&a.null_count)
    {
        return Err(broken(&format!(
            "length {}, offset {}, null count {}",
            a.length, a.offset, a.null_count
        )));
    }
    if !(0..=MAX_PARTS).contains(&a.n_buffers) || !(0..=MAX_PARTS).contains(&a.n_children) {
        return Err(broken(&format!(
            "{} buffers, {} children",
            a.n_buffers, a.n_children
        )));
    }
    if (a.n_buffers > 0 && a.buffers.is_null()) || (a.n_children > 0 && a.children.is_null()) {
        return Err(broken("a list of parts is missing"));
    }
    for i in 0..a.n_children as usize {
        // SAFETY: `children` has `n_children` entries by the interface's rules.
        let child = unsafe { *a.children.add(i) }.cast::<ArrowArray>();
        if child.is_null() {
            return Err(broken("a child is missing"));
        }
        // SAFETY: a non-null child is an array.
        unsafe { check_array(child, depth + 1)? };
    }
    Ok(())
}

/// # Safety
/// `schema` and what it counts can be read.
unsafe fn check_schema(schema: *const ArrowSchema, depth: u32) -> Result<(), PluginError> {
    // SAFETY: the caller's promise.
    let s = unsafe { &*schema };
    if depth > MAX_DEPTH {
        return Err(broken("types nest too deeply"));
    }
    if (depth == 0 && s.release.is_none()) || s.format.is_null() {
        return Err(broken("the type was released before it was read"));
    }
    if !(0..=MAX_PARTS).contains(&s.n_children) || (s.n_children > 0 && s.children.is_null()) {
        return Err(broken(&format!("a type with {} children", s.n_children)));
    }
    for i in 0..s.n_children as usize {
        // SAFETY: `children` has `n_children` entries by the interface's rules.
        let child = unsafe { *s.children.add(i) }.cast::<ArrowSchema>();
        if child.is_null() {
            return Err(broken("a child type is missing"));
        }
        // SAFETY: a non-null child is a schema.
        unsafe { check_schema(child, depth + 1)? };
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{Array as _, FixedSizeBinaryArray, FixedSizeListArray, Float32Array};
    use arrow_buffer::Buffer;
    use arrow_schema::{DataType, Field};
    use std::ptr::NonNull;
    use std::sync::Arc;

    fn list(values: Vec<f32>, dim: i32) -> FixedSizeListArray {
        FixedSizeListArray::new(
            Arc::new(Field::new("item", DataType::Float32, false)),
            dim,
            Arc::new(Float32Array::from(values)),
            None,
        )
    }

    #[test]
    fn values_cross_without_a_copy() {
        let array = list(vec![1.0, -0.0, f32::INFINITY, 4.0], 2);
        let before = array.values().to_data().buffers()[0].as_ptr();
        let back = Array::export(&array)
            .expect("exports")
            .import()
            .expect("imports");
        assert_eq!(back.to_data().child_data()[0].buffers()[0].as_ptr(), before);
        assert_eq!(back.as_ref(), &array as &dyn arrow_array::Array);
    }

    #[test]
    fn the_owner_is_told_whether_read_or_dropped() {
        for read in [true, false] {
            let memory: Arc<Vec<u8>> = Arc::new(vec![7; 12]);
            let start = NonNull::new(memory.as_ptr().cast_mut()).expect("allocated");
            // SAFETY: the memory lives as long as its Arc, which the buffer holds.
            let buffer = unsafe { Buffer::from_custom_allocation(start, 12, memory.clone()) };
            let pixels = FixedSizeBinaryArray::new(6, buffer, None);
            let lent = Array::export(&pixels).expect("exports");
            drop(pixels);
            assert_eq!(Arc::strong_count(&memory), 2);
            if read {
                let array = lent.import().expect("imports");
                assert_eq!(array.len(), 2);
                drop(array);
            } else {
                drop(lent);
            }
            assert_eq!(Arc::strong_count(&memory), 1, "read: {read}");
        }
    }

    #[test]
    fn lies_about_lengths_and_parts_are_refused_and_still_released() {
        let lies: [fn(&mut Array); 8] = [
            |a| a.data.length = -1,
            |a| a.data.offset = i64::MAX,
            |a| a.data.null_count = 99,
            |a| a.data.n_buffers = i64::MAX,
            |a| a.data.n_children = -3,
            |a| a.data.children = std::ptr::null_mut(),
            |a| a.schema.children = std::ptr::null_mut(),
            // More rows than the child has values for.
            |a| a.data.length = 3,
        ];
        for (number, lie) in lies.into_iter().enumerate() {
            let mut array = Array::export(&list(vec![1.0; 4], 2)).expect("exports");
            let (children, types) = (array.data.children, array.schema.children);
            lie(&mut array);
            let error = if number == 7 {
                array.import().expect_err("refused")
            } else {
                // SAFETY: reads only what the array counts.
                let error = unsafe {
                    check_array(&raw const array.data, 0)
                        .and(check_schema(&raw const array.schema, 0))
                }
                .expect_err("refused");
                // Mend it, so that the release callback finds its own.
                (array.data.children, array.schema.children) = (children, types);
                (
                    array.data.n_buffers,
                    array.data.n_children,
                    array.data.length,
                ) = (1, 1, 2);
                error
            };
            assert_eq!(
                error.kind(),
                ErrorKind::INVALID_REQUEST,
                "lie {number}: {error}"
            );
        }
    }

    #[test]
    fn a_released_array_is_refused() {
        let mut array = Array::export(&list(vec![1.0; 4], 2)).expect("exports");
        let release = array.data.release.expect("live");
        // SAFETY: the interface allows the consumer to release early.
        unsafe { release((&raw mut array.data).cast()) };
        assert!(
            array
                .import()
                .expect_err("refused")
                .message()
                .contains("released")
        );
    }
}
