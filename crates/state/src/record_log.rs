use crate::Error;
use crate::disk::{Directory, Disk};
use crate::frames::{FrameFile, JournalTail, file_name, read_frames, sequence_of};
use crate::limits::MAX_FRAME_BYTES;
use crate::log::FRAME_HEADER_BYTES;
use std::sync::Arc;

const NAME: &str = "records";
const KIND: [u8; 4] = *b"RECS";

/// Records of any bytes, in the order in which they were appended, for a directory of their own.
///
/// A record is one write without a sync, so it survives the process, however that ends. There is
/// one file, but while it is [rewritten](Self::rewrite). After one failed write all others are
/// refused.
#[derive(Debug)]
pub struct RecordLog {
    directory: Directory,
    /// The files of earlier processes.
    earlier: Vec<u64>,
    open: Option<FrameFile>,
    tails: Vec<JournalTail>,
}

impl RecordLog {
    /// Gives all records of earlier processes. The first record that is appended begins a file
    /// beside theirs; a rewrite removes those.
    ///
    /// # Errors
    /// When a file cannot be read, or is none of these.
    pub fn open(disk: impl Disk + 'static, mut each: impl FnMut(&[u8])) -> Result<Self, Error> {
        let directory = Directory::new(Arc::new(disk));
        let names = directory.list()?;
        let mut earlier: Vec<_> = names.iter().filter_map(|name| sequence_of(NAME, name)).collect();
        earlier.sort_unstable();
        let mut tails = Vec::new();
        for sequence in &earlier {
            let Some(file) = directory.open(&file_name(NAME, *sequence))? else { continue };
            let tail = read_frames(&file, (KIND, *sequence), |_, payload| {
                each(payload);
                Ok(())
            })?;
            tails.extend(tail);
        }
        Ok(Self { directory, earlier, open: None, tails })
    }

    /// The ends of files that could not be read when the log was opened.
    pub fn tails(&self) -> &[JournalTail] {
        &self.tails
    }

    /// Bytes of the file that is appended to.
    pub fn bytes(&self) -> u64 {
        self.open.as_ref().map_or(0, |open| open.end)
    }

    /// Appends a record.
    ///
    /// # Errors
    /// The system's. After one, all writes are refused.
    ///
    /// # Panics
    /// When the record has more than [`MAX_FRAME_BYTES`].
    pub fn append(&mut self, record: &[u8]) -> Result<(), Error> {
        assert!(record.len() <= MAX_FRAME_BYTES, "a frame is at most {MAX_FRAME_BYTES} bytes");
        if self.open.is_none() {
            self.open = Some(self.begin()?);
        }
        let open = self.open.as_mut().expect("begun above");
        write(open, record)
    }

    /// Replaces all records with these, in a new file.
    ///
    /// # Errors
    /// As for [`append`](Self::append). Then the old records are still there, and some of the new
    /// ones behind them.
    ///
    /// # Panics
    /// As [`append`](Self::append).
    pub fn rewrite(&mut self, records: impl Iterator<Item = Vec<u8>>) -> Result<(), Error> {
        let mut file = self.begin()?;
        for record in records {
            assert!(record.len() <= MAX_FRAME_BYTES, "a frame is at most {MAX_FRAME_BYTES} bytes");
            write(&mut file, &record)?;
        }
        let old = self.open.replace(file).map(|file| file.sequence);
        for sequence in self.earlier.drain(..).chain(old) {
            self.directory.remove(&file_name(NAME, sequence))?;
        }
        Ok(())
    }

    fn begin(&self) -> Result<FrameFile, Error> {
        let open = self.open.as_ref().map(|file| file.sequence);
        let sequence = open.or(self.earlier.last().copied()).map_or(1, |last| last + 1);
        FrameFile::begin(&self.directory, &file_name(NAME, sequence), (KIND, sequence))
    }
}

fn write(file: &mut FrameFile, record: &[u8]) -> Result<(), Error> {
    let mut frame = Vec::with_capacity(FRAME_HEADER_BYTES + record.len());
    frame.resize(FRAME_HEADER_BYTES, 0);
    frame.extend_from_slice(record);
    file.write(&mut frame)
}
