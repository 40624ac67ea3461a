//! From a mnemonic to an operation and the encoding that its suffix names.

/// How an instruction with several encodings is encoded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// The only one there is, or the one that the assembler picks.
    #[default]
    Plain,
    E32,
    E64,
    Sdwa,
    Dpp,
}

/// `v_add_f32` and `E32` of `v_add_f32_e32`.
pub fn split_suffix(mnemonic: &str) -> (&str, Encoding) {
    let suffixes = [
        ("_e32", Encoding::E32),
        ("_e64", Encoding::E64),
        ("_sdwa", Encoding::Sdwa),
        ("_dpp", Encoding::Dpp),
    ];
    for (suffix, encoding) in suffixes {
        if let Some(name) = mnemonic.strip_suffix(suffix) {
            return (name, encoding);
        }
    }
    (mnemonic, Encoding::Plain)
}
