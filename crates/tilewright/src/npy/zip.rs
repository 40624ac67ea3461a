//! `.npz`: a zip archive with one `.npy` file for each array, by its name.

use miniz_oxide::inflate::decompress_to_vec_with_limit;

use super::{Array, Problem, problem};

const ENTRY: u32 = 0x0403_4b50;
const LISTED: u32 = 0x0201_4b50;
const END: u32 = 0x0605_4b50;

/// Reads an archive: the arrays by name, in its order.
pub fn read_archive(bytes: &[u8]) -> Result<Vec<(String, Array)>, Problem> {
    let cut = || Problem("the archive is cut short".to_string());
    let end = find_end(bytes).ok_or_else(|| Problem("it is no zip archive".to_string()))?;
    let count = u16_at(bytes, end + 10).ok_or_else(cut)?;
    let mut at = u32_at(bytes, end + 16).ok_or_else(cut)? as usize;
    let mut arrays = Vec::new();
    for _ in 0..count {
        if u32_at(bytes, at) != Some(LISTED) {
            return Err(cut());
        }
        let u16 = |offset: usize| u16_at(bytes, at + offset).ok_or_else(cut);
        let u32 = |offset: usize| u32_at(bytes, at + offset).ok_or_else(cut);
        let (method, sum) = (u16(10)?, u32(16)?);
        let (packed, size) = (u32(20)? as usize, u32(24)? as usize);
        let (name_len, extra, comment) = (u16(28)? as usize, u16(30)? as usize, u16(32)? as usize);
        let entry = u32(42)? as usize;
        let name = bytes.get(at + 46..at + 46 + name_len).ok_or_else(cut)?;
        let name = String::from_utf8_lossy(name).into_owned();
        at += 46 + name_len + extra + comment;
        let Some(array) = name.strip_suffix(".npy") else {
            continue;
        };
        if [packed, size, entry].contains(&(u32::MAX as usize)) {
            return problem(format!("`{name}` is larger than 4 GiB"));
        }
        if u32_at(bytes, entry) != Some(ENTRY) {
            return Err(cut());
        }
        let own = |offset: usize| u16_at(bytes, entry + offset).ok_or_else(cut);
        let start = entry + 30 + own(26)? as usize + own(28)? as usize;
        let data = bytes.get(start..start + packed).ok_or_else(cut)?;
        let data = match method {
            0 => data.to_vec(),
            8 => decompress_to_vec_with_limit(data, size)
                .map_err(|e| Problem(format!("`{name}` cannot be unpacked: {e}")))?,
            other => return problem(format!("`{name}` is packed by method {other}")),
        };
        if data.len() != size || checksum(&data) != sum {
            return problem(format!("`{name}` is damaged: its checksum is wrong"));
        }
        let parsed = Array::parse(&data).map_err(|e| Problem(format!("`{name}`: {e}")))?;
        arrays.push((array.to_string(), parsed));
    }
    Ok(arrays)
}

/// An archive of `.npy` files, as they are.
pub fn write_archive(files: &[(String, Vec<u8>)]) -> Result<Vec<u8>, Problem> {
    let (mut out, mut list) = (Vec::new(), Vec::new());
    for (name, data) in files {
        let name = format!("{name}.npy");
        let (Ok(at), Ok(size)) = (u32::try_from(out.len()), u32::try_from(data.len())) else {
            return problem("an archive holds less than 4 GiB; write a folder");
        };
        // Version, flags, method, time and date (the first that there is).
        let mut facts = Vec::new();
        for n in [20u16, 0, 0, 0, 0x21] {
            facts.extend_from_slice(&n.to_le_bytes());
        }
        for n in [checksum(data), size, size] {
            facts.extend_from_slice(&n.to_le_bytes());
        }
        facts.extend_from_slice(&(name.len() as u16).to_le_bytes());
        facts.extend_from_slice(&[0, 0]);
        out.extend_from_slice(&ENTRY.to_le_bytes());
        out.extend_from_slice(&facts);
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(data);
        list.extend_from_slice(&LISTED.to_le_bytes());
        list.extend_from_slice(&20u16.to_le_bytes());
        list.extend_from_slice(&facts);
        // Comment, disk and attributes: none.
        list.extend_from_slice(&[0; 10]);
        list.extend_from_slice(&at.to_le_bytes());
        list.extend_from_slice(name.as_bytes());
    }
    let Ok(start) = u32::try_from(out.len()) else {
        return problem("an archive holds less than 4 GiB; write a folder");
    };
    out.extend_from_slice(&list);
    let count = (files.len() as u16).to_le_bytes();
    out.extend_from_slice(&END.to_le_bytes());
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&count);
    out.extend_from_slice(&count);
    out.extend_from_slice(&(list.len() as u32).to_le_bytes());
    out.extend_from_slice(&start.to_le_bytes());
    out.extend_from_slice(&[0; 2]);
    Ok(out)
}

/// The record at the end, behind which only a comment may stand.
fn find_end(bytes: &[u8]) -> Option<usize> {
    let last = bytes.len().checked_sub(22)?;
    let first = last.saturating_sub(usize::from(u16::MAX));
    (first..=last)
        .rev()
        .find(|at| u32_at(bytes, *at) == Some(END))
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    let two = bytes.get(at..at.checked_add(2)?)?;
    Some(u16::from_le_bytes(two.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let four = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_le_bytes(four.try_into().ok()?))
}

/// CRC-32 as zip has it.
fn checksum(bytes: &[u8]) -> u32 {
    const TABLE: [u32; 256] = {
        let mut table = [0u32; 256];
        let mut n = 0;
        while n < 256 {
            let (mut c, mut bit) = (n as u32, 0);
            while bit < 8 {
                c = if c & 1 == 1 {
                    0xedb8_8320 ^ (c >> 1)
                } else {
                    c >> 1
                };
                bit += 1;
            }
            table[n] = c;
            n += 1;
        }
        table
    };
    let step = |c: u32, b: &u8| TABLE[((c ^ u32::from(*b)) & 0xff) as usize] ^ (c >> 8);
    !bytes.iter().fold(!0, step)
}
