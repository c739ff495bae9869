use flate2::Compression;
use flate2::bufread::MultiGzDecoder;
use flate2::write::GzEncoder;
use std::io::{self, Read, Write};

/// Packs what is in memory with gzip.
#[expect(clippy::missing_panics_doc, reason = "memory takes what is written")]
pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    packed.write_all(bytes).expect("memory takes it");
    packed.finish().expect("memory takes it")
}

/// Unpacks what gzip has packed, up to a number of bytes.
///
/// # Errors
/// If it is not of gzip, damaged, or has more than `most` bytes.
pub fn gunzip(packed: &[u8], most: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    MultiGzDecoder::new(packed).take(most as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > most {
        return Err(io::Error::other(format!("it unpacks to more than {most} bytes")));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_comes_back_up_to_a_bound() {
        let bytes = vec![7; 100_000];
        let packed = gzip(&bytes);
        assert!(packed.len() < 1000);
        assert_eq!(gunzip(&packed, bytes.len()).expect("unpacked"), bytes);
        let error = gunzip(&packed, bytes.len() - 1).expect_err("too long");
        assert!(error.to_string().contains("99999"), "{error}");
        gunzip(&packed[..packed.len() - 1], bytes.len()).expect_err("cut off");
        gunzip(b"{}", 10).expect_err("not packed");
    }
}
