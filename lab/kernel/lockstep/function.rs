//! Looks up functions of the C library and of QEMU by name.

use core::ffi::{CStr, c_char, c_void};
use core::marker::PhantomData;
use core::mem::transmute_copy;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering::SeqCst};

#[link(name = "c")]
unsafe extern "C" {
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
}

/// A function of type `F`, which is looked up by name at its first use.
pub(crate) struct Function<F> {
    name: &'static CStr,
    /// The place where dlsym(3) searches for the function: `RTLD_NEXT` or `RTLD_DEFAULT`.
    handle: usize,
    address: AtomicPtr<c_void>,
    kind: PhantomData<F>,
}

impl<F: Copy> Function<F> {
    /// Returns the C library's function called `name`, which a function of this library replaces.
    ///
    /// # Safety
    /// `F` must be the type of the function with this name.
    pub(crate) const unsafe fn next(name: &'static CStr) -> Self {
        const RTLD_NEXT: usize = usize::MAX;
        Self { name, handle: RTLD_NEXT, address: AtomicPtr::new(null_mut()), kind: PhantomData }
    }

    /// Returns a function that QEMU exports for its modules and plugins.
    ///
    /// # Safety
    /// `F` must be the type of the function with this name.
    pub(crate) const unsafe fn of_qemu(name: &'static CStr) -> Self {
        const RTLD_DEFAULT: usize = 0;
        Self { name, handle: RTLD_DEFAULT, address: AtomicPtr::new(null_mut()), kind: PhantomData }
    }

    /// Returns the function; `None` if no function has this name.
    pub(crate) fn get(&self) -> Option<F> {
        if self.address.load(SeqCst).is_null() {
            // SAFETY: the handle is one of the two constants, and the name ends with a zero.
            self.address.store(unsafe { dlsym(self.handle as *mut c_void, self.name.as_ptr()) }, SeqCst);
        }
        let address = self.address.load(SeqCst);
        // SAFETY: the creator of this value guarantees the type of the function, which is that of a pointer.
        (!address.is_null()).then(|| unsafe { transmute_copy(&address) })
    }
}
