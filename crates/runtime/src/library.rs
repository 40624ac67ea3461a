//! C libraries loaded at run time.
//!
//! NVRTC, the CUDA driver and the HIP runtime are reached through our own tables of function pointers over
//! `libloading` and not through a bindings crate. A table can be opened from an explicit path (a
//! Python wheel, `CUDA_HOME`), a missing library or symbol is an error value and never a panic,
//! one build works with every driver version, and a test can fill the table with functions of
//! its own.

use std::fmt;
use std::path::{Path, PathBuf};

/// Why a library could not be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadError {
    /// The system's loader refused the file.
    Open { library: PathBuf, reason: String },
    /// The library is there but lacks a function we call.
    Symbol {
        library: PathBuf,
        symbol: &'static str,
    },
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open { library, reason } => {
                write!(f, "cannot load {}: {reason}", library.display())
            }
            Self::Symbol { library, symbol } => {
                write!(
                    f,
                    "{} has no function `{symbol}`; it is too old",
                    library.display()
                )
            }
        }
    }
}

impl std::error::Error for LoadError {}

/// Opens a library that stays loaded until the process ends: function pointers copied out of it
/// are valid for ever, and neither NVRTC nor a GPU's driver can be unloaded safely.
pub(crate) fn open(path: &Path) -> Result<&'static libloading::Library, LoadError> {
    // SAFETY: loading runs the library's initialisers. The path is one the user configured or a
    // well-known place of the vendors' own libraries, whose initialisers need nothing from us.
    let library = unsafe { libloading::Library::new(path) }.map_err(|error| LoadError::Open {
        library: path.to_owned(),
        reason: innermost(&error, path),
    })?;
    Ok(Box::leak(Box::new(library)))
}

/// A function of a library.
///
/// # Safety
///
/// `F` must be the C prototype of the function, as `unsafe extern "C" fn`.
pub(crate) unsafe fn function<F: Copy>(
    library: &libloading::Library,
    path: &Path,
    symbol: &'static str,
) -> Result<F, LoadError> {
    // SAFETY: the caller vouches for the type.
    match unsafe { library.get::<F>(symbol.as_bytes()) } {
        Ok(found) => Ok(*found),
        Err(_) => Err(LoadError::Symbol {
            library: path.to_owned(),
            symbol,
        }),
    }
}

/// `libloading` wraps the loader's own sentence, which is the one that helps. It starts with the
/// path, which our error has already.
fn innermost(error: &dyn std::error::Error, path: &Path) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    let text = error.to_string();
    let prefix = format!("{}: ", path.display());
    text.strip_prefix(&prefix).unwrap_or(&text).to_owned()
}

/// Declares a table of C functions and `load`, which fills it from a library. Functions after
/// `optional` are `None` in a library that is too old to have them.
macro_rules! c_api {
    (
        $(#[$meta:meta])*
        pub(crate) struct $name:ident {
            $( $field:ident = $symbol:literal ( $($arg:ty),* $(,)? ) -> $ret:ty; )*
        }
        optional {
            $( $ofield:ident = $osymbol:literal ( $($oarg:ty),* $(,)? ) -> $oret:ty; )*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug)]
        pub(crate) struct $name {
            $( pub(crate) $field: unsafe extern "C" fn($($arg),*) -> $ret, )*
            $( pub(crate) $ofield: Option<unsafe extern "C" fn($($oarg),*) -> $oret>, )*
        }

        impl $name {
            pub(crate) fn load(path: &::std::path::Path) -> Result<Self, $crate::library::LoadError> {
                let library = $crate::library::open(path)?;
                // SAFETY: the declared types are the C prototypes of these functions.
                unsafe {
                    Ok(Self {
                        $( $field: $crate::library::function(library, path, $symbol)?, )*
                        $( $ofield: $crate::library::function(library, path, $osymbol).ok(), )*
                    })
                }
            }
        }
    };
}
pub(crate) use c_api;

/// Declares a table of C functions that every vendor has, under names of its own: the names, the
/// functions, and `load`, which fills the table from one vendor's library.
macro_rules! vendors_api {
    (
        $(#[$names_meta:meta])*
        names $names:ident;
        $(#[$meta:meta])*
        functions $functions:ident {
            $( $field:ident ( $($arg:ty),* $(,)? ) -> $ret:ty; )*
        }
    ) => {
        $(#[$names_meta])*
        #[derive(Debug)]
        pub(super) struct $names {
            $( pub $field: &'static str, )*
        }

        $(#[$meta])*
        #[derive(Clone, Debug)]
        pub(super) struct $functions {
            $( pub $field: unsafe extern "C" fn($($arg),*) -> $ret, )*
        }

        impl $functions {
            pub(super) fn load(
                path: &::std::path::Path,
                names: &$names,
            ) -> Result<Self, $crate::library::LoadError> {
                let library = $crate::library::open(path)?;
                // SAFETY: the declared types are the C prototypes of these functions, in the
                // library of every vendor.
                unsafe {
                    Ok(Self {
                        $( $field: $crate::library::function(library, path, names.$field)?, )*
                    })
                }
            }
        }
    };
}
pub(crate) use vendors_api;

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::c_int;

    c_api! {
        pub(crate) struct Libc {
            abs = "abs"(c_int) -> c_int;
        }
        optional {
            no_such = "tilewright_no_such_function"(c_int) -> c_int;
        }
    }

    c_api! {
        pub(crate) struct Wanting {
            no_such = "tilewright_no_such_function"(c_int) -> c_int;
        }
        optional {}
    }

    #[test]
    fn a_table_is_filled_and_optional_functions_may_be_missing() {
        let libc = Libc::load(Path::new("libc.so.6")).unwrap();
        // SAFETY: `abs` takes and returns an int.
        assert_eq!(unsafe { (libc.abs)(-3) }, 3);
        assert!(libc.no_such.is_none());
    }

    #[test]
    fn a_missing_function_is_named() {
        let error = Wanting::load(Path::new("libc.so.6"))
            .map(|table| table.no_such)
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            "libc.so.6 has no function `tilewright_no_such_function`; it is too old"
        );
    }

    #[test]
    fn a_missing_library_is_an_error() {
        let error = Libc::load(Path::new("/no/such/lib.so")).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("cannot load /no/such/lib.so: "),
            "{error}"
        );
    }
}
